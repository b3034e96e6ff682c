//! The management canister: creates canisters and manages them, for users and for canisters.
//!
//! ```text
//!   user      submit ──→ round: execute ──→ answer
//!   canister  round: call ──→ next round: execute ──→ the round after: callback
//! ```
//!
//! | module | |
//! |---|---|
//! | `call`, `methods` | calls and their results; who may call each method, and what it concerns |
//! | `access` | who may manage a canister |
//! | `code` | installing code, and its chunks |
//! | `settings` | creating canisters, and changing their settings |
//! | `state` | status, start, stop and delete, cycles, logs |
//! | `snapshots` | taking, loading, listing and deleting snapshots |
//! | `transfer` | reading and uploading snapshots |
//! | `metadata` | the description of a snapshot |
//! | `http`, `outcall` | HTTPS outcalls, which whoever drives the subnet answers |
//! | `keys` | threshold signatures |
//! | `storage` | balances and reserved cycles for chunks, snapshots and code |
//! | `bounded` | lists in arguments, which are bounded |
//! | `arguments`, `types` | Candid types of large arguments, and of answers |
//!
//! Methods that are not in `Subnet::execute_method` are refused by name.
//!
//! Source: `rs/execution_environment/src/{execution_environment,canister_manager}.rs` of the replica.

mod access;
mod arguments;
mod bounded;
pub mod call;
mod code;
mod http;
mod keys;
pub mod metadata;
pub mod methods;
pub mod outcall;
mod settings;
mod snapshots;
mod state;
mod storage;
mod transfer;
pub mod types;

use candid::Principal;

use super::contexts::Origin;
use super::ingress::{Answered, MessageId, not_found};
use super::member::{Member, Next};
use super::queues::{Content, Delivery};
use super::subnet_state::Subnet;
use super::trace::{Cause, Function};
use crate::cycles;
use crate::execution::Execution;
use crate::fault::{ErrorCode, Reject};
use crate::system_api::message::Rejection;
use crate::units::{Cycles, Instructions};

use access::{check_controller, check_viewer};
pub use call::ManagementCall;
use call::{Failed, canister_not_found, decode_all, invalid};
pub use methods::effective_canister;
use methods::{BY_CANISTERS, BY_VIEWERS, LOGS, MAX_DELAYED_FEE, is_refused, unknown};
pub use outcall::{HttpRequest, HttpResponse};

/// The end of a method.
enum Step {
    /// The call has this answer. The canister that it concerns, if there is one.
    Answer(Result<Vec<u8>, Reject>, Option<Principal>),
    /// The call is answered later.
    Waits,
}

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
