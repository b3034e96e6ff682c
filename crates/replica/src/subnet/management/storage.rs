//! Checks balances and reserves cycles for chunks, snapshots and installed code.

use std::fmt;

use candid::Principal;

use super::call::refusal;
use crate::cycles::{Saturation, Threshold};
use crate::fault::{ErrorCode, Reject, grouped};
use crate::rules::Rules;
use crate::subnet::member::{Member, Next};
use crate::units::{Bytes, Cycles};

/// What a canister stores in addition, and what it pays for the work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Storing {
    /// Bytes of chunks or snapshots that it adds.
    pub more: Bytes,
    /// Bytes that these replace.
    pub less: Bytes,
    /// Cycles for the work.
    pub cost: Cycles,
}

impl Member {
    /// Checks that the canister can pay for more bytes of chunks or snapshots, pays for the work, and
    /// reserves cycles for the bytes. `saturation` does not contain them.
    pub(super) fn store(
        &mut self,
        caller: &Principal,
        storing: Storing,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let Storing { more, less, cost } = storing;
        let threshold = self.threshold(Next::Other);
        let other = (threshold.other + more).saturating_sub(less);
        let needed = Threshold { other, ..threshold }.cycles(self.canister.memories(), Bytes(0));
        let used = (self.used() + more).saturating_sub(less);
        self.check_memory_left(used, more.saturating_sub(less), saturation)?;
        self.pay_for_growth(caller, more.saturating_sub(less), needed, cost, saturation)
    }

    /// Pays for the loading of a snapshot, after which the canister has more bytes than `before`.
    pub(super) fn pay_for_loading(
        &mut self,
        caller: &Principal,
        before: Bytes,
        cost: Cycles,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let grown = self.used().saturating_sub(before);
        self.check_memory_left(self.used(), grown, saturation)?;
        let needed = self.frozen(Next::Other);
        self.pay_for_growth(caller, grown, needed, cost, saturation)
    }

    /// Checks that the memory allocation, or the subnet, has room for a canister of `used` bytes.
    fn check_memory_left(
        &self,
        used: Bytes,
        grown: Bytes,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let allocated = self.canister.allocation.memory;
        if allocated == Bytes(0) {
            let free = saturation.left();
            let full = || Err(subnet_full(self.rules(), grown, free));
            return if grown > free { full() } else { Ok(()) };
        }
        match allocated < used && !self.rules().set().snapshot_viewers {
            true => Err(allocation_too_small(self.rules(), allocated, used)),
            false => Ok(()),
        }
    }

    /// Pays for work with which the canister grows by `grown` bytes. `needed` is the balance below
    /// which it freezes then.
    fn pay_for_growth(
        &mut self,
        caller: &Principal,
        grown: Bytes,
        needed: Cycles,
        cost: Cycles,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        self.check_balance(grown, needed)?;
        let before = self.canister.balance;
        let missing = (needed + cost).saturating_sub(before);
        if missing > Cycles(0) {
            return Err(self.cannot_pay(caller, missing));
        }
        self.canister.balance = before - cost;
        let reserved = self.reserve_growth(grown, saturation);
        if reserved.is_err() {
            self.canister.balance = before;
        }
        reserved
    }

    /// The reject of a method for which cycles are missing.
    pub(super) fn cannot_pay(&self, caller: &Principal, missing: Cycles) -> Reject {
        let Reject { code, message } = self.out_of_cycles(caller, missing);
        let (what, help) = match self.rules().set().snapshot_viewers {
            false => (
                "snapshotting",
                "Try sending more cycles with the request. See documentation: \
                 canister-snapshot-not-enough-cycles",
            ),
            true => (
                "management operation",
                "Try sending more cycles with the request. See documentation: not-enough-cycles",
            ),
        };
        let rules = self.rules();
        refusal(rules, code, format!("Canister {what} failed with: `{message}`"), help, "")
    }

    /// Reserves cycles for memory that grows by this number of bytes, unless they are allocated already.
    pub(super) fn reserve_growth(
        &mut self,
        bytes: Bytes,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let Some(reserve) = self.reserve(saturation) else { return Ok(()) };
        let rules = self.rules();
        let cycles = reserve.growth(rules, Bytes(0), bytes).map_err(|fault| {
            refusal(
                rules,
                fault.code(),
                fault.to_string(),
                "Try increasing this canister's reserved cycles limit or moving it to a subnet \
                 with lower memory usage.",
                "reserved-cycles-limit-exceeded-in-memory-grow",
            )
        })?;
        self.check_balance(bytes, cycles)?;
        self.set_aside(cycles);
        Ok(())
    }

    fn check_balance(&self, bytes: Bytes, needed: Cycles) -> Result<(), Reject> {
        match needed.get().checked_sub(self.canister.balance.get()) {
            Some(missing) if missing > 0 => Err(cannot_grow(self.rules(), bytes, Cycles(missing))),
            _ => Ok(()),
        }
    }
}

/// The reject of a canister that cannot pay for more memory.
pub(super) fn cannot_grow(rules: Rules, bytes: Bytes, missing: Cycles) -> Reject {
    refusal(
        rules,
        ErrorCode::InsufficientCyclesInMemoryGrow,
        format!(
            "Canister cannot grow memory by {bytes} bytes due to insufficient cycles. At least {} \
             additional cycles are required.",
            grouped(missing)
        ),
        "Top up the canister with more cycles.",
        "insufficient-cycles-in-memory-grow-1",
    )
}

/// The reject of a canister that does not fit into its memory allocation.
pub(super) fn allocation_too_small(rules: Rules, allocated: Bytes, used: Bytes) -> Reject {
    refusal(
        rules,
        ErrorCode::InsufficientMemoryAllocation,
        format!(
            "Canister was given {} memory allocation but at least {used} of memory is needed.",
            Size(allocated)
        ),
        "Try increasing the canister's memory allocation.",
        "not-enough-memory-allocation-given",
    )
}

/// The reject of a canister that does not fit into the subnet.
pub(super) fn subnet_full(rules: Rules, wanted: Bytes, free: Bytes) -> Reject {
    refusal(
        rules,
        ErrorCode::SubnetOversubscribed,
        format!(
            "Canister requested {} of memory but only {} are available in the subnet.",
            Size(wanted),
            Size(free)
        ),
        "Try moving to another subnet.",
        "subnet-memory-capacity-oversubscribed",
    )
}

/// Bytes in the largest unit that they exceed, with two decimals.
pub struct Size(pub Bytes);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let bytes = self.0.get();
        match UNITS.iter().find(|(_, unit)| bytes > *unit) {
            Some((name, unit)) => write!(f, "{:.2} {name}", bytes as f64 / *unit as f64),
            None => write!(f, "{bytes} B"),
        }
    }
}
