//! Calls to canisters that are not on the subnet, which a function may answer.

use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

use super::Subnet;
use super::queues::{Content, Delivery};
use crate::fault::RejectCode;
use crate::system_api::message::Rejection;
use crate::units::Cycles;

/// A call to a canister that is not on the subnet.
#[derive(Clone, Copy, Debug)]
pub struct OutsideCall<'a> {
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
type Answer = dyn Fn(&OutsideCall<'_>) -> Option<Result<Vec<u8>, String>> + Send + Sync;

/// A function that answers calls.
#[derive(Clone)]
pub struct Outside(Arc<Answer>);

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}

impl Subnet {
    /// Answers calls to canisters that are not on the subnet. Without this, they are rejected.
    pub fn set_outside(
        &mut self,
        answer: impl Fn(&OutsideCall<'_>) -> Option<Result<Vec<u8>, String>> + Send + Sync + 'static,
    ) {
        self.outside = Some(Outside(Arc::new(answer)));
    }

    /// Returns the response to a call, if a function answers it.
    pub(super) fn answer_outside(&self, call: &Delivery) -> Option<Delivery> {
        let Outside(answer) = self.outside.as_ref()?;
        let Content::Request { method, argument } = &call.content else { return None };
        let outside = OutsideCall {
            caller: call.sender,
            callee: call.receiver,
            method,
            argument,
            cycles: call.cycles,
        };
        Some(match answer(&outside)? {
            Ok(reply) => call.answer(Ok(reply), Cycles(0)),
            Err(text) => {
                call.answer(Err(Rejection::new(RejectCode::CanisterReject, text)), call.cycles)
            }
        })
    }
}
