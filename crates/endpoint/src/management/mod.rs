//! The management canister, as far as tools on one machine need it.
//!
//! Each method concerns one canister and runs on that canister's thread, in the order of all its
//! messages. Methods that are not in the list of `run_of` are rejected by name.

mod code;
mod state;

use std::sync::Arc;

use candid::{CandidType, Decode, DecoderConfig, Principal};
use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, CreateCanisterArgs, InstallChunkedCodeArgs, InstallCodeArgs,
    ProvisionalCreateCanisterWithCyclesArgs, UploadChunkArgs,
};
use serde::de::DeserializeOwned;
use stablebench_replica::Cycles;

use crate::canister::Hosted;
use crate::clock;
use crate::outcome::{Outcome, Reject, reply};
use crate::subnet::{CreateError, Subnet};
use crate::worker::{Handle, Run};

/// The default cycles of a new canister.
const CYCLES: u128 = 100_000_000_000_000_000;
/// The quota for decoding an argument, several times that of the largest valid one.
const DECODING_QUOTA: usize = 50_000_000;
/// The quota for skipping unknown parts of an argument, as on the IC.
const SKIPPING_QUOTA: usize = 10_000;

/// The only method that is a query but not an update.
const LOGS: &str = "fetch_canister_logs";

/// Returns `true` if a method creates a canister, and so has no effective canister id.
pub fn creates(method: &str) -> bool {
    matches!(method, "create_canister" | "provisional_create_canister_with_cycles")
}

/// Returns the effective canister id of a message to the management canister.
///
/// # Errors
///
/// If the argument cannot be decoded.
pub fn effective_canister(method: &str, argument: &[u8]) -> Result<Principal, Reject> {
    match method {
        "install_chunked_code" => {
            let args: InstallChunkedCodeArgs = decode(argument)?;
            Ok(args.target_canister)
        }
        // Large fields are decoded, because the quota for skipping is small.
        "install_code" => decode::<InstallCodeArgs>(argument).map(|args| args.canister_id),
        "upload_chunk" => decode::<UploadChunkArgs>(argument).map(|args| args.canister_id),
        _ => decode::<CanisterIdRecord>(argument).map(|record| record.canister_id),
    }
}

/// Returns the canister and the function that execute an update.
///
/// # Errors
///
/// If the message is rejected before it is executed.
pub fn update(
    subnet: &Arc<Subnet>,
    sender: Principal,
    method: &str,
    argument: &[u8],
) -> Result<(Handle, Run), Reject> {
    if method == LOGS {
        return Err(Reject::not_admitted(
            ErrorCode::CanisterRejectedMessage,
            format!("{LOGS} can only be called as a query"),
        ));
    }
    on_canister(subnet, sender, method, argument)
}

/// Returns the canister and the function that execute a query.
///
/// # Errors
///
/// If the message is rejected before it is executed.
pub fn query(
    subnet: &Arc<Subnet>,
    sender: Principal,
    method: &str,
    argument: &[u8],
) -> Result<(Handle, Run), Reject> {
    if matches!(method, "canister_status" | LOGS) {
        on_canister(subnet, sender, method, argument)
    } else {
        Err(unknown(method))
    }
}

fn on_canister(
    subnet: &Arc<Subnet>,
    sender: Principal,
    method: &str,
    argument: &[u8],
) -> Result<(Handle, Run), Reject> {
    let run = run_of(subnet, sender, method, argument)?;
    let canister = effective_canister(method, argument)?;
    let handle = subnet.canister(&canister).ok_or_else(|| Reject::not_found(&canister))?;
    let method = method.to_owned();
    let checked = move |hosted: &mut Hosted| {
        if hosted.deleted {
            return Err(Reject::not_found(&canister));
        }
        hosted.canister.set_time(clock::now());
        // Logs have a visibility setting of their own.
        if !matches!(method.as_str(), "provisional_top_up_canister" | LOGS) {
            check_controller(hosted, &sender, &method)?;
        }
        run(hosted)
    };
    Ok((handle, Box::new(checked)))
}

/// Returns the function that executes a method on its canister.
fn run_of(
    subnet: &Arc<Subnet>,
    sender: Principal,
    method: &str,
    argument: &[u8],
) -> Result<Run, Reject> {
    let subnet = Arc::clone(subnet);
    Ok(match method {
        "install_code" => code::install(subnet, sender, decode(argument)?),
        "install_chunked_code" => code::install_chunked(subnet, sender, decode(argument)?),
        "upload_chunk" => code::upload(subnet, decode(argument)?),
        "stored_chunks" => code::stored(subnet, decode(argument)?),
        "clear_chunk_store" => code::clear(subnet, decode(argument)?),
        "canister_status" => state::status(subnet, decode(argument)?),
        "update_settings" => state::update_settings(decode(argument)?),
        "start_canister" => state::set_running(decode(argument)?, true),
        "stop_canister" => state::set_running(decode(argument)?, false),
        "delete_canister" => state::delete(subnet, decode(argument)?),
        "take_canister_snapshot" => state::take_snapshot(decode(argument)?),
        "load_canister_snapshot" => state::load_snapshot(decode(argument)?),
        "list_canister_snapshots" => state::list_snapshots(decode(argument)?),
        "delete_canister_snapshot" => state::delete_snapshot(decode(argument)?),
        LOGS => state::fetch_logs(sender, decode(argument)?),
        "provisional_top_up_canister" => state::top_up(decode(argument)?),
        other => return Err(unknown(other)),
    })
}

/// Creates a canister.
pub fn create(subnet: &Arc<Subnet>, sender: Principal, method: &str, argument: &[u8]) -> Outcome {
    let (settings, amount, wanted) = if method == "create_canister" {
        let args: CreateCanisterArgs = decode(argument)?;
        (args.settings, None, None)
    } else {
        let args: ProvisionalCreateCanisterWithCyclesArgs = decode(argument)?;
        (args.settings, args.amount, args.specified_id)
    };
    let cycles = amount.map_or(Ok(Cycles(CYCLES)), state::cycles)?;
    let id = subnet
        .create(wanted, sender, cycles, |hosted| {
            state::apply_settings(hosted, settings.unwrap_or_default())
        })
        .map_err(|error| match error {
            CreateError::Settings(reject) => reject,
            error => Reject::new(ErrorCode::CanisterIdAlreadyExists, error.to_string()),
        })?;
    reply(&CanisterIdRecord { canister_id: id })
}

fn check_controller(hosted: &Hosted, sender: &Principal, method: &str) -> Result<(), Reject> {
    if hosted.canister.settings().controllers.contains(sender) {
        return Ok(());
    }
    let id = hosted.canister.id();
    Err(Reject::new(
        ErrorCode::CanisterInvalidController,
        format!(
            "Only the controllers of the canister {id} can control it: {sender} is not one of \
             them and cannot call {method}"
        ),
    ))
}

fn unknown(method: &str) -> Reject {
    Reject::not_admitted(
        ErrorCode::CanisterMethodNotFound,
        format!("The management canister of this local endpoint has no method '{method}'"),
    )
}

fn decode<T: CandidType + DeserializeOwned>(argument: &[u8]) -> Result<T, Reject> {
    let mut quotas = DecoderConfig::new();
    quotas
        .set_decoding_quota(DECODING_QUOTA)
        .set_skipping_quota(SKIPPING_QUOTA)
        .set_full_error_message(false);
    Decode!([quotas]; argument, T).map_err(|error| {
        Reject::not_admitted(
            ErrorCode::InvalidManagementPayload,
            format!("Error decoding candid: {error}"),
        )
    })
}
