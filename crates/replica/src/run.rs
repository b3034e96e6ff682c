//! Runs one function of a module on a canister's state.
//!
//! ```text
//!   take the spare instance, or make one → call
//!     → find touched pages → compare heap pages → keep, or undo → a spare again
//! ```
//!
//! Modules count in locals (`instrument/body.rs`). Where an operator has trapped, what they
//! counted last is lost: then all is undone, and the message runs once more in a form of
//! the module that counts in its global. Messages have no other inputs than those that they
//! are given, so it traps at the same place.

use std::io;

use crate::engine::STACK;
use crate::execution::{MemoryUse, PageCharges, Reading, SystemCalls};
use crate::fault::{Fault, Trap};
use crate::live::{Failure, Live, Spare, Touched};
use crate::memory::pages::{Pages, count};
use crate::module::Module;
use crate::profile::recorder::Recorded;
use crate::profile::{ProfileError, Span};
use crate::rules::Rules;
use crate::state::State;
use crate::system_api::message::{Effects, Message};
use crate::system_api::names::AddressWidth;
use crate::system_api::slices::Slices;
use crate::units::{Cycles, Instructions, OsPages, WASM_PAGE, WasmPages};

/// What a run ended with.
#[derive(Debug)]
pub struct Run {
    /// Whether the function returned.
    pub result: Result<(), Fault>,
    /// What the message did beside changing memory.
    pub effects: Effects,
    /// What the counter read in the end.
    pub instructions: Instructions,
    /// Instructions with changed heap pages, at most the limit.
    pub charge: Instructions,
    /// What pages cost.
    pub pages: PageCharges,
    /// Readings of the counter, if somebody asked.
    pub readings: Vec<Reading>,
    /// Pages touched.
    pub memory: MemoryUse,
    /// Calls of stable memory.
    pub stable_calls: SystemCalls,
    /// The other calls of the System API, if somebody asked.
    pub calls: Option<SystemCalls>,
    /// What is to be kept, if the function returned and changes are kept.
    pub changes: Option<Changes>,
}

impl Run {
    /// Cycles that are gone: burning them is undone like everything else.
    pub fn burned(&self) -> Cycles {
        if self.result.is_ok() { self.effects.burned } else { Cycles(0) }
    }
}

/// What a message changed. Dropping it undoes the message.
#[derive(Debug)]
pub struct Changes {
    live: Box<Live>,
    touched: Touched,
    heap: Vec<Pages>,
}

impl Changes {
    /// Makes the changes to the state on which the message ran.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. The state is then torn.
    pub fn commit(mut self, state: &mut State, spare: &Spare) -> io::Result<()> {
        if self.live.keep(state, &self.touched, &self.heap)? {
            spare.put(self.live);
        }
        Ok(())
    }
}

/// Where a message runs: a module, the state, and an instance of the one on the other, if
/// one is left from the message before.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The module.
    pub module: &'a Module,
    /// What the message finds.
    pub state: &'a State,
    /// The instance.
    pub spare: &'a Spare,
}

/// Runs the exported function `export`, at most `total` instructions.
///
/// # Errors
///
/// If the host has no memory left. What the canister does wrong is in
/// [`Run::result`].
pub fn run(
    place: Place<'_>,
    message: Message,
    export: &str,
    total: Instructions,
) -> io::Result<Run> {
    // Compiled code runs on this thread's stack, and running out of that would
    // end the process instead of the message.
    stacker::maybe_grow(STACK, 2 * STACK, || run_here(place, message, export, total))
}

fn run_here(
    place: Place<'_>,
    message: Message,
    export: &str,
    total: Instructions,
) -> io::Result<Run> {
    let Place { module, state, spare } = place;
    let (rules, timer) = (message.rules, message.timer);
    let (limit, slice) = message.mode.instructions(rules);
    let slices = Slices::new(total.min(limit), slice);
    let live = match spare.take() {
        Some(mut live) => {
            live.begin(message, slices);
            Ok(live)
        }
        None => Live::new(module, module.ready(), state, message, slices).map(Box::new),
    };
    let mut live = match live {
        Ok(live) => live,
        Err(failure) => return not_begun(failure, rules, timer),
    };
    if live.host().message.copies_ahead {
        live.copy_ahead()?;
    }
    let result = live.call(export).map_err(Fault::from_engine);
    let Some(trap) = uncounted(&result) else {
        return finish(live, place, result, spare);
    };
    let message = live.host().message.clone();
    let touched = live.touched()?;
    if live.undo(state, &touched)? {
        spare.put(live);
    }
    let exact = module.exact().map_err(Failure::Engine);
    let exact = exact.and_then(|exact| Live::new(module, exact, state, message, slices));
    let mut live = match exact {
        Ok(live) => Box::new(live),
        Err(failure) => return not_begun(failure, rules, timer),
    };
    let again = live.call(export).map_err(Fault::from_engine);
    let result = match again {
        Err(Fault::Trapped(again)) if again == trap => result,
        other => Err(Fault::Engine(format!("{trap} at first, and when repeated {other:?}"))),
    };
    finish(live, place, result, &Spare::default())
}

/// Runs the function likewise, in the profiled form, and tells what was recorded. That form
/// counts exactly whatever happens, and is not kept for the next message.
///
/// # Errors
///
/// Those of [`run`].
pub fn run_profiled(
    place: Place<'_>,
    message: Message,
    export: &str,
    total: Instructions,
    span: Span,
) -> io::Result<(Run, Result<Recorded, ProfileError>)> {
    stacker::maybe_grow(STACK, 2 * STACK, || {
        let (rules, timer) = (message.rules, message.timer);
        let (limit, slice) = message.mode.instructions(rules);
        let slices = Slices::new(total.min(limit), slice);
        // It would be of the state before.
        drop(place.spare.take());
        let live = Live::profiled(place.module, place.state, message, slices, span);
        let mut live = match live {
            Ok(live) => Box::new(live),
            Err(failure) => {
                return Ok((not_begun(failure, rules, timer)?, Ok(Recorded::default())));
            }
        };
        let result = live.call(export).map_err(Fault::from_engine);
        let recorded = live.recorded(result.is_err()).unwrap_or(Ok(Recorded::default()));
        Ok((finish(live, place, result, &Spare::default())?, recorded))
    })
}

/// The trap that leaves an older value in the counter, if it was one: that of an operator
/// which traps by itself.
fn uncounted(result: &Result<(), Fault>) -> Option<Trap> {
    let Err(Fault::Trapped(trap)) = result else {
        return None;
    };
    match trap {
        Trap::HeapOutOfBounds | Trap::DivisionByZero | Trap::TableOutOfBounds | Trap::Other => {
            Some(*trap)
        }
        Trap::Unreachable
        | Trap::StackOverflow
        | Trap::StableOutOfBounds
        | Trap::StableTooBig
        | Trap::CyclesTooBig => None,
    }
}

fn not_begun(failure: Failure, rules: Rules, timer: u64) -> io::Result<Run> {
    let error = match failure {
        Failure::Host(error) => return Err(error),
        Failure::Engine(error) => error,
    };
    Ok(Run {
        result: Err(Fault::Engine(format!("Failed to instantiate module: {error:#}"))),
        effects: Effects::new(rules, timer),
        instructions: Instructions(0),
        charge: Instructions(0),
        pages: PageCharges::default(),
        readings: Vec::new(),
        memory: MemoryUse::default(),
        stable_calls: SystemCalls::default(),
        calls: None,
        changes: None,
    })
}

fn finish(
    mut live: Box<Live>,
    place: Place<'_>,
    result: Result<(), Fault>,
    spare: &Spare,
) -> io::Result<Run> {
    let state = place.state;
    let counter = live.counter();
    let stable_calls = live.stable_calls();
    let touched = live.touched()?;
    let mut pages_charged = live.page_charges();
    let readings = live.take_readings();
    let host = live.host();
    let (mode, slices, effects) = (host.message.mode, host.slices, host.effects.clone());
    let calls = host.calls.clone();
    // What is not kept is not compared and not charged.
    let changed = match mode.keeps_changes() {
        true => state.heap.changed(live.heap(), &touched.heap)?,
        false => Vec::new(),
    };
    let pages = |ranges: &[Pages]| OsPages(count(ranges) as u64);
    let memory = MemoryUse {
        heap_written: pages(&touched.heap),
        heap_changed: pages(&changed),
        stable_written: pages(&touched.stable),
        stable_accessed: OsPages(touched.stable_accessed),
        heap: WasmPages(live.heap().len() as u64 / WASM_PAGE),
        stable: WasmPages(live.stable_size() as u64 / WASM_PAGE),
    };
    let prices = place.module.rules().pages();
    let factor = match place.module.rewritten().address_width {
        AddressWidth::Bits32 => 1,
        AddressWidth::Bits64 => prices.heap64_factor,
    };
    let for_changed = prices.heap_os_page_changed.get() * factor * memory.heap_changed.get();
    pages_charged.heap += Instructions(for_changed);
    let changes = if result.is_ok() && mode.keeps_changes() {
        Some(Changes { live, touched, heap: changed })
    } else {
        if live.undo(state, &touched)? {
            spare.put(live);
        }
        None
    };
    Ok(Run {
        result,
        effects,
        instructions: slices.used(counter),
        charge: slices.used_within_limit(counter.saturating_sub_unsigned(for_changed)),
        pages: pages_charged,
        readings,
        memory,
        stable_calls,
        calls,
        changes,
    })
}
