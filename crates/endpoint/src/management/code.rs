//! The installation of code, in one message or in chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use candid::Principal;
use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, InstallCodeArgs,
    UploadChunkArgs, WasmMemoryPersistence,
};
use sha2::{Digest, Sha256};

use crate::canister::{Chunks, Hosted, Log};
use crate::outcome::{Outcome, Reject, empty_reply, error_code, reply};
use crate::subnet::Subnet;
use crate::worker::Run;

/// The most bytes of a chunk.
const MAX_CHUNK: usize = 1 << 20;
/// The most chunks of a canister.
const MAX_CHUNKS: usize = 100;
/// The most bytes of a module that is assembled from chunks.
const MAX_MODULE: usize = 100 << 20;
/// The most bytes of the chunks of all canisters.
const MAX_STORED: u64 = 1 << 30;

pub fn install(subnet: Arc<Subnet>, sender: Principal, args: InstallCodeArgs) -> Run {
    Box::new(move |hosted| code(&subnet, hosted, sender, args.mode, &args.wasm_module, &args.arg))
}

pub fn install_chunked(
    subnet: Arc<Subnet>,
    sender: Principal,
    args: InstallChunkedCodeArgs,
) -> Run {
    Box::new(move |hosted| {
        let store = args.store_canister.unwrap_or(args.target_canister);
        let handle = subnet.canister(&store).ok_or_else(|| Reject::not_found(&store))?;
        if store != args.target_canister && !handle.info().controllers.contains(&sender) {
            return Err(Reject::new(
                ErrorCode::CanisterInvalidController,
                format!("{sender} is not a controller of {store}, which has the chunks"),
            ));
        }
        let chunks = handle.chunks().with(|chunks| {
            let named = args.chunk_hashes_list.iter().map(|ChunkHash { hash }| {
                let chunk = <[u8; 32]>::try_from(hash.as_slice()).ok();
                chunk.and_then(|hash| chunks.get(&hash)).cloned().ok_or_else(|| {
                    let shown = hex::encode(&hash[..hash.len().min(32)]);
                    Reject::invalid(format!("{store} has no chunk with the hash {shown}"))
                })
            });
            named.collect::<Result<Vec<_>, _>>()
        })?;
        // A chunk may be repeated.
        let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if bytes > MAX_MODULE {
            return Err(Reject::invalid(format!(
                "the chunks together have {bytes} bytes, a module has at most {MAX_MODULE}"
            )));
        }
        let wasm: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect();
        let hash = Sha256::digest(&wasm);
        if *hash != args.wasm_module_hash[..] {
            return Err(Reject::invalid(format!(
                "the chunks together have the hash {}, not {}",
                hex::encode(hash),
                hex::encode(&args.wasm_module_hash[..args.wasm_module_hash.len().min(32)])
            )));
        }
        code(&subnet, hosted, sender, args.mode, &wasm, &args.arg)
    })
}

fn code(
    subnet: &Subnet,
    hosted: &mut Hosted,
    sender: Principal,
    mode: CanisterInstallMode,
    wasm: &[u8],
    argument: &[u8],
) -> Outcome {
    let id = hosted.canister.id();
    if mode == CanisterInstallMode::Install && hosted.canister.module().is_some() {
        return Err(Reject::new(
            ErrorCode::CanisterNonEmpty,
            format!(
                "Canister {id} cannot be installed because the canister is not empty. Try installing with mode='reinstall' instead."
            ),
        ));
    }
    let module = hosted
        .backup
        .during(&hosted.canister, || subnet.replica().compile_for(&id, wasm))
        .map_err(|reject| Reject::new(error_code(reject.code), reject.message))?;
    let executed = match mode {
        CanisterInstallMode::Install | CanisterInstallMode::Reinstall => {
            hosted.log = Log::default();
            hosted.canister.install(&module, sender, argument)
        }
        CanisterInstallMode::Upgrade(flags) => {
            let flags = flags.unwrap_or_default();
            if flags.skip_pre_upgrade == Some(true)
                || flags.wasm_memory_persistence == Some(WasmMemoryPersistence::Keep)
            {
                return Err(Reject::invalid(
                    "this local endpoint does not support upgrades with skip_pre_upgrade or \
                     wasm_memory_persistence = keep",
                ));
            }
            hosted.canister.upgrade(&module, sender, argument)
        }
    };
    hosted.finish(executed).map_err(|reject| Reject { admitted: true, ..reject })?;
    empty_reply()
}

pub fn upload(subnet: Arc<Subnet>, args: UploadChunkArgs) -> Run {
    Box::new(move |_| {
        if args.chunk.len() > MAX_CHUNK {
            return Err(Reject::invalid(format!("a chunk has at most {MAX_CHUNK} bytes")));
        }
        let hash: [u8; 32] = Sha256::digest(&args.chunk).into();
        let chunks = chunks(&subnet, &args.canister_id)?;
        let handles = subnet.canisters();
        let stored: u64 = handles.values().map(|handle| handle.chunks().bytes()).sum();
        check_stored(stored, args.chunk.len() as u64)?;
        chunks.with(|chunks| {
            if chunks.len() >= MAX_CHUNKS && !chunks.contains_key(&hash) {
                return Err(Reject::invalid(format!(
                    "a canister keeps at most {MAX_CHUNKS} chunks"
                )));
            }
            chunks.insert(hash, Arc::new(args.chunk));
            Ok(())
        })?;
        reply(&ChunkHash { hash: hash.to_vec() })
    })
}

/// Returns an error if a chunk exceeds the limit of all canisters.
fn check_stored(stored: u64, bytes: u64) -> Result<(), Reject> {
    if stored + bytes > MAX_STORED {
        return Err(Reject::invalid(format!(
            "the chunks of all canisters have at most {MAX_STORED} bytes; clear_chunk_store \
             makes room"
        )));
    }
    Ok(())
}

pub fn stored(subnet: Arc<Subnet>, args: CanisterIdRecord) -> Run {
    Box::new(move |_| {
        let hashes: Vec<ChunkHash> = chunks(&subnet, &args.canister_id)?
            .with(|chunks| chunks.keys().map(|hash| ChunkHash { hash: hash.to_vec() }).collect());
        reply(&hashes)
    })
}

pub fn clear(subnet: Arc<Subnet>, args: CanisterIdRecord) -> Run {
    Box::new(move |_| {
        chunks(&subnet, &args.canister_id)?.with(BTreeMap::clear);
        empty_reply()
    })
}

fn chunks(subnet: &Subnet, id: &Principal) -> Result<Chunks, Reject> {
    Ok(subnet.canister(id).ok_or_else(|| Reject::not_found(id))?.chunks().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_all_canisters_are_limited() {
        assert!(check_stored(MAX_STORED - 7, 7).is_ok());
        let refused = check_stored(MAX_STORED - 7, 8).unwrap_err();
        assert!(refused.message.contains("clear_chunk_store makes room"), "{}", refused.message);
    }
}
