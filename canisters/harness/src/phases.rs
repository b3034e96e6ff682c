//! Where the instructions of SQL work go: what passed since the last mark belongs to the
//! phase that a mark names.
//!
//! ```text
//!   open │ prepare │ begin │ bind │ step │ copy │ step │ … │ commit
//!        └ a mark reads the counter and adds what passed since the one before it
//! ```
//!
//! Marks are nearly free unless [`measured`] is under way. A mark's reading of the counter
//! is in the phase that it names; how many there were is told.

use crate::instructions;
use stablebench_protocol::{Phase, PhaseCost, Result};
use std::cell::{Cell, RefCell};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static SPENT: RefCell<Spent> = const { RefCell::new(Spent::NOTHING) };
}

struct Spent {
    last: u64,
    phases: [PhaseCost; Phase::ALL.len()],
}

impl Spent {
    const NOTHING: Self = Self {
        last: 0,
        phases: [PhaseCost { phase: Phase::Open, instructions: 0, times: 0 }; Phase::ALL.len()],
    };
}

/// Whether phases are measured.
#[inline]
pub fn are_measured() -> bool {
    ON.get()
}

/// What passed since the last mark belongs to `phase`.
#[inline]
pub fn mark(phase: Phase) {
    if ON.get() {
        add(phase);
    }
}

fn add(phase: Phase) {
    let now = instructions();
    SPENT.with_borrow_mut(|spent| {
        let cost = &mut spent.phases[phase as usize];
        cost.instructions += now - spent.last;
        cost.times += 1;
        spent.last = instructions();
    });
}

/// Work whose own marks do not count: all of it is one phase.
#[inline]
pub fn all_of<T>(phase: Phase, work: impl FnOnce() -> T) -> T {
    let on = ON.replace(false);
    let outcome = work();
    ON.set(on);
    mark(phase);
    outcome
}

/// Does work, and tells what its phases cost.
///
/// # Errors
///
/// Those of the work.
pub fn measured(work: impl FnOnce() -> Result<()>) -> Result<Vec<PhaseCost>> {
    SPENT.with_borrow_mut(|spent| {
        *spent = Spent::NOTHING;
        for (cost, phase) in spent.phases.iter_mut().zip(Phase::ALL) {
            cost.phase = phase;
        }
        spent.last = instructions();
    });
    ON.set(true);
    let outcome = work();
    mark(Phase::Rest);
    ON.set(false);
    outcome?;
    Ok(SPENT.with_borrow(|spent| spent.phases.to_vec()))
}
