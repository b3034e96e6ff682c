//! Arguments of the management canister: those that it takes, and Candid of any types.

use arbitrary::{Result, Unstructured};
use candid::{Encode, Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, CanisterSettings, ChunkHash, CreateCanisterArgs,
    DeleteCanisterSnapshotArgs, EnvironmentVariable, FetchCanisterLogsArgs, InstallChunkedCodeArgs,
    InstallCodeArgs, LoadCanisterSnapshotArgs, ProvisionalCreateCanisterWithCyclesArgs,
    ProvisionalTopUpCanisterArgs, TakeCanisterSnapshotArgs, UpdateSettingsArgs, UploadChunkArgs,
};

/// Every method of the management canister here, and some that it has elsewhere.
pub const METHODS: &[&str] = &[
    "install_code",
    "install_chunked_code",
    "upload_chunk",
    "stored_chunks",
    "clear_chunk_store",
    "canister_status",
    "update_settings",
    "start_canister",
    "stop_canister",
    "delete_canister",
    "take_canister_snapshot",
    "load_canister_snapshot",
    "list_canister_snapshots",
    "delete_canister_snapshot",
    "fetch_canister_logs",
    "provisional_top_up_canister",
    "create_canister",
    "provisional_create_canister_with_cycles",
    "uninstall_code",
    "raw_rand",
];

/// An argument that the method takes, about that canister.
pub fn valid(
    method: &str,
    canister_id: Principal,
    input: &mut Unstructured<'_>,
) -> Result<Vec<u8>> {
    let sender_canister_version = None;
    let snapshot_id: Vec<u8> = input.arbitrary()?;
    let encoded = match method {
        "install_code" => {
            let wasm_module = match input.int_in_range(0..=2)? {
                0 => input.arbitrary()?,
                1 => b"\0asm\x01\0\0\0".to_vec(),
                _ => crate::server::wasm(crate::server::CLOSED),
            };
            let modes = [CanisterInstallMode::Install, CanisterInstallMode::Reinstall];
            let mode = *input.choose(&modes)?;
            let arg = input.arbitrary()?;
            Encode!(&InstallCodeArgs {
                mode,
                canister_id,
                wasm_module,
                arg,
                sender_canister_version
            })
        }
        "install_chunked_code" => {
            let hash = ChunkHash { hash: input.arbitrary()? };
            Encode!(&InstallChunkedCodeArgs {
                mode: CanisterInstallMode::Reinstall,
                target_canister: canister_id,
                store_canister: if input.arbitrary()? { Some(canister_id) } else { None },
                chunk_hashes_list: vec![hash; input.int_in_range(0..=200)?],
                wasm_module_hash: input.arbitrary()?,
                arg: input.arbitrary()?,
                sender_canister_version,
            })
        }
        "upload_chunk" => Encode!(&UploadChunkArgs { canister_id, chunk: input.arbitrary()? }),
        "update_settings" => {
            let settings = settings(input)?;
            Encode!(&UpdateSettingsArgs { canister_id, settings, sender_canister_version })
        }
        "take_canister_snapshot" => Encode!(&TakeCanisterSnapshotArgs {
            canister_id,
            replace_snapshot: if input.arbitrary()? { Some(snapshot_id) } else { None },
            uninstall_code: None,
            sender_canister_version,
        }),
        "load_canister_snapshot" => {
            Encode!(&LoadCanisterSnapshotArgs { canister_id, snapshot_id, sender_canister_version })
        }
        "delete_canister_snapshot" => {
            Encode!(&DeleteCanisterSnapshotArgs { canister_id, snapshot_id })
        }
        "fetch_canister_logs" => Encode!(&FetchCanisterLogsArgs { canister_id, filter: None }),
        "provisional_top_up_canister" => {
            Encode!(&ProvisionalTopUpCanisterArgs { canister_id, amount: nat(input)? })
        }
        "create_canister" => {
            let settings = Some(settings(input)?);
            Encode!(&CreateCanisterArgs { settings, sender_canister_version })
        }
        "provisional_create_canister_with_cycles" => {
            Encode!(&ProvisionalCreateCanisterWithCyclesArgs {
                amount: Some(nat(input)?),
                settings: None,
                specified_id: if input.arbitrary()? { Some(canister_id) } else { None },
                sender_canister_version,
            })
        }
        _ => Encode!(&CanisterIdRecord { canister_id }),
    };
    Ok(encoded.expect("these can be encoded"))
}

fn settings(input: &mut Unstructured<'_>) -> Result<CanisterSettings> {
    let maybe = |input: &mut Unstructured<'_>| -> Result<Option<Nat>> {
        Ok(if input.ratio(1, 4)? { Some(nat(input)?) } else { None })
    };
    let controllers = vec![Principal::anonymous(); input.int_in_range(0..=12)?];
    Ok(CanisterSettings {
        controllers: if input.arbitrary()? { Some(controllers) } else { None },
        compute_allocation: maybe(input)?,
        memory_allocation: maybe(input)?,
        freezing_threshold: maybe(input)?,
        reserved_cycles_limit: maybe(input)?,
        wasm_memory_limit: maybe(input)?,
        wasm_memory_threshold: maybe(input)?,
        environment_variables: if input.ratio(1, 4)? { Some(variables(input)?) } else { None },
        ..CanisterSettings::default()
    })
}

/// Environment variables, some of them more or longer than a canister may have.
fn variables(input: &mut Unstructured<'_>) -> Result<Vec<EnvironmentVariable>> {
    let count = input.int_in_range(0..=40)?;
    let variable =
        |_| Ok(EnvironmentVariable { name: input.arbitrary()?, value: input.arbitrary()? });
    (0..count).map(variable).collect()
}

/// A number, which may be larger than all that are stored.
fn nat(input: &mut Unstructured<'_>) -> Result<Nat> {
    let number = Nat::from(input.arbitrary::<u128>()?);
    Ok(if input.ratio(1, 4)? { number.clone() * number } else { number })
}

/// A table of types that stand for each other, and values of them, or of none.
pub fn any(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut bytes = b"DIDL".to_vec();
    let types = input.int_in_range(0..=5)?;
    leb128(&mut bytes, types);
    for _ in 0..types {
        // opt, vec, record, variant, func, service
        let constructor = input.int_in_range(0x69..=0x6e)?;
        bytes.push(constructor);
        match constructor {
            0x6d | 0x6e => bytes.push(reference(types, input)?),
            0x6b | 0x6c => {
                let fields = input.int_in_range(0..=3)?;
                leb128(&mut bytes, fields);
                for field in 0..fields {
                    leb128(&mut bytes, field * input.int_in_range(1..=2_000_000_000)?);
                    bytes.push(reference(types, input)?);
                }
            }
            _ => bytes.extend([0, 0, 0]),
        }
    }
    let arguments = input.int_in_range(0..=2)?;
    leb128(&mut bytes, arguments);
    for _ in 0..arguments {
        bytes.push(reference(types, input)?);
    }
    if input.ratio(1, 4)? {
        leb128(&mut bytes, input.arbitrary()?);
    }
    bytes.extend(input.bytes(input.len().min(40))?);
    Ok(bytes)
}

/// One of the types in the table, or a primitive one.
fn reference(types: u64, input: &mut Unstructured<'_>) -> Result<u8> {
    if types > 0 && input.arbitrary()? {
        return Ok(input.int_in_range(0..=types - 1)? as u8);
    }
    // null to empty, or principal.
    Ok(if input.ratio(1, 8)? { 0x68 } else { input.int_in_range(0x6f..=0x7f)? })
}

fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
