//! The methods of the management canister: who may call each, and the canister that it concerns.

use candid::{CandidType, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CreateCanisterArgs, InstallChunkedCodeArgs, ReadCanisterSnapshotDataArgs,
    ReadCanisterSnapshotMetadataArgs, UpdateSettingsArgs, UploadChunkArgs,
};
use serde::Deserialize;

use super::arguments::{InstallCodeArgs, UploadCanisterSnapshotDataArgs};
use super::call::{ManagementCall, decode};
use super::keys;
use super::metadata::UploadMetadataArgs;
use crate::fault::{ErrorCode, Reject, RejectCode};
use crate::subnet::parts::Routes;
use crate::system_api::message::Rejection;

/// Bytes of an argument of `update_settings` up to which the fee is charged after the change, so that
/// a frozen canister can be configured.
pub const MAX_DELAYED_FEE: usize = 324;

impl ManagementCall {
    /// The canister that the call concerns, if there is one.
    pub fn concerns(&self) -> Option<Principal> {
        match self.method.as_str() {
            method if CONCERN_NONE.contains(&method) => None,
            method => target(method, &self.argument).ok(),
        }
    }
}

/// Returns the canister that a message to the management canister concerns, which pays for it;
/// `None` if the message is free.
///
/// # Errors
///
/// The reject of a message that users cannot send, or whose argument cannot be decoded.
pub fn effective_canister(method: &str, argument: &[u8]) -> Result<Option<Principal>, Reject> {
    let canister = match method {
        "provisional_create_canister_with_cycles" | "provisional_top_up_canister" => {
            return Ok(None);
        }
        "update_settings" => decode::<UpdateSettingsArgs>(argument).map(|args| args.canister_id),
        _ if BY_CONTROLLERS.contains(&method) => target(method, argument),
        _ if BY_CANISTERS.contains(&method) || method == LOGS || is_refused(method) => {
            let message = match method {
                "canister_info" | "canister_metadata" => {
                    format!("Only canisters can call ic00 method {method}")
                }
                _ => format!("ic00 method {method} can not be called via ingress messages"),
            };
            return Err(Reject { code: ErrorCode::CanisterRejectedMessage, message });
        }
        _ => {
            return Err(Reject {
                code: ErrorCode::CanisterMethodNotFound,
                message: format!("ic00 interface does not expose method {method}"),
            });
        }
    };
    canister.map(Some).map_err(|Reject { code, message }| Reject {
        code,
        message: format!(
            "Failed to parse payload for ic00 method {method}: IC{:04}: {message}",
            code.number()
        ),
    })
}

/// The only method that is a query but not an update.
pub const LOGS: &str = "fetch_canister_logs";

/// Methods that users can call if they control the canister.
pub const BY_CONTROLLERS: [&str; 19] = [
    "canister_status",
    "start_canister",
    "uninstall_code",
    "stop_canister",
    "delete_canister",
    "update_settings",
    "install_code",
    "install_chunked_code",
    "upload_chunk",
    "stored_chunks",
    "clear_chunk_store",
    "take_canister_snapshot",
    "load_canister_snapshot",
    "list_canister_snapshots",
    "delete_canister_snapshot",
    "read_canister_snapshot_metadata",
    "read_canister_snapshot_data",
    "upload_canister_snapshot_metadata",
    "upload_canister_snapshot_data",
];

/// Those that settings allow to others too, since 2026.
pub const BY_VIEWERS: [&str; 3] =
    ["list_canister_snapshots", "read_canister_snapshot_metadata", "read_canister_snapshot_data"];

/// Methods that only canisters can call.
pub const BY_CANISTERS: [&str; 10] = [
    "create_canister",
    "canister_info",
    "canister_metadata",
    "deposit_cycles",
    "raw_rand",
    "http_request",
    "ecdsa_public_key",
    "sign_with_ecdsa",
    "schnorr_public_key",
    "sign_with_schnorr",
];

/// Methods of the Interface Specification that are refused.
pub const REFUSED: [(&str, &str); 10] = [
    ("vetkd_public_key", NO_KEYS),
    ("vetkd_derive_key", NO_KEYS),
    ("bitcoin_get_balance", NO_BITCOIN),
    ("bitcoin_get_utxos", NO_BITCOIN),
    ("bitcoin_send_transaction", NO_BITCOIN),
    ("node_metrics_history", NO_NODES),
    ("subnet_info", NO_NODES),
    ("subnet_metrics", NO_METRICS),
    ("canister_metrics", NO_METRICS),
    ("flexible_http_request", NO_REPLICATION),
];
pub const NO_KEYS: &str = "it has no vetKD keys";
pub const NO_BITCOIN: &str = "it has no Bitcoin network";
pub const NO_NODES: &str = "it has no nodes";
pub const NO_METRICS: &str = "it does not count messages and consumed cycles";
pub const NO_REPLICATION: &str = "an HTTPS outcall has one response, not one from each node";

/// Checks a canister's call when it is made: the method, the version of the canister that the argument
/// may contain, and the canister that it concerns.
pub fn check_call(
    method: &str,
    argument: &[u8],
    version: u64,
    routes: &Routes,
) -> Result<(), Rejection> {
    let user_error = |Reject { code, message }: Reject| {
        Rejection::new(code.reject_code(), format!("IC{:04}: {message}", code.number()))
    };
    let given = sender_version(method, argument).map_err(user_error)?;
    if let Some(given) = given
        && given != version
    {
        let code = ErrorCode::CanisterContractViolation;
        let message = format!(
            "Management canister call payload includes sender canister version {given} that does \
             not match the actual sender canister version {version}."
        );
        return Err(user_error(Reject { code, message }));
    }
    let unroutable = |reason: String| {
        let message = format!("Unable to route management canister request {method}: {reason}");
        Rejection::new(RejectCode::DestinationInvalid, message)
    };
    if keys::METHODS.contains(&method) {
        return keys::check(method, argument, routes.keys()).map_err(unroutable);
    }
    if CONCERN_NONE.contains(&method) {
        return Ok(());
    }
    let concerns = target(method, argument).map_err(|Reject { code, message }| {
        unroutable(format!("UserError(UserError {{ code: {code}, description: {message:?} }})"))
    })?;
    match routes.host(&concerns) {
        true => Ok(()),
        false => {
            let method = match method {
                "canister_status" | "start_canister" | "stop_canister" | "delete_canister" => {
                    "deposit_cycles"
                }
                other => other,
            };
            let words = method.split('_').map(capitalized).collect::<String>();
            Err(unroutable(format!("SubnetNotFound(CanisterId({concerns}), {words})")))
        }
    }
}

/// Returns the canister that an argument names.
pub fn target(method: &str, argument: &[u8]) -> Result<Principal, Reject> {
    match method {
        "install_chunked_code" => {
            decode::<InstallChunkedCodeArgs>(argument).map(|args| args.target_canister)
        }
        // Large fields are decoded, because the quota for skipping is small.
        "install_code" => decode::<InstallCodeArgs>(argument).map(|args| args.canister_id),
        "upload_chunk" => decode::<UploadChunkArgs>(argument).map(|args| args.canister_id),
        "read_canister_snapshot_metadata" => {
            decode::<ReadCanisterSnapshotMetadataArgs>(argument).map(|args| args.canister_id)
        }
        "read_canister_snapshot_data" => {
            decode::<ReadCanisterSnapshotDataArgs>(argument).map(|args| args.canister_id)
        }
        "upload_canister_snapshot_metadata" => {
            decode::<UploadMetadataArgs>(argument).map(|args| args.canister_id)
        }
        "upload_canister_snapshot_data" => {
            decode::<UploadCanisterSnapshotDataArgs>(argument).map(|args| args.canister_id)
        }
        _ => decode::<CanisterIdRecord>(argument).map(|record| record.canister_id),
    }
}

pub fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// Returns the version of the calling canister in an argument.
pub fn sender_version(method: &str, argument: &[u8]) -> Result<Option<u64>, Reject> {
    #[derive(CandidType, Deserialize)]
    struct Versioned {
        sender_canister_version: Option<u64>,
    }
    match method {
        "install_code" => {
            decode::<InstallCodeArgs>(argument).map(|args| args.sender_canister_version)
        }
        "install_chunked_code" => {
            decode::<InstallChunkedCodeArgs>(argument).map(|args| args.sender_canister_version)
        }
        "create_canister" => creation_args(argument).map(|args| args.sender_canister_version),
        "update_settings"
        | "uninstall_code"
        | "provisional_create_canister_with_cycles"
        | "load_canister_snapshot" => {
            decode::<Versioned>(argument).map(|args| args.sender_canister_version)
        }
        _ if is_method(method) => Ok(None),
        _ => Err(unknown(method)),
    }
}

/// Methods of canisters that concern no canister.
pub const CONCERN_NONE: [&str; 8] = [
    "create_canister",
    "provisional_create_canister_with_cycles",
    "raw_rand",
    "http_request",
    "ecdsa_public_key",
    "sign_with_ecdsa",
    "schnorr_public_key",
    "sign_with_schnorr",
];

/// Returns true for methods that only the embedded replica lacks.
pub fn is_refused(method: &str) -> bool {
    REFUSED.iter().any(|(name, _)| *name == method)
}

/// Returns true for methods that are executed.
pub fn is_method(method: &str) -> bool {
    let provisional = ["provisional_top_up_canister", LOGS];
    [BY_CONTROLLERS.as_slice(), &BY_CANISTERS, &provisional].concat().contains(&method)
}

/// The argument of `create_canister`, which may be missing.
pub fn creation_args(argument: &[u8]) -> Result<CreateCanisterArgs, Reject> {
    if argument == EMPTY { Ok(CreateCanisterArgs::default()) } else { decode(argument) }
}

/// No values, in Candid.
const EMPTY: &[u8] = b"DIDL\0\0";

/// The reject of a method that is missing here, or everywhere.
pub fn unknown(method: &str) -> Reject {
    let code = ErrorCode::CanisterMethodNotFound;
    let message = match REFUSED.iter().find(|(name, _)| *name == method) {
        Some((_, reason)) => format!("The embedded replica does not support {method}: {reason}"),
        None => format!("Management canister has no method '{method}'"),
    };
    Reject { code, message }
}
