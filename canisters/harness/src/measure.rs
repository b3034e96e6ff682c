//! What work costs, as `performance_counter(0)` tells it.
//!
//! ```text
//! heap and stable pages
//! counter, counter            counter_overhead = the difference
//! counter, work, counter      instructions     = the difference
//! heap and stable pages
//! ```

use crate::system::{heap_pages, instructions, stable_pages};
use stablebench_protocol::{Measurement, Result};
use stablebench_workload::Amount;

/// Runs `work`, which tells how much it was about.
///
/// # Errors
///
/// Those of the work.
pub fn measure(work: impl FnOnce() -> Result<Amount>) -> Result<Measurement> {
    let heap_pages_before = heap_pages();
    let stable_pages_before = stable_pages();
    let calibration = instructions();
    let counter_overhead = instructions() - calibration;

    let before = instructions();
    let outcome = work();
    let after = instructions();

    let Amount { rows, bytes } = outcome?;
    Ok(Measurement {
        instructions: after - before,
        counter_overhead,
        message_instructions: after,
        rows,
        bytes,
        heap_pages_before,
        heap_pages_after: heap_pages(),
        stable_pages_before,
        stable_pages_after: stable_pages(),
    })
}
