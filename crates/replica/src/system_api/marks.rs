//! Pages that the running message has touched: their charges, the marks of stable pages, and the
//! limits of these.
//!
//! Stable pages are marked by compiled code (`instrument/stable.rs`): a byte of the byte map for each
//! page of 4 KiB, and under rules that charge for touching, a byte of the page map for each Wasm page.

use std::io;

use wasmtime::{AsContext, AsContextMut, Val};

use super::host::{Host, Parts};
use crate::execution::{PageCharges, TouchedPages};
use crate::fault::Fault;
use crate::instrument::page_map::{self, offset};
use crate::memory::pages::{Pages, push};
use crate::memory::{PAGE, os};
use crate::units::{Instructions, WASM_PAGE, WasmPages};

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
pub fn forget(mut store: impl AsContextMut<Data = Host>, parts: &Parts) -> Result<(), Fault> {
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
