//! The cost of work: `performance_counter(0)`, pages of memory, and where instructions go.
//!
//! ```text
//! heap and stable pages
//! counter, counter            counter_overhead = the difference
//! counter, work, counter      instructions     = the difference
//! heap and stable pages
//! ```
//!
//! [`phases`] divides the instructions of SQL work. A mark assigns what was spent since the last mark
//! to a phase:
//!
//! ```text
//!   open │ prepare │ begin │ bind │ step │ copy │ step │ … │ commit
//!        └ a mark reads the counter and adds what was spent since the one before it
//! ```

use stablebench_protocol::{Measurement, Result};
use stablebench_workload::Amount;
use std::fmt::Display;

/// Measures `work`, which returns its size.
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

/// Measures work that is not about rows.
///
/// # Errors
///
/// Those of the work.
pub fn measure_step(work: impl FnOnce() -> Result<()>) -> Result<Measurement> {
    measure(|| work().map(|()| Amount::default()))
}

/// `performance_counter(0)`: instructions of this message so far. 0 outside of a canister.
#[inline(always)]
pub fn instructions() -> u64 {
    #[cfg(target_family = "wasm")]
    return ic_cdk::api::performance_counter(0u32);
    #[cfg(not(target_family = "wasm"))]
    0
}

/// Wasm pages (64 KiB) of heap. 0 outside of a canister.
pub fn heap_pages() -> u64 {
    #[cfg(target_arch = "wasm32")]
    return core::arch::wasm32::memory_size::<0>() as u64;
    #[cfg(not(target_arch = "wasm32"))]
    0
}

/// Wasm pages (64 KiB) of stable memory. 0 outside of a canister.
pub fn stable_pages() -> u64 {
    #[cfg(target_family = "wasm")]
    return ic_cdk::api::stable_size();
    #[cfg(not(target_family = "wasm"))]
    0
}

/// Ends the message; the system undoes all of its changes.
pub fn trap(because: &impl Display) -> ! {
    #[cfg(target_family = "wasm")]
    ic_cdk::api::trap(because.to_string());
    #[cfg(not(target_family = "wasm"))]
    panic!("{because}")
}

/// The phases of SQL work. Marks are nearly free unless [`measured`](phases::measured) work runs.
pub mod phases {
    use super::instructions;
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

    /// Returns `true` if phases are measured.
    #[inline]
    pub fn are_measured() -> bool {
        ON.get()
    }

    /// Assigns what was spent since the last mark to `phase`.
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

    /// Assigns all of `work` to one phase. Its own marks have no effect.
    #[inline]
    pub fn all_of<T>(phase: Phase, work: impl FnOnce() -> T) -> T {
        let on = ON.replace(false);
        let outcome = work();
        ON.set(on);
        mark(phase);
        outcome
    }

    /// Does work and returns the costs of its phases.
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
}
