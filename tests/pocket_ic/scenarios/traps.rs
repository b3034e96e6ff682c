//! What stays of a message that fails.
//!
//! ```text
//!   cells.wat    heap cell  stable cell     two numbers, 8 bytes each
//!   set…         both become the argument; then what the name says
//!   get          answers both
//! ```

use crate::beside::Beside;
use crate::canister::{CONTROLLER, Canister, Replica};

/// The canister with two cells.
pub const CELLS: &str = include_str!("cells.wat");

/// The cells of the heap and of stable memory.
pub fn cells(canister: &mut dyn Canister) -> (u64, u64) {
    pair(&canister.query(CONTROLLER, "get", &[]).unwrap())
}

pub fn set(canister: &mut dyn Canister, value: u64) {
    let set = canister.update(CONTROLLER, "set", &value.to_le_bytes());
    assert_eq!(set.outcome, Ok(vec![]));
    assert_eq!(cells(canister), (value, value));
}

fn pair(reply: &[u8]) -> (u64, u64) {
    let (first, second) = reply.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    (number(first), number(second))
}

/// Calls a method with 9 in a canister whose cells are 5; answers the reject's code, its
/// message, and what the cells are then.
fn failed(canister: &mut dyn Canister, method: &str) -> (String, String, u64) {
    set(canister, 5);
    let updated = canister.update(CONTROLLER, method, &9_u64.to_le_bytes());
    let reject = updated.outcome.expect_err(method);
    assert!(updated.cycles > 0, "{method}: failing is paid for");
    let (heap, stable) = cells(canister);
    assert_eq!(heap, stable, "{method}");
    (reject.code, reject.message, heap)
}

pub fn leave_nothing(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    for (method, code, words) in [
        ("set_and_trap", "CanisterCalledTrap", "on purpose"),
        ("set_and_reach_unreachable", "CanisterTrapped", "unreachable"),
        ("set_and_divide", "CanisterTrapped", "integer division by 0"),
        ("set_and_leave_the_heap", "CanisterTrapped", "heap out of bounds"),
        ("set_and_leave_stable_memory", "CanisterTrapped", "stable memory out of bounds"),
        ("set_and_reply_twice", "CanisterContractViolation", "replied"),
        ("set_reply_and_trap", "CanisterCalledTrap", "on purpose"),
    ] {
        let (got, message, cell) = failed(&mut canister, method);
        assert_eq!((got.as_str(), cell), (code, 5), "{method}: {message}");
        assert!(message.contains(words), "{method}: {message}");
    }
    let (code, _, cell) = failed(&mut canister, "no_such_method");
    assert_eq!((code.as_str(), cell), ("CanisterMethodNotFound", 5));
}

/// A reject is an answer, and silence is no trap: the message is not undone.
pub fn rejects_leave_everything(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    let (code, message, cell) = failed(&mut canister, "set_and_reject");
    assert_eq!((code.as_str(), cell), ("CanisterRejectedMessage", 9));
    assert!(message.contains("on purpose"), "{message}");
    let (code, _, cell) = failed(&mut canister, "set_and_be_silent");
    assert_eq!((code.as_str(), cell), ("CanisterDidNotReply", 9));
}

pub fn queries_leave_nothing(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    set(&mut canister, 5);
    let argument = 9_u64.to_le_bytes();
    let seen = canister.query(CONTROLLER, "set_and_get", &argument).unwrap();
    assert_eq!(pair(&seen), (9, 9), "inside of the query");
    assert_eq!(cells(&mut canister), (5, 5));
    // As an update it is a query too.
    let seen = canister.update(CONTROLLER, "set_and_get", &argument).outcome.unwrap();
    assert_eq!(pair(&seen), (9, 9));
    assert_eq!(cells(&mut canister), (5, 5));
}
