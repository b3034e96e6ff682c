//! The operations on an instance, by their names in the interface.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::blobs::Blobs;
use super::failure::Failed;
use super::instance::Instance;
use super::pending::Outcome;
use super::types::{
    AddCycles, AutoProgressConfig, CanisterCall, IngressStatusArgs, MockHttpResponse,
    RawCanisterId, RawCycles, RawMessageId, RawPrincipal, RawSnapshotId, RawSubnetId, RawTime,
    SetStableMemory, SnapshotDownload, SnapshotUpload, TickConfig,
};
use super::version::Version;

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
