//! Messages of users to canisters.

use candid::Principal;
use stablebench_replica::Reject;
use stablebench_replica::subnet;

/// A message to a canister.
#[derive(Clone, Debug)]
pub struct Message {
    /// The sender.
    pub sender: Principal,
    /// The canister.
    pub canister: Principal,
    /// The method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
}

impl Message {
    /// Returns the canister that the message is for, or is about; `None` if it creates one.
    ///
    /// # Errors
    ///
    /// If its argument cannot be decoded, or users cannot call the method.
    pub fn effective(&self) -> Result<Option<Principal>, Reject> {
        match self.is_management() {
            false => Ok(Some(self.canister)),
            true => effective_canister(&self.method, &self.argument),
        }
    }

    /// Returns `true` if it is for the management canister.
    pub fn is_management(&self) -> bool {
        self.canister == Principal::management_canister()
    }
}

/// The query of a canister that answers browsers.
pub const HTTP_REQUEST: &str = "http_request";

/// The only query of the management canister that is no update.
const LOGS: &str = "fetch_canister_logs";

/// Returns the canister that a message to the management canister is about; `None` if it creates one.
///
/// # Errors
///
/// The reject of a message that users cannot send, or whose argument cannot be decoded.
pub fn effective_canister(method: &str, argument: &[u8]) -> Result<Option<Principal>, Reject> {
    match method {
        // Calls of the first two are refused before. The third has no effective canister on the
        // network, where it costs nothing.
        LOGS | "canister_info" | "provisional_top_up_canister" => {
            Ok(subnet::effective_canister("canister_status", argument).ok().flatten())
        }
        "create_canister" => Ok(None),
        other => subnet::effective_canister(other, argument),
    }
}

/// Returns `true` if a method creates a canister, and so has no effective canister id.
pub fn creates(method: &str) -> bool {
    matches!(method, "create_canister" | "provisional_create_canister_with_cycles")
}
