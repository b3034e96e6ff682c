//! Messages to canisters: updates and queries, sent to the canister's thread.
//!
//! ```text
//!   http ── Message ──→ call, query ──→ worker ──→ Ingress ──→ certificates
//!                          └──→ management: the canister of a method, and its effect
//! ```

use std::sync::Arc;

use candid::Principal;
use ic_error_types::ErrorCode;
use ic_transport_types::RequestId;
use tokio::sync::oneshot;

use crate::canister::Hosted;
use crate::clock;
use crate::ingress::{Finished, MAX_CALLS, Registered};
use crate::management;
use crate::outcome::{Outcome, Reject, outcome};
use crate::subnet::{MemoryPermit, Subnet};
use crate::worker::{Full, Handle, Run, Work};

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

/// The result of sending a call.
pub enum Sent {
    /// The call ends later. `None` if it has ended, so that its status shows the outcome.
    Waiting(Option<oneshot::Receiver<Finished>>),
    /// The call was not admitted.
    Rejected(Reject),
    /// A limit is reached, as described.
    Full(String),
}

/// Sends an update call, unless it was sent before. `memory` is released once it has run.
pub fn call(
    subnet: &Arc<Subnet>,
    id: RequestId,
    expiry: u64,
    message: Message,
    memory: MemoryPermit,
) -> Sent {
    let (sender, now) = (message.sender, clock::now());
    if subnet.ingress.get(&id).is_some() {
        return Sent::Waiting(subnet.ingress.wait(&id));
    }
    let task = match update_task(subnet, &message) {
        Ok(task) => task,
        Err(reject) => return Sent::Rejected(reject),
    };
    match subnet.ingress.register(id, sender, message.canister, expiry, now) {
        Registered::New => {}
        Registered::Known => return Sent::Waiting(subnet.ingress.wait(&id)),
        Registered::Full => {
            return Sent::Full(format!(
                "{MAX_CALLS} calls came in that have not expired; try again later"
            ));
        }
    }
    let waiting = subnet.ingress.wait(&id);
    let sent = match task {
        Task::Create => {
            let Message { sender, method, argument, .. } = &message;
            let outcome = management::create(subnet, *sender, method, argument);
            subnet.ingress.finish(&id, outcome);
            Ok(())
        }
        Task::On(handle, run) => {
            let (at_start, at_end) = (Arc::clone(subnet), Arc::clone(subnet));
            handle.send(Work {
                run: Box::new(move |hosted| {
                    at_start.ingress.begin(&id);
                    let outcome = run(hosted);
                    drop(memory);
                    outcome
                }),
                done: Box::new(move |outcome| at_end.ingress.finish(&id, outcome)),
            })
        }
    };
    match sent {
        Ok(()) => Sent::Waiting(waiting),
        Err(full) => {
            subnet.ingress.withdraw(&id);
            Sent::Full(full.to_string())
        }
    }
}

/// Sends a query. The receiver gets its outcome, and `memory` is released before that.
///
/// # Errors
///
/// If the canister's queue is full.
pub fn query(
    subnet: &Arc<Subnet>,
    message: Message,
    memory: MemoryPermit,
) -> Result<oneshot::Receiver<Outcome>, Full> {
    let (sender, receiver) = oneshot::channel();
    let (handle, run) = match query_task(subnet, message) {
        Ok(task) => task,
        Err(reject) => {
            // The receiver still exists.
            let _ = sender.send(Err(reject));
            return Ok(receiver);
        }
    };
    handle.send(Work {
        run: Box::new(move |hosted| {
            let outcome = run(hosted);
            drop(memory);
            outcome
        }),
        done: Box::new(move |outcome| {
            // The client may have stopped waiting.
            let _ = sender.send(outcome);
        }),
    })?;
    Ok(receiver)
}

/// The execution of an update.
enum Task {
    /// On the canister's thread.
    On(Handle, Run),
    /// The creation of a canister, which needs no other canister's thread.
    Create,
}

fn update_task(subnet: &Arc<Subnet>, message: &Message) -> Result<Task, Reject> {
    if message.canister == Principal::management_canister() {
        if management::creates(&message.method) {
            return Ok(Task::Create);
        }
        let Message { sender, method, argument, .. } = message;
        let (handle, run) = management::update(subnet, *sender, method, argument)?;
        return Ok(Task::On(handle, run));
    }
    let handle = find(subnet, &message.canister)?;
    let info = handle.info();
    if !info.running {
        return Err(Reject::stopped(&message.canister));
    }
    if info.module.is_none() {
        return Err(Reject::not_admitted(
            ErrorCode::CanisterWasmModuleNotFound,
            "Requested canister has no wasm module",
        ));
    }
    let message = message.clone();
    let run = move |hosted: &mut Hosted| {
        hosted.check_running()?;
        hosted.canister.set_time(clock::now());
        let Message { sender, method, argument, .. } = &message;
        let executed = hosted.canister.update(*sender, method, argument);
        hosted.finish(executed)
    };
    Ok(Task::On(handle, Box::new(run)))
}

fn query_task(subnet: &Arc<Subnet>, message: Message) -> Result<(Handle, Run), Reject> {
    if message.canister == Principal::management_canister() {
        let Message { sender, method, argument, .. } = &message;
        return management::query(subnet, *sender, method, argument);
    }
    let handle = find(subnet, &message.canister)?;
    let run = move |hosted: &mut Hosted| {
        hosted.check_running()?;
        hosted.canister.set_time(clock::now());
        let Message { sender, method, argument, .. } = &message;
        outcome(hosted.canister.query(*sender, method, argument))
    };
    Ok((handle, Box::new(run)))
}

fn find(subnet: &Subnet, canister: &Principal) -> Result<Handle, Reject> {
    subnet.canister(canister).ok_or_else(|| Reject::not_found(canister))
}
