//! Calls of the management canister: the methods that `crates/pocket-ic` uses.
//!
//! Source of the types: the Interface Specification. Fields that are not used here are
//! left out.

use candid::{CandidType, Deserialize, Nat, Principal, decode_one, encode_one};
use sha2::{Digest, Sha256};

use super::hosted::Hosted;
use super::instance::Instance;
use super::json::{Blob, Outcome, Reject};
use crate::modules::compile;

/// Bytes of a chunk.
const MAX_CHUNK: usize = 1 << 20;

#[derive(Deserialize, CandidType)]
struct Create {
    amount: Option<Nat>,
}

#[derive(Deserialize, CandidType)]
struct CanisterId {
    canister_id: Principal,
}

#[derive(Deserialize, CandidType)]
#[allow(non_camel_case_types, reason = "Candid's names")]
enum Mode {
    install,
    reinstall,
    upgrade(Option<Flags>),
}

#[derive(Deserialize, CandidType)]
struct Flags {}

#[derive(Deserialize, CandidType)]
struct InstallCode {
    mode: Mode,
    canister_id: Principal,
    wasm_module: Vec<u8>,
    arg: Vec<u8>,
}

#[derive(Deserialize, CandidType)]
struct InstallChunkedCode {
    mode: Mode,
    target_canister: Principal,
    chunk_hashes_list: Vec<Hash>,
    wasm_module_hash: Vec<u8>,
    arg: Vec<u8>,
}

#[derive(Deserialize, CandidType)]
struct UploadChunk {
    canister_id: Principal,
    chunk: Vec<u8>,
}

#[derive(Deserialize, CandidType)]
struct Hash {
    hash: Vec<u8>,
}

#[derive(Deserialize, CandidType)]
struct TakeSnapshot {
    canister_id: Principal,
    replace_snapshot: Option<Vec<u8>>,
}

#[derive(Deserialize, CandidType)]
struct LoadSnapshot {
    canister_id: Principal,
    snapshot_id: Vec<u8>,
}

#[derive(Deserialize, CandidType)]
struct Snapshot {
    id: Vec<u8>,
    taken_at_timestamp: u64,
    total_size: u64,
}

/// Answers a call, and how many instructions it was charged.
pub fn execute(
    instance: &mut Instance,
    caller: Principal,
    method: &str,
    payload: &[u8],
) -> (Outcome, u64) {
    let mut instructions = 0;
    let answered = match method {
        "provisional_create_canister_with_cycles" => create(instance, caller, payload),
        "clear_chunk_store" => decode::<CanisterId>(payload).and_then(|asked| {
            instance.canister(&asked.canister_id)?.clear();
            encode(&())
        }),
        "upload_chunk" => upload(instance, payload),
        "install_code" => decode::<InstallCode>(payload).and_then(|code| {
            let InstallCode { mode, canister_id, wasm_module, arg } = code;
            install(instance, caller, &canister_id, &mode, &wasm_module, &arg, &mut instructions)
        }),
        "install_chunked_code" => decode::<InstallChunkedCode>(payload).and_then(|code| {
            let canister = code.target_canister;
            let module = assembled(instance, &code)?;
            install(instance, caller, &canister, &code.mode, &module, &code.arg, &mut instructions)
        }),
        "take_canister_snapshot" => take(instance, payload),
        "load_canister_snapshot" => decode::<LoadSnapshot>(payload).and_then(|asked| {
            instance.canister(&asked.canister_id)?.load(&asked.snapshot_id)?;
            encode(&())
        }),
        _ => Err(Reject::new("UnknownManagementMessage", format!("no method {method}"))),
    };
    (answered, instructions)
}

fn create(instance: &mut Instance, caller: Principal, payload: &[u8]) -> Outcome {
    let Create { amount } = decode(payload)?;
    let amount = amount.and_then(|amount| u128::try_from(amount.0).ok()).unwrap_or_default();
    let canister_id = instance.next_id();
    let mut hosted = Hosted::new(canister_id, caller, instance.free);
    hosted.add_cycles(amount);
    instance.canisters.insert(canister_id, hosted);
    encode(&CanisterId { canister_id })
}

fn upload(instance: &mut Instance, payload: &[u8]) -> Outcome {
    let UploadChunk { canister_id, chunk } = decode(payload)?;
    if chunk.len() > MAX_CHUNK {
        let message = format!("a chunk has at most {MAX_CHUNK} bytes, not {}", chunk.len());
        return Err(Reject::new("InvalidManagementPayload", message));
    }
    encode(&Hash { hash: instance.canister(&canister_id)?.upload(chunk) })
}

fn assembled(instance: &mut Instance, code: &InstallChunkedCode) -> Result<Vec<u8>, Reject> {
    let hashes = code.chunk_hashes_list.iter().map(|chunk| chunk.hash.as_slice());
    let module = instance.canister(&code.target_canister)?.assemble(hashes);
    module.filter(|module| Sha256::digest(module).to_vec() == code.wasm_module_hash).ok_or_else(
        || Reject::new("InvalidManagementPayload", "the chunks do not make up that module"),
    )
}

fn install(
    instance: &mut Instance,
    caller: Principal,
    id: &Principal,
    mode: &Mode,
    module: &[u8],
    argument: &[u8],
    instructions: &mut u64,
) -> Outcome {
    let hosted = instance.canister(id)?;
    if matches!(mode, Mode::install) && !hosted.is_empty() {
        return Err(Reject::new("CanisterNonEmpty", format!("canister {id} has a module")));
    }
    let module = compile(super::rules(), module)?;
    let (outcome, charge) = hosted.execute(|canister| {
        let execution = match mode {
            Mode::install | Mode::reinstall => canister.install(&module, caller, argument),
            Mode::upgrade(_) => canister.upgrade(&module, caller, argument),
        };
        execution.unwrap()
    });
    *instructions = charge;
    outcome?;
    encode(&())
}

fn take(instance: &mut Instance, payload: &[u8]) -> Outcome {
    let TakeSnapshot { canister_id, replace_snapshot } = decode(payload)?;
    let id = instance.canister(&canister_id)?.take(replace_snapshot.as_deref())?;
    encode(&Snapshot { id, taken_at_timestamp: 0, total_size: 0 })
}

fn decode<'a, T: CandidType + Deserialize<'a>>(payload: &'a [u8]) -> Result<T, Reject> {
    let decoded = decode_one(payload);
    decoded.map_err(|error| Reject::new("InvalidManagementPayload", error.to_string()))
}

fn encode(answer: &impl CandidType) -> Outcome {
    Ok(Blob(encode_one(answer).unwrap()))
}
