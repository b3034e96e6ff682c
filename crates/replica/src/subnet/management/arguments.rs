//! Arguments with large bytes, which `ic-management-canister-types` decodes one by one: that takes
//! ten milliseconds for a megabyte.

use candid::{CandidType, Principal};
use ic_management_canister_types::{CanisterInstallMode, SnapshotDataOffset, SnapshotId};
use serde::Deserialize;

/// The argument of `install_code`.
#[derive(CandidType, Deserialize)]
pub struct InstallCodeArgs {
    pub mode: CanisterInstallMode,
    pub canister_id: Principal,
    #[serde(with = "serde_bytes")]
    pub wasm_module: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub arg: Vec<u8>,
    pub sender_canister_version: Option<u64>,
}

/// The argument of `upload_canister_snapshot_data`.
#[derive(CandidType, Deserialize)]
pub struct UploadCanisterSnapshotDataArgs {
    pub canister_id: Principal,
    pub snapshot_id: SnapshotId,
    pub kind: SnapshotDataOffset,
    #[serde(with = "serde_bytes")]
    pub chunk: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use candid::Encode;
    use candid::utils::ArgumentDecoder;
    use ic_management_canister_types as published;

    use super::*;
    use crate::decoding::{MANAGEMENT, decode_argument};

    fn decoded<'a, T: ArgumentDecoder<'a>>(argument: &'a [u8]) -> (T, Duration) {
        let began = Instant::now();
        let decoded = decode_argument(argument, MANAGEMENT).unwrap();
        (decoded, began.elapsed())
    }

    #[test]
    fn large_bytes_are_decoded_at_once() {
        let bytes: Vec<u8> = (0..2 << 20).map(|at: u32| at as u8).collect();
        let argument = Encode!(&published::InstallCodeArgs {
            mode: CanisterInstallMode::Reinstall,
            canister_id: Principal::anonymous(),
            wasm_module: bytes.clone(),
            arg: vec![7],
            sender_canister_version: Some(3),
        })
        .unwrap();
        let ((args,), took) = decoded::<(InstallCodeArgs,)>(&argument);
        assert!(args.wasm_module == bytes && args.mode == CanisterInstallMode::Reinstall);
        assert_eq!((args.canister_id, args.arg), (Principal::anonymous(), vec![7]));
        assert_eq!(args.sender_canister_version, Some(3));
        let (_, one_by_one) = decoded::<(published::InstallCodeArgs,)>(&argument);
        assert!(took < one_by_one / 4, "{took:?} {one_by_one:?}");

        let argument = Encode!(&published::UploadCanisterSnapshotDataArgs {
            canister_id: Principal::anonymous(),
            snapshot_id: vec![1],
            kind: SnapshotDataOffset::WasmModule { offset: 5 },
            chunk: bytes.clone(),
        })
        .unwrap();
        let ((args,), took) = decoded::<(UploadCanisterSnapshotDataArgs,)>(&argument);
        assert!(args.chunk == bytes && args.snapshot_id == [1]);
        assert!(matches!(args.kind, SnapshotDataOffset::WasmModule { offset: 5 }));
        assert!(took < one_by_one / 4, "{took:?} {one_by_one:?}");
    }
}
