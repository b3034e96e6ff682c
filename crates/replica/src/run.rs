//! Executes one function of a module on a canister's state.
//!
//! ```text
//!   take the idle instance, or create one → call
//!     → find touched pages → compare heap pages → commit, or undo → idle again
//! ```
//!
//! Modules count in locals (`instrument/body.rs`). If an operator traps, the latest counts are
//! lost. The message is then undone and repeated in a form of the module that counts in its
//! global. Execution is deterministic, so it traps at the same place. Messages of modules that are not
//! optimised are repeated in the optimised form then, and if the stack overflows, because each form
//! needs its own amount.

use std::io;
use std::time::Duration;

use ic_principal::Principal;

use crate::compiler::STACK;
use crate::execution::{Execution, MemoryUse, PageCharges, Reading, SystemCalls, all_calls};
use crate::fault::{ErrorCode, Fault, Reject, Trap};
use crate::instance::{Entry, Failure, IdleSlot, LiveInstance, TextError, Touched};
use crate::memory::Image;
use crate::memory::pages::{Pages, count};
use crate::module::Module;
use crate::profile::{CallTree, Profile, ProfileError, Span};
use crate::state::State;
use crate::system_api::functions::AddressWidth;
use crate::system_api::host::Slices;
use crate::system_api::message::{Answer, Effects, Message};
use crate::units::{Cycles, Instructions, OsPages, WASM_PAGE, WasmPages};

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// Success, or the fault that ended the function.
    pub result: Result<(), Fault>,
    /// Effects other than memory changes.
    pub effects: Effects,
    /// Final value of the instruction counter.
    pub instructions: Instructions,
    /// Instructions including changed heap pages, at most the limit.
    pub charge: Instructions,
    /// Charges for pages.
    pub pages: PageCharges,
    /// Readings of the counter, if requested.
    pub readings: Vec<Reading>,
    /// Pages touched.
    pub memory: MemoryUse,
    /// Stable pages that were read or written.
    pub stable_pages: Vec<Pages>,
    /// Stable memory calls.
    pub stable_calls: SystemCalls,
    /// The other System API calls, if requested.
    pub calls: Option<SystemCalls>,
    /// Uncommitted changes, if the function returned and its mode commits changes.
    pub changes: Option<Changes>,
    /// The profile, if it was requested.
    pub profile: Option<Box<Profile>>,
    /// Wall time, if it was measured.
    pub wall: Duration,
}

impl Run {
    /// A message that failed before it started.
    pub fn failed(fault: Fault, effects: Effects) -> Self {
        Self {
            result: Err(fault),
            effects,
            instructions: Instructions(0),
            charge: Instructions(0),
            pages: PageCharges::default(),
            readings: Vec::new(),
            memory: MemoryUse::default(),
            stable_pages: Vec::new(),
            stable_calls: SystemCalls::default(),
            calls: None,
            changes: None,
            profile: None,
            wall: Duration::ZERO,
        }
    }

    /// Cycles burned. A message that fails burns none.
    pub fn burned(&self) -> Cycles {
        if self.result.is_ok() { self.effects.burned } else { Cycles(0) }
    }

    /// Takes the changes, and undoes them if there are any.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn undo(&mut self, state: &State, idle: &IdleSlot) -> io::Result<()> {
        match self.changes.take() {
            Some(changes) => changes.undo(state, idle),
            None => Ok(()),
        }
    }

    /// Removes the backtrace of a trap, unless the caller sees the log of the canister.
    pub fn hide_backtrace(&mut self, sees_log: bool) {
        if let Err(fault) = std::mem::replace(&mut self.result, Ok(())) {
            self.result = Err(fault.seen(sees_log));
        }
    }

    /// The execution that the caller sees. `silence` is the error text for a message that ended
    /// without an answer.
    pub fn into_execution(mut self, id: &Principal, silence: &str) -> Execution {
        let outcome = match std::mem::replace(&mut self.result, Ok(())) {
            Err(fault) => {
                self.effects.burned = Cycles(0);
                Err(fault.reject(id))
            }
            Ok(()) => match std::mem::replace(&mut self.effects.answer, Answer::Earlier) {
                Answer::Reply(reply) => Ok(reply),
                Answer::Reject(message) => {
                    Err(Reject { code: ErrorCode::CanisterRejectedMessage, message })
                }
                Answer::Pending(_) | Answer::Earlier => Err(Reject {
                    code: ErrorCode::CanisterDidNotReply,
                    message: format!("Canister {id} {silence}"),
                }),
            },
        };
        self.into_execution_with(outcome)
    }

    /// The execution with an outcome that is determined elsewhere.
    pub fn into_execution_with(self, outcome: Result<Vec<u8>, Reject>) -> Execution {
        let cycles = self.burned();
        let (printed, printed_before) = self.effects.printed.into_parts();
        Execution {
            instructions: self.instructions,
            charge: self.charge,
            cycles,
            pages: self.pages,
            readings: self.readings,
            memory: self.memory,
            stable_pages: self.stable_pages,
            stable_calls: self.stable_calls.stable(),
            system_calls: all_calls(&self.stable_calls, self.calls),
            printed,
            printed_before,
            profile: self.profile,
            wall: self.wall,
            ..Execution::of(outcome)
        }
    }
}

/// Uncommitted changes of a message. Dropping them undoes the message.
#[derive(Debug)]
pub struct Changes {
    live: Box<LiveInstance>,
    touched: Touched,
    heap: Vec<Pages>,
}

impl Changes {
    /// Commits the changes to the state on which the message ran.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. The state is then torn.
    pub fn commit(mut self, state: &mut State, idle: &IdleSlot) -> io::Result<()> {
        // An instance that a query has left meanwhile shows the state before the message.
        drop(idle.take());
        if self.live.commit(state, &self.touched, &self.heap)? {
            idle.put(self.live);
        }
        Ok(())
    }

    /// Undoes the changes.
    fn undo(mut self, state: &State, idle: &IdleSlot) -> io::Result<()> {
        if self.live.undo(state, &self.touched)? {
            idle.put(self.live);
        }
        Ok(())
    }
}

/// The target of a message: a module, a state, and possibly an idle instance of that module on
/// that state.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The module.
    pub module: &'a Module,
    /// The state before the message.
    pub state: &'a State,
    /// The slot of the idle instance.
    pub idle: &'a IdleSlot,
}

/// Runs a function with at most `total` instructions.
///
/// # Errors
///
/// If the host has no memory left. Errors of the canister are in [`Run::result`].
pub fn run(
    target: Target<'_>,
    message: Message,
    entry: Entry<'_>,
    total: Instructions,
) -> io::Result<Run> {
    // Compiled code uses this thread's stack. Overflowing it would end the process instead of
    // the message.
    stacker::maybe_grow(STACK, 2 * STACK, || run_here(target, message, entry, total))
}

fn run_here(
    target: Target<'_>,
    message: Message,
    entry: Entry<'_>,
    total: Instructions,
) -> io::Result<Run> {
    let Target { module, state, idle } = target;
    let (limit, slice) = message.mode.instructions(message.rules);
    let effects = Effects::new(&message);
    let slices = Slices::new(total.min(limit), slice);
    let live = match idle.take() {
        Some(mut live) => {
            live.begin(message, slices);
            Ok(live)
        }
        None => LiveInstance::new(module, module.ready(), state, message, slices).map(Box::new),
    };
    let mut live = match live {
        Ok(live) => live,
        Err(failure) => return not_started(failure, effects),
    };
    live.claim_pages()?;
    if live.host().message.copies_ahead {
        live.copy_ahead()?;
    }
    let result = live.call(entry).map_err(|error| module.fault(error));
    let trapped = uncounted_trap(&result);
    let overflows = result.as_ref().is_err_and(|fault| fault.trap() == Some(Trap::StackOverflow));
    if overflows || trapped.is_some() {
        match module.optimised() {
            Ok(None) => {}
            Ok(Some(optimised)) => {
                let message = live.host().message.clone();
                // Nothing is kept of what it did.
                drop(live);
                return run_here(Target { module: optimised, ..target }, message, entry, total);
            }
            Err(fault) => return Ok(Run::failed(fault, effects)),
        }
    }
    let Some(trap) = trapped else {
        return finish(live, target, result, idle);
    };
    let message = live.host().message.clone();
    let touched = live.touched()?;
    if live.undo(state, &touched)? {
        idle.put(live);
    }
    let exact = module.exact().map_err(Failure::Engine);
    let exact = exact.and_then(|exact| LiveInstance::new(module, exact, state, message, slices));
    let mut live = match exact {
        Ok(live) => Box::new(live),
        Err(failure) => return not_started(failure, effects),
    };
    live.claim_pages()?;
    let again = live.call(entry).map_err(Fault::from_engine);
    let result = match again {
        Err(Fault::Trapped(again)) if again == trap => result,
        other => Err(Fault::Engine(format!("{trap} at first, but {other:?} when repeated"))),
    };
    finish(live, target, result, &IdleSlot::default())
}

/// Runs the function in the profiled form and returns the call tree. This form always counts
/// exactly, and its instance is not reused.
///
/// # Errors
///
/// The errors of [`run`].
pub fn run_profiled(
    target: Target<'_>,
    message: Message,
    entry: Entry<'_>,
    total: Instructions,
    span: Span,
) -> io::Result<(Run, Result<CallTree, ProfileError>)> {
    stacker::maybe_grow(STACK, 2 * STACK, || {
        let (limit, slice) = message.mode.instructions(message.rules);
        let effects = Effects::new(&message);
        let slices = Slices::new(total.min(limit), slice);
        // The idle instance shows the state before this message.
        drop(target.idle.take());
        let live = LiveInstance::profiled(target.module, target.state, message, slices, span);
        let mut live = match live {
            Ok(live) => Box::new(live),
            Err(failure) => {
                return Ok((not_started(failure, effects)?, Ok(CallTree::default())));
            }
        };
        live.claim_pages()?;
        let result = live.call(entry).map_err(|error| target.module.fault(error));
        let tree = live.recorded(result.is_err()).unwrap_or(Ok(CallTree::default()));
        Ok((finish(live, target, result, &IdleSlot::default())?, tree))
    })
}

/// Calls a function of a module that was never installed, which returns the address of a text.
/// Returns the text or why there is none, and `None` if there is no such function.
///
/// # Errors
///
/// If the host has no memory left.
pub fn text(
    module: &Module,
    message: Message,
    export: &str,
) -> io::Result<Option<Result<String, TextError>>> {
    stacker::maybe_grow(STACK, 2 * STACK, || {
        let state = State::initial(module.rewritten(), Image::new())?;
        let (limit, slice) = message.mode.instructions(message.rules);
        let slices = Slices::new(limit, slice);
        match LiveInstance::new(module, module.ready(), &state, message, slices) {
            Ok(mut live) => {
                live.claim_pages()?;
                Ok(live.text(export))
            }
            Err(Failure::Host(error)) => Err(error),
            Err(Failure::Engine(error)) => {
                Ok(Some(Err(TextError::Failed(Fault::from_engine(error).to_string()))))
            }
        }
    })
}

/// Returns the trap if it left an outdated counter: it was raised by an operator, not by a check.
fn uncounted_trap(result: &Result<(), Fault>) -> Option<Trap> {
    let trap = result.as_ref().err()?.trap()?;
    match trap {
        Trap::HeapOutOfBounds | Trap::DivisionByZero | Trap::TableOutOfBounds | Trap::Other => {
            Some(trap)
        }
        Trap::Unreachable
        | Trap::StackOverflow
        | Trap::StableOutOfBounds
        | Trap::StableTooBig
        | Trap::CyclesTooBig => None,
    }
}

fn not_started(failure: Failure, effects: Effects) -> io::Result<Run> {
    match failure {
        Failure::Host(error) => Err(error),
        Failure::Engine(error) => {
            let fault = Fault::Engine(format!("Failed to instantiate module: {error:#}"));
            Ok(Run::failed(fault, effects))
        }
    }
}

fn finish(
    mut live: Box<LiveInstance>,
    target: Target<'_>,
    result: Result<(), Fault>,
    idle: &IdleSlot,
) -> io::Result<Run> {
    let state = target.state;
    let counter = live.counter();
    let stable_calls = live.stable_calls();
    let mut touched = live.touched()?;
    let mut pages_charged = live.page_charges();
    let readings = live.take_readings();
    let printed = live.take_printed();
    let host = live.host();
    let result = result.map_err(|fault| match fault {
        // A part may be kept back for the cleanup, but the limit that is reported is the whole.
        Fault::Instructions(_) if host.message.mode.is_replicated() => {
            Fault::Instructions(host.message.mode.instructions(host.message.rules).0)
        }
        other => other,
    });
    let (mode, slices, mut effects) = (host.message.mode, host.slices, host.effects.clone());
    effects.printed = printed;
    effects.drop_request();
    let calls = host.calls.clone();
    // Changes that are dropped are neither compared nor charged.
    let changed = match mode.keeps_changes() {
        true => state.heap.changed(live.heap(), &touched.heap)?,
        false => Vec::new(),
    };
    let pages = |ranges: &[Pages]| OsPages(count(ranges) as u64);
    let memory = MemoryUse {
        heap_changed: pages(&changed),
        stable_written: pages(&touched.stable),
        stable_accessed: pages(&touched.stable_accessed),
        heap: WasmPages(live.heap().len() as u64 / WASM_PAGE),
        stable: WasmPages(live.stable_size() as u64 / WASM_PAGE),
    };
    let stable_pages = std::mem::take(&mut touched.stable_accessed);
    let prices = target.module.rules().pages();
    let factor = match target.module.rewritten().address_width {
        AddressWidth::Bits32 => 1,
        AddressWidth::Bits64 => prices.heap64_factor,
    };
    let for_changed = prices.heap_os_page_changed.get() * factor * memory.heap_changed.get();
    pages_charged.heap += Instructions(for_changed);
    let changes = if result.is_ok() && mode.keeps_changes() {
        Some(Changes { live, touched, heap: changed })
    } else {
        if live.undo(state, &touched)? {
            idle.put(live);
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
        stable_pages,
        stable_calls,
        calls,
        changes,
        profile: None,
        wall: Duration::ZERO,
    })
}
