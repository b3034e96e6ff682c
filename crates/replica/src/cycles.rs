//! What messages cost in cycles, on an application subnet of 13 nodes.
//!
//! Source: `rs/config/src/subnet_config.rs` and `rs/cycles_account_manager` of
//! the replica; the conformance cases hold each update's charge.

use crate::limits::{MAX_REPLY, UPDATE_INSTRUCTIONS};
use crate::units::{Bytes, Cycles, Instructions};

/// Cycles for executing a message, whatever it does.
const EXECUTION: u128 = 5_000_000;
/// Cycles for taking an ingress message in, whatever its size.
const INGRESS: u128 = 1_200_000;
/// Cycles a byte of an ingress message.
const INGRESS_BYTE: u128 = 2_000;
/// Bytes of an ingress message beside the method's name and the argument.
const INGRESS_ENVELOPE: usize = 121;
/// Cycles an instruction. Instructions of a 64-bit module cost twice as much.
const INSTRUCTION: u128 = 1;

/// Length of what precedes a CBOR string of `length` bytes, beyond its first
/// byte.
const fn header(length: usize) -> usize {
    match length {
        0..=23 => 0,
        24..=255 => 1,
        256..=65_535 => 2,
        _ => 4,
    }
}

/// Cycles for taking in an update of that method and argument.
pub fn induction(method: &str, argument: &[u8]) -> Cycles {
    let bytes = INGRESS_ENVELOPE
        + method.len()
        + argument.len()
        + header(method.len())
        + header(argument.len());
    Cycles(INGRESS + INGRESS_BYTE * bytes as u128)
}

/// Cycles for executing a message that is charged `charge` instructions.
pub fn execution(charge: Instructions, wasm64: bool) -> Cycles {
    let each = if wasm64 { 2 * INSTRUCTION } else { INSTRUCTION };
    Cycles(EXECUTION + each * u128::from(charge.get()))
}

/// Cycles for creating a canister.
pub const CREATION: Cycles = Cycles(500_000_000_000);

/// Cycles set aside for a call to another canister, name and argument together
/// of that many bytes: sending both ways and executing the longest callback.
pub fn call(bytes: u64) -> Cycles {
    const CALL: u128 = 260_000;
    const CALL_BYTE: u128 = 1_000;
    let sent = u128::from(bytes) + u128::from(MAX_REPLY.get());
    Cycles(CALL + CALL_BYTE * sent) + execution(UPDATE_INSTRUCTIONS, false)
}

/// Cycles for an HTTPS outcall.
pub fn http_request(request: u64, response: u64) -> Cycles {
    const NODES: u128 = 13;
    let bytes = 400 * u128::from(request) + 800 * u128::from(response);
    Cycles((3_000_000 + 60_000 * NODES + bytes) * NODES)
}

/// Cycles below which a canister of that size freezes: storage for 30 days.
pub fn freezing_threshold(memory: Bytes) -> Cycles {
    const GIB_SECOND: u128 = 127_000;
    const DAY: u128 = 86_400;
    const DAYS: u128 = 30;
    Cycles(u128::from(memory.get()) * GIB_SECOND * DAY / (1 << 30) * DAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_method_pays_the_base() {
        let cycles = induction("missing", &[]) + execution(Instructions(0), false);
        assert_eq!(cycles, Cycles(6_456_000));
    }

    #[test]
    fn headers_grow_with_the_argument() {
        let bytes = |length| induction("size", &vec![0; length]).get();
        for (length, step) in [(24, 2), (256, 2), (65_536, 3)] {
            assert_eq!(bytes(length) - bytes(length - 1), step * INGRESS_BYTE, "{length}");
        }
    }
}
