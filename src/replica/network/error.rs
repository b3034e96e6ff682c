//! Errors of networks, each with the next step, and their rejects.
//!
//! A network reports `IC0522`, the other replicas `CanisterInstructionLimitExceeded`. Older
//! networks report the number in the message alone: `IC0522: …`.

use candid::Principal;
use ic_agent::AgentError;
use ic_agent::agent::RejectResponse;

use crate::replica::{Reject, codes};

/// The reasons why a run on a network fails.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error(
        "no replica answers at {url}; is it running? dfx start, icp network start and stablebench \
         serve start one and print its URL"
    )]
    Unreachable { url: String, source: AgentError },
    #[error("the replica at {url} does not report its root key; give it with --root-key")]
    NoRootKey { url: String },
    #[error(
        "the replica at {url} does not sign with the expected key: the mainnet's, or that of \
         --root-key HEX, which the network's status contains"
    )]
    ForeignKey { url: String, source: AgentError },
    #[error("there is no canister {canister} at {url}; dfx canister id NAME prints the id")]
    NoCanister { canister: Principal, url: String, source: Option<AgentError> },
    #[error(
        "{caller} is not a controller of the canister {canister}, and only controllers may measure; \
         call as one with --identity PEM, or add it: dfx canister update-settings {canister} \
         --add-controller {caller}, or icp canister settings update {canister} --add-controller \
         {caller}"
    )]
    NotController { canister: Principal, caller: Principal },
    #[error(
        "no --canister contains the module of {name} that is built here, and others are not touched:\n\
         {found}  {name} is {plain} as wasm, {compressed} as wasm.gz\ndeploy it with dfx deploy \
         {name} or icp deploy {name}, and give its id with --canister"
    )]
    Foreign { name: String, found: String, plain: String, compressed: String },
    #[error("the canister {canister} does not describe itself as benchmark canisters do")]
    Undescribed { canister: Principal, source: anyhow::Error },
    #[error(
        "the canister {canister} has no cycles left for this; give it some: dfx cycles top-up \
         {canister} 1T, or icp canister top-up {canister} --amount 1t; then continue with --resume"
    )]
    OutOfCycles { canister: Principal },
    #[error(
        "the canister {canister} is stopped; start it: dfx canister start {canister}, or icp \
         canister start {canister}"
    )]
    Stopped { canister: Principal },
    #[error("the canister {canister} is in use; a canister contains one fixture at a time")]
    InUse { canister: Principal },
    #[error("{method} failed at {url}")]
    Failed { method: String, url: String, source: AgentError },
    #[error("{method} was refused: {reject}")]
    Refused { method: String, reject: Reject },
    #[error(
        "{method} has been running for {minutes} minutes without an end; continue with --resume \
         when the replica answers again"
    )]
    Endless { method: String, minutes: u64 },
}

/// Converts a network's reject to one with the other replicas' names.
pub(super) fn reject(response: RejectResponse) -> Reject {
    let RejectResponse { reject_code, reject_message, error_code } = response;
    let number = error_code.as_deref().and_then(number);
    let number = number.or_else(|| number_before(&reject_message));
    let name = number.and_then(codes::name).map(str::to_owned);
    // A code that is newer than the table is reported as it came.
    let code = name.or(error_code).unwrap_or_else(|| format!("{reject_code:?}"));
    Reject { code, message: reject_message }
}

/// Parses `IC0522`.
fn number(text: &str) -> Option<u32> {
    text.strip_prefix("IC")?.parse().ok()
}

/// Parses the beginning of `IC0522: Canister …`.
fn number_before(message: &str) -> Option<u32> {
    number(message.split_once(':')?.0)
}

#[cfg(test)]
mod tests {
    use ic_agent::agent::RejectCode;
    use stablebench_replica::ErrorCode;

    use super::*;

    fn code(error_code: Option<&str>, message: &str) -> String {
        let reject_code = RejectCode::CanisterError;
        let error_code = error_code.map(str::to_owned);
        let reject_message = message.to_owned();
        reject(RejectResponse { reject_code, reject_message, error_code }).code
    }

    /// The runner compares these names.
    #[test]
    fn codes_have_the_names_of_the_embedded_replica() {
        for (number, expected) in [
            ("IC0301", ErrorCode::CanisterNotFound),
            ("IC0502", ErrorCode::CanisterTrapped),
            ("IC0503", ErrorCode::CanisterCalledTrap),
            ("IC0522", ErrorCode::CanisterInstructionLimitExceeded),
            ("IC0524", ErrorCode::CanisterMemoryAccessLimitExceeded),
            ("IC0536", ErrorCode::CanisterMethodNotFound),
            ("IC0537", ErrorCode::CanisterWasmModuleNotFound),
            ("IC0539", ErrorCode::CanisterWasmMemoryLimitExceeded),
        ] {
            assert_eq!(code(Some(number), "text"), expected.name());
            assert_eq!(code(None, &format!("{number}: text")), expected.name());
            assert_eq!(codes::ic_code(expected.name()).as_deref(), Some(number));
        }
    }

    #[test]
    fn codes_without_a_name_are_unchanged() {
        assert_eq!(code(Some("IC0999"), "IC0522: text"), "IC0999");
        assert_eq!(code(None, "no: text"), "CanisterError");
        assert_eq!(code(None, "text"), "CanisterError");
    }
}
