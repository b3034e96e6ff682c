//! Messages of more than 2 G instructions, which take several rounds.

use super::fill::{FILL, number, updating};
use crate::beside::Beside;
use crate::canister::{CONTROLLER, Canister, Replica};

const SLICE: u64 = 2_000_000_000;

/// Slicing changes no count: the counter reads what the operators cost.
pub fn long_message(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, FILL);
    for instructions in [SLICE - 1, SLICE, SLICE + 1, 2 * SLICE + SLICE / 2] {
        let (argument, counter) = updating(replica.rules(), instructions);
        let updated = canister.update(CONTROLLER, "update", &argument);
        assert_eq!(number(&updated.outcome.unwrap()), counter);
        let last = canister.query(CONTROLLER, "last", &[]).unwrap();
        assert_eq!(number(&last), counter, "it stays");
    }
}

/// What a message did in the slices before the one in which it traps is undone too.
pub fn long_message_that_traps(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, FILL);
    let (argument, counter) = updating(replica.rules(), SLICE / 1_000);
    let first = canister.update(CONTROLLER, "update", &argument);
    assert_eq!(number(&first.outcome.unwrap()), counter);
    let (argument, _) = updating(replica.rules(), 2 * SLICE + SLICE / 2);
    let trapped = canister.update(CONTROLLER, "update_and_trap", &argument);
    assert_eq!(trapped.outcome.unwrap_err().code, "CanisterTrapped");
    assert!(trapped.cycles > u128::from(2 * SLICE), "all of it is paid for");
    let last = canister.query(CONTROLLER, "last", &[]).unwrap();
    assert_eq!(number(&last), counter);
}
