//! Calls to remote canisters, which are not on the subnet. A function may answer them.

use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

use crate::units::Cycles;

/// A call to a canister that is not on the subnet.
#[derive(Clone, Copy, Debug)]
pub struct RemoteCall<'a> {
    /// The canister that calls.
    pub caller: Principal,
    /// The canister that it calls.
    pub callee: Principal,
    /// The method.
    pub method: &'a str,
    /// The argument.
    pub argument: &'a [u8],
    /// Cycles that come with the call. A reply accepts all of them.
    pub cycles: Cycles,
}

/// Answers calls: a reply or the text of a reject. `None` if there is no such canister.
pub(super) type Answer = dyn Fn(&RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> + Send + Sync;

/// A function that answers calls.
#[derive(Clone)]
pub struct RemoteAnswers(pub(super) Arc<Answer>);

impl fmt::Debug for RemoteAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteAnswers")
    }
}
