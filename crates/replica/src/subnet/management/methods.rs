//! The methods of the management canister: who may call each, the canister that it concerns, and cycles
//! for the chunks, snapshots and code that it stores.

use std::fmt;

use candid::{CandidType, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CreateCanisterArgs, InstallChunkedCodeArgs, ReadCanisterSnapshotDataArgs,
    ReadCanisterSnapshotMetadataArgs, SnapshotVisibility, UpdateSettingsArgs, UploadChunkArgs,
};
use serde::Deserialize;

use super::call::{
    InstallCodeArgs, ManagementCall, UploadCanisterSnapshotDataArgs, decode, invalid, refusal,
};
use super::keys;
use crate::cycles::{Saturation, Threshold};
use crate::fault::{ErrorCode, Reject, RejectCode, grouped};
use crate::rules::Rules;
use crate::subnet::managed::UploadMetadataArgs;
use crate::subnet::member::Routes;
use crate::subnet::member::{Member, Next};
use crate::system_api::message::Rejection;
use crate::units::{Bytes, Cycles};

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
const BY_CONTROLLERS: [&str; 19] = [
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
const REFUSED: [(&str, &str); 10] = [
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
const NO_KEYS: &str = "it has no vetKD keys";
const NO_BITCOIN: &str = "it has no Bitcoin network";
const NO_NODES: &str = "it has no nodes";
const NO_METRICS: &str = "it does not count messages and consumed cycles";
const NO_REPLICATION: &str = "an HTTPS outcall has one response, not one from each node";

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
fn target(method: &str, argument: &[u8]) -> Result<Principal, Reject> {
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

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// Returns the version of the calling canister in an argument.
fn sender_version(method: &str, argument: &[u8]) -> Result<Option<u64>, Reject> {
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
const CONCERN_NONE: [&str; 8] = [
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
fn is_method(method: &str) -> bool {
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

/// Checks that somebody controls a canister.
pub fn check_controller(member: &Member, caller: &Principal) -> Result<(), Reject> {
    let controllers = &member.canister.settings().controllers;
    if controllers.contains(caller) {
        return Ok(());
    }
    let id = member.canister.id();
    let controllers: Vec<String> = controllers.iter().map(Principal::to_text).collect();
    Err(refusal(
        member.rules(),
        ErrorCode::CanisterInvalidController,
        format!(
            "Only the controllers of the canister {id} can control it.\nCanister's controllers: \
             {}\nSender's ID: {caller}",
            controllers.join(" ")
        ),
        "Execute this call from a controller of the target canister or add the current caller as a \
         controller.",
        "invalid-controller",
    ))
}

/// Checks that somebody may list and read the snapshots of a canister.
pub fn check_viewer(member: &Member, caller: &Principal, method: &str) -> Result<(), Reject> {
    if !member.rules().set().snapshot_viewers {
        return check_controller(member, caller);
    }
    let visible = match &member.managed.snapshot_visibility {
        SnapshotVisibility::Public => true,
        SnapshotVisibility::Controllers => false,
        SnapshotVisibility::AllowedViewers(viewers) => viewers.contains(caller),
    };
    match visible || check_controller(member, caller).is_ok() {
        true => Ok(()),
        false => Err(invalid(
            ErrorCode::CanisterRejectedMessage,
            format!("Caller {caller} is not allowed to call {method}"),
        )),
    }
}

/// Additional storage of a canister, and the price of the work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Storing {
    /// Bytes of chunks or snapshots that it adds.
    pub more: Bytes,
    /// Bytes that these replace.
    pub less: Bytes,
    /// Cycles for the work.
    pub cost: Cycles,
}

impl Member {
    /// Checks that the canister can pay for more bytes of chunks or snapshots, pays for the work, and
    /// reserves cycles for the bytes. `saturation` does not contain them.
    pub(super) fn store(
        &mut self,
        caller: &Principal,
        storing: Storing,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let Storing { more, less, cost } = storing;
        let threshold = self.threshold(Next::Other);
        let other = (threshold.other + more).saturating_sub(less);
        let needed = Threshold { other, ..threshold }.cycles(self.canister.memories(), Bytes(0));
        let used = (self.used() + more).saturating_sub(less);
        self.check_memory_left(used, more.saturating_sub(less), saturation)?;
        self.pay_for_growth(caller, more.saturating_sub(less), needed, cost, saturation)
    }

    /// Pays for the loading of a snapshot, after which the canister has more bytes than `before`.
    pub(super) fn pay_for_loading(
        &mut self,
        caller: &Principal,
        before: Bytes,
        cost: Cycles,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let grown = self.used().saturating_sub(before);
        self.check_memory_left(self.used(), grown, saturation)?;
        let needed = self.frozen(Next::Other);
        self.pay_for_growth(caller, grown, needed, cost, saturation)
    }

    /// Checks that the memory allocation, or the subnet, has room for a canister of `used` bytes.
    fn check_memory_left(
        &self,
        used: Bytes,
        grown: Bytes,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let allocated = self.canister.allocation.memory;
        if allocated == Bytes(0) {
            let free = saturation.left();
            let full = || Err(subnet_full(self.rules(), grown, free));
            return if grown > free { full() } else { Ok(()) };
        }
        match allocated < used && !self.rules().set().snapshot_viewers {
            true => Err(allocation_too_small(self.rules(), allocated, used)),
            false => Ok(()),
        }
    }

    /// Pays for work with which the canister grows by `grown` bytes. `needed` is the balance below
    /// which it freezes then.
    fn pay_for_growth(
        &mut self,
        caller: &Principal,
        grown: Bytes,
        needed: Cycles,
        cost: Cycles,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        self.check_balance(grown, needed)?;
        let before = self.canister.balance;
        let missing = (needed + cost).saturating_sub(before);
        if missing > Cycles(0) {
            return Err(self.cannot_pay(caller, missing));
        }
        self.canister.balance = before - cost;
        let reserved = self.reserve_growth(grown, saturation);
        if reserved.is_err() {
            self.canister.balance = before;
        }
        reserved
    }

    /// The reject of a method for which cycles are missing.
    pub(super) fn cannot_pay(&self, caller: &Principal, missing: Cycles) -> Reject {
        let Reject { code, message } = self.out_of_cycles(caller, missing);
        let (what, help) = match self.rules().set().snapshot_viewers {
            false => (
                "snapshotting",
                "Try sending more cycles with the request. See documentation: \
                 canister-snapshot-not-enough-cycles",
            ),
            true => (
                "management operation",
                "Try sending more cycles with the request. See documentation: not-enough-cycles",
            ),
        };
        let rules = self.rules();
        refusal(rules, code, format!("Canister {what} failed with: `{message}`"), help, "")
    }

    /// Reserves cycles for memory that grows by this number of bytes, unless they are allocated already.
    pub(super) fn reserve_growth(
        &mut self,
        bytes: Bytes,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let Some(reserve) = self.reserve(saturation) else { return Ok(()) };
        let rules = self.rules();
        let cycles = reserve.growth(rules, Bytes(0), bytes).map_err(|fault| {
            refusal(
                rules,
                fault.code(),
                fault.to_string(),
                "Try increasing this canister's reserved cycles limit or moving it to a subnet \
                 with lower memory usage.",
                "reserved-cycles-limit-exceeded-in-memory-grow",
            )
        })?;
        self.check_balance(bytes, cycles)?;
        self.set_aside(cycles);
        Ok(())
    }

    fn check_balance(&self, bytes: Bytes, needed: Cycles) -> Result<(), Reject> {
        match needed.get().checked_sub(self.canister.balance.get()) {
            Some(missing) if missing > 0 => Err(cannot_grow(self.rules(), bytes, Cycles(missing))),
            _ => Ok(()),
        }
    }
}

/// The reject of a canister that cannot pay for more memory.
pub(super) fn cannot_grow(rules: Rules, bytes: Bytes, missing: Cycles) -> Reject {
    refusal(
        rules,
        ErrorCode::InsufficientCyclesInMemoryGrow,
        format!(
            "Canister cannot grow memory by {bytes} bytes due to insufficient cycles. At least {} \
             additional cycles are required.",
            grouped(missing)
        ),
        "Top up the canister with more cycles.",
        "insufficient-cycles-in-memory-grow-1",
    )
}

/// The reject of a canister that does not fit into its memory allocation.
pub(super) fn allocation_too_small(rules: Rules, allocated: Bytes, used: Bytes) -> Reject {
    refusal(
        rules,
        ErrorCode::InsufficientMemoryAllocation,
        format!(
            "Canister was given {} memory allocation but at least {used} of memory is needed.",
            Size(allocated)
        ),
        "Try increasing the canister's memory allocation.",
        "not-enough-memory-allocation-given",
    )
}

/// The reject of a canister that does not fit into the subnet.
pub(super) fn subnet_full(rules: Rules, wanted: Bytes, free: Bytes) -> Reject {
    refusal(
        rules,
        ErrorCode::SubnetOversubscribed,
        format!(
            "Canister requested {} of memory but only {} are available in the subnet.",
            Size(wanted),
            Size(free)
        ),
        "Try moving to another subnet.",
        "subnet-memory-capacity-oversubscribed",
    )
}

/// Bytes in the largest unit that they exceed, with two decimals.
pub struct Size(pub Bytes);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let bytes = self.0.get();
        match UNITS.iter().find(|(_, unit)| bytes > *unit) {
            Some((name, unit)) => write!(f, "{:.2} {name}", bytes as f64 / *unit as f64),
            None => write!(f, "{bytes} B"),
        }
    }
}
