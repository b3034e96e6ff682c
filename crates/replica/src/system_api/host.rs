//! A running message in the engine: its state, its slices of instructions, and the pages that it has
//! touched.
//!
//! # Slices
//!
//! The instructions of a message are divided into slices as the replica does. The module counts down
//! the remaining instructions of the slice. When a check finds a negative counter, the next slice
//! starts, shortened by what the last one overran:
//!
//! ```text
//!   limit of the message  |----------------------------------------|
//!   slices                |--- 2 G ---|--- 2 G ---|··
//!   counter               2 G ↘ −3   → 2 G − 3 ↘
//! ```
//!
//! The counter has a part of a long slice at a time, so that the host gets a word in between. What the
//! counter does not have yet is `hidden`; nothing that is counted depends on it.
//!
//! Source: `rs/canister_sandbox/src/dts.rs` of the replica.
//!
//! # Pages
//!
//! Stable pages are marked by compiled code (`instrument/stable.rs`): a byte of the byte map for each
//! page of 4 KiB, and under rules that charge for touching, a byte of the page map for each Wasm page.

use std::fmt;
use std::io;
use std::sync::Arc;

use wasmtime::{AsContext, AsContextMut, Global, Memory, StoreLimits, Val};

use super::message::{Effects, Message};
use crate::execution::{PageCharges, Reading, SystemCalls, TouchedPages};
use crate::fault::Fault;
use crate::instrument::page_map::{self, offset};
use crate::memory::pages::{Pages, push};
use crate::memory::{PAGE, PageTracker, os};
use crate::profile::Recorder;
use crate::rules::MAX_SLICES;
use crate::units::{Instructions, WASM_PAGE, WasmPages};

/// State of a running message in the engine's store.
pub struct Host {
    /// The message.
    pub message: Message,
    /// Its effects so far.
    pub effects: Effects,
    /// System API calls other than those of stable memory, if requested.
    pub calls: Option<SystemCalls>,
    /// Instructions that are not in the module's counter.
    pub slices: Slices,
    /// True if the module itself declares a heap.
    pub has_heap: bool,
    /// Limits that the engine enforces.
    pub limits: StoreLimits,
    /// Exports of the module, once it is instantiated.
    pub parts: Option<Parts>,
    /// Recorder of the call tree, in the profiled form.
    pub recorder: Option<Recorder>,
    /// Tracker of heap pages, if touching them is charged.
    pub pages: Option<Arc<PageTracker>>,
    /// Readings of the counter, if requested.
    pub readings: Option<Vec<Reading>>,
    /// True if the message was divided, so that pages of its first part are forgotten.
    pub divided: bool,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("message", &self.message).finish_non_exhaustive()
    }
}

/// Exports of the rewritten module that the host uses.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Instructions left of the slice.
    pub counter: Global,
    /// The heap.
    pub heap: Memory,
    /// Stable memory.
    pub stable: Memory,
    /// Byte map: stable pages that were accessed and written.
    pub byte_map: Memory,
    /// Page map, under rules that charge for touching pages.
    pub page_map: Option<Memory>,
    /// Number of stable pages that the message may still access.
    pub accessible: Global,
    /// Number of stable pages that the message may still write.
    pub writable: Global,
}

/// The most instructions that the counter has: about a second.
const PART: i64 = 1_000_000_000;

/// The instructions of a message that are not in the module's counter.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    total: i64,
    longest: i64,
    current: i64,
    before: i64,
    left: i64,
    /// Instructions of the slice that the counter does not have yet.
    hidden: i64,
    part: i64,
}

impl Slices {
    /// Creates the slices of a message with at most `total` instructions, each at most `slice`.
    pub fn new(total: Instructions, slice: Instructions) -> Self {
        Self::in_parts(total, slice, PART)
    }

    fn in_parts(total: Instructions, slice: Instructions, part: i64) -> Self {
        let total = i64::try_from(total.get()).unwrap_or(i64::MAX);
        let longest = i64::try_from(slice.get()).unwrap_or(i64::MAX).min(total);
        let slices = (total / longest.max(1)).min(MAX_SLICES);
        Self {
            total,
            longest,
            current: longest,
            before: 0,
            left: (2 * slices).clamp(4, MAX_SLICES),
            hidden: (longest - part).max(0),
            part,
        }
    }

    /// Initial value of the counter.
    pub fn first(&self) -> i64 {
        self.longest - self.hidden
    }

    /// Instructions used so far, with `counter` left of the slice.
    pub fn used(&self, counter: i64) -> Instructions {
        Instructions((self.before + self.in_slice(counter)).max(0).cast_unsigned())
    }

    /// Instructions used so far as in [`Slices::used`], at most the message's limit.
    pub fn used_within_limit(&self, counter: i64) -> Instructions {
        Instructions(self.used(counter).get().min(self.total.cast_unsigned()))
    }

    fn in_slice(&self, counter: i64) -> i64 {
        let left = counter.saturating_add(self.hidden);
        self.current.saturating_sub(left).max(0).min(i64::MAX - self.before)
    }

    /// Continues the slice, or starts the next one, and returns the counter.
    ///
    /// # Errors
    ///
    /// If no instructions are left, or the overrun exceeds a slice.
    pub fn next(&mut self, counter: i64) -> Result<i64, Fault> {
        let mut left = counter.saturating_add(self.hidden);
        if left < 0 {
            left = self.next_slice(left)?;
        }
        self.hidden = (left - self.part).max(0);
        Ok(left - self.hidden)
    }

    fn next_slice(&mut self, counter: i64) -> Result<i64, Fault> {
        if self.current >= self.total - self.before || self.left <= 1 {
            return Err(Fault::Instructions(Instructions(self.total.cast_unsigned())));
        }
        let used = self.current.saturating_sub(counter).max(0);
        let overrun = (used - self.current).max(0);
        // The replica checks the carry against what was left before this slice here, and against
        // what is left after it when the next slice starts.
        if (self.longest - overrun).clamp(0, (self.total - self.before).max(0)) == 0 {
            return Err(Fault::Slice {
                used: Instructions(used.cast_unsigned()),
                limit: Instructions(self.longest.cast_unsigned()),
            });
        }
        self.before = self.before.saturating_add(used);
        self.current = (self.longest - overrun).clamp(0, (self.total - self.before).max(0));
        self.left -= 1;
        Ok(self.current)
    }
}

/// Returns the page charges of the message so far.
pub fn page_charges(mut store: impl AsContextMut<Data = Host>, parts: &Parts) -> PageCharges {
    let mut store = store.as_context_mut();
    let rules = store.data().message.rules;
    let Some(page_map) = parts.page_map else {
        let left = parts.writable.get(&mut store).i64().unwrap_or(0);
        let most = store.data().message.mode.stable_pages(rules).get();
        let written = most.saturating_sub(left.max(0).cast_unsigned());
        let each = rules.pages().stable_os_page_written.get();
        return PageCharges { stable: Instructions(written * each), ..PageCharges::default() };
    };
    let heap = store.data().pages.as_ref();
    let (touches, heap) =
        heap.map_or_else(Default::default, |pages| (pages.touches(), pages.charged()));
    let stable = page_map::stable_touches(page_map.data(&store));
    let prices = store.data().message.mode.touch_prices(rules);
    let each = |price: i64| price.max(0).cast_unsigned();
    let stable_charge =
        stable.touched * each(prices.touched) + stable.written * each(prices.written.unwrap_or(0));
    PageCharges {
        heap: Instructions(heap),
        stable: Instructions(stable_charge),
        touched: Some(TouchedPages {
            heap: WasmPages(touches.touched),
            heap_written: WasmPages(touches.written),
            stable: WasmPages(stable.touched),
            // The module counts writes that are not charged too.
            stable_written: WasmPages(prices.written.map_or(0, |_| stable.written)),
        }),
    }
}

/// Sets the numbers of stable pages that the message may access and write to those of a new message.
///
/// # Errors
///
/// Never: the globals are mutable numbers.
pub fn allow_stable_pages(
    mut store: impl AsContextMut<Data = Host>,
    parts: &Parts,
) -> wasmtime::Result<()> {
    let mut store = store.as_context_mut();
    let message = &store.data().message;
    let pages = message.mode.stable_pages(message.rules).get().cast_signed();
    for global in [parts.accessible, parts.writable] {
        global.set(&mut store, Val::I64(pages))?;
    }
    Ok(())
}

/// Clears the marks of stable pages, and returns the pages that were written, and those that were read
/// or written.
pub fn take_marks(
    mut store: impl AsContextMut<Data = Host>,
    parts: &Parts,
) -> (Vec<Pages>, Vec<Pages>) {
    let mut store = store.as_context_mut();
    let (mut written, mut accessed) = (Vec::new(), Vec::new());
    // One byte for each stable page. Only written parts of the map can contain marks.
    let marks = parts.stable.data_size(store.as_context()).div_ceil(PAGE);
    let byte_map = parts.byte_map.data_mut(&mut store);
    for part in os::current().written(&byte_map[..marks]) {
        let start = part.start * PAGE;
        let end = marks.min(part.end * PAGE);
        for (page, mark) in (start..end).zip(&mut byte_map[start..end]) {
            if *mark == 0 {
                continue;
            }
            if *mark & 1 != 0 {
                push(&mut written, page);
            }
            push(&mut accessed, page);
            *mark = 0;
        }
    }
    if let Some(page_map) = parts.page_map {
        const PER_WASM_PAGE: usize = WASM_PAGE as usize / PAGE;
        let marks = &mut page_map.data_mut(&mut store)[offset::MARKS as usize..];
        for range in &accessed {
            let pages = range.start / PER_WASM_PAGE..range.end.div_ceil(PER_WASM_PAGE);
            marks[pages].fill(0);
        }
    }
    (written, accessed)
}

/// Forgets all pages that the message has touched: those that it touches from now on are charged and
/// limited as in a new message. What it has written stays, but is no longer known, so the instance
/// must not be used for another message.
///
/// # Errors
///
/// If the system returns an error.
pub(super) fn forget(
    mut store: impl AsContextMut<Data = Host>,
    parts: &Parts,
) -> Result<(), Fault> {
    let mut store = store.as_context_mut();
    let system = |error: io::Error| Fault::Engine(format!("cannot forget pages: {error}"));
    if let Some(pages) = &store.data().pages {
        pages.reset().map_err(system)?;
    }
    take_marks(&mut store, parts);
    if let Some(page_map) = parts.page_map {
        let words = page_map.data_mut(&mut store);
        for offset in [offset::TOUCHED, offset::WRITTEN] {
            words[offset as usize..][..8].fill(0);
        }
    }
    allow_stable_pages(&mut store, parts)
        .map_err(|error| Fault::Engine(format!("cannot set the limits of pages: {error:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Instructions = Instructions(100);

    #[test]
    fn a_slice_shortens_the_next_by_what_it_overran() {
        let mut slices = Slices::new(Instructions(1_000), SLICE);
        assert_eq!(slices.first(), 100);
        assert_eq!(slices.next(-30), Ok(70));
        assert_eq!(slices.used(70), Instructions(130));
        assert_eq!(slices.used(0), Instructions(200));
    }

    #[test]
    fn overrunning_a_whole_slice_is_refused_one_less_is_not() {
        let mut slices = Slices::new(Instructions(1_000), SLICE);
        assert_eq!(slices.next(-99), Ok(1));
        let mut slices = Slices::new(Instructions(1_000), SLICE);
        let used = Instructions(200);
        assert_eq!(slices.next(-100), Err(Fault::Slice { used, limit: SLICE }));
    }

    #[test]
    fn the_last_slice_ends_the_message() {
        let mut slices = Slices::new(Instructions(200), SLICE);
        assert_eq!(slices.next(-1), Ok(99));
        assert_eq!(slices.next(-1), Err(Fault::Instructions(Instructions(200))));
        assert_eq!(slices.used(-1), Instructions(201));
        assert_eq!(slices.used_within_limit(-1), Instructions(200));
    }

    #[test]
    fn a_query_has_one_slice() {
        let mut slices = Slices::new(Instructions(50), Instructions(50));
        assert_eq!(slices.next(-1), Err(Fault::Instructions(Instructions(50))));
    }

    /// A counter that has parts of the slices counts like one that has them whole.
    #[test]
    fn parts_of_slices_change_no_count() {
        let total = Instructions(2_000);
        for (part, charge) in [1, 7, 99, 100, 101]
            .into_iter()
            .flat_map(|part| [1, 3, 50, 100, 130, 199, 200, 400].map(|charge| (part, charge)))
        {
            let mut whole = Slices::new(total, SLICE);
            let mut parts = Slices::in_parts(total, SLICE, part);
            let (mut one, mut other) = (whole.first(), parts.first());
            loop {
                assert_eq!(whole.used(one), parts.used(other), "{part}, {charge}");
                one -= charge;
                other -= charge;
                let next = |slices: &mut Slices, counter| match counter {
                    0.. => Ok(counter),
                    _ => slices.next(counter),
                };
                assert_eq!(whole.used(one), parts.used(other), "{part}, {charge}");
                match (next(&mut whole, one), next(&mut parts, other)) {
                    (Ok(whole), Ok(parts)) => (one, other) = (whole, parts),
                    (ended, same) => {
                        assert_eq!(ended.map(|_| ()), same.map(|_| ()), "{part}, {charge}");
                        break;
                    }
                }
            }
        }
    }
}
