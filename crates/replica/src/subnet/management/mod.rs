//! The management canister: creates canisters and manages them, for users and for canisters. Methods
//! about the state of a canister are here: status, history, start, stop and delete, cycles, logs.
//!
//! ```text
//!   user      submit ──→ round: execute ──→ answer
//!   canister  round: call ──→ next round: execute ──→ the round after: callback
//! ```
//!
//! | module | |
//! |---|---|
//! | `call` | calls: arguments, rejects and answers |
//! | `methods` | who may call each method, what it concerns, and what it costs to store something |
//! | `code` | installing code, and its chunks |
//! | `settings` | creating canisters, and changing their settings |
//! | `snapshots` | taking, loading, listing and deleting snapshots |
//! | `http` | HTTPS outcalls, which whoever drives the subnet answers |
//! | `keys` | threshold signatures |
//!
//! Methods that are not in `Subnet::execute_method` are refused by name.
//!
//! Source: `rs/execution_environment/src/{execution_environment,canister_manager}.rs` of the replica.

pub mod call;
mod code;
mod http;
mod keys;
pub mod methods;
mod settings;
mod snapshots;

use candid::{Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterMetadataArgs, CanisterMetadataResult,
    CanisterStatusResult, CanisterStatusType, DefiniteCanisterSettings, EnvironmentVariable,
    FetchCanisterLogsArgs, FetchCanisterLogsResult, MemoryMetrics, ProvisionalTopUpCanisterArgs,
    QueryStats, StatusVisibility,
};
use sha2::{Digest, Sha256};

use super::managed::Stop;
use super::member::{Member, Next};
use super::messages::{Answered, Content, Delivery, MessageId, Origin, not_found};
use super::subnet_state::Subnet;
use crate::cycles;
use crate::execution::{Cause, Execution, Function};
use crate::fault::{ErrorCode, Reject, RejectCode};
use crate::rules::{READ_LOG_INSTRUCTIONS, READ_LOG_RECORD_INSTRUCTIONS, STOP_TIMEOUT};
use crate::system_api::message::{Rejection, Status};
use crate::units::{Bytes, Cycles, Instructions, SECOND};
use crate::validate::Visibility;

use call::{
    Failed, InfoReply, ManagementCall, Outcome, StatusReply, canister_not_found,
    canister_not_found_anywhere, decode, decode_all, encode, invalid, refusal, reply,
};
use methods::{
    BY_CANISTERS, BY_VIEWERS, LOGS, MAX_DELAYED_FEE, check_controller, check_viewer,
    effective_canister, is_refused, unknown,
};
use settings::amount;

/// The end of a method.
enum MethodEnd {
    /// The call has this answer. The canister that it concerns, if there is one.
    Answer(Result<Vec<u8>, Reject>, Option<Principal>),
    /// The call is answered later.
    Later,
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
                MethodEnd::Later => {}
                MethodEnd::Answer(response, concerns) => {
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
    fn execute_method(&mut self, call: &mut ManagementCall) -> MethodEnd {
        let by_user = matches!(call.origin, Origin::Ingress { .. });
        let method = call.method.clone();
        if by_user && BY_CANISTERS.contains(&method.as_str()) {
            let code = ErrorCode::CanisterContractViolation;
            let message = format!("{method} cannot be called by a user.");
            return MethodEnd::Answer(Err(Reject { code, message }), None);
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
                Ok(None) => return MethodEnd::Later,
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
                Ok(()) => return MethodEnd::Later,
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
            Ok(reply) => MethodEnd::Answer(Ok(reply), concerns),
            Err(Failed::Reject(reject)) => MethodEnd::Answer(Err(reject), concerns),
            // The call is answered in any case.
            Err(Failed::Host(error)) => {
                let code = ErrorCode::CanisterOutOfMemory;
                MethodEnd::Answer(Err(invalid(code, error.to_string())), concerns)
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

    fn canister_status(&mut self, call: &ManagementCall) -> Outcome {
        self.status_of(&call.caller(), &call.argument).map_err(Failed::from)
    }

    /// The status of a canister, in Candid.
    fn status_of(&self, caller: &Principal, argument: &[u8]) -> Result<Vec<u8>, Reject> {
        let args: CanisterIdRecord = decode(argument)?;
        let member = self.member(&args.canister_id)?;
        let public = match &member.managed.status_visibility {
            StatusVisibility::Public => true,
            StatusVisibility::Controllers => false,
            StatusVisibility::AllowedViewers(viewers) => viewers.contains(caller),
        };
        if args.canister_id != *caller && !public {
            check_controller(member, caller)?;
        }
        match member.rules().set().status_of_logs {
            true => encode((status(member),)),
            false => encode((StatusReply::new(status(member)),)),
        }
    }

    fn canister_info(&mut self, call: &ManagementCall) -> Outcome {
        self.info_of(&call.argument, canister_not_found).map_err(Failed::from)
    }

    /// The history and the controllers of a canister, in Candid. `missing` is the reject for a canister
    /// that does not exist.
    fn info_of(
        &self,
        argument: &[u8],
        missing: fn(&Principal) -> Reject,
    ) -> Result<Vec<u8>, Reject> {
        let args: CanisterInfoArgs = decode(argument)?;
        let id = args.canister_id;
        let member = self.members.get(&id).ok_or_else(|| missing(&id))?;
        let managed = &member.managed;
        let wanted = usize::try_from(args.num_requested_changes.unwrap_or(0)).unwrap_or(usize::MAX);
        let skipped = managed.changes.len().saturating_sub(wanted);
        encode((InfoReply {
            total_num_changes: managed.total_changes,
            recent_changes: managed.changes.iter().skip(skipped).cloned().collect(),
            module_hash: member.canister.module().map(|module| module.hash().to_vec()),
            controllers: member.canister.settings().controllers.clone(),
        },))
    }

    fn canister_metadata(&mut self, call: &ManagementCall) -> Outcome {
        let CanisterMetadataArgs { canister_id: id, name } = call.decode()?;
        let member = self.member(&id)?;
        let Some(module) = member.canister.module() else {
            let text =
                format!("The canister {id} has no Wasm module and hence no metadata is available.");
            return Err(no_metadata(text).into());
        };
        let controls = member.canister.settings().controllers.contains(&call.caller());
        let section = module.info().custom_sections.get(&name);
        let section =
            section.filter(|section| controls || section.visibility == Visibility::Public);
        match section {
            Some(section) => reply((CanisterMetadataResult { value: section.content.to_vec() },)),
            None => {
                let text =
                    format!("The canister {id} has no metadata section with the name {name}.");
                Err(no_metadata(text).into())
            }
        }
    }

    fn start_canister(&mut self, call: &ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let id = args.canister_id;
        let member = self.controlled(&id, &call.caller())?;
        member.status = Status::Running;
        member.canister.count_change();
        let stops = std::mem::take(&mut member.managed.stops);
        self.answer_stops(stops, |by_user| {
            let message = match by_user {
                true => format!("Canister {id}'s stop request was cancelled."),
                false => format!("Canister {id}'s stop request cancelled"),
            };
            Err((ErrorCode::CanisterStoppingCancelled, message))
        });
        reply(())
    }

    /// Stops a canister. Returns `None` if the call waits until its calls have ended.
    fn stop_canister(&mut self, call: &ManagementCall) -> Result<Option<Vec<u8>>, Failed> {
        let args: CanisterIdRecord = call.decode()?;
        let (since, rules) = (self.time, self.replica.rules());
        let member = self
            .controlled(&args.canister_id, &call.caller())
            .map_err(|reject| canister_not_found_anywhere(rules, reject))?;
        member.canister.count_change();
        if member.status == Status::Stopped {
            return reply(()).map(Some);
        }
        member.status = Status::Stopping;
        let ManagementCall { origin, cycles, cause, .. } = call.clone();
        member.managed.stops.push(Stop { origin, cycles, cause, since });
        Ok(None)
    }

    /// Stops canisters whose calls have ended, and answers those who wait for it.
    pub(super) fn settle(&mut self) {
        let (mut stopped, mut late) = (Vec::new(), Vec::new());
        for member in self.members.values_mut() {
            if member.settle() {
                stopped.append(&mut member.managed.stops);
            }
            let time = self.time;
            let is_late = |stop: &mut Stop| time >= stop.since + STOP_TIMEOUT * SECOND;
            late.extend(member.managed.stops.extract_if(.., is_late));
        }
        self.answer_stops(stopped, |_| Ok(()));
        self.answer_stops(late, |_| {
            let message = "Stop canister request timed out".to_owned();
            Err((ErrorCode::StopCanisterRequestTimeout, message))
        });
    }

    fn answer_stops(
        &mut self,
        stops: Vec<Stop>,
        outcome: impl Fn(bool) -> Result<(), (ErrorCode, String)>,
    ) {
        for Stop { origin, cycles, cause, .. } in stops {
            let by_user = matches!(origin, Origin::Ingress { .. });
            let empty = || candid::encode_args(()).unwrap_or_default();
            let outcome = outcome(by_user).map(|()| empty());
            if let Origin::Ingress { id, .. } = origin {
                let response = outcome.map_err(|(code, message)| Reject { code, message });
                self.answers.insert(id, Answered { response, cause });
                continue;
            }
            let response = outcome.map_err(|(code, message)| {
                let code = match code {
                    ErrorCode::StopCanisterRequestTimeout => RejectCode::SysTransient,
                    _ => RejectCode::CanisterError,
                };
                Rejection::new(code, message)
            });
            self.answer(&origin, response, cycles, cause);
        }
    }

    fn delete_canister(&mut self, call: &ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let (id, caller, rules) = (args.canister_id, call.caller(), self.replica.rules());
        if id == caller {
            let text = format!("Canister {id} cannot delete itself.");
            let help = "Delete the canister from one of its other controllers.";
            let code = ErrorCode::CanisterInvalidController;
            return Err(refusal(rules, code, text, help, "delete-canister-self").into());
        }
        let member = self
            .controlled(&id, &caller)
            .map_err(|reject| canister_not_found_anywhere(rules, reject))?;
        if member.status != Status::Stopped {
            let text = format!("Canister {id} must be stopped before it is deleted.");
            let help = "Stop the canister before deleting it.";
            let code = ErrorCode::CanisterNotStopped;
            return Err(refusal(rules, code, text, help, "delete-canister-not-stopped").into());
        }
        if !member.queues.is_empty() {
            let text = format!(
                "Canister {id} has messages in its queues and cannot be deleted now. Please retry \
                 after some time."
            );
            let help = "Wait until the queues have been cleared to delete the canister and in the \
                        meantime stop the canister.";
            let code = ErrorCode::CanisterQueueNotEmpty;
            return Err(refusal(rules, code, text, help, "delete-canister-queue-not-empty").into());
        }
        self.members.remove(&id);
        reply(())
    }

    fn deposit_cycles(&mut self, call: &mut ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        self.member_mut(&args.canister_id)?.canister.add_cycles(call.cycles);
        call.cycles = Cycles(0);
        reply(())
    }

    fn provisional_top_up(&mut self, call: &ManagementCall) -> Outcome {
        let args: ProvisionalTopUpCanisterArgs = call.decode()?;
        let cycles = amount(Some(args.amount))?;
        self.member_mut(&args.canister_id)?.canister.add_cycles(cycles);
        reply(())
    }

    /// 32 bytes from the seed of the subnet.
    fn raw_rand(&mut self, call: &ManagementCall) -> Outcome {
        let () = decode_all(&call.argument)?;
        let drawn = self.drawn.to_be_bytes();
        self.drawn += 1;
        let bytes = Sha256::new().chain_update(self.seed.to_be_bytes()).chain_update(drawn);
        reply((bytes.finalize().to_vec(),))
    }

    /// The log of a canister, in Candid, and the instructions that reading it counts as.
    ///
    /// Source: `rs/execution_environment/src/canister_logs.rs` of the replica, August 2026.
    fn fetch_logs(
        &self,
        caller: &Principal,
        argument: &[u8],
    ) -> Result<(Vec<u8>, Instructions), Reject> {
        let args: FetchCanisterLogsArgs = decode(argument)?;
        let id = args.canister_id;
        let member = self.members.get(&id).ok_or_else(|| not_found(&id))?;
        if !member.shows_log_to(caller) {
            return Err(Reject {
                code: ErrorCode::CanisterRejectedMessage,
                message: format!("Caller {caller} is not allowed to access canister logs"),
            });
        }
        let records = member.managed.log.fetch(args.filter.as_ref());
        let texts: usize = records.iter().map(|record| record.content.len()).sum();
        let instructions = READ_LOG_INSTRUCTIONS.get()
            + READ_LOG_RECORD_INSTRUCTIONS.get() * records.len() as u64
            + texts as u64;
        let reply = candid::encode_one(FetchCanisterLogsResult { canister_log_records: records });
        let reply = reply.map_err(|error| {
            let message = format!("cannot encode the log: {error}");
            invalid(ErrorCode::CanisterWasmEngineError, message)
        })?;
        Ok((reply, Instructions(instructions)))
    }
}

/// A response as a canister sees it: unlike rejects of canisters, without the number of the error.
fn rejected(response: Result<Vec<u8>, Reject>) -> Result<Vec<u8>, Rejection> {
    response.map_err(|Reject { code, message }| Rejection::new(code.reject_code(), message))
}

fn no_metadata(text: String) -> Reject {
    invalid(ErrorCode::CanisterRejectedMessage, text)
}

fn status(member: &Member) -> CanisterStatusResult {
    let (canister, managed) = (&member.canister, &member.managed);
    let settings = canister.settings();
    let nat = |bytes: Bytes| Nat::from(bytes.get());
    let none = || Nat::from(0_u8);
    let sizes = canister.sizes(member.rules());
    let allocation = canister.allocation;
    let variable = |(name, value): (&String, &String)| EnvironmentVariable {
        name: name.clone(),
        value: value.clone(),
    };
    let memories = canister.memories();
    CanisterStatusResult {
        status: match member.status {
            Status::Running => CanisterStatusType::Running,
            Status::Stopping => CanisterStatusType::Stopping,
            Status::Stopped => CanisterStatusType::Stopped,
        },
        ready_for_migration: member.status == Status::Stopped && member.queues.is_empty(),
        version: canister.version(),
        settings: DefiniteCanisterSettings {
            controllers: settings.controllers.clone(),
            compute_allocation: Nat::from(allocation.compute),
            memory_allocation: nat(allocation.memory),
            freezing_threshold: Nat::from(allocation.freezing_seconds),
            reserved_cycles_limit: Nat::from(managed.reserved_cycles_limit.get()),
            minimum_incoming_canister_call_cycles: none(),
            log_visibility: managed.log_visibility.clone(),
            log_memory_limit: nat(allocation.log),
            snapshot_visibility: managed.snapshot_visibility.clone(),
            status_visibility: managed.status_visibility.clone(),
            wasm_memory_limit: nat(settings.heap_limit),
            wasm_memory_threshold: nat(member.low_memory_threshold),
            environment_variables: canister.environment().iter().map(variable).collect(),
        },
        module_hash: canister.module().map(|module| module.hash().to_vec()),
        memory_size: nat(memories + sizes.other() + canister.stored),
        memory_metrics: MemoryMetrics {
            wasm_memory_size: nat(sizes.heap),
            stable_memory_size: nat(sizes.stable),
            global_memory_size: nat(sizes.globals),
            wasm_binary_size: nat(sizes.module),
            custom_sections_size: nat(sizes.sections),
            canister_history_size: nat(sizes.history),
            wasm_chunk_store_size: nat(managed.chunk_bytes()),
            snapshots_size: nat(managed.snapshot_bytes()),
            log_memory_store_size: nat(sizes.log),
        },
        cycles: Nat::from(canister.balance().get()),
        reserved_cycles: Nat::from(canister.reserved.get()),
        idle_cycles_burned_per_day: {
            let day = member.threshold(Next::Other).day(memories);
            Nat::from(day.get())
        },
        // Queries are not counted.
        query_stats: QueryStats {
            num_calls_total: none(),
            num_instructions_total: none(),
            request_payload_bytes_total: none(),
            response_payload_bytes_total: none(),
        },
    }
}
