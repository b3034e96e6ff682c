//! The operations on an instance, by their names in the interface. Large bodies wait for memory.
//!
//! Among them are HTTPS outcalls, which the tests answer. All nodes of a subnet make an outcall, and the
//! response is one that enough of them agree on. A test gives one response for all of them, or one for
//! each.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use ic_management_canister_types::{HttpHeader as Header, HttpMethod, HttpRequestResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stablebench_replica::RejectCode;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::instance::{Instance, host_failed};
use super::shared::{Blobs, Outcome};
use super::topology::NODES;
use super::types::{
    AddCycles, AutoProgressConfig, CanisterCall, Failed, HttpHeader, HttpReject, HttpReply,
    HttpRequest, HttpResponse, IngressStatusArgs, MockHttpResponse, RawCanisterId, RawCycles,
    RawMessageId, RawPrincipal, RawSnapshotId, RawSubnetId, RawTime, SetStableMemory,
    SnapshotDownload, SnapshotUpload, TickConfig, Version,
};
use crate::host::MemoryPermit;
use crate::limits::MAX_JSON;

/// An operation on an instance that returns JSON.
pub type Operation = Box<dyn FnOnce(&Instance) -> Outcome + Send>;

/// Makes an operation whose result becomes JSON.
fn operation<T: Serialize>(
    work: impl FnOnce(&Instance) -> Result<T, Failed> + Send + 'static,
) -> Operation {
    Box::new(move |instance| to_json(&work(instance)?))
}

fn to_json(value: &impl Serialize) -> Outcome {
    serde_json::to_vec(value).map_err(|error| Failed::Machine(error.to_string()))
}

/// Decodes a body.
///
/// # Errors
///
/// If it is not the JSON of that type.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failed> {
    serde_json::from_slice(body).map_err(|error| {
        Failed::Refused(format!("The body is not the JSON that this address takes: {error}."))
    })
}

/// Returns the operation at an address below an instance.
///
/// # Errors
///
/// If there is none, or its argument cannot be decoded.
pub fn find(
    method: &str,
    path: &[&str],
    body: &[u8],
    blobs: &Blobs,
    version: &Version,
) -> Result<Operation, Failed> {
    Ok(match (method, path) {
        ("GET", ["read", "topology"] | ["_", "topology"]) => {
            operation(|instance| Ok(instance.topology()))
        }
        ("GET", ["read", "get_time"]) => {
            operation(|instance| Ok(RawTime { nanos_since_epoch: instance.time() }))
        }
        ("GET", ["read", "get_canister_http"]) => operation(|instance| Ok(instance.outcalls())),
        ("POST", ["read", "query"]) => {
            let call: CanisterCall = decode(body)?;
            operation(move |instance| instance.query(&call))
        }
        ("POST", ["read", "get_controllers"]) => {
            let RawCanisterId { canister_id: id } = decode(body)?;
            operation(move |instance| {
                instance.read(&id, |canister| {
                    let controllers = canister.settings().controllers.iter();
                    let raw = |id: &candid::Principal| RawPrincipal { principal_id: *id };
                    Ok(controllers.map(raw).collect::<Vec<_>>())
                })
            })
        }
        ("POST", ["read", "get_cycles"]) => {
            let RawCanisterId { canister_id: id } = decode(body)?;
            operation(move |instance| {
                let read = |canister: &stablebench_replica::Canister| Ok(canister.balance().get());
                Ok(RawCycles { cycles: instance.read(&id, read)? })
            })
        }
        ("POST", ["read", "get_stable_memory"]) => {
            let RawCanisterId { canister_id: id } = decode(body)?;
            Box::new(move |instance| instance.stable_memory(&id))
        }
        ("POST", ["read", "get_subnet"]) => {
            let RawCanisterId { canister_id: id } = decode(body)?;
            operation(move |instance| {
                Ok(instance.subnet_of(&id).map(|subnet_id| RawSubnetId { subnet_id }))
            })
        }
        ("POST", ["read", "pub_key"]) => {
            let RawSubnetId { subnet_id: id } = decode(body)?;
            operation(move |instance| instance.public_key(&id))
        }
        ("POST", ["read", "ingress_status"]) => {
            let (message, caller) = match decode(body)? {
                IngressStatusArgs::ByCaller { raw_message_id, raw_caller } => {
                    (raw_message_id, raw_caller.map(|caller| caller.principal_id))
                }
                IngressStatusArgs::Message(message) => (message, None),
            };
            operation(move |instance| instance.status(&message, caller))
        }
        ("POST", ["update", "submit_ingress_message"]) => {
            let call: CanisterCall = decode(body)?;
            operation(move |instance| instance.submit(call))
        }
        ("POST", ["update", "await_ingress_message"]) => {
            let message: RawMessageId = decode(body)?;
            operation(move |instance| instance.await_message(&message))
        }
        ("POST", ["update", "execute_ingress_message"]) => {
            let call: CanisterCall = decode(body)?;
            operation(move |instance| instance.execute(call))
        }
        ("POST", ["update", "tick"]) => {
            // Old clients send nothing, or an empty text.
            let config: TickConfig = match body {
                b"" | b"\"\"" | b"null" => TickConfig::default(),
                body => decode(body)?,
            };
            if config.blockmakers.is_some_and(|it| !it.is_null() && it != serde_json::json!([])) {
                return Err(Failed::Refused(
                    "This server has no block makers: the embedded replica has no nodes that make \
                     blocks."
                        .to_owned(),
                ));
            }
            operation(Instance::tick)
        }
        ("POST", ["update", "set_time"]) => {
            let RawTime { nanos_since_epoch: time } = decode(body)?;
            operation(move |instance| instance.set_time(time))
        }
        ("POST", ["update", "set_certified_time"]) => {
            let RawTime { nanos_since_epoch: time } = decode(body)?;
            operation(move |instance| instance.set_certified_time(time))
        }
        ("POST", ["update", "add_cycles"]) => {
            let AddCycles { canister_id: id, amount } = decode(body)?;
            operation(move |instance| Ok(RawCycles { cycles: instance.add_cycles(&id, amount)? }))
        }
        ("POST", ["update", "set_stable_memory"]) => {
            let SetStableMemory { canister_id: id, blob_id } = decode(body)?;
            let missing = || Failed::Refused("Bad blob id: upload the blob first.".to_owned());
            let blob = blobs.get(&blob_id).ok_or_else(missing)?;
            operation(move |instance| instance.set_stable_memory(&id, &blob.unpack()?))
        }
        ("POST", ["update", "mock_canister_http"]) => {
            let mock: MockHttpResponse = decode(body)?;
            operation(move |instance| instance.answer_outcall(mock))
        }
        ("POST", ["update", "canister_snapshot_download"]) => {
            let SnapshotDownload { canister_id, snapshot_id, snapshot_dir } = decode(body)?;
            operation(move |instance| {
                instance.download_snapshot(&canister_id.canister_id, &snapshot_id, &snapshot_dir)
            })
        }
        ("POST", ["update", "canister_snapshot_upload"]) => {
            let SnapshotUpload { canister_id, replace_snapshot, snapshot_dir } = decode(body)?;
            operation(move |instance| {
                let replaced = replace_snapshot.as_ref().map(|replaced| &*replaced.snapshot_id);
                let id = &canister_id.canister_id;
                let snapshot_id = instance.upload_snapshot(id, replaced, &snapshot_dir)?;
                Ok(RawSnapshotId { snapshot_id })
            })
        }
        ("POST", ["update", "delete_subnet"]) => {
            let RawSubnetId { subnet_id: id } = decode(body)?;
            operation(move |instance| instance.delete_subnet(&id))
        }
        ("POST", ["auto_progress"]) => {
            let AutoProgressConfig { artificial_delay_ms: delay } = decode(body)?;
            operation(move |instance| instance.start_progress(delay))
        }
        ("GET", ["auto_progress"]) => operation(|instance| Ok(instance.makes_progress())),
        ("POST", ["stop_progress"]) => operation(|instance| {
            instance.stop_progress();
            Ok(())
        }),
        ("POST", ["update", "mock_flexible_canister_http"]) => {
            return Err(Failed::Refused(
                "This server has no flexible outcalls: the embedded replica has no method \
                 flexible_http_request yet."
                    .to_owned(),
            ));
        }
        _ => {
            return Err(Failed::Missing(format!(
                "There is no {method} /{} below an instance: this server has the interface of \
                 PocketIC {}.",
                path.join("/"),
                version.number()
            )));
        }
    })
}

/// The bytes of JSON that needs no permit.
const SMALL: usize = 64 << 10;
/// The most bytes of a refused body that are read.
const MAX_DROPPED: usize = 1 << 30;
/// The time limit for the next part of a body.
const PAUSE: Duration = Duration::from_secs(30);

/// JSON and its memory permit.
pub struct Received {
    pub bytes: Vec<u8>,
    pub memory: MemoryPermit,
}

/// Reads JSON. If it is large, it waits until there is memory for the largest, and keeps as much as it
/// needs.
pub async fn read_json(body: Body, available: &Arc<Semaphore>) -> Result<Received, Failed> {
    let mut memory = MemoryPermit::None;
    let bytes = read_with(body, MAX_JSON, async || {
        let acquired = Arc::clone(available).acquire_many_owned(MAX_JSON as u32).await;
        memory = Some(acquired.map_err(|error| Failed::TooMany(format!("No memory: {error}.")))?);
        Ok(())
    });
    let bytes = bytes.await?;
    if let Some(permit) = &mut memory {
        drop(permit.split(MAX_JSON - bytes.len()));
    }
    Ok(Received { bytes, memory })
}

/// Reads a body.
pub async fn read(body: Body, most: usize) -> Result<Vec<u8>, Failed> {
    read_with(body, most, async || Ok(())).await
}

/// Reads a body, and calls `grow` before it becomes large. One that is too large is read to its end and
/// dropped, so that the client sees the refusal.
async fn read_with(
    mut body: Body,
    most: usize,
    grow: impl AsyncFnOnce() -> Result<(), Failed>,
) -> Result<Vec<u8>, Failed> {
    let (mut bytes, mut all) = (Vec::new(), 0_usize);
    let mut grow = Some(grow);
    let too_large = |all| {
        Failed::TooLarge(format!("The body has {all} bytes or more, at most {most} are accepted."))
    };
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let frame = match timeout(PAUSE, frame).await {
            Err(_) => {
                let seconds = PAUSE.as_secs();
                let text = format!("The body paused for {seconds} seconds; send it again.");
                return Err(Failed::Refused(text));
            }
            Ok(None) if all > most => return Err(too_large(all)),
            Ok(None) => return Ok(bytes),
            Ok(Some(Err(error))) => {
                return Err(Failed::Refused(format!("Cannot read the body: {error}.")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        all = all.saturating_add(data.len());
        if all <= most {
            if all > SMALL
                && let Some(grow) = grow.take()
            {
                grow().await?;
            }
            bytes.try_reserve(data.len()).map_err(|error| Failed::Machine(error.to_string()))?;
            bytes.extend_from_slice(&data);
        } else if all > most.saturating_add(MAX_DROPPED) {
            return Err(too_large(all));
        } else {
            bytes = Vec::new();
        }
    }
}

/// Nodes that have to agree: those that are left if as many fail as a subnet tolerates.
const AGREEMENT: usize = NODES - (NODES - 1) / 3;

impl Instance {
    /// Returns the outcalls that wait for an answer.
    fn outcalls(&self) -> Vec<HttpRequest> {
        let requests: Vec<_> =
            self.host.exclusively(|subnet| subnet.http_requests().cloned().collect());
        let shown = |waiting: stablebench_replica::subnet::HttpRequest| {
            let request = waiting.request;
            HttpRequest {
                subnet_id: RawSubnetId { subnet_id: self.subnet_for(&waiting.canister) },
                request_id: waiting.id,
                http_method: method(&request.method),
                url: request.url,
                headers: request
                    .headers
                    .into_iter()
                    .map(|Header { name, value }| HttpHeader { name, value })
                    .collect(),
                body: request.body.unwrap_or_default(),
                max_response_bytes: request.max_response_bytes,
                replication: match request.is_replicated {
                    Some(false) => "NonReplicated",
                    _ => "FullyReplicated",
                },
                pricing_version: "Legacy",
            }
        };
        requests.into_iter().map(shown).collect()
    }

    /// Answers an outcall.
    fn answer_outcall(&self, mock: MockHttpResponse) -> Result<(), Failed> {
        let MockHttpResponse { subnet_id: RawSubnetId { subnet_id }, request_id: id, .. } = mock;
        let responses: Vec<HttpResponse> = match mock.additional_responses.is_empty() {
            true => vec![mock.response; NODES],
            false => [vec![mock.response], mock.additional_responses].concat(),
        };
        let codes = responses.iter().filter_map(|response| match response {
            HttpResponse::CanisterHttpReject(reject) => Some(reject.reject_code),
            HttpResponse::CanisterHttpReply(_) => None,
        });
        if let Some(code) = codes.into_iter().find(|code| reject_code(*code).is_none()) {
            return Err(Failed::Refused(format!("InvalidRejectCode({code})")));
        }
        // A server looks for the subnet before it looks for the outcall.
        self.public_key(&subnet_id)?;
        let waiting = self.outcalls();
        let found = waiting
            .iter()
            .any(|request| request.request_id == id && request.subnet_id.subnet_id == subnet_id);
        if !found {
            return Err(Failed::Refused(format!(
                "InvalidCanisterHttpRequestId(({subnet_id}, {id}))"
            )));
        }
        if responses.len() != NODES {
            let given = responses.len();
            return Err(Failed::Refused(format!(
                "InvalidMockCanisterHttpResponses(({given}, {NODES}))"
            )));
        }
        let agreed = responses.iter().find(|response| {
            responses.iter().filter(|other| other == response).count() >= AGREEMENT
        });
        let response = match agreed {
            Some(HttpResponse::CanisterHttpReply(reply)) => Ok(result(reply.clone())),
            Some(HttpResponse::CanisterHttpReject(HttpReject { reject_code: code, message })) => {
                Err((reject_code(*code).unwrap_or(RejectCode::SysFatal), message.clone()))
            }
            None => {
                let text = "No consensus could be reached. Replicas had different responses.";
                Err((RejectCode::SysTransient, text.to_owned()))
            }
        };
        self.host
            .exclusively(|subnet| subnet.answer_http_request(id, response))
            .map(drop)
            .map_err(host_failed)
    }
}

fn result(HttpReply { status, headers, body }: HttpReply) -> HttpRequestResult {
    let headers = headers.into_iter().map(|HttpHeader { name, value }| Header { name, value });
    HttpRequestResult { status: status.into(), headers: headers.collect(), body }
}

fn method(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::GET => "GET",
        HttpMethod::HEAD => "HEAD",
        HttpMethod::POST => "POST",
        HttpMethod::PUT => "PUT",
        HttpMethod::DELETE => "DELETE",
        HttpMethod::PATCH => "PATCH",
    }
}

fn reject_code(code: u64) -> Option<RejectCode> {
    Some(match code {
        1 => RejectCode::SysFatal,
        2 => RejectCode::SysTransient,
        3 => RejectCode::DestinationInvalid,
        4 => RejectCode::CanisterReject,
        5 => RejectCode::CanisterError,
        6 => RejectCode::SysUnknown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn large_json_keeps_its_memory_until_its_operation_is_done() {
        let available = Arc::new(Semaphore::new(MAX_JSON));
        let read = async |bytes: usize| {
            let body = Body::from(vec![b' '; bytes]);
            timeout(SHORT, read_json(body, &available)).await.ok()?.ok()
        };
        let first = read(SMALL + 1).await.unwrap();
        assert_eq!(available.available_permits(), MAX_JSON - SMALL - 1);
        // Another one waits, because it may be as large as any. Small ones do not.
        assert!(read(SMALL + 1).await.is_none());
        assert!(read(SMALL).await.unwrap().memory.is_none());
        drop(first);
        assert!(read(SMALL + 1).await.is_some());
        assert!(read(MAX_JSON + 1).await.is_none());
        assert_eq!(available.available_permits(), MAX_JSON);
    }
}
