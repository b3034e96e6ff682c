//! What goes wrong with a network, each with the next step.

use candid::Principal;
use ic_agent::AgentError;

/// Why a network cannot be measured on.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error(
        "no replica answers at {url}; is it running? dfx start, icp network start and stablebench \
         serve start one and say where"
    )]
    Unreachable { url: String, source: AgentError },
    #[error("the replica at {url} does not tell its root key; give it with --root-key")]
    NoRootKey { url: String },
    #[error(
        "the replica at {url} does not sign by the key that is expected: the mainnet's, or the one \
         that --root-key HEX gives, which the network's status has"
    )]
    ForeignKey { url: String, source: AgentError },
    #[error("there is no canister {canister} at {url}; dfx canister id NAME tells the id")]
    NoCanister { canister: Principal, url: String, source: Option<AgentError> },
    #[error(
        "{caller} is not a controller of the canister {canister}, and only controllers may measure; \
         call as one with --identity PEM, or add it: dfx canister update-settings {canister} \
         --add-controller {caller}, or icp canister settings update {canister} --add-controller \
         {caller}"
    )]
    NotController { canister: Principal, caller: Principal },
    #[error(
        "no --canister holds the canister {name} as it is built here, and others are not touched:\n\
         {found}  {name} is {plain} as wasm, {compressed} as wasm.gz\ndeploy it with dfx deploy \
         {name} or icp deploy {name}, and give its id with --canister"
    )]
    Foreign { name: String, found: String, plain: String, compressed: String },
    #[error("the canister {canister} does not describe itself as ours do")]
    Undescribed { canister: Principal, source: anyhow::Error },
    #[error(
        "the canister {canister} has no cycles left for this; give it some: dfx cycles top-up \
         {canister} 1T, or icp canister top-up {canister} --amount 1t; then go on with --resume"
    )]
    OutOfCycles { canister: Principal },
    #[error(
        "the canister {canister} is stopped; start it: dfx canister start {canister}, or icp \
         canister start {canister}"
    )]
    Stopped { canister: Principal },
    #[error("the canister {canister} runs a store already; one canister holds one store at a time")]
    InUse { canister: Principal },
    #[error("{method} failed at {url}")]
    Failed { method: String, url: String, source: AgentError },
    #[error("{method} was refused: {reject}")]
    Refused { method: String, reject: crate::replica::Reject },
    #[error(
        "{method} is executed for {minutes} minutes, and no end is seen; go on with --resume when \
         the replica answers again"
    )]
    Endless { method: String, minutes: u64 },
}
