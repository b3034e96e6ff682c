//! A call to a canister of a network, and the ids of measured ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use candid::Principal;

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub canister: Principal,
    /// By which it finds its subnet: the canister, or the one that the management canister is
    /// asked about.
    pub effective: Principal,
    pub method: &'a str,
    pub argument: &'a [u8],
}

impl<'a> Call<'a> {
    /// A call to a canister itself.
    pub fn to(canister: Principal, method: &'a str, argument: &'a [u8]) -> Self {
        Self { canister, effective: canister, method, argument }
    }
}

/// What may be done where nobody knows whether a call was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// The call may be made once more: the second leaves what the first left.
    Harmless,
    /// The call may be made once more: it has an id, so that the canister refuses the second.
    Numbered,
    /// It may not be made again.
    Never,
}

/// Nanoseconds since 1970.
pub(super) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// A number larger than all before it, in this process and (clocks going forwards) in earlier
/// ones: the time, or one more than the last.
pub(super) fn rising() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut last = LAST.load(Ordering::Relaxed);
    loop {
        let next = now().max(last + 1);
        match LAST.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return next,
            Err(newer) => last = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_and_are_times() {
        let before = now();
        let ids: Vec<u64> = (0..1_000).map(|_| rising()).collect();
        assert!(ids[0] >= before);
        assert!(ids.is_sorted_by(|one, next| one < next));
        assert!(rising() < now() + 1_000_000_000, "ids do not run ahead of time");
    }
}
