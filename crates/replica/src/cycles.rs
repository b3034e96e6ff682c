//! Cycles that messages and storage cost on a subnet of 13 nodes, and those that a canister reserves for
//! storage when the memory of its subnet becomes scarce.
//!
//! ```text
//!    0            threshold           capacity
//!    ├────────────────┼──────────────────┤
//!     reserves nothing  storage fees of up to 300 M seconds, in proportion to what is in use
//! ```
//!
//! The memory is divided by the number of cores, each of which may use its part in a round.
//!
//! Source: `rs/config/src/subnet_config.rs`, `rs/cycles_account_manager`, and
//! `subnet_memory_saturation` in `rs/execution_environment/src/execution_environment.rs` of the
//! replica. The conformance cases check the charge of each update.

use crate::fault::Fault;
use crate::rules::{CORES, MAX_RESERVATION, Rules, SCARCE_MEMORY, SUBNET_CAPACITY, SUBNET_MEMORY};
use crate::units::{Bytes, Cycles, Instructions};

/// Bytes of an ingress message other than the method's name and the argument.
const INGRESS_ENVELOPE: usize = 121;
/// Bytes of a canister's id.
const CANISTER_ID: u128 = 10;
/// Number of nodes of the subnet.
pub const NODES: u128 = 13;

/// Length of the CBOR header of a string of `length` bytes, without its first byte.
const fn header(length: usize) -> usize {
    match length {
        0..=23 => 0,
        24..=255 => 1,
        256..=65_535 => 2,
        _ => 4,
    }
}

/// Cycles for the induction of an update with that method and argument.
pub fn induction(rules: Rules, method: &str, argument: &[u8]) -> Cycles {
    let bytes = INGRESS_ENVELOPE
        + method.len()
        + argument.len()
        + header(method.len())
        + header(argument.len());
    ingress(rules, Bytes(bytes as u64))
}

/// Cycles for the induction of a message to the management canister, whose id is empty.
pub fn management_induction(rules: Rules, method: &str, argument: &[u8]) -> Cycles {
    induction(rules, method, argument) - Cycles(rules.fees().ingress_byte * CANISTER_ID)
}

/// Cycles for the induction of an ingress message of this size.
pub fn ingress(rules: Rules, bytes: Bytes) -> Cycles {
    let fees = rules.fees();
    Cycles(fees.ingress + fees.ingress_byte * u128::from(bytes.get()))
}

/// Cycles for executing a message that is charged `charge` instructions.
pub fn execution(rules: Rules, charge: Instructions, wasm64: bool) -> Cycles {
    Cycles(rules.fees().execution) + instructions(rules, charge, wasm64)
}

/// Cycles for an installation that is charged `charge` instructions.
pub fn install(rules: Rules, charge: Instructions, wasm64: bool) -> Cycles {
    execution(rules, charge, wasm64 && !rules.set().installs_at_32_bit_rate)
}

/// Cycles for instructions, without the base fee of a message.
pub fn instructions(rules: Rules, charge: Instructions, wasm64: bool) -> Cycles {
    let fees = rules.fees();
    let each = if wasm64 { fees.instruction64 } else { fees.instruction };
    Cycles(each * u128::from(charge.get()))
}

/// Cycles for a method of the management canister that is charged `charge` instructions.
pub fn management(rules: Rules, charge: Instructions) -> Cycles {
    Cycles(rules.fees().management) + instructions(rules, charge, false)
}

/// Cycles for the creation of a canister.
pub fn creation(rules: Rules) -> Cycles {
    Cycles(rules.fees().creation)
}

/// Cycles taken for a call with `bytes` of name and argument when it is made: its transmission,
/// and what is reserved for the response. `ic0.cost_call` reports them.
pub fn request(rules: Rules, bytes: Bytes, wasm64: bool) -> Cycles {
    transmission(rules, bytes)
        + response(rules, rules.set().messages.reply)
        + callback(rules, wasm64)
}

/// Cycles for the transmission of a call with `bytes` of name and argument.
pub fn transmission(rules: Rules, bytes: Bytes) -> Cycles {
    let fees = rules.fees();
    Cycles(fees.call + fees.call_byte * u128::from(bytes.get()))
}

/// Cycles for the transmission of a response.
pub fn response(rules: Rules, bytes: Bytes) -> Cycles {
    Cycles(rules.fees().call_byte * u128::from(bytes.get()))
}

/// Cycles reserved for the execution of a callback.
pub fn callback(rules: Rules, wasm64: bool) -> Cycles {
    execution(rules, rules.instructions().update, wasm64)
}

/// Cycles for an HTTPS outcall.
pub fn http_request(rules: Rules, request: u64, response: u64) -> Cycles {
    let fees = rules.fees();
    let bytes = fees.http_request_byte * u128::from(request)
        + fees.http_response_byte * u128::from(response);
    Cycles((fees.http_request + fees.http_request_quadratic * NODES + bytes) * NODES)
}

/// Threshold keys, and the number of nodes of the subnet that holds each on the network.
pub const KEYS: [(&str, u128); 3] = [("dfx_test_key", 13), ("key_1", 34), ("test_key_1", 13)];
/// Cycles for a threshold signature on a subnet of 13 nodes.
const SIGNATURE: u128 = 10_000_000_000;

/// Cycles for a signature with the threshold key of a name. `None` if there is no such key.
pub fn signature(name: &str) -> Option<Cycles> {
    let (_, nodes) = KEYS.iter().find(|(key, _)| *key == name)?;
    Some(Cycles(SIGNATURE * nodes / NODES))
}

/// Seconds of a day.
const DAY: u128 = 86_400;
/// Seconds for which a canister must be able to pay before it freezes, by default.
pub const FREEZING_SECONDS: u64 = 30 * 86_400;

/// The balance below which a canister freezes: storage and base fee for some time.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// The rules.
    pub rules: Rules,
    /// The time in seconds.
    pub seconds: u64,
    /// Bytes of the canister besides its two memories.
    pub other: Bytes,
    /// Bytes of its messages, and bytes reserved for responses.
    pub messages: Bytes,
    /// Compute allocation, in percent of a core.
    pub compute: u64,
    /// Memory allocation, paid for whether it is used or not; 0 for none.
    pub allocated: Bytes,
    /// Cycles that are reserved for this.
    pub reserved: Cycles,
}

impl Threshold {
    /// The balance for a canister whose two memories have `memories` bytes and whose messages have
    /// `sent` more bytes.
    pub fn cycles(&self, memories: Bytes, sent: Bytes) -> Cycles {
        let rate: u128 = self.rates(memories, sent).into_iter().sum();
        let cycles = rate.saturating_mul(u128::from(self.seconds)) / DAY;
        Cycles(cycles).saturating_sub(self.reserved)
    }

    /// What the canister pays for a day without messages.
    pub fn day(&self, memories: Bytes) -> Cycles {
        Cycles(self.rates(memories, Bytes(0)).into_iter().sum())
    }

    /// Storage charge for this number of seconds.
    pub fn charge(&self, memories: Bytes, seconds: u64) -> Cycles {
        let rates = self.rates(memories, Bytes(0)).into_iter();
        Cycles(rates.map(|rate| rate * u128::from(seconds) / DAY).sum())
    }

    /// Cycles of a day: for memory, for messages, for compute, and the base fee.
    fn rates(&self, memories: Bytes, sent: Bytes) -> [u128; 4] {
        let fees = self.rules.fees();
        let storage =
            |bytes: Bytes| u128::from(bytes.get()) * fees.storage_gib_second * DAY / (1 << 30);
        let memory = (memories + self.other).max(self.allocated);
        // A canister without memory has no base fee.
        let base = if memory == Bytes(0) { 0 } else { fees.canister_second * DAY };
        let compute = fees.compute_percent_second * u128::from(self.compute) * DAY;
        [storage(memory), storage(self.messages + sent), compute, base]
    }
}

/// Memory of a subnet, in the part of one core.
const CAPACITY: u64 = SUBNET_CAPACITY.get() / CORES as u64;
/// Memory from which on it is scarce, in the part of one core.
const SCARCE: u64 = SCARCE_MEMORY.get() / CORES as u64;

/// Bytes of a subnet's memory that are in use, in the part of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saturation(Bytes);

impl Saturation {
    /// The saturation of a subnet whose canisters occupy this number of bytes.
    pub fn new(occupied: Bytes) -> Self {
        Self(Bytes(CAPACITY - Self::free(occupied).get()))
    }

    /// Returns the free memory of a subnet whose canisters occupy `occupied` bytes.
    pub fn free(occupied: Bytes) -> Bytes {
        Bytes(SUBNET_MEMORY.get().saturating_sub(occupied.get()) / CORES as u64)
    }

    /// The saturation with this number of bytes more.
    #[must_use]
    pub fn plus(self, bytes: Bytes) -> Self {
        Self(Bytes(self.0.get().saturating_add(bytes.get()).min(CAPACITY)))
    }

    /// Bytes that are not in use, in the part of one core.
    pub fn left(self) -> Bytes {
        Bytes(CAPACITY).saturating_sub(self.0)
    }

    /// True if cycles are reserved for every byte more.
    pub fn is_scarce(self) -> bool {
        self.0.get() > SCARCE
    }

    /// Cycles to reserve for this number of bytes more.
    pub fn reservation(self, rules: Rules, bytes: Bytes) -> Cycles {
        self.plus(bytes).total(rules) - self.total(rules)
    }

    /// Cycles to reserve for everything up to here.
    fn total(self, rules: Rules) -> Cycles {
        let above = self.0.get().saturating_sub(SCARCE);
        let seconds =
            u128::from(MAX_RESERVATION) * u128::from(above) / u128::from(CAPACITY - SCARCE);
        // The fee grows evenly from the threshold on: half of the last one on average.
        let fee = rules.fees().storage_gib_second;
        Cycles(u128::from(above) * fee * (seconds / 2) / (1 << 30))
    }
}

/// The cycles that a canister has reserved for storage, and the most that it wants to reserve.
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    /// Cycles that it has reserved.
    pub reserved: Cycles,
    /// The most that it wants to reserve.
    pub limit: Cycles,
    /// Memory of the subnet that is in use.
    pub saturation: Saturation,
}

impl Reserve {
    /// Returns the cycles to reserve for memory that grows by `bytes`, after it grew by `before`.
    ///
    /// # Errors
    ///
    /// If the canister does not want to reserve so much.
    pub fn growth(&self, rules: Rules, before: Bytes, bytes: Bytes) -> Result<Cycles, Fault> {
        let cycles = self.saturation.plus(before).reservation(rules, bytes);
        let earlier = self.saturation.reservation(rules, before);
        let excess = (self.reserved + earlier + cycles).get().saturating_sub(self.limit.get());
        match excess {
            0 => Ok(cycles),
            excess => {
                Err(Fault::ReservedCycles { bytes, limit: self.limit, excess: Cycles(excess) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_method_costs_the_base_fee() {
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            let cycles =
                induction(rules, "missing", &[]) + execution(rules, Instructions(0), false);
            assert_eq!(cycles, Cycles(6_456_000));
        }
    }

    #[test]
    fn a_signature_costs_more_on_a_larger_subnet() {
        assert_eq!(signature("test_key_1"), Some(Cycles(10_000_000_000)));
        assert_eq!(signature("key_1"), Some(Cycles(26_153_846_153)));
        assert_eq!(signature("key_2"), None);
    }

    #[test]
    fn headers_grow_with_the_argument() {
        let rules = Rules::today();
        let bytes = |length| induction(rules, "size", &vec![0; length]).get();
        for (length, step) in [(24, 2), (256, 2), (65_536, 3)] {
            assert_eq!(bytes(length) - bytes(length - 1), step * 2_000, "{length}");
        }
    }

    #[test]
    fn freezing_includes_the_base_fee_since_2026() {
        let gib = Bytes(1 << 30);
        let threshold = |rules, other| {
            let seconds = FREEZING_SECONDS;
            let (allocated, reserved) = (Bytes(0), Cycles(0));
            let messages = Bytes(0);
            Threshold { rules, seconds, other, messages, compute: 0, allocated, reserved }
        };
        let month = |rules| threshold(rules, gib).cycles(Bytes(0), Bytes(0)).get();
        assert_eq!(month(Rules::of_2025_10()), 127_000 * 86_400 * 30);
        assert_eq!(month(Rules::of_2026_08()), (317_500 + 10_000) * 86_400 * 30);
        let empty = threshold(Rules::of_2026_08(), Bytes(0));
        assert_eq!(empty.cycles(Bytes(0), Bytes(0)), Cycles(0));
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn nothing_is_reserved_while_memory_is_free() {
        let rules = Rules::today();
        let free = Saturation::new(Bytes(0));
        // The replica keeps 10 GiB for itself.
        let below = Bytes((750 - 10) * GIB / 4);
        assert_eq!(free.reservation(rules, below), Cycles(0));
        assert!(free.reservation(rules, below + Bytes(GIB)) > Cycles(0));
        assert_eq!(free.reservation(rules, below), Cycles(0));
    }

    #[test]
    fn a_full_subnet_reserves_the_longest_time() {
        let rules = Rules::of_2025_10();
        let all = Saturation::new(Bytes(0)).reservation(rules, SUBNET_MEMORY);
        let above = u128::from((2_048 - 750) * GIB / 4);
        assert_eq!(all, Cycles(above * 127_000 * 150_000_000 / u128::from(GIB)));
    }

    #[test]
    fn parts_reserve_as_much_as_the_whole() {
        let rules = Rules::today();
        let reserve =
            |saturation: Saturation, gib: u64| saturation.reservation(rules, Bytes(gib * GIB));
        let start = Saturation::new(Bytes(600 * GIB));
        let parts = reserve(start, 100) + reserve(start.plus(Bytes(100 * GIB)), 50);
        assert_eq!(parts, reserve(start, 150));
    }
}
