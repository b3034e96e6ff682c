//! Installing code, in one message or in chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use candid::Principal;
use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, InstallCodeArgs,
    UploadChunkArgs, WasmMemoryPersistence,
};
use sha2::{Digest, Sha256};

use super::{done, invalid, reply};
use crate::canister::{Chunks, Hosted, Log};
use crate::outcome::{Outcome, Reject, error_code};
use crate::subnet::{Run, Subnet, not_found};

/// Bytes of a chunk, and chunks of a canister.
const MOST_BYTES: usize = 1 << 20;
const MOST_CHUNKS: usize = 100;
/// Bytes of a module that is made of chunks.
const MOST_MODULE: usize = 100 << 20;
/// Bytes of the chunks of all canisters.
const MOST_STORED: u64 = 1 << 30;

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
        let handle = subnet.canister(&store).ok_or_else(|| not_found(&store))?;
        if store != args.target_canister && !handle.info().controllers.contains(&sender) {
            return Err(Reject::new(
                ErrorCode::CanisterInvalidController,
                format!("{sender} is no controller of {store}, which has the chunks"),
            ));
        }
        let chunks = handle.chunks().with(|chunks| {
            let named = args.chunk_hashes_list.iter().map(|ChunkHash { hash }| {
                let chunk = <[u8; 32]>::try_from(hash.as_slice()).ok();
                chunk.and_then(|hash| chunks.get(&hash)).cloned().ok_or_else(|| {
                    let shown = hex::encode(&hash[..hash.len().min(32)]);
                    invalid(format!("{store} has no chunk with the hash {shown}"))
                })
            });
            named.collect::<Result<Vec<_>, _>>()
        })?;
        // A chunk may be named many times.
        let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if bytes > MOST_MODULE {
            return Err(invalid(format!(
                "the chunks together have {bytes} bytes, a module has at most {MOST_MODULE}"
            )));
        }
        let wasm: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect();
        let hash = Sha256::digest(&wasm);
        if *hash != args.wasm_module_hash[..] {
            return Err(invalid(format!(
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
        .aside
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
                return Err(invalid(
                    "this local endpoint upgrades without skip_pre_upgrade, and without keeping \
                     the heap",
                ));
            }
            hosted.canister.upgrade(&module, sender, argument)
        }
    };
    hosted.ran(executed).map_err(|reject| Reject { admitted: true, ..reject })?;
    done()
}

pub fn upload(subnet: Arc<Subnet>, args: UploadChunkArgs) -> Run {
    Box::new(move |_| {
        if args.chunk.len() > MOST_BYTES {
            return Err(invalid(format!("a chunk has at most {MOST_BYTES} bytes")));
        }
        let hash: [u8; 32] = Sha256::digest(&args.chunk).into();
        let chunks = chunks(&subnet, &args.canister_id)?;
        let handles = subnet.canisters();
        let stored: u64 = handles.values().map(|handle| handle.chunks().bytes()).sum();
        check_room(stored, args.chunk.len() as u64)?;
        chunks.with(|chunks| {
            if chunks.len() >= MOST_CHUNKS && !chunks.contains_key(&hash) {
                return Err(invalid(format!("a canister keeps at most {MOST_CHUNKS} chunks")));
            }
            chunks.insert(hash, Arc::new(args.chunk));
            Ok(())
        })?;
        reply(&ChunkHash { hash: hash.to_vec() })
    })
}

/// Refuses a chunk of so many bytes for which there is no room beside those stored.
fn check_room(stored: u64, bytes: u64) -> Result<(), Reject> {
    if stored + bytes > MOST_STORED {
        return Err(invalid(format!(
            "the chunks of all canisters have at most {MOST_STORED} bytes; clear_chunk_store \
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
        done()
    })
}

fn chunks(subnet: &Subnet, id: &Principal) -> Result<Chunks, Reject> {
    Ok(subnet.canister(id).ok_or_else(|| not_found(id))?.chunks().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_all_canisters_have_an_end() {
        assert!(check_room(MOST_STORED - 7, 7).is_ok());
        let refused = check_room(MOST_STORED - 7, 8).unwrap_err();
        assert!(refused.message.contains("clear_chunk_store makes room"), "{}", refused.message);
    }
}
