//! The state of a canister: status, history, start, stop and delete, cycles, logs.

use candid::{Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterMetadataArgs, CanisterMetadataResult,
    CanisterStatusResult, CanisterStatusType, DefiniteCanisterSettings, EnvironmentVariable,
    FetchCanisterLogsArgs, FetchCanisterLogsResult, MemoryMetrics, ProvisionalTopUpCanisterArgs,
    QueryStats, StatusVisibility,
};
use sha2::{Digest, Sha256};

use super::access::check_controller;
use super::call::{
    Failed, ManagementCall, Outcome, canister_not_found, canister_not_found_anywhere, decode,
    decode_all, invalid, refusal, reply,
};
use super::settings::amount;
use super::types::{InfoReply, StatusReply};
use crate::fault::{ErrorCode, Reject, RejectCode};
use crate::limits::{READ_LOG_INSTRUCTIONS, READ_LOG_RECORD_INSTRUCTIONS, STOP_TIMEOUT};
use crate::subnet::contexts::Origin;
use crate::subnet::ingress::{Answered, not_found};
use crate::subnet::managed::Stop;
use crate::subnet::member::Member;
use crate::subnet::member::Next;
use crate::subnet::subnet_state::Subnet;
use crate::system_api::message::{Rejection, Status};
use crate::units::{Bytes, Cycles, Instructions, SECOND};
use crate::validate::Visibility;

impl Subnet {
    pub(super) fn canister_status(&mut self, call: &ManagementCall) -> Outcome {
        self.status_of(&call.caller(), &call.argument).map_err(Failed::from)
    }

    /// The status of a canister, in Candid.
    pub(super) fn status_of(&self, caller: &Principal, argument: &[u8]) -> Result<Vec<u8>, Reject> {
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
        let encoded = match member.rules().set().status_of_logs {
            true => candid::encode_one(status(member)),
            false => candid::encode_one(StatusReply::new(status(member))),
        };
        encoded.map_err(|error| {
            invalid(ErrorCode::CanisterWasmEngineError, format!("cannot encode the reply: {error}"))
        })
    }

    pub(super) fn canister_info(&mut self, call: &ManagementCall) -> Outcome {
        self.info_of(&call.argument, canister_not_found).map_err(Failed::from)
    }

    /// The history and the controllers of a canister, in Candid. `missing` is the reject for a canister
    /// that does not exist.
    pub(super) fn info_of(
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
        let info = InfoReply {
            total_num_changes: managed.total_changes,
            recent_changes: managed.changes.iter().skip(skipped).cloned().collect(),
            module_hash: member.canister.module().map(|module| module.hash().to_vec()),
            controllers: member.canister.settings().controllers.clone(),
        };
        candid::encode_one(info).map_err(|error| {
            invalid(ErrorCode::CanisterWasmEngineError, format!("cannot encode the reply: {error}"))
        })
    }

    pub(super) fn canister_metadata(&mut self, call: &ManagementCall) -> Outcome {
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

    pub(super) fn start_canister(&mut self, call: &ManagementCall) -> Outcome {
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
    pub(super) fn stop_canister(
        &mut self,
        call: &ManagementCall,
    ) -> Result<Option<Vec<u8>>, Failed> {
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
    pub(in crate::subnet) fn settle(&mut self) {
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

    pub(super) fn delete_canister(&mut self, call: &ManagementCall) -> Outcome {
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

    pub(super) fn deposit_cycles(&mut self, call: &mut ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let cycles = call.cycles;
        // The replica names no suggestion here.
        let missing = || Reject {
            code: ErrorCode::CanisterNotFound,
            message: format!("Canister {} not found.", args.canister_id),
        };
        let member = self.members.get_mut(&args.canister_id).ok_or_else(missing)?;
        member.canister.add_cycles(cycles);
        call.cycles = Cycles(0);
        reply(())
    }

    pub(super) fn provisional_top_up(&mut self, call: &ManagementCall) -> Outcome {
        let args: ProvisionalTopUpCanisterArgs = call.decode()?;
        let cycles = amount(Some(args.amount))?;
        self.member_mut(&args.canister_id)?.canister.add_cycles(cycles);
        reply(())
    }

    /// 32 bytes from the seed of the subnet.
    pub(super) fn raw_rand(&mut self, call: &ManagementCall) -> Outcome {
        let () = decode_all(&call.argument)?;
        let drawn = self.drawn.to_be_bytes();
        self.drawn += 1;
        let bytes = Sha256::new().chain_update(self.seed.to_be_bytes()).chain_update(drawn);
        reply((bytes.finalize().to_vec(),))
    }

    /// The log of a canister, in Candid, and the instructions that reading it counts as.
    ///
    /// Source: `rs/execution_environment/src/canister_logs.rs` of the replica, August 2026.
    pub(super) fn fetch_logs(
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
