//! The management canister, as far as tools on one machine need it.
//!
//! Each method of it is about one canister and runs on that canister's thread, in the order of
//! all its messages. What is not in the list here is rejected by name.

mod code;
mod logs;
mod settings;
mod snapshots;
mod status;

use std::sync::Arc;

use candid::{CandidType, Decode, DecoderConfig, Encode, Principal};
use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, CreateCanisterArgs, InstallChunkedCodeArgs, InstallCodeArgs,
    ProvisionalCreateCanisterWithCyclesArgs, ProvisionalTopUpCanisterArgs, UploadChunkArgs,
};
use serde::de::DeserializeOwned;
use stablebench_replica::Cycles;

use crate::canister::{Handle, Hosted};
use crate::clock;
use crate::outcome::{Outcome, Reject};
use crate::subnet::{CreateError, Message, Run, Subnet, Task, not_found};

/// Cycles of a canister that is created without saying how many.
const CYCLES: u128 = 100_000_000_000_000_000;
/// Steps of decoding an argument: several times those of the largest that is taken.
const DECODING_QUOTA: usize = 50_000_000;
/// Steps of skipping what an argument has beside what is known, as on the IC.
const SKIPPING_QUOTA: usize = 10_000;

/// The one method that is a query and no update.
const LOGS: &str = "fetch_canister_logs";

/// Whether a method makes canisters: it has no effective canister.
pub fn creates(method: &str) -> bool {
    matches!(method, "create_canister" | "provisional_create_canister_with_cycles")
}

/// The canister that a message to the management canister is about: its effective canister id.
///
/// # Errors
///
/// Where the method is unknown, or its argument names none.
pub fn subject(method: &str, argument: &[u8]) -> Result<Principal, Reject> {
    match method {
        "install_chunked_code" => {
            let args: InstallChunkedCodeArgs = decode(argument)?;
            Ok(args.target_canister)
        }
        // Large fields are read, for little may be skipped.
        "install_code" => decode::<InstallCodeArgs>(argument).map(|args| args.canister_id),
        "upload_chunk" => decode::<UploadChunkArgs>(argument).map(|args| args.canister_id),
        _ => decode::<CanisterIdRecord>(argument).map(|record| record.canister_id),
    }
}

/// What is to be done for a message to the management canister.
///
/// # Errors
///
/// Where it is refused before it runs.
pub fn task(subnet: &Arc<Subnet>, message: &Message) -> Result<Task, Reject> {
    if creates(&message.method) {
        return Ok(Task::Create);
    }
    if message.method == LOGS {
        return Err(Reject::outside(
            ErrorCode::CanisterRejectedMessage,
            format!("{LOGS} can only be called as a query"),
        ));
    }
    let (handle, run) = on_canister(subnet, message)?;
    Ok(Task::On(handle, run))
}

/// What is to be done for a query of the management canister.
///
/// # Errors
///
/// Where it is refused before it runs.
pub fn query_task(subnet: &Arc<Subnet>, message: &Message) -> Result<(Handle, Run), Reject> {
    if matches!(message.method.as_str(), "canister_status" | LOGS) {
        on_canister(subnet, message)
    } else {
        Err(unknown(&message.method))
    }
}

fn on_canister(subnet: &Arc<Subnet>, message: &Message) -> Result<(Handle, Run), Reject> {
    let run = method_of(subnet, message)?;
    let canister = subject(&message.method, &message.argument)?;
    let handle = subnet.canister(&canister).ok_or_else(|| not_found(&canister))?;
    let (sender, method) = (message.sender, message.method.clone());
    let checked = move |hosted: &mut Hosted| {
        if hosted.deleted {
            return Err(not_found(&canister));
        }
        hosted.canister.set_time(clock::now());
        // Logs have a visibility of their own.
        if !matches!(method.as_str(), "provisional_top_up_canister" | LOGS) {
            controlled(hosted, &sender, &method)?;
        }
        run(hosted)
    };
    Ok((handle, Box::new(checked)))
}

/// What a method does to its canister.
fn method_of(subnet: &Arc<Subnet>, message: &Message) -> Result<Run, Reject> {
    let (sender, argument) = (message.sender, message.argument.as_slice());
    let subnet = Arc::clone(subnet);
    Ok(match message.method.as_str() {
        "install_code" => code::install(subnet, sender, decode(argument)?),
        "install_chunked_code" => code::install_chunked(subnet, sender, decode(argument)?),
        "upload_chunk" => code::upload(subnet, decode(argument)?),
        "stored_chunks" => code::stored(subnet, decode(argument)?),
        "clear_chunk_store" => code::clear(subnet, decode(argument)?),
        "canister_status" => status::status(subnet, decode(argument)?),
        "update_settings" => settings::update(decode(argument)?),
        "start_canister" => settings::run(decode(argument)?, true),
        "stop_canister" => settings::run(decode(argument)?, false),
        "delete_canister" => settings::delete(subnet, decode(argument)?),
        "take_canister_snapshot" => snapshots::take(decode(argument)?),
        "load_canister_snapshot" => snapshots::load(decode(argument)?),
        "list_canister_snapshots" => snapshots::list(decode(argument)?),
        "delete_canister_snapshot" => snapshots::delete(decode(argument)?),
        LOGS => logs::fetch(sender, decode(argument)?),
        "provisional_top_up_canister" => top_up(decode(argument)?),
        other => return Err(unknown(other)),
    })
}

/// Creates a canister.
pub fn create(subnet: &Arc<Subnet>, message: &Message) -> Outcome {
    let (settings, amount, wanted) = if message.method == "create_canister" {
        let args: CreateCanisterArgs = decode(&message.argument)?;
        (args.settings, None, None)
    } else {
        let args: ProvisionalCreateCanisterWithCyclesArgs = decode(&message.argument)?;
        (args.settings, args.amount, args.specified_id)
    };
    let cycles = amount.map_or(Some(CYCLES), |nat| u128::try_from(nat.0).ok());
    let cycles = cycles.ok_or_else(|| invalid("the amount of cycles is larger than 2^128 - 1"))?;
    let id = subnet
        .create(wanted, message.sender, Cycles(cycles), |hosted| {
            settings::apply(hosted, settings.unwrap_or_default())
        })
        .map_err(|error| match error {
            CreateError::Settings(reject) => reject,
            error => Reject::new(ErrorCode::CanisterIdAlreadyExists, error.to_string()),
        })?;
    reply(&CanisterIdRecord { canister_id: id })
}

fn top_up(args: ProvisionalTopUpCanisterArgs) -> Run {
    Box::new(move |hosted| {
        let cycles = u128::try_from(args.amount.0)
            .map_err(|_| invalid("the amount of cycles is larger than 2^128 - 1"))?;
        hosted.canister.add_cycles(Cycles(cycles));
        done()
    })
}

fn controlled(hosted: &Hosted, sender: &Principal, method: &str) -> Result<(), Reject> {
    if hosted.canister.settings().controllers.contains(sender) {
        return Ok(());
    }
    let id = hosted.canister.id();
    Err(Reject::new(
        ErrorCode::CanisterInvalidController,
        format!(
            "Only the controllers of the canister {id} can control it: {sender} is none, and {method} is for \
             them"
        ),
    ))
}

fn unknown(method: &str) -> Reject {
    Reject::outside(
        ErrorCode::CanisterMethodNotFound,
        format!("The management canister of this local endpoint has no method '{method}'"),
    )
}

/// The argument or a part of it cannot be taken.
pub(super) fn invalid(why: impl Into<String>) -> Reject {
    Reject::new(ErrorCode::InvalidManagementPayload, why)
}

fn decode<T: CandidType + DeserializeOwned>(argument: &[u8]) -> Result<T, Reject> {
    let mut quotas = DecoderConfig::new();
    quotas
        .set_decoding_quota(DECODING_QUOTA)
        .set_skipping_quota(SKIPPING_QUOTA)
        .set_full_error_message(false);
    Decode!([quotas]; argument, T).map_err(|error| {
        Reject::outside(
            ErrorCode::InvalidManagementPayload,
            format!("Error decoding candid: {error}"),
        )
    })
}

fn reply(value: &impl CandidType) -> Outcome {
    Encode!(value).map_err(|error| invalid(format!("cannot encode the reply: {error}")))
}

fn done() -> Outcome {
    Encode!().map_err(|error| invalid(format!("cannot encode the reply: {error}")))
}
