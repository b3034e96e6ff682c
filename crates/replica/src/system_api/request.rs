//! Calls to other canisters, as a message makes them.

use std::collections::BTreeMap;

use ic_principal::Principal;

use crate::limits::{MAX_QUEUE, REQUEST_OVERHEAD, RESPONSE_OVERHEAD};
use crate::rules::Rules;
use crate::units::{Bytes, Cycles};

/// A call to another canister.
#[derive(Clone, Debug)]
pub struct Request {
    /// The canister that is called.
    pub callee: Principal,
    /// Its method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
    /// The callback of a reply.
    pub on_reply: Closure,
    /// The callback of a reject.
    pub on_reject: Closure,
    /// The callback that runs if one of the others fails.
    pub on_cleanup: Option<Closure>,
    /// Cycles sent with the call.
    pub cycles: Cycles,
    /// Seconds after which a best-effort call expires.
    pub timeout: Option<u32>,
}

/// Bytes of memory for a request with `bytes` of name and argument, or for the largest response if
/// that is guaranteed.
pub fn request_memory(rules: Rules, bytes: u64, best_effort: bool) -> Bytes {
    let request = Bytes(bytes + REQUEST_OVERHEAD);
    if best_effort { request } else { request.max(reserved_memory(rules)) }
}

/// Bytes of memory reserved for a guaranteed response.
pub fn reserved_memory(rules: Rules) -> Bytes {
    rules.set().messages.reply + Bytes(RESPONSE_OVERHEAD)
}

/// A function of the canister's table with its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closure {
    /// Index in the table.
    pub function: u32,
    /// The argument.
    pub environment: u64,
}

/// The calls that a message may make.
#[derive(Clone, Debug)]
pub struct Quota {
    /// Number of calls to any canister.
    pub calls: usize,
    /// Number of calls to a canister, if fewer than fit into an empty queue.
    pub slots: BTreeMap<Principal, usize>,
}

impl Quota {
    /// Returns true if a message that made `requests` may call `callee` once more.
    pub fn allows(&self, callee: &Principal, requests: &[Request]) -> bool {
        let slots = self.slots.get(callee).copied().unwrap_or(MAX_QUEUE);
        let used = requests.iter().filter(|request| request.callee == *callee).count();
        requests.len() < self.calls && used < slots
    }
}

impl Request {
    /// Bytes that the fee depends on.
    pub fn bytes(&self) -> u64 {
        (self.method.len() + self.argument.len()) as u64
    }

    /// Bytes of memory for the request, or for the largest response if that is guaranteed.
    pub fn memory(&self, rules: Rules) -> Bytes {
        request_memory(rules, self.bytes(), self.timeout.is_some())
    }
}
