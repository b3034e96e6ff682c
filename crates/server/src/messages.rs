//! Messages to canisters: what is checked before they wait for the driver.
//!
//! ```text
//!   http ── Message ──→ call, query ──→ Host ──→ Ingress ──→ certificates
//! ```

use std::sync::Arc;

use candid::Principal;
use ic_transport_types::RequestId;
use stablebench_replica::subnet::{self, Status};
use stablebench_replica::{ErrorCode, Reject};
use tokio::sync::oneshot;

use crate::host::Host;
use crate::ingress::{Finished, Registered};
use crate::limits::{MAX_CALLS, MAX_WAITING};
use crate::message::Message;
use crate::outcome::{Outcome, Rejected};
use crate::queue::{MemoryPermit, Task};

/// The result of sending a call.
pub enum Sent {
    /// The call ends later. `None` if it has ended, so that its status shows the outcome.
    Waiting(Option<oneshot::Receiver<Finished>>),
    /// The call was not admitted.
    Rejected(Rejected),
    /// A limit is reached, as described.
    Full(String),
}

/// Sends an update call, unless it was sent before. `memory` is released once it has run.
pub fn call(
    host: &Arc<Host>,
    id: RequestId,
    expiry: u64,
    mut message: Message,
    memory: MemoryPermit,
) -> Sent {
    let (sender, receiver) = (message.sender, message.canister);
    if host.ingress.get(&id).is_some() {
        return Sent::Waiting(host.ingress.wait(&id));
    }
    if message.is_management() && message.method == "create_canister" {
        // Users have no cycles to attach, so it is the provisional method.
        message.method = "provisional_create_canister_with_cycles".to_owned();
    }
    // Queries are no calls.
    let refused = match message.is_management() {
        true => subnet::effective_canister(&message.method, &message.argument).err(),
        false => None,
    };
    let checked = refused.map_or_else(|| check(host, &message), Err);
    let canister = match checked {
        Ok(canister) => canister,
        Err(reject) => return Sent::Rejected(Rejected::not_admitted(reject)),
    };
    match host.ingress.register(id, sender, receiver, expiry, host.now()) {
        Registered::New => {}
        Registered::Known => return Sent::Waiting(host.ingress.wait(&id)),
        Registered::Full => {
            return Sent::Full(format!(
                "{MAX_CALLS} calls came in that have not expired; try again later"
            ));
        }
    }
    let waiting = host.ingress.wait(&id);
    if host.send(canister, message, memory, Task::Call(id)) {
        return Sent::Waiting(waiting);
    }
    host.ingress.withdraw(&id);
    Sent::Full(full())
}

/// Sends a query. The receiver gets its outcome, and `memory` is released before that.
///
/// # Errors
///
/// If too many messages wait for the canister.
pub fn query(
    host: &Arc<Host>,
    message: Message,
    memory: MemoryPermit,
) -> Result<oneshot::Receiver<Outcome>, String> {
    let (sender, receiver) = oneshot::channel();
    if let Some(system) = host.system(&message.canister) {
        // The receiver still exists.
        let _ = sender.send(system.query(&message).map_err(Rejected::admitted));
        return Ok(receiver);
    }
    let canister = match message.effective() {
        Ok(canister) => canister.unwrap_or(message.canister),
        // The query is rejected in turn.
        Err(_) => message.canister,
    };
    match host.send(canister, message, memory, Task::Query(sender)) {
        true => Ok(receiver),
        false => Err(full()),
    }
}

fn full() -> String {
    format!("{MAX_WAITING} messages wait for the canister; try again later")
}

/// Returns the canister for which a call waits.
fn check(host: &Host, message: &Message) -> Result<Principal, Reject> {
    if host.system(&message.canister).is_some() {
        return Ok(message.canister);
    }
    let Some(id) = message.effective()? else { return Ok(message.canister) };
    let Some(info) = host.info(&id) else {
        let message = format!("Canister {id} not found");
        return Err(Reject { code: ErrorCode::CanisterNotFound, message });
    };
    if message.is_management() {
        return Ok(id);
    }
    if info.status == Status::Stopped {
        let message = format!("Canister {id} is stopped");
        return Err(Reject { code: ErrorCode::CanisterStopped, message });
    }
    if info.module.is_none() {
        let code = ErrorCode::CanisterWasmModuleNotFound;
        return Err(Reject { code, message: "Requested canister has no wasm module".to_owned() });
    }
    Ok(id)
}
