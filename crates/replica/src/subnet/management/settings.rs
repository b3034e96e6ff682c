//! Creating canisters, and changing their settings.

use std::collections::{BTreeMap, BTreeSet};

use candid::{Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, EnvironmentVariable, LogVisibility,
    ProvisionalCreateCanisterWithCyclesArgs, SnapshotVisibility, StatusVisibility,
    UpdateSettingsArgs,
};
use sha2::{Digest, Sha256};

use super::call::{ChangeDetails, ChangeOrigin, ManagementCall, Outcome, invalid, refusal, reply};
use super::methods::{
    MAX_DELAYED_FEE, Size, allocation_too_small, cannot_grow, creation_args, subnet_full,
};
use crate::canister::Allocation;
use crate::canister::{Canister, Settings, check_environment, max_variables};
use crate::cycles::{self, Saturation, Threshold};
use crate::fault::{ErrorCode, HostError, Reject, grouped};
use crate::rules::{
    COMPUTE_CAPACITY, DEFAULT_LOG, MAX_CONTROLLERS, MAX_HEAP_LIMIT, MAX_LOG, Rules,
};
use crate::subnet::member::{Member, Next};
use crate::subnet::messages::{Origin, not_found};
use crate::subnet::subnet_state::Subnet;
use crate::units::{Bytes, Cycles};

/// Cycles of a canister that is created without paying for it.
const PROVISIONAL_CYCLES: Cycles = Cycles(100_000_000_000_000);

/// Settings whose values are valid by themselves. `None` for those that stay.
#[derive(Default)]
struct Wanted {
    controllers: Option<Vec<Principal>>,
    compute: Option<u64>,
    memory: Option<Bytes>,
    freezing_seconds: Option<u64>,
    reserved_cycles_limit: Option<Cycles>,
    log_visibility: Option<LogVisibility>,
    log_memory_limit: Option<Bytes>,
    snapshot_visibility: Option<SnapshotVisibility>,
    status_visibility: Option<StatusVisibility>,
    heap_limit: Option<Bytes>,
    heap_threshold: Option<Bytes>,
    environment: Option<BTreeMap<String, String>>,
}

/// Bytes of a canister before its settings change.
#[derive(Clone, Copy)]
struct Occupied {
    /// All of them.
    used: Bytes,
    /// Those of the store of its log.
    log: Bytes,
}

impl Wanted {
    fn new(settings: CanisterSettings) -> Result<Self, Reject> {
        let allocation = |compute: &Nat| {
            u64::try_from(compute.0.clone()).ok().filter(|percent| *percent <= 100).ok_or_else(
                || {
                    let message = format!(
                        "ComputeAllocation expected to be in the range [0..100], got {compute}"
                    );
                    invalid(ErrorCode::CanisterContractViolation, message)
                },
            )
        };
        if settings.minimum_incoming_canister_call_cycles.is_some_and(|cycles| cycles != 0_u8) {
            return Err(invalid(
                ErrorCode::CanisterContractViolation,
                "The embedded replica does not support minimum_incoming_canister_call_cycles",
            ));
        }
        let heap_limit = small("Wasm memory limit", settings.wasm_memory_limit)?;
        if let Some(limit) = heap_limit
            && limit > MAX_HEAP_LIMIT
        {
            return Err(out_of_range("Wasm memory limit", &Nat::from(limit)));
        }
        Ok(Self {
            controllers: settings.controllers.map(|controllers| {
                BTreeSet::from_iter(controllers).into_iter().collect::<Vec<_>>()
            }),
            compute: settings.compute_allocation.as_ref().map(allocation).transpose()?,
            memory: small("MemoryAllocation", settings.memory_allocation)?.map(Bytes),
            freezing_seconds: small("Freezing threshold", settings.freezing_threshold)?,
            reserved_cycles_limit: settings
                .reserved_cycles_limit
                .map(|limit| {
                    u128::try_from(limit.0.clone()).map(Cycles).map_err(|_| {
                        let message = format!(
                            "Reserved cycles limit expected to be in the range of [0..2^128-1], \
                             got {limit}"
                        );
                        invalid(ErrorCode::CanisterContractViolation, message)
                    })
                })
                .transpose()?,
            log_visibility: settings.log_visibility,
            log_memory_limit: small("Log memory limit", settings.log_memory_limit)?.map(Bytes),
            snapshot_visibility: settings.snapshot_visibility,
            status_visibility: settings.status_visibility,
            heap_limit: heap_limit.map(Bytes),
            heap_threshold: small("Wasm memory threshold", settings.wasm_memory_threshold)?
                .map(Bytes),
            environment: settings.environment_variables.map(by_name).transpose()?,
        })
    }
}

/// Converts a number of 64 bits.
fn small(name: &str, number: Option<Nat>) -> Result<Option<u64>, Reject> {
    number
        .map(|number| u64::try_from(number.0.clone()).map_err(|_| out_of_range(name, &number)))
        .transpose()
}

fn out_of_range(name: &str, number: &Nat) -> Reject {
    let of = if name == "MemoryAllocation" { "" } else { "of " };
    let message = format!("{name} expected to be in the range {of}[0..2^64-1], got {number}");
    invalid(ErrorCode::CanisterContractViolation, message)
}

/// Environment variables by name. Names must be unique.
fn by_name(variables: Vec<EnvironmentVariable>) -> Result<BTreeMap<String, String>, Reject> {
    let count = variables.len();
    let variables: BTreeMap<_, _> =
        variables.into_iter().map(|variable| (variable.name, variable.value)).collect();
    match variables.len() == count {
        true => Ok(variables),
        false => Err(invalid(
            ErrorCode::InvalidManagementPayload,
            "Duplicate environment variables are not allowed",
        )),
    }
}

impl Subnet {
    pub(super) fn create_canister(&mut self, call: &mut ManagementCall) -> Outcome {
        let args = creation_args(&call.argument)?;
        let wanted = Wanted::new(args.settings.unwrap_or_default())?;
        let rules = self.parts()[call.part].rules();
        let fee = cycles::creation(rules);
        if call.cycles < fee {
            return Err(refusal(
                rules,
                ErrorCode::InsufficientCyclesForCreateCanister,
                format!(
                    "Creating a canister requires a fee of {} that is deducted from the \
                     canister's initial balance but only {} cycles were received with the \
                     create_canister request.",
                    grouped(fee),
                    grouped(call.cycles)
                ),
                "Try sending more cycles with the request.",
                "create-canister-not-enough-cycles",
            )
            .into());
        }
        let origin = call.change_origin(args.sender_canister_version);
        let balance = call.cycles - fee;
        let id = self.create(call, origin, balance, wanted, None)??;
        call.cycles = Cycles(0);
        reply((CanisterIdRecord { canister_id: id },))
    }

    pub(super) fn provisional_create(&mut self, call: &ManagementCall) -> Outcome {
        let args: ProvisionalCreateCanisterWithCyclesArgs = call.decode()?;
        let wanted = Wanted::new(args.settings.unwrap_or_default())?;
        let balance = amount(args.amount)?;
        let origin = call.change_origin(args.sender_canister_version);
        let id = self.create(call, origin, balance, wanted, args.specified_id)??;
        reply((CanisterIdRecord { canister_id: id },))
    }

    fn create(
        &mut self,
        call: &ManagementCall,
        origin: ChangeOrigin,
        balance: Cycles,
        mut wanted: Wanted,
        specified: Option<Principal>,
    ) -> Result<Result<Principal, Reject>, HostError> {
        let most = self.max_canisters;
        if self.members.len() + self.away.len() >= most {
            let message = format!("there are {most} canisters already; delete one");
            return Ok(Err(Reject { code: ErrorCode::SubnetOversubscribed, message }));
        }
        let id = match specified {
            Some(id) => self.check_id(id),
            None => self.next_id_in(call.part).ok_or_else(|| {
                let text =
                    "Could not create canister. Subnet has surpassed its canister ID allocation.";
                let help = "Try creating the canister on another subnet.";
                let (rules, code) = (self.replica.rules(), ErrorCode::SubnetOversubscribed);
                refusal(rules, code, text, help, "subnet-out-of-canister-ids")
            }),
        };
        let id = match id {
            Ok(id) => id,
            Err(reject) => return Ok(Err(reject)),
        };
        let rules = self.replica_of(&id).rules();
        wanted.heap_limit.get_or_insert(rules.set().memory.default_heap_limit);
        let controllers = wanted.controllers.clone().unwrap_or_else(|| vec![call.caller()]);
        let settings =
            Settings { id, controllers: controllers.clone(), balance, heap_limit: Bytes(0) };
        let hash = wanted.environment.as_ref().map(hash_of);
        let mut member = self.member_of(Canister::new(settings)?);
        // A new canister has no memory yet, not even a history.
        let by_user = matches!(call.origin, Origin::Ingress { .. });
        let before = match self.unpaid_logs && by_user {
            true => member.canister.allocation.log_store(rules),
            false => Bytes(0),
        };
        let before = Occupied { used: before, log: before };
        if let Err(reject) = self.configure(&mut member, wanted, before) {
            if specified.is_none() {
                self.return_id(call.part, &id);
            }
            return Ok(Err(reject));
        }
        member.canister.version = 0;
        member.managed.total_changes = 0;
        let environment_variables_hash = hash;
        let details = ChangeDetails::Creation { controllers, environment_variables_hash };
        member.managed.add_change(self.time, 0, origin, details);
        member.check_memory();
        self.members.insert(id, member);
        Ok(Ok(id))
    }

    /// Returns an id that a caller chose, if it is free.
    fn check_id(&self, id: Principal) -> Result<Principal, Reject> {
        if self.exists(&id) {
            let message = format!("Canister {id} is already installed.");
            return Err(invalid(ErrorCode::CanisterAlreadyInstalled, message));
        }
        if !self.hosts(&id) {
            let message = format!(
                "Unsuccessful validation of specified ID: Specified CanisterId {id} is not hosted \
                 by this subnet."
            );
            return Err(invalid(ErrorCode::CanisterNotHostedBySubnet, message));
        }
        Ok(id)
    }

    pub(super) fn update_settings(&mut self, call: &ManagementCall) -> Outcome {
        let args: UpdateSettingsArgs = call.decode()?;
        let (id, time) = (args.canister_id, self.time);
        let outcome = Wanted::new(args.settings).and_then(|wanted| {
            self.controlled(&id, &call.caller())?;
            let controllers = wanted.controllers.clone();
            // The other canisters decide how much is free.
            let mut member = self.members.remove(&id).ok_or_else(|| not_found(&id))?;
            let used = member.used();
            let log = member.canister.allocation.log_store(member.rules());
            let configured = self.configure(&mut member, wanted, Occupied { used, log });
            let member = self.members.entry(id).or_insert(member);
            configured?;
            if let Some(controllers) = controllers {
                let version = member.canister.version();
                member.canister.count_in_history(Some(controllers.len()));
                let details = ChangeDetails::ControllersChange { controllers };
                let origin = call.change_origin(args.sender_canister_version);
                member.managed.add_change(time, version, origin, details);
            }
            Ok(())
        });
        if let Some(member) = self.members.get_mut(&id)
            && let Some(fee) = delayed_fee(member, call)
        {
            // A canister that cannot pay does not.
            let _ = member.withdraw(fee, Next::Other);
        }
        outcome?;
        reply(())
    }

    /// Changes settings, all or none, as one change of the canister.
    fn configure(
        &self,
        member: &mut Member,
        wanted: Wanted,
        before: Occupied,
    ) -> Result<(), Reject> {
        let canister = &member.canister;
        let rules = self.replica_of(&canister.id()).rules();
        if let Some(variables) = &wanted.environment {
            let most = max_variables(Some(rules));
            check_environment(variables, most)
                .map_err(|error| invalid(ErrorCode::InvalidManagementPayload, error.to_string()))?;
        }
        let old = canister.allocation;
        let new = Allocation {
            compute: wanted.compute.unwrap_or(old.compute),
            memory: wanted.memory.unwrap_or(old.memory),
            freezing_seconds: wanted.freezing_seconds.unwrap_or(old.freezing_seconds),
            // A larger one is refused below.
            log: wanted.log_memory_limit.unwrap_or(old.log).min(MAX_LOG),
        };
        let log = new.log_store(rules);
        let used = (before.used + log).saturating_sub(before.log);
        let occupied = self.check_allocation(&wanted, old, new, before.used, used)?;
        if wanted.controllers.as_ref().is_some_and(|some| some.len() > MAX_CONTROLLERS) {
            return Err(refusal(
                rules,
                ErrorCode::CanisterContractViolation,
                format!(
                    "Could not validate the settings: Invalid settings: 'controllers' length \
                     exceeds maximum size allowed of {MAX_CONTROLLERS}. "
                ),
                "Apply the described changes to make the settings valid.",
                "invalid-settings",
            ));
        }
        let (balance, reserved) = (canister.balance(), canister.reserved);
        let threshold = Threshold {
            seconds: new.freezing_seconds,
            compute: new.compute,
            allocated: new.memory,
            other: used.saturating_sub(canister.memories()),
            ..member.threshold(Next::Other)
        };
        let needed = threshold.cycles(canister.memories(), Bytes(0));
        if balance < needed {
            let missing = grouped(needed - balance);
            let (code, what) = if new.compute > old.compute {
                let what = format!("compute allocation to {}%", new.compute);
                (ErrorCode::InsufficientCyclesInComputeAllocation, what)
            } else if new.memory > old.memory {
                let what = format!("memory allocation to {}", Size(new.memory));
                (ErrorCode::InsufficientCyclesInMemoryAllocation, what)
            } else if log > before.log {
                return Err(cannot_grow(rules, log - before.log, needed - balance));
            } else {
                (ErrorCode::CanisterOutOfCycles, String::new())
            };
            if !what.is_empty() {
                let section = match code {
                    ErrorCode::InsufficientCyclesInComputeAllocation => {
                        "insufficient-cycles-in-compute-allocation"
                    }
                    _ => "insufficient-cycles-in-memory-allocation",
                };
                return Err(refusal(
                    rules,
                    code,
                    format!(
                        "Cannot increase {what} due to insufficient cycles. At least {missing} \
                         additional cycles are required."
                    ),
                    "Top up the canister with more cycles.",
                    section,
                ));
            }
        }
        let reservation = {
            let before = old.memory.max(before.used);
            let after = if wanted.memory.is_some() { new.memory.max(used) } else { used };
            let more = after.saturating_sub(before);
            Saturation::new(occupied).reservation(rules, more)
        };
        let limit = wanted.reserved_cycles_limit.unwrap_or(member.managed.reserved_cycles_limit);
        check_reservation(rules, reserved, reservation, limit, balance, new.memory)?;
        if let Some(limit) = wanted.log_memory_limit {
            check_log_limit(limit, rules)?;
        }
        let canister = &mut member.canister;
        let settings = canister.settings().clone();
        canister.configure(
            wanted.controllers.unwrap_or(settings.controllers),
            wanted.heap_limit.unwrap_or(settings.heap_limit),
        );
        if let Some(variables) = wanted.environment {
            canister.environment = std::sync::Arc::new(variables);
        }
        canister.allocation = new;
        let managed = &mut member.managed;
        managed.log.shrink(new.log);
        set(&mut managed.reserved_cycles_limit, wanted.reserved_cycles_limit);
        set(&mut managed.log_visibility, wanted.log_visibility);
        set(&mut managed.snapshot_visibility, wanted.snapshot_visibility);
        set(&mut managed.status_visibility, wanted.status_visibility);
        set(&mut member.low_memory_threshold, wanted.heap_threshold);
        member.set_aside(reservation);
        Ok(())
    }

    /// Checks that the subnet has what a canister wants to allocate, which has `before` bytes and will
    /// have `used`. Returns the bytes that all canisters occupy.
    fn check_allocation(
        &self,
        wanted: &Wanted,
        old: Allocation,
        new: Allocation,
        before: Bytes,
        used: Bytes,
    ) -> Result<Bytes, Reject> {
        let rules = self.replica.rules();
        if let Some(memory) = wanted.memory
            && memory != Bytes(0)
            && memory < used
        {
            return Err(allocation_too_small(rules, memory, used));
        }
        let others = |of: fn(&Member) -> u64| self.members.values().map(of).sum::<u64>();
        let before = old.memory.max(before).get();
        let taken = others(|member| member.occupied().get()) + before;
        let occupied = Bytes(taken);
        let free = Saturation::free(occupied).get() + before;
        let wants = new.memory.max(used);
        if wants > Bytes(free) {
            return Err(subnet_full(rules, wants, Bytes(free)));
        }
        let taken = others(|member| member.canister.allocation.compute) + old.compute;
        // A percent stays free.
        let free = COMPUTE_CAPACITY.saturating_sub(taken).saturating_sub(1) + old.compute;
        if let Some(compute) = wanted.compute
            && compute > free
        {
            return Err(refusal(
                rules,
                ErrorCode::SubnetOversubscribed,
                format!(
                    "Canister requested a compute allocation of {compute}% which cannot be \
                     satisfied because the Subnet's remaining compute capacity is {free}%."
                ),
                "Try moving to another subnet.",
                "subnet-compute-capacity-oversubscribed",
            ));
        }
        Ok(occupied)
    }
}

/// Checks a limit of the log.
fn check_log_limit(limit: Bytes, rules: Rules) -> Result<(), Reject> {
    let stored = rules.set().log_store;
    let most = if stored { MAX_LOG } else { DEFAULT_LOG };
    let (side, bound, other) = match limit {
        Bytes(0) if stored => return Ok(()),
        low if low < DEFAULT_LOG => ("low", "least", DEFAULT_LOG),
        high if high > most => ("high", "most", most),
        _ => return Ok(()),
    };
    Err(invalid(
        ErrorCode::CanisterRejectedMessage,
        format!(
            "The canister log memory limit {limit} is too {side}. It must be at {bound} {other}."
        ),
    ))
}

/// Checks that a canister can and wants to reserve cycles for its memory allocation.
fn check_reservation(
    rules: Rules,
    reserved: Cycles,
    reservation: Cycles,
    limit: Cycles,
    balance: Cycles,
    memory: Bytes,
) -> Result<(), Reject> {
    if reserved > limit {
        return Err(refusal(
            rules,
            ErrorCode::ReservedCyclesLimitIsTooLow,
            format!(
                "Cannot set the reserved cycles limit {} below the reserved cycles balance of the \
                 canister {}.",
                grouped(limit),
                grouped(reserved)
            ),
            "Set the reserved cycles limit in the canister settings to a value that is at least \
             the current reserved cycles balance. See documentation: \
             reserved-cycles-limit-is-too-low",
            "",
        ));
    }
    if reserved + reservation > limit {
        return Err(refusal(
            rules,
            ErrorCode::ReservedCyclesLimitExceededInMemoryAllocation,
            format!(
                "Cannot increase memory allocation to {} due to its reserved cycles limit. The \
                 current limit ({}) would be exceeded by {}.",
                Size(memory),
                grouped(limit),
                grouped(reserved + reservation - limit)
            ),
            "Try increasing this canister's reserved cycles limit or moving it to a subnet with \
             lower memory usage.",
            "reserved-cycles-limit-exceeded-in-memory-allocation",
        ));
    }
    if balance < reservation {
        return Err(refusal(
            rules,
            ErrorCode::InsufficientCyclesInMemoryAllocation,
            format!(
                "Cannot increase memory allocation to {} due to insufficient cycles. At least {} \
                 additional cycles are required.",
                Size(memory),
                grouped(reservation - balance)
            ),
            "Top up the canister with more cycles.",
            "insufficient-cycles-in-memory-allocation",
        ));
    }
    Ok(())
}

fn set<T>(setting: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *setting = new;
    }
}

/// The hash of environment variables in the history: that of the hashes of names and values.
fn hash_of(variables: &BTreeMap<String, String>) -> Vec<u8> {
    let mut pairs: Vec<Vec<u8>> = variables
        .iter()
        .map(|(name, value)| [Sha256::digest(name), Sha256::digest(value)].concat())
        .collect();
    pairs.sort();
    Sha256::digest(pairs.concat()).to_vec()
}

/// Converts an amount of cycles, or returns that of a provisional canister.
pub fn amount(amount: Option<Nat>) -> Result<Cycles, Reject> {
    let Some(amount) = amount else { return Ok(PROVISIONAL_CYCLES) };
    u128::try_from(amount.0.clone()).map(Cycles).map_err(|_| {
        let message = format!("{amount} cycles are more than 2^128 - 1");
        invalid(ErrorCode::InvalidManagementPayload, message)
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
