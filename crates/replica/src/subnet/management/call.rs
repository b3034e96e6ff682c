//! Calls of the management canister, and their results.

use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Principal};
use serde::de::DeserializeOwned;

use super::types::ChangeOrigin;
use crate::decoding::{MANAGEMENT, decode_argument};
use crate::fault::{ErrorCode, Help, HostError, Reject, grouped};
use crate::rules::Rules;
use crate::subnet::contexts::Origin;
use crate::subnet::trace::Cause;
use crate::units::Cycles;

/// A call of the management canister.
#[derive(Clone, Debug)]
pub struct ManagementCall {
    /// The source of the call.
    pub origin: Origin,
    /// The part of the subnet in which it creates canisters.
    pub part: usize,
    /// The method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
    /// Cycles that came with the call and were not taken.
    pub cycles: Cycles,
    /// The execution that made it.
    pub cause: Cause,
}

impl ManagementCall {
    pub fn caller(&self) -> Principal {
        self.origin.caller()
    }

    /// The source of a change.
    pub fn change_origin(&self, canister_version: Option<u64>) -> ChangeOrigin {
        match self.origin {
            Origin::Canister { caller: canister_id, .. } => {
                ChangeOrigin::Canister { canister_id, canister_version }
            }
            _ => ChangeOrigin::User { user_id: self.caller() },
        }
    }

    pub fn decode<T: CandidType + DeserializeOwned>(&self) -> Result<T, Reject> {
        decode(&self.argument)
    }

    /// Takes a fee from the cycles that came with the call.
    pub fn pay(&mut self, fee: Cycles) -> Result<(), Reject> {
        if self.cycles < fee {
            let message = format!(
                "{} request sent with {} cycles, but {} cycles are required.",
                self.method,
                grouped(self.cycles),
                grouped(fee)
            );
            return Err(invalid(ErrorCode::CanisterRejectedMessage, message));
        }
        self.cycles = self.cycles - fee;
        Ok(())
    }
}

/// The result of a method: a reject, or a host without memory.
pub enum Failed {
    Reject(Reject),
    Host(HostError),
}

impl From<Reject> for Failed {
    fn from(reject: Reject) -> Self {
        Self::Reject(reject)
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

pub type Outcome = Result<Vec<u8>, Failed>;

/// The reject of most methods about a canister that does not exist.
pub fn canister_not_found(id: &Principal) -> Reject {
    let message = format!("Canister {id} not found.");
    Reject { code: ErrorCode::CanisterNotFound, message }
}

/// The reject of the others, with a suggestion.
pub fn canister_not_found_anywhere(rules: Rules, reject: Reject) -> Reject {
    match reject.code {
        ErrorCode::CanisterNotFound => refusal(
            rules,
            reject.code,
            reject.message,
            "Check the ICP dashboard to ensure the canister exists.",
            "canister-not-found",
        ),
        _ => reject,
    }
}

/// A reject with a suggestion in its second line, which links to the page of the rules.
pub fn refusal(
    rules: Rules,
    code: ErrorCode,
    text: impl Into<String>,
    suggestion: &'static str,
    section: &'static str,
) -> Reject {
    let help = Help { suggestion, section }.line(rules);
    Reject { code, message: format!("{}\n{help}", text.into()) }
}

/// A reject because of an argument.
pub fn invalid(code: ErrorCode, message: impl Into<String>) -> Reject {
    Reject { code, message: message.into() }
}

pub fn decode<T: CandidType + DeserializeOwned>(argument: &[u8]) -> Result<T, Reject> {
    decode_all::<(T,)>(argument).map(|(one,)| one)
}

pub fn decode_all<'a, T: ArgumentDecoder<'a>>(argument: &'a [u8]) -> Result<T, Reject> {
    decode_argument(argument, MANAGEMENT).map_err(|error| {
        invalid(ErrorCode::InvalidManagementPayload, format!("Error decoding candid: {error:#}"))
    })
}

/// Encodes the reply of a method.
pub fn reply(values: impl ArgumentEncoder) -> Outcome {
    candid::encode_args(values).map_err(|error| {
        let message = format!("cannot encode the reply: {error}");
        Failed::Reject(invalid(ErrorCode::CanisterWasmEngineError, message))
    })
}
