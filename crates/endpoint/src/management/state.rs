//! The state of a canister: settings, cycles, snapshots, logs, status, and its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use candid::{Nat, Principal};
use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterLogFilter, CanisterLogRecord, CanisterSettings, CanisterStatusResult,
    CanisterStatusType, DefiniteCanisterSettings, DeleteCanisterSnapshotArgs, EnvironmentVariable,
    FetchCanisterLogsArgs, FetchCanisterLogsResult, LoadCanisterSnapshotArgs, LogVisibility,
    MemoryMetrics, ProvisionalTopUpCanisterArgs, QueryStats, Snapshot as SnapshotInfo,
    TakeCanisterSnapshotArgs, UpdateSettingsArgs,
};
use stablebench_replica::{Bytes, Canister, Cycles, WasmPages};

use crate::canister::{Hosted, Snapshot};
use crate::clock;
use crate::outcome::{Reject, empty_reply, reply};
use crate::subnet::Subnet;
use crate::worker::Run;

/// The most controllers of a canister.
const MAX_CONTROLLERS: usize = 10;
/// The largest heap limit in bytes.
const MAX_HEAP_LIMIT: u64 = 1 << 48;
/// The most snapshots of a canister.
const MAX_SNAPSHOTS: usize = 10;

pub fn update_settings(args: UpdateSettingsArgs) -> Run {
    Box::new(move |hosted| {
        apply_settings(hosted, args.settings)?;
        empty_reply()
    })
}

/// Changes the given settings as one change of the canister. Allocations are refused, because they
/// would have no effect here.
///
/// # Errors
///
/// If a setting is refused; then none is changed.
pub fn apply_settings(hosted: &mut Hosted, new: CanisterSettings) -> Result<(), Reject> {
    if new.controllers.as_ref().map_or(0, Vec::len) > MAX_CONTROLLERS {
        return Err(Reject::invalid(format!(
            "a canister has at most {MAX_CONTROLLERS} controllers"
        )));
    }
    for (name, value) in [
        ("compute_allocation", &new.compute_allocation),
        ("memory_allocation", &new.memory_allocation),
    ] {
        if value.as_ref().is_some_and(|value| *value != 0_u8) {
            return Err(Reject::invalid(format!("{name} can only be 0 on this local endpoint")));
        }
    }
    let limit = new.wasm_memory_limit.as_ref().map(heap_limit).transpose()?;
    let canister = &mut hosted.canister;
    let mut changed = canister.settings().clone();
    set(&mut changed.controllers, new.controllers);
    set(&mut changed.heap_limit, limit);
    // The last step that can fail, and the first that changes something.
    match new.environment_variables {
        Some(variables) => canister
            .configure_with(changed.controllers, changed.heap_limit, by_name(variables)?)
            .map_err(|error| Reject::invalid(error.to_string()))?,
        None => canister.configure(changed.controllers, changed.heap_limit),
    }

    let settings = &mut hosted.settings;
    set(&mut settings.freezing_threshold, new.freezing_threshold);
    set(&mut settings.reserved_cycles_limit, new.reserved_cycles_limit);
    set(&mut settings.log_visibility, new.log_visibility);
    set(&mut settings.log_memory_limit, new.log_memory_limit);
    set(&mut settings.snapshot_visibility, new.snapshot_visibility);
    set(&mut settings.wasm_memory_threshold, new.wasm_memory_threshold);
    Ok(())
}

fn set<T>(setting: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *setting = new;
    }
}

/// Returns environment variables by name. Names must be unique.
fn by_name(variables: Vec<EnvironmentVariable>) -> Result<BTreeMap<String, String>, Reject> {
    let count = variables.len();
    let variables: BTreeMap<String, String> =
        variables.into_iter().map(|variable| (variable.name, variable.value)).collect();
    if variables.len() == count {
        Ok(variables)
    } else {
        Err(Reject::invalid("Duplicate environment variables are not allowed"))
    }
}

/// Converts a heap limit.
fn heap_limit(limit: &Nat) -> Result<Bytes, Reject> {
    u64::try_from(limit.0.clone())
        .ok()
        .filter(|limit| *limit <= MAX_HEAP_LIMIT)
        .map(Bytes)
        .ok_or_else(|| Reject::invalid(format!("wasm_memory_limit is at most {MAX_HEAP_LIMIT}")))
}

pub fn set_running(_: CanisterIdRecord, running: bool) -> Run {
    Box::new(move |hosted| {
        if hosted.running != running {
            hosted.running = running;
            hosted.canister.count_change();
        }
        empty_reply()
    })
}

pub fn delete(subnet: Arc<Subnet>, args: CanisterIdRecord) -> Run {
    Box::new(move |hosted| {
        let id = args.canister_id;
        if hosted.running {
            return Err(Reject::new(
                ErrorCode::CanisterNotStopped,
                format!("Canister {id} must be stopped before it is deleted."),
            ));
        }
        hosted.deleted = true;
        subnet.remove(&id);
        empty_reply()
    })
}

pub fn top_up(args: ProvisionalTopUpCanisterArgs) -> Run {
    Box::new(move |hosted| {
        hosted.canister.add_cycles(cycles(args.amount)?);
        empty_reply()
    })
}

/// Converts an amount of cycles.
pub fn cycles(amount: Nat) -> Result<Cycles, Reject> {
    u128::try_from(amount.0)
        .map(Cycles)
        .map_err(|_| Reject::invalid("the amount of cycles is larger than 2^128 - 1"))
}

pub fn take_snapshot(args: TakeCanisterSnapshotArgs) -> Run {
    Box::new(move |hosted| {
        if hosted.canister.module().is_none() {
            return Err(Reject::new(
                ErrorCode::CanisterWasmModuleNotFound,
                format!("Failed to create snapshot for empty canister {}", args.canister_id),
            ));
        }
        if let Some(old) = &args.replace_snapshot {
            find_snapshot(hosted, old)?;
        } else if hosted.snapshots.len() >= MAX_SNAPSHOTS {
            return Err(Reject::invalid(format!(
                "Canister {} has reached the maximum number of snapshots allowed: {MAX_SNAPSHOTS}.",
                args.canister_id
            )));
        }
        if let Some(old) = &args.replace_snapshot {
            hosted.snapshots.remove(old);
        }
        hosted.snapshots_taken += 1;
        // As on the IC, a number and the canister's id.
        let number = hosted.snapshots_taken.to_be_bytes();
        let id = [number.as_slice(), args.canister_id.as_slice()].concat();
        let snapshot = Snapshot {
            canister: hosted.canister.fork(),
            taken_at: clock::now(),
            bytes: memory(&hosted.canister),
        };
        let info = snapshot_info(&id, &snapshot);
        hosted.snapshots.insert(id, snapshot);
        reply(&info)
    })
}

pub fn load_snapshot(args: LoadCanisterSnapshotArgs) -> Run {
    Box::new(move |hosted| {
        let snapshot = find_snapshot(hosted, &args.snapshot_id)?.canister.fork();
        hosted.canister.restore(&snapshot);
        empty_reply()
    })
}

pub fn list_snapshots(_: CanisterIdRecord) -> Run {
    Box::new(move |hosted| {
        let snapshots = hosted.snapshots.iter().map(|(id, snapshot)| snapshot_info(id, snapshot));
        reply(&snapshots.collect::<Vec<_>>())
    })
}

pub fn delete_snapshot(args: DeleteCanisterSnapshotArgs) -> Run {
    Box::new(move |hosted| {
        find_snapshot(hosted, &args.snapshot_id)?;
        hosted.snapshots.remove(&args.snapshot_id);
        empty_reply()
    })
}

fn find_snapshot<'a>(hosted: &'a Hosted, id: &[u8]) -> Result<&'a Snapshot, Reject> {
    hosted.snapshots.get(id).ok_or_else(|| {
        Reject::new(
            ErrorCode::CanisterSnapshotNotFound,
            format!(
                "Could not find the snapshot ID {} for canister {}.",
                hex::encode(id),
                hosted.canister.id()
            ),
        )
    })
}

fn snapshot_info(id: &[u8], snapshot: &Snapshot) -> SnapshotInfo {
    SnapshotInfo {
        id: id.to_vec(),
        taken_at_timestamp: snapshot.taken_at,
        total_size: snapshot.bytes,
    }
}

pub fn fetch_logs(sender: Principal, args: FetchCanisterLogsArgs) -> Run {
    Box::new(move |hosted| {
        if !can_read_logs(hosted, &sender) {
            return Err(Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!("Caller {sender} is not allowed to access canister logs"),
            ));
        }
        let records =
            hosted.log.records().filter(|record| is_selected(args.filter.as_ref(), record));
        reply(&FetchCanisterLogsResult { canister_log_records: records.cloned().collect() })
    })
}

fn can_read_logs(hosted: &Hosted, sender: &Principal) -> bool {
    let controls = hosted.canister.settings().controllers.contains(sender);
    match &hosted.settings.log_visibility {
        LogVisibility::Public => true,
        LogVisibility::Controllers => controls,
        LogVisibility::AllowedViewers(viewers) => controls || viewers.contains(sender),
    }
}

fn is_selected(filter: Option<&CanisterLogFilter>, record: &CanisterLogRecord) -> bool {
    match filter {
        None => true,
        Some(CanisterLogFilter::ByIdx { start, end }) => (*start..*end).contains(&record.idx),
        Some(CanisterLogFilter::ByTimestampNanos { start, end }) => {
            (*start..*end).contains(&record.timestamp_nanos)
        }
    }
}

/// Returns the bytes of a canister's memories and module.
fn memory(canister: &Canister) -> u64 {
    bytes(canister.heap_size()) + bytes(canister.stable_size()) + module(canister)
}

fn bytes(pages: WasmPages) -> u64 {
    pages.get() << 16
}

fn module(canister: &Canister) -> u64 {
    canister.module().map_or(0, |module| module.uploaded().len() as u64)
}

fn variables(canister: &Canister) -> Vec<EnvironmentVariable> {
    let variable = |(name, value): (&String, &String)| EnvironmentVariable {
        name: name.clone(),
        value: value.clone(),
    };
    canister.environment().iter().map(variable).collect()
}

pub fn status(subnet: Arc<Subnet>, args: CanisterIdRecord) -> Run {
    Box::new(move |hosted| {
        let canister = &hosted.canister;
        let handle = subnet
            .canister(&args.canister_id)
            .ok_or_else(|| Reject::not_found(&args.canister_id))?;
        let sections = canister.module().map_or(0, |module| {
            let sections = module.info().custom_sections.values();
            sections.map(|section| section.content.len() as u64).sum()
        });
        let chunks = handle.chunks().bytes();
        let snapshots: u64 = hosted.snapshots.values().map(|snapshot| snapshot.bytes).sum();
        let settings = canister.settings();
        let none = || Nat::from(0_u8);
        reply(&CanisterStatusResult {
            status: if hosted.running {
                CanisterStatusType::Running
            } else {
                CanisterStatusType::Stopped
            },
            ready_for_migration: false,
            version: canister.version(),
            settings: DefiniteCanisterSettings {
                controllers: settings.controllers.clone(),
                wasm_memory_limit: Nat::from(settings.heap_limit.get()),
                environment_variables: variables(canister),
                ..hosted.settings.clone()
            },
            module_hash: canister.module().map(|module| module.hash().to_vec()),
            memory_size: Nat::from(memory(canister) + sections + chunks + snapshots),
            memory_metrics: MemoryMetrics {
                wasm_memory_size: Nat::from(bytes(canister.heap_size())),
                stable_memory_size: Nat::from(bytes(canister.stable_size())),
                global_memory_size: none(),
                wasm_binary_size: Nat::from(module(canister)),
                custom_sections_size: Nat::from(sections),
                canister_history_size: none(),
                wasm_chunk_store_size: Nat::from(chunks),
                snapshots_size: Nat::from(snapshots),
                log_memory_store_size: none(),
            },
            cycles: Nat::from(canister.balance().get()),
            reserved_cycles: none(),
            // Time is free here.
            idle_cycles_burned_per_day: none(),
            query_stats: QueryStats {
                num_calls_total: none(),
                num_instructions_total: none(),
                request_payload_bytes_total: none(),
                response_payload_bytes_total: none(),
            },
        })
    })
}
