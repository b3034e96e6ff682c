//! Settings of a canister, whether it runs, and its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use candid::Nat;
use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, EnvironmentVariable, UpdateSettingsArgs,
};
use stablebench_replica::Bytes;

use super::{done, invalid};
use crate::canister::Hosted;
use crate::outcome::Reject;
use crate::subnet::{Run, Subnet};

/// The most controllers of a canister.
const MOST_CONTROLLERS: usize = 10;
/// The largest limit of a heap, in bytes: 2^48.
const LARGEST_LIMIT: u64 = 1 << 48;

pub fn update(args: UpdateSettingsArgs) -> Run {
    Box::new(move |hosted| {
        apply(hosted, args.settings)?;
        done()
    })
}

/// Changes what is set, which makes one new version of the canister. Allocations would do nothing
/// here: they are refused, not forgotten.
///
/// # Errors
///
/// Where a setting cannot be what it should; then none has changed.
pub fn apply(hosted: &mut Hosted, new: CanisterSettings) -> Result<(), Reject> {
    if new.controllers.as_ref().map_or(0, Vec::len) > MOST_CONTROLLERS {
        return Err(invalid(format!("a canister has at most {MOST_CONTROLLERS} controllers")));
    }
    for (name, value) in [
        ("compute_allocation", &new.compute_allocation),
        ("memory_allocation", &new.memory_allocation),
    ] {
        if value.as_ref().is_some_and(|value| *value != 0_u8) {
            return Err(invalid(format!("{name} can only be 0 on this local endpoint")));
        }
    }
    let limit = new.wasm_memory_limit.as_ref().map(bytes).transpose()?;
    let canister = &mut hosted.canister;
    let mut changed = canister.settings().clone();
    set(&mut changed.controllers, new.controllers);
    set(&mut changed.heap_limit, limit);
    // The last that can fail, and the first that changes something.
    match new.environment_variables {
        Some(variables) => canister
            .configure_with(changed.controllers, changed.heap_limit, by_name(variables)?)
            .map_err(|error| invalid(error.to_string()))?,
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

/// Environment variables, values by name. No two may have one name.
fn by_name(variables: Vec<EnvironmentVariable>) -> Result<BTreeMap<String, String>, Reject> {
    let count = variables.len();
    let variables: BTreeMap<String, String> =
        variables.into_iter().map(|variable| (variable.name, variable.value)).collect();
    if variables.len() == count {
        Ok(variables)
    } else {
        Err(invalid("Duplicate environment variables are not allowed"))
    }
}

/// A limit of the heap.
fn bytes(limit: &Nat) -> Result<Bytes, Reject> {
    u64::try_from(limit.0.clone())
        .ok()
        .filter(|limit| *limit <= LARGEST_LIMIT)
        .map(Bytes)
        .ok_or_else(|| invalid(format!("wasm_memory_limit is at most {LARGEST_LIMIT}")))
}

pub fn run(_: CanisterIdRecord, running: bool) -> Run {
    Box::new(move |hosted| {
        if hosted.running != running {
            hosted.running = running;
            hosted.canister.count_change();
        }
        done()
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
        done()
    })
}
