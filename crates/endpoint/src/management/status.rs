//! What a canister is and holds.

use std::sync::Arc;

use candid::Nat;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterStatusResult, CanisterStatusType, DefiniteCanisterSettings,
    EnvironmentVariable, MemoryMetrics, QueryStats,
};
use stablebench_replica::{Canister, WasmPages};

use super::reply;
use crate::subnet::{Run, Subnet, not_found};

/// Bytes of a canister's memories and module.
pub fn memory(canister: &Canister) -> u64 {
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
        let handle =
            subnet.canister(&args.canister_id).ok_or_else(|| not_found(&args.canister_id))?;
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
            // Nothing is paid for time here.
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
