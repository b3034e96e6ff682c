//! Executions of the embedded replica as answers of a replica.

use stablebench_replica::{Execution, PageCharges};

use super::{Answer, Cost, Inside, PageCosts, Readings, Reject, StableCalls, TouchedPages};

/// Converts an execution on the embedded replica.
pub fn answer(execution: Execution) -> Answer {
    let cost = Cost { cycles: cycles(&execution), inside: Some(inside(&execution)) };
    let readings = readings(&execution);
    Answer { outcome: execution.outcome.map_err(reject), cost, readings }
}

/// Returns the readings of the counter by a canister that reports them.
pub fn readings(execution: &Execution) -> Readings {
    let noted = execution.readings.iter();
    Readings(noted.map(|noted| (noted.used.get(), page_costs(&noted.pages))).collect())
}

/// Converts a reject.
pub fn reject(reject: stablebench_replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}

/// Returns the cycles that an execution cost.
pub fn cycles(execution: &Execution) -> u64 {
    u64::try_from(execution.cycles.get()).unwrap_or(u64::MAX)
}

/// Returns the details of an execution.
pub fn inside(execution: &Execution) -> Inside {
    let calls = execution.stable_calls;
    Inside {
        instructions: execution.instructions.get(),
        charge: execution.charge.get(),
        heap_pages_changed: execution.memory.heap_changed.get(),
        stable_pages_accessed: execution.memory.stable_accessed.get(),
        stable_pages_written: execution.memory.stable_written.get(),
        stable_calls: Some(StableCalls {
            reads: calls.reads,
            bytes_read: calls.bytes_read.get(),
            writes: calls.writes,
            bytes_written: calls.bytes_written.get(),
        }),
        pages: Some(page_costs(&execution.pages)),
        messaging: None,
    }
}

fn page_costs(pages: &PageCharges) -> PageCosts {
    PageCosts {
        heap: pages.heap.get(),
        stable: pages.stable.get(),
        touched: pages.touched.map(|touched| TouchedPages {
            heap: touched.heap.get(),
            heap_written: touched.heap_written.get(),
            stable: touched.stable.get(),
            stable_written: touched.stable_written.get(),
        }),
    }
}
