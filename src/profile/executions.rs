//! The profile of a call that causes several executions, on one canister or several.
//!
//! ```text
//!   go of A                          a frame for each execution, without instructions of its own
//!     ├─ canister_update go          the functions of the execution
//!     │    └─ …
//!     └─ ask of B                    the executions that it caused
//!          ├─ canister_update ask
//!          └─ reply callback of A
//!               └─ on_reply
//! ```
//!
//! A call that causes one execution has the profile of that execution, without a frame around it.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use stablebench_replica::Span;
use stablebench_replica::subnet::Executed;

use super::flame::Flame;
use super::profiler::{check, check_equal};

/// The deepest execution with a frame below that of its cause.
pub const MAX_NESTED: u64 = 100;

/// Returns the profile of executions, of which each follows its cause.
///
/// # Errors
///
/// If the instructions do not add up.
pub fn of_executions(executions: &[Executed]) -> Result<Flame> {
    let mut flame = Flame::default();
    if let [Executed { execution, .. }] = executions
        && let Some(profile) = &execution.profile
    {
        flame.add(profile)?;
        return Ok(flame);
    }
    // The frame of each execution, that of its parent, and its depth.
    let mut frames: BTreeMap<u64, (usize, Option<usize>, u64)> = BTreeMap::new();
    for executed in executions {
        let cause = executed.cause.and_then(|cause| frames.get(&cause));
        let (parent, depth) = match cause {
            None => (None, 1),
            Some((_, parent, MAX_NESTED)) => {
                flame.too_deep += 1;
                (*parent, MAX_NESTED)
            }
            Some((frame, _, depth)) => (Some(*frame), depth + 1),
        };
        let frame = flame.add_execution(parent, executed)?;
        frames.insert(executed.number, (frame, parent, depth));
    }
    Ok(flame)
}

/// Compares profiled executions with the same ones without a profile, and their profiles with the
/// counts.
///
/// # Errors
///
/// If anything differs.
pub fn compare(normal: &[Executed], profiled: &[Executed]) -> Result<()> {
    ensure!(
        normal.len() == profiled.len(),
        "{} executions were profiled instead of {}: this is a bug",
        profiled.len(),
        normal.len()
    );
    for (one, other) in normal.iter().zip(profiled) {
        let of = |it: &Executed| (it.number, it.cause, it.to_string(), it.cycles_sent);
        if of(one) != of(other) {
            bail!("{other} was profiled instead of {one}, or differs: this is a bug");
        }
        match &other.execution.profile {
            Some(profile) => check(&one.execution, &other.execution, profile, Span::Message)?,
            None => check_equal(&one.execution, &other.execution)?,
        }
    }
    Ok(())
}
