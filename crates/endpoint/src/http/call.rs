//! `/api/…/call`: update calls, asynchronous and synchronous.
//!
//! ```text
//!   v2        202; the status is read later
//!   v3, v4    200 with the certificate of the status, if the call ends within ten seconds;
//!             else 202
//!   all       200 non_replicated_rejection, if the call is not let in
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use candid::Principal;
use ic_transport_types::{EnvelopeContent, RequestId, TransportCallResponse};

use super::body::Received;
use super::read_state::check_subnet;
use super::{MOST_INGRESS, answer, check_range, principal, work};
use crate::clock;
use crate::envelope::{Kind, Request};
use crate::ingress::Finished;
use crate::management;
use crate::outcome::Reject;
use crate::refusal::Refusal;
use crate::state_tree::{self, Effective};
use crate::subnet::{Message, Sent, Subnet};

/// How long a synchronous call waits.
const WAIT: Duration = Duration::from_secs(10);

pub async fn asynchronous(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    let taken = take(&subnet, effective, received).await?;
    match taken.sent {
        Sent::Refused(reject) => Ok(refused(&reject)),
        Sent::Full(full) => Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, full)),
        Sent::Waiting(Some(waiting)) if taken.inspected => {
            match tokio::time::timeout(WAIT, waiting).await {
                Ok(Ok(Finished::Outside(reject))) => Ok(refused(&reject)),
                _ => Ok(StatusCode::ACCEPTED.into_response()),
            }
        }
        Sent::Waiting(_) => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

pub async fn synchronous(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    wait(subnet, effective, received).await
}

pub async fn on_subnet(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let id = principal(&id)?;
    check_subnet(&subnet, &id)?;
    wait(subnet, Effective::Subnet, received).await
}

async fn wait(
    subnet: Arc<Subnet>,
    effective: Effective,
    received: Received,
) -> Result<Response, Refusal> {
    let Taken { id, sent, .. } = take(&subnet, effective, received).await?;
    let waiting = match sent {
        Sent::Refused(reject) => return Ok(refused(&reject)),
        Sent::Full(full) => return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, full)),
        Sent::Waiting(waiting) => waiting,
    };
    let finished = match waiting {
        None => Some(Finished::Certified),
        Some(waiting) => match tokio::time::timeout(WAIT, waiting).await {
            Ok(Ok(finished)) => Some(finished),
            _ => None,
        },
    };
    match finished {
        Some(Finished::Certified) => {
            work(move || {
                let paths = [state_tree::status_path(&id)];
                let certificate = state_tree::certificate(&subnet, &paths, clock::now());
                Ok(answer(StatusCode::OK, &TransportCallResponse::Replied { certificate }))
            })
            .await
        }
        Some(Finished::Outside(reject)) => Ok(refused(&reject)),
        None => {
            let accepted = TransportCallResponse::Accepted;
            Ok(answer(StatusCode::ACCEPTED, &accepted))
        }
    }
}

fn refused(reject: &Reject) -> Response {
    answer(StatusCode::OK, &TransportCallResponse::NonReplicatedRejection(reject.response()))
}

/// A call that was sent to its canister.
struct Taken {
    id: RequestId,
    sent: Sent,
    /// Whether the canister looks at it before it lets it in.
    inspected: bool,
}

async fn take(
    subnet: &Arc<Subnet>,
    effective: Effective,
    received: Received,
) -> Result<Taken, Refusal> {
    let subnet = Arc::clone(subnet);
    work(move || {
        let Received { bytes, held } = received;
        let (id, message, expiry) = check(&subnet, &bytes, effective)?;
        drop(bytes);
        let inspected = subnet.canister(&message.canister).is_some_and(|handle| {
            handle.info().module.as_ref().is_some_and(|module| module.inspects)
        });
        Ok(Taken { id, sent: subnet.call(id, expiry, message, held), inspected })
    })
    .await
}

/// The call in a body, and when it expires.
fn check(
    subnet: &Subnet,
    body: &[u8],
    effective: Effective,
) -> Result<(RequestId, Message, u64), Refusal> {
    let request = Request::check(body, Kind::Call, clock::now())?;
    let id = request.id;
    if body.len() > MOST_INGRESS {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The call has {} bytes, at most {MOST_INGRESS} are taken.", body.len()),
        ));
    }
    let EnvelopeContent::Call { sender, canister_id, method_name, arg, ingress_expiry, .. } =
        request.content
    else {
        return Err(Refusal::bad_request("The request is no call."));
    };
    check_effective(subnet, effective, &canister_id, &method_name, &arg)?;
    let message = Message { sender, canister: canister_id, method: method_name, argument: arg };
    Ok((id, message, ingress_expiry))
}

/// Refuses messages that came to the address of another canister.
pub fn check_effective(
    subnet: &Subnet,
    effective: Effective,
    canister: &Principal,
    method: &str,
    argument: &[u8],
) -> Result<(), Refusal> {
    let management = *canister == Principal::management_canister();
    // The canister is not there yet, and whichever is named in its place says nothing.
    if management && management::creates(method) {
        return Ok(());
    }
    let Effective::Canister(effective) = effective else {
        return Err(Refusal::bad_request(
            "Calls to a subnet create canisters; all others are to a canister's address.",
        ));
    };
    check_range(subnet, &effective)?;
    // What cannot be read is rejected in its turn.
    let about =
        if management { management::subject(method, argument).ok() } else { Some(*canister) };
    match about {
        Some(about) if about != effective => Err(Refusal::bad_request(format!(
            "The effective canister id is {effective}, the message is for {about}."
        ))),
        _ => Ok(()),
    }
}
