//! The cost of work that may await replies: `performance_counter(1)`, and pages of memory.

use stablebench_harness::{heap_pages, stable_pages};
use stablebench_protocol::{Measurement, Result};
use stablebench_suite_calls::CallSize;
use stablebench_suite_calls::work::{Reply, carried};
use stablebench_workload::Amount;

/// Work that was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// The size of the work.
    amount: Amount,
    /// Instructions of tasks, which are measured instead of the work.
    tasks: Option<u64>,
}

impl Work {
    /// Executions of a task, and their instructions.
    pub fn of_tasks((executions, instructions): (u64, u64)) -> Self {
        Self { amount: Amount { rows: executions, bytes: 0 }, tasks: Some(instructions) }
    }
}

/// Measures work.
///
/// # Errors
///
/// Those of the work.
pub async fn measure(work: impl Future<Output = Result<Work>>) -> Result<Measurement> {
    let heap_pages_before = heap_pages();
    let stable_pages_before = stable_pages();
    let calibration = instructions();
    let counter_overhead = instructions() - calibration;

    let before = instructions();
    let outcome = work.await;
    let after = instructions();

    let Work { amount, tasks } = outcome?;
    Ok(Measurement {
        instructions: tasks.unwrap_or(after - before),
        counter_overhead: if tasks.is_some() { 0 } else { counter_overhead },
        message_instructions: after,
        rows: amount.rows,
        bytes: amount.bytes,
        heap_pages_before,
        heap_pages_after: heap_pages(),
        stable_pages_before,
        stable_pages_after: stable_pages(),
    })
}

/// Adds the replies to the measurement of the calls that they answer.
pub fn with_replies(measured: Measurement, size: CallSize, replies: &[Reply]) -> Measurement {
    let there: u64 = replies.iter().map(Reply::instructions).sum();
    let bytes = replies.iter().map(|reply| match size {
        CallSize::Argument(_) => carried(size),
        CallSize::Reply(_) => reply.payload_bytes(),
    });
    Measurement {
        instructions: measured.instructions + there,
        message_instructions: measured.message_instructions + there,
        rows: replies.len() as u64,
        bytes: bytes.sum(),
        ..measured
    }
}

/// Instructions of the call so far, in all of its messages.
#[inline(always)]
fn instructions() -> u64 {
    ic_cdk::api::performance_counter(1_u32)
}
