//! The management canister: creates canisters and manages them, for users and for canisters.
//!
//! ```text
//!   user      submit ──→ round: execute ──→ answer
//!   canister  round: call ──→ next round: execute ──→ the round after: callback
//! ```
//!
//! | module | |
//! |---|---|
//! | `code` | installing code, and its chunks |
//! | `settings` | creating canisters, and changing their settings |
//! | `state` | status, start, stop and delete, cycles, logs |
//! | `snapshots` | taking, loading, listing and deleting snapshots |
//! | `transfer` | reading and uploading snapshots |
//! | `metadata` | the description of a snapshot |
//! | `http` | HTTPS outcalls, which whoever drives the subnet answers |
//! | `keys` | threshold signatures |
//! | `storage` | balances and reserved cycles for chunks, snapshots and code |
//! | `bounded` | lists in arguments, which are bounded |
//! | `types` | the Candid types of answers |
//!
//! Methods that are not in [`Subnet::execute_method`] are refused by name.
//!
//! Source: `rs/execution_environment/src/{execution_environment,canister_manager}.rs` of the replica.

mod bounded;
mod code;
mod http;
mod keys;
pub mod metadata;
mod settings;
mod snapshots;
mod state;
mod storage;
mod transfer;
pub mod types;

use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, InstallChunkedCodeArgs, InstallCodeArgs, ReadCanisterSnapshotDataArgs,
    ReadCanisterSnapshotMetadataArgs, UpdateSettingsArgs, UploadCanisterSnapshotDataArgs,
    UploadChunkArgs,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::contexts::Origin;
use super::funds::Next;
use super::member::Member;
use super::parts::Routes;
use super::queues::{Content, Delivery};
use super::trace::{Cause, Function};
use super::{Answered, MessageId, Subnet, not_found};
use crate::cycles;
use crate::decoding::{MANAGEMENT, decode_argument};
use crate::execution::Execution;
use crate::fault::{ErrorCode, Help, HostError, Reject, RejectCode, grouped};
use crate::rules::Rules;
use crate::system_api::message::Rejection;
use crate::units::{Bytes, Cycles, Instructions};

pub use http::{HttpRequest, HttpResponse};
use metadata::UploadMetadataArgs;
use snapshots::check_viewer;
use types::ChangeOrigin;

/// Bytes of an argument of `update_settings` up to which the fee is charged after the change, so that
/// a frozen canister can be configured.
const MAX_DELAYED_FEE: usize = 324;

/// A call of the management canister.
#[derive(Clone, Debug)]
pub struct ManagementCall {
    /// The source of the call.
    pub origin: Origin,
    /// The part of the subnet in which it creates canisters.
    pub part: usize,
    /// The method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
    /// Cycles that came with the call and were not taken.
    pub cycles: Cycles,
    /// The execution that made it.
    pub cause: Cause,
}

impl ManagementCall {
    fn caller(&self) -> Principal {
        self.origin.caller()
    }

    /// The source of a change.
    fn change_origin(&self, canister_version: Option<u64>) -> ChangeOrigin {
        match self.origin {
            Origin::Canister { caller: canister_id, .. } => {
                ChangeOrigin::Canister { canister_id, canister_version }
            }
            _ => ChangeOrigin::User { user_id: self.caller() },
        }
    }

    fn decode<T: CandidType + DeserializeOwned>(&self) -> Result<T, Reject> {
        decode(&self.argument)
    }

    /// Takes a fee from the cycles that came with the call.
    fn pay(&mut self, fee: Cycles) -> Result<(), Reject> {
        if self.cycles < fee {
            let message = format!(
                "{} request sent with {} cycles, but {} cycles are required.",
                self.method,
                grouped(self.cycles),
                grouped(fee)
            );
            return Err(invalid(ErrorCode::CanisterRejectedMessage, message));
        }
        self.cycles = self.cycles - fee;
        Ok(())
    }

    /// The canister that the call concerns, if there is one.
    pub fn concerns(&self) -> Option<Principal> {
        match self.method.as_str() {
            method if CONCERN_NONE.contains(&method) => None,
            method => target(method, &self.argument).ok(),
        }
    }
}

/// The end of a method.
enum Step {
    /// The call has this answer. The canister that it concerns, if there is one.
    Answer(Result<Vec<u8>, Reject>, Option<Principal>),
    /// The call is answered later.
    Waits,
}

/// The result of a method: a reject, or a host without memory.
enum Failed {
    Reject(Reject),
    Host(HostError),
}

impl From<Reject> for Failed {
    fn from(reject: Reject) -> Self {
        Self::Reject(reject)
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

type Outcome = Result<Vec<u8>, Failed>;

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
const LOGS: &str = "fetch_canister_logs";

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
const BY_VIEWERS: [&str; 3] =
    ["list_canister_snapshots", "read_canister_snapshot_metadata", "read_canister_snapshot_data"];

/// Methods that only canisters can call.
const BY_CANISTERS: [&str; 10] = [
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

impl Subnet {
    /// Admits a user's message to the management canister.
    pub(super) fn submit_management(
        &mut self,
        part: usize,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<MessageId, Reject> {
        let canister = effective_canister(method, argument)?;
        let delayed = method == "update_settings" && argument.len() <= MAX_DELAYED_FEE;
        if let Some(id) = canister {
            let member = self.members.get_mut(&id).ok_or_else(|| not_found(&id))?;
            if member.rules().set().snapshot_viewers && BY_VIEWERS.contains(&method) {
                check_viewer(member, &caller, method)?;
            } else if !member.canister.settings().controllers.contains(&caller) {
                return Err(Reject {
                    code: ErrorCode::CanisterInvalidController,
                    message: format!(
                        "Only controllers of canister {id} can call ic00 method {method}"
                    ),
                });
            }
            let fee = cycles::management_induction(member.rules(), method, argument);
            // A frozen canister can be configured.
            if !delayed && let Err(missing) = member.withdraw(fee, Next::Other) {
                return Err(member.out_of_cycles(&caller, missing));
            }
        }
        let id = self.new_message();
        self.management.push_back(ManagementCall {
            origin: Origin::Ingress { id, caller },
            part,
            method: method.to_owned(),
            argument: argument.to_vec(),
            cycles: Cycles(0),
            cause: None,
        });
        Ok(id)
    }

    /// Executes the calls of the management canister that have arrived.
    pub(super) fn execute_management(&mut self) {
        let calls = std::mem::take(&mut self.management);
        for mut call in calls {
            let is_away = call.concerns().is_some_and(|id| self.is_away(&id));
            if is_away || self.halt.is_requested() {
                self.called.push(call);
                continue;
            }
            let began = self.trace.next();
            match self.execute_method(&mut call) {
                Step::Waits => {}
                Step::Answer(response, concerns) => {
                    // A method that ran code has added an execution.
                    let cause = match self.trace.next() - 1 {
                        last if self.trace.next() > began => Some(last),
                        _ => Some(self.add_execution(&call, concerns, &response)),
                    };
                    if response.is_ok()
                        && let Some(member) = concerns.and_then(|id| self.members.get_mut(&id))
                    {
                        member.check_memory();
                    }
                    match call.origin {
                        Origin::Ingress { id, .. } => {
                            self.answers.insert(id, Answered { response, cause });
                        }
                        _ => self.answer(&call.origin, rejected(response), call.cycles, cause),
                    }
                }
            }
        }
    }

    /// Adds a method without code to the executions.
    fn add_execution(
        &mut self,
        call: &ManagementCall,
        concerns: Option<Principal>,
        response: &Result<Vec<u8>, Reject>,
    ) -> u64 {
        let execution = Execution::of(response.clone());
        let canister = concerns.unwrap_or(Principal::management_canister());
        let function = Function::Management(call.method.clone());
        self.trace.add(call.cause, canister, function, 0, Cycles(0), execution)
    }

    /// Executes a method.
    fn execute_method(&mut self, call: &mut ManagementCall) -> Step {
        let by_user = matches!(call.origin, Origin::Ingress { .. });
        let method = call.method.clone();
        if by_user && BY_CANISTERS.contains(&method.as_str()) {
            let code = ErrorCode::CanisterContractViolation;
            let message = format!("{method} cannot be called by a user.");
            return Step::Answer(Err(Reject { code, message }), None);
        }
        let outcome = match method.as_str() {
            "create_canister" => self.create_canister(call),
            "provisional_create_canister_with_cycles" => self.provisional_create(call),
            "update_settings" => self.update_settings(call),
            "install_code" => self.install_code(call),
            "install_chunked_code" => self.install_chunked_code(call),
            "uninstall_code" => self.uninstall_code(call),
            "upload_chunk" => self.upload_chunk(call),
            "stored_chunks" => self.stored_chunks(call),
            "clear_chunk_store" => self.clear_chunk_store(call),
            "canister_status" => self.canister_status(call),
            "canister_info" => self.canister_info(call),
            "canister_metadata" => self.canister_metadata(call),
            "start_canister" => self.start_canister(call),
            "stop_canister" => match self.stop_canister(call) {
                Ok(None) => return Step::Waits,
                Ok(Some(reply)) => Ok(reply),
                Err(failed) => Err(failed),
            },
            "delete_canister" => self.delete_canister(call),
            "deposit_cycles" => self.deposit_cycles(call),
            "provisional_top_up_canister" => self.provisional_top_up(call),
            "raw_rand" => self.raw_rand(call),
            "ecdsa_public_key" => keys::ecdsa_public_key(call),
            "sign_with_ecdsa" => keys::sign_with_ecdsa(call),
            "schnorr_public_key" => keys::schnorr_public_key(call),
            "sign_with_schnorr" => keys::sign_with_schnorr(call),
            "take_canister_snapshot" => self.take_snapshot(call),
            "load_canister_snapshot" => self.load_snapshot(call),
            "list_canister_snapshots" => self.list_snapshots(call),
            "delete_canister_snapshot" => self.delete_snapshot(call),
            "read_canister_snapshot_metadata" => self.read_snapshot_metadata(call),
            "read_canister_snapshot_data" => self.read_snapshot_data(call),
            "upload_canister_snapshot_metadata" => self.upload_metadata(call),
            "upload_canister_snapshot_data" => self.upload_data(call),
            "http_request" => match self.http_request(call) {
                Ok(()) => return Step::Waits,
                Err(reject) => Err(reject.into()),
            },
            LOGS => Err(Reject {
                code: ErrorCode::CanisterRejectedMessage,
                message: format!(
                    "{LOGS} API is only accessible to end users in non-replicated mode"
                ),
            }
            .into()),
            other => Err(unknown(other).into()),
        };
        let concerns = call.concerns();
        match outcome {
            Ok(reply) => Step::Answer(Ok(reply), concerns),
            Err(Failed::Reject(reject)) => Step::Answer(Err(reject), concerns),
            // The call is answered in any case.
            Err(Failed::Host(error)) => {
                let code = ErrorCode::CanisterOutOfMemory;
                Step::Answer(Err(invalid(code, error.to_string())), concerns)
            }
        }
    }

    /// Answers a query of the management canister, and returns the instructions that the answer
    /// counts as in a composite query.
    pub(super) fn query_management(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<(Vec<u8>, Instructions), Reject> {
        let newer = self.replica.rules().set().management_queries;
        let free = |reply| (reply, Instructions(0));
        match method {
            "canister_status" => self.status_of(&caller, argument).map(free),
            "canister_info" if newer => self.info_of(argument, not_found).map(free),
            "list_canisters" if newer => {
                decode_all::<()>(argument)?;
                Err(Reject {
                    code: ErrorCode::CanisterRejectedMessage,
                    message: "list_canisters is only available on subnets with subnet admins"
                        .to_owned(),
                })
            }
            LOGS => self.fetch_logs(&caller, argument),
            other if newer && !is_refused(other) => Err(Reject {
                code: ErrorCode::CanisterMethodNotFound,
                message: format!("Query method {other} not found."),
            }),
            other => Err(unknown(other)),
        }
    }

    /// Sends the answer to a canister's call, which arrives in the next round.
    fn answer(
        &mut self,
        origin: &Origin,
        response: Result<Vec<u8>, Rejection>,
        refund: Cycles,
        cause: Cause,
    ) {
        if let Origin::Canister { caller, callback, deadline } = *origin {
            self.returned.push(Delivery {
                sender: Principal::management_canister(),
                receiver: caller,
                callback,
                deadline,
                cycles: refund,
                cause,
                content: Content::Response(response),
            });
        }
    }

    fn member(&self, id: &Principal) -> Result<&Member, Reject> {
        self.members.get(id).ok_or_else(|| canister_not_found(id))
    }

    fn member_mut(&mut self, id: &Principal) -> Result<&mut Member, Reject> {
        self.members.get_mut(id).ok_or_else(|| canister_not_found(id))
    }

    /// Returns a canister that the caller controls.
    fn controlled(&mut self, id: &Principal, caller: &Principal) -> Result<&mut Member, Reject> {
        let member = self.member_mut(id)?;
        check_controller(member, caller)?;
        Ok(member)
    }

    /// Returns a canister that the caller controls, or is.
    fn own(&mut self, id: &Principal, caller: &Principal) -> Result<&mut Member, Reject> {
        match id == caller {
            true => self.member_mut(id),
            false => self.controlled(id, caller),
        }
    }
}

/// A response as a canister sees it: unlike rejects of canisters, without the number of the error.
fn rejected(response: Result<Vec<u8>, Reject>) -> Result<Vec<u8>, Rejection> {
    response.map_err(|Reject { code, message }| Rejection::new(code.reject_code(), message))
}

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
        "create_canister" => {
            settings::creation_args(argument).map(|args| args.sender_canister_version)
        }
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
fn is_refused(method: &str) -> bool {
    REFUSED.iter().any(|(name, _)| *name == method)
}

/// Returns true for methods that are executed.
fn is_method(method: &str) -> bool {
    let provisional = ["provisional_top_up_canister", LOGS];
    [BY_CONTROLLERS.as_slice(), &BY_CANISTERS, &provisional].concat().contains(&method)
}

fn check_controller(member: &Member, caller: &Principal) -> Result<(), Reject> {
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

/// The reject of most methods about a canister that does not exist.
fn canister_not_found(id: &Principal) -> Reject {
    let message = format!("Canister {id} not found.");
    Reject { code: ErrorCode::CanisterNotFound, message }
}

/// The reject of the others, with a suggestion.
fn canister_not_found_anywhere(rules: Rules, reject: Reject) -> Reject {
    match reject.code {
        ErrorCode::CanisterNotFound => refusal(
            rules,
            reject.code,
            reject.message,
            "Check the ICP dashboard to ensure the canister exists.",
            "canister-not-found",
        ),
        _ => reject,
    }
}

/// The reject of a method that is missing here, or everywhere.
fn unknown(method: &str) -> Reject {
    let code = ErrorCode::CanisterMethodNotFound;
    let message = match REFUSED.iter().find(|(name, _)| *name == method) {
        Some((_, reason)) => format!("The embedded replica does not support {method}: {reason}"),
        None => format!("Management canister has no method '{method}'"),
    };
    Reject { code, message }
}

/// A reject with a suggestion in its second line, which links to the page of the rules.
fn refusal(
    rules: Rules,
    code: ErrorCode,
    text: impl Into<String>,
    suggestion: &'static str,
    section: &'static str,
) -> Reject {
    let help = Help { suggestion, section }.line(rules);
    Reject { code, message: format!("{}\n{help}", text.into()) }
}

/// A reject because of an argument.
fn invalid(code: ErrorCode, message: impl Into<String>) -> Reject {
    Reject { code, message: message.into() }
}

fn decode<T: CandidType + DeserializeOwned>(argument: &[u8]) -> Result<T, Reject> {
    decode_all::<(T,)>(argument).map(|(one,)| one)
}

fn decode_all<'a, T: ArgumentDecoder<'a>>(argument: &'a [u8]) -> Result<T, Reject> {
    decode_argument(argument, MANAGEMENT).map_err(|error| {
        invalid(ErrorCode::InvalidManagementPayload, format!("Error decoding candid: {error:#}"))
    })
}

/// Encodes the reply of a method.
fn reply(values: impl ArgumentEncoder) -> Outcome {
    candid::encode_args(values).map_err(|error| {
        let message = format!("cannot encode the reply: {error}");
        Failed::Reject(invalid(ErrorCode::CanisterWasmEngineError, message))
    })
}

/// The fee of a message that is charged after it, by its bytes alone.
fn delayed_fee(member: &Member, call: &ManagementCall) -> Option<Cycles> {
    let by_user = matches!(call.origin, Origin::Ingress { .. });
    (by_user && call.argument.len() <= MAX_DELAYED_FEE).then(|| {
        let bytes = Bytes((call.argument.len() + call.method.len()) as u64);
        cycles::ingress(member.rules(), bytes)
    })
}
