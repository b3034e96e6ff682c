//! A module instantiated on a canister's state.
//!
//! Instantiating takes longer than most messages: address space is reserved, files are mapped,
//! and pages fault in. An instance is therefore reused by later messages:
//!
//! ```text
//!   new ──→ idle ── call ──→ used ── commit ──→ idle     its pages move into the state
//!            ↑                └──── undo ────→ idle     its pages are restored from the state
//!            └── idle slot ──────────┘
//! ```
//!
//! An instance is not reused if a message made changes that cannot be undone: memories that grew,
//! or dropped segments.

use std::fmt;
use std::io;
use std::sync::Arc;

use wasmtime::unix::StoreExt;
use wasmtime::{Global, Instance, InstancePre, Memory, Store, StoreLimitsBuilder, Val};

use crate::compiler::{GUARD, RESERVED};
use crate::execution::{CallCount, PageCharges, Printed, Reading, Readings, SystemCalls};
use crate::fault::Fault;
use crate::instrument::{TABLE, page_map, profiled};
use crate::memory::pages::{Pages, common, joined};
use crate::memory::{
    Claim, Image, Mapping, MappingState, PAGE, PageTracker, Rights, Slot, TouchPrices, Word,
    faulted, os, prepare,
};
use crate::module::Module;
use crate::profile::{CallTree, ProfileError, Recorder, Span, Tree};
use crate::rules::{MAX_TABLE_ELEMENTS, Rules};
use crate::state::{GlobalValue, State};
use crate::system_api::functions::{AddressWidth, SystemCall};
use crate::system_api::host::{Host, Parts, Slices, allow_stable_pages, page_charges, take_marks};
use crate::system_api::message::{Closure, Effects, Message};
use crate::units::{Bytes, OS_PAGE, WASM_PAGE};

/// Ranges of written Wasm pages for which the system is asked separately.
const MAX_SEPARATE_SCANS: usize = 64;
/// Largest heap that is copied before a message runs.
const MAX_COPIED_AHEAD: usize = 512 << 20;

/// A slot for an idle instance. The instance belongs to one state and one module: code that
/// replaces either must empty the slot.
pub type IdleSlot = Slot<LiveInstance>;

/// An instance whose memories show a state, and the changes of the current message.
pub struct LiveInstance {
    store: Store<Host>,
    instance: Instance,
    parts: Parts,
    /// Counters of stable memory calls: the call, the number of calls, the bytes.
    counted: Vec<(SystemCall, Global, Global)>,
    /// The canister's mutable globals, in the order of the module.
    globals: Vec<Global>,
    /// True if an instance can be used for another message after this one.
    reusable: bool,
    /// True if the heap was copied before the current message.
    copied_ahead: bool,
    /// Mappings of the heap and of stable memory.
    claims: [Arc<Claim>; 2],
}

impl fmt::Debug for LiveInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveInstance").finish_non_exhaustive()
    }
}

/// The function that a message runs.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// An exported function.
    Export(&'a str),
    /// A function of the canister's table.
    Callback(Closure),
}

/// Pages that a message touched.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// Heap pages that may have been written.
    pub heap: Vec<Pages>,
    /// Stable pages written.
    pub stable: Vec<Pages>,
    /// Stable pages read or written.
    pub stable_accessed: Vec<Pages>,
}

/// The reason why an exported function returns no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The function failed.
    #[error("it fails: {0}")]
    Failed(String),
    /// The function has another type.
    #[error("it is no function without parameters that returns an address")]
    Type,
    /// The address is outside of the heap.
    #[error("it returns the address {0}, which is not in the memory")]
    Outside(u64),
    /// The heap ends before the text.
    #[error("no zero byte ends the text at the address {0} that it returns")]
    Endless(u64),
    /// The text is not UTF-8.
    #[error("the text at the address {0} that it returns is not UTF-8")]
    Encoding(u64),
}

/// An error while an instance was created.
pub enum Failure {
    /// The host has no memory left.
    Host(io::Error),
    /// The engine returned an error.
    Engine(wasmtime::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Host(error)
    }
}

impl From<wasmtime::Error> for Failure {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(error)
    }
}

impl LiveInstance {
    /// Instantiates `ready`, compiled from `module`, on the state.
    ///
    /// # Errors
    ///
    /// If the host has no memory left, or the engine returns an error.
    pub fn new(
        module: &Module,
        ready: &InstancePre<Host>,
        state: &State,
        message: Message,
        slices: Slices,
    ) -> Result<Self, Failure> {
        Self::make(module, ready, state, message, slices, None)
    }

    /// Instantiates the profiled form of the module on the state, for one message.
    ///
    /// # Errors
    ///
    /// As [`LiveInstance::new`].
    pub fn profiled(
        module: &Module,
        state: &State,
        message: Message,
        slices: Slices,
        span: Span,
    ) -> Result<Self, Failure> {
        Self::make(module, &module.profiled()?.ready, state, message, slices, Some(span))
    }

    fn make(
        module: &Module,
        ready: &InstancePre<Host>,
        state: &State,
        message: Message,
        slices: Slices,
        span: Option<Span>,
    ) -> Result<Self, Failure> {
        let (rewritten, rules) = (module.rewritten(), module.rules());
        let stable_max = Bytes::from(rules.set().memory.stable).get();
        let page_map = rewritten.tracks_pages.then(|| page_map_memory(rules)).transpose()?;
        let tracking = match &page_map {
            Some(map) => {
                let charges = map.word(page_map::offset::CHARGES as usize);
                Tracking::Charged(charges.ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?)
            }
            None if os::current().finds_written() => Tracking::Off,
            None => Tracking::Free,
        };
        let Memories { heap, pages, stable, byte_map } =
            map(state, rewritten.address_width, rules, tracking)?;
        let claims = [heap.claim(), stable.claim()].map(Arc::clone);
        let memories = [heap, stable, byte_map].into_iter().chain(page_map);
        let host = Host {
            effects: Effects::new(&message),
            calls: message.reports_calls.then(SystemCalls::default),
            readings: readings(&message),
            divided: false,
            pages: pages.clone(),
            message,
            slices,
            has_heap: rewritten.has_heap,
            limits: StoreLimitsBuilder::new()
                .memory_size(usize::try_from(stable_max).unwrap_or(usize::MAX))
                .tables(1)
                .table_elements(MAX_TABLE_ELEMENTS)
                .build(),
            parts: None,
            recorder: None,
        };
        let mut store = Store::new(ready.module().engine(), host);
        store.limiter(|host| &mut host.limits);
        let tree = span.map(|_| tree_memory()).transpose()?;
        prepare(memories.chain(tree));
        if let Some(pages) = pages {
            handle_faults(&mut store, pages);
        }
        let instance = ready.instantiate(&mut store)?;

        let missing = |name: &str| wasmtime::Error::msg(format!("{name} is not exported"));
        let mut memory =
            |name: &str| instance.get_memory(&mut store, name).ok_or_else(|| missing(name));
        let (heap, stable, byte_map) = (memory("heap")?, memory("stable")?, memory("byte map")?);
        let page_map = rewritten.tracks_pages.then(|| memory(page_map::EXPORT)).transpose()?;
        let mut global =
            |name: &str| instance.get_global(&mut store, name).ok_or_else(|| missing(name));
        let [counter, accessible, writable] =
            [global("counter")?, global("accessible")?, global("writable")?];
        let parts = Parts { counter, heap, stable, byte_map, page_map, accessible, writable };
        let counted = (0..)
            .zip(&rewritten.stable_calls)
            .map(|(number, call): (u32, _)| {
                let (calls, bytes) = (format!("calls {number}"), format!("bytes {number}"));
                Ok((*call, global(&calls)?, global(&bytes)?))
            })
            .collect::<wasmtime::Result<_>>()?;
        let globals = rewritten
            .globals
            .iter()
            .map(|(index, _)| global(&format!("global {index}")))
            .collect::<Result<_, _>>()?;
        let recorder = span.map(|span| Tree::of(&instance, &mut store).map(|it| (span, it)));
        let recorder = recorder.transpose()?.map(|(span, tree)| Recorder::new(span, tree));
        let reusable = !rewritten.drops_segments && recorder.is_none();
        store.data_mut().parts = Some(parts);
        store.data_mut().recorder = recorder;
        let copied_ahead = false;
        let mut live =
            Self { store, instance, parts, counted, globals, reusable, copied_ahead, claims };
        live.set_globals(&state.globals)?;
        Ok(live)
    }

    /// Prepares the instance for the next message.
    pub fn begin(&mut self, message: Message, slices: Slices) {
        let host = self.store.data_mut();
        host.effects = Effects::new(&message);
        host.calls = message.reports_calls.then(SystemCalls::default);
        host.readings = readings(&message);
        host.divided = false;
        host.message = message;
        host.slices = slices;
    }

    /// Claims what tracking the pages of the next message needs.
    ///
    /// # Errors
    ///
    /// If the system allows this process no more mappings.
    pub fn claim_pages(&self) -> io::Result<()> {
        match &self.store.data().pages {
            Some(pages) => Ok(pages.claim()?),
            None => Ok(()),
        }
    }

    /// Copies the heap before a message that writes to most of its pages.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn copy_ahead(&mut self) -> io::Result<()> {
        let pages = self.store.data().pages.clone();
        let heap = self.parts.heap.data_mut(&mut self.store);
        if heap.len() > MAX_COPIED_AHEAD {
            return Ok(());
        }
        self.copied_ahead = true;
        if let Some(pages) = pages {
            pages.suspend()?;
        }
        os::current().copy_ahead(heap);
        Ok(())
    }

    /// Calls a function.
    ///
    /// # Errors
    ///
    /// Any error that ended the call.
    pub fn call(&mut self, entry: Entry<'_>) -> wasmtime::Result<()> {
        self.count_from_start()?;
        match entry {
            Entry::Export(export) => {
                let function = self.instance.get_typed_func::<(), ()>(&mut self.store, export)?;
                function.call(&mut self.store, ())
            }
            Entry::Callback(closure) => self.call_back(closure),
        }
    }

    /// Calls a function that returns the address of a text in the heap, and returns the text, which
    /// a zero byte ends. `None` if there is no such function.
    pub fn text(&mut self, export: &str) -> Option<Result<String, TextError>> {
        self.instance.get_func(&mut self.store, export)?;
        Some(self.text_at(export))
    }

    fn text_at(&mut self, export: &str) -> Result<String, TextError> {
        let failed =
            |error: wasmtime::Error| TextError::Failed(Fault::from_engine(error).to_string());
        self.count_from_start().map_err(failed)?;
        let (instance, store) = (self.instance, &mut self.store);
        let address = match store.data().message.wasm64 {
            true => {
                let function = instance.get_typed_func::<(), i64>(&mut *store, export);
                let function = function.map_err(|_| TextError::Type)?;
                function.call(store, ()).map_err(failed)?.cast_unsigned()
            }
            false => {
                let function = instance.get_typed_func::<(), i32>(&mut *store, export);
                let function = function.map_err(|_| TextError::Type)?;
                function.call(store, ()).map_err(failed)?.cast_unsigned().into()
            }
        };
        if let Some(pages) = &self.store.data().pages {
            pages.suspend().map_err(|error| TextError::Failed(error.to_string()))?;
        }
        let text = usize::try_from(address).ok().and_then(|address| self.heap().get(address..));
        let text = text.ok_or(TextError::Outside(address))?;
        let end = text.iter().position(|byte| *byte == 0).ok_or(TextError::Endless(address))?;
        let text = std::str::from_utf8(&text[..end]).map_err(|_| TextError::Encoding(address))?;
        Ok(text.to_owned())
    }

    /// Sets counters and prices as they are at the start of a message.
    fn count_from_start(&mut self) -> wasmtime::Result<()> {
        let host = self.store.data();
        let first = host.slices.first();
        let (mode, rules) = (host.message.mode, host.message.rules);
        self.set_touch_prices(mode.touch_prices(rules));
        self.set(self.parts.counter, first)?;
        allow_stable_pages(&mut self.store, &self.parts)?;
        for (_, calls, bytes) in &self.counted {
            for global in [calls, bytes] {
                global.set(&mut self.store, Val::I64(0))?;
            }
        }
        if let Some(tree) = self.store.data().recorder.as_ref().map(Recorder::tree) {
            tree.counter_moved(&mut self.store, 0, first)?;
        }
        Ok(())
    }

    fn call_back(&mut self, closure: Closure) -> wasmtime::Result<()> {
        let Closure { function, environment } = closure;
        let invalid = |words: &str| wasmtime::Error::from(Fault::Contract(words.to_owned()));
        let table = self
            .instance
            .get_table(&mut self.store, TABLE)
            .ok_or_else(|| invalid("table not found"))?;
        let function =
            table.get(&mut self.store, function.into()).ok_or(Fault::FunctionNotFound(function))?;
        let function = function.as_func().ok_or_else(|| invalid("not a function reference"))?;
        let function =
            function.ok_or_else(|| invalid("unexpected null function reference"))?.to_owned();
        const SIGNATURE: &str = "function invocation does not match its signature";
        match self.store.data().message.wasm64 {
            true => {
                let typed = function.typed::<i64, ()>(&self.store);
                let typed = typed.map_err(|_| invalid(SIGNATURE))?;
                typed.call(&mut self.store, environment.cast_signed())
            }
            false => {
                let typed = function.typed::<i32, ()>(&self.store);
                let typed = typed.map_err(|_| invalid(SIGNATURE))?;
                typed.call(&mut self.store, (environment as u32).cast_signed())
            }
        }
    }

    fn set_touch_prices(&mut self, prices: TouchPrices) {
        use page_map::offset::{MARKS, TOUCH_PRICE, TOUCHED, WRITE_PRICE, WRITTEN};
        if let Some(pages) = &self.store.data().pages {
            pages.begin(prices);
        }
        if let Some(page_map) = self.parts.page_map {
            let words = &mut page_map.data_mut(&mut self.store)[..MARKS as usize];
            let parts = [
                (TOUCHED, 0),
                (WRITTEN, 0),
                (TOUCH_PRICE, prices.touched),
                (WRITE_PRICE, prices.written.unwrap_or(0)),
            ];
            for (offset, value) in parts {
                words[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
            }
        }
    }

    /// Returns the call tree of the message, if it was profiled. `failed` is true if the message
    /// was cut short.
    ///
    /// # Errors
    ///
    /// If the span was not found, or the sum differs from the counter.
    pub fn recorded(&mut self, failed: bool) -> Option<Result<CallTree, ProfileError>> {
        if failed && self.parts.page_map.is_some() {
            // Settles pages touched since a function was last entered or left.
            let settle = profiled::export::SETTLE_PAGES;
            let settle = self.instance.get_typed_func::<(), ()>(&mut self.store, settle);
            let settled = settle.and_then(|settle| settle.call(&mut self.store, ()));
            debug_assert!(settled.is_ok(), "{settled:?}");
        }
        let recorder = self.store.data_mut().recorder.take()?;
        let counter = self.counter();
        let used = self.store.data().slices.used(counter);
        Some(recorder.finish(&mut self.store, counter, used, failed))
    }

    fn set(&mut self, global: Global, value: i64) -> wasmtime::Result<()> {
        global.set(&mut self.store, Val::I64(value))
    }

    fn number(&mut self, global: Global) -> i64 {
        global.get(&mut self.store).i64().unwrap_or(0)
    }

    /// The counter, with all charges for pages subtracted.
    pub fn counter(&mut self) -> i64 {
        let counter = self.number(self.parts.counter);
        match &self.store.data().pages {
            Some(pages) => counter.saturating_sub(pages.pending()),
            None => counter,
        }
    }

    /// Page charges of the message, without those made at its end.
    pub fn page_charges(&mut self) -> PageCharges {
        page_charges(&mut self.store, &self.parts)
    }

    /// Readings of the counter, if they were requested.
    pub fn take_readings(&mut self) -> Vec<Reading> {
        self.store.data_mut().readings.take().unwrap_or_default()
    }

    /// Takes the printed texts.
    pub fn take_printed(&mut self) -> Printed {
        std::mem::take(&mut self.store.data_mut().effects.printed)
    }

    /// Stable memory calls of the message.
    pub fn stable_calls(&mut self) -> SystemCalls {
        let store = &mut self.store;
        let mut counted = SystemCalls::default();
        for (call, calls, bytes) in &self.counted {
            let mut number = |global: &Global| global.get(&mut *store).i64().unwrap_or(0);
            let (calls, bytes) = (number(calls).cast_unsigned(), number(bytes).cast_unsigned());
            counted.add(*call, CallCount { calls, bytes: Bytes(bytes) });
        }
        counted
    }

    /// The message and its effects other than memory changes.
    pub fn host(&self) -> &Host {
        self.store.data()
    }

    /// The heap.
    pub fn heap(&self) -> &[u8] {
        self.parts.heap.data(&self.store)
    }

    /// Size of stable memory in bytes.
    pub fn stable_size(&self) -> usize {
        self.parts.stable.data_size(&self.store)
    }

    /// Pages of the heap that the message may have written.
    fn written_heap(&mut self) -> io::Result<Vec<Pages>> {
        let copied_ahead = std::mem::take(&mut self.copied_ahead);
        let heap = self.heap();
        let Some(pages) = &self.store.data().pages else {
            return Ok(os::current().written(heap));
        };
        let ranges = pages.written_ranges()?;
        if copied_ahead {
            return Ok(std::iter::once(0..heap.len() / PAGE).collect());
        }
        const PER_WASM_PAGE: usize = WASM_PAGE as usize / PAGE;
        let accessible: Vec<Pages> = ranges
            .iter()
            .map(|range| range.start * PER_WASM_PAGE..range.end * PER_WASM_PAGE)
            .collect();
        // Each range costs a system call, so many ranges are merged into one.
        let gap = if accessible.len() > MAX_SEPARATE_SCANS { usize::MAX } else { 0 };
        let mut written = Vec::new();
        for range in joined(&accessible, gap) {
            for part in os::current().written(&heap[range.start * PAGE..range.end * PAGE]) {
                written.push(range.start + part.start..range.start + part.end);
            }
        }
        // Ranges that were merged, or a system without support, include inaccessible pages.
        Ok(common(&written, &accessible))
    }

    /// Returns the pages that the message touched, and clears the marks for the next message.
    ///
    /// # Errors
    ///
    /// If a system call failed while the message ran.
    pub fn touched(&mut self) -> io::Result<Touched> {
        let mut touched = Touched { heap: self.written_heap()?, ..Touched::default() };
        (touched.stable, touched.stable_accessed) = take_marks(&mut self.store, &self.parts);
        Ok(touched)
    }

    /// Commits the pages `changed` of the heap and those of stable memory to the state, with globals
    /// and effects. Returns true if the instance can be reused.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. The state is then torn.
    pub fn commit(
        &mut self,
        state: &mut State,
        touched: &Touched,
        changed: &[Pages],
    ) -> io::Result<bool> {
        // Until both memories are committed.
        state.torn = true;
        let heap = state.heap.store(self.parts.heap.data(&self.store), changed)?;
        let stable = state.stable.store(self.parts.stable.data(&self.store), &touched.stable)?;
        let globals = &self.globals;
        let store = &mut self.store;
        state.globals = globals
            .iter()
            .filter_map(|global| GlobalValue::read(&global.get(&mut *store)))
            .collect();
        let effects = &self.store.data().effects;
        state.timer = effects.timer;
        if let Some(data) = &effects.certified_data {
            state.certified_data.clone_from(data);
        }
        state.torn = false;
        // What follows concerns this instance only: if it fails, the instance is not reused.
        let pages = self.store.data().pages.clone();
        let rights = if pages.is_some() { Rights::None } else { Rights::ReadWrite };
        let memories = [
            (self.parts.heap, &touched.heap, &state.heap, heap, rights),
            (self.parts.stable, &touched.stable, &state.stable, stable, Rights::ReadWrite),
        ];
        let mut reusable = self.reusable;
        for ((memory, written, image, stored, rights), claim) in
            memories.into_iter().zip(&self.claims)
        {
            let memory = memory.data_mut(&mut self.store);
            let shown = image.show_stored(&stored, memory, written, rights, claim);
            reusable &= shown == MappingState::Current;
        }
        Ok(reusable && pages.is_none_or(|pages| pages.reset().is_ok()))
    }

    /// Undoes the changes of the message. Returns true if the instance can be reused.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn undo(&mut self, state: &State, touched: &Touched) -> io::Result<bool> {
        let grown =
            self.heap().len() != state.heap.size() || self.stable_size() != state.stable.size();
        // A divided message no longer knows which pages its first part has written.
        let known = self.reusable && !self.host().divided;
        if !known || grown || state.globals.len() != self.globals.len() {
            return Ok(false);
        }
        let memories: [(Memory, &[Pages], &Image); 2] = [
            (self.parts.heap, &touched.heap, &state.heap),
            (self.parts.stable, &touched.stable, &state.stable),
        ];
        for (memory, pages, image) in memories {
            os::current().undo(memory.data_mut(&mut self.store), pages, image)?;
        }
        if let Some(pages) = &self.store.data().pages {
            pages.reset()?;
        }
        Ok(self.set_globals(&state.globals).is_ok())
    }

    fn set_globals(&mut self, values: &[GlobalValue]) -> wasmtime::Result<()> {
        for (global, value) in self.globals.iter().zip(values) {
            global.set(&mut self.store, value.value())?;
        }
        Ok(())
    }
}

/// An empty list, if readings are reported.
fn readings(message: &Message) -> Option<Vec<Reading>> {
    (message.readings != Readings::Ignored).then(Vec::new)
}

/// The memory that records which Wasm pages were touched.
fn page_map_memory(rules: Rules) -> io::Result<Mapping> {
    let mut page_map = Mapping::reserve(RESERVED, GUARD)?;
    page_map.grow((page_map::size(rules.set().memory.stable) * WASM_PAGE) as usize)?;
    Ok(page_map)
}

/// Installs the handler that charges for heap pages when the instance's code faults on them.
#[expect(unsafe_code, reason = "a signal handler is set")]
fn handle_faults(store: &mut Store<Host>, pages: Arc<PageTracker>) {
    let os = os::current();
    // SAFETY: the handler takes no lock, allocates nothing and does not panic.
    unsafe {
        store.set_signal_handler(move |signal, info, context| {
            faulted(signal, info).is_some_and(|address| pages.handle(address, os.access(context)))
        });
    }
}

/// The memory of a call tree.
fn tree_memory() -> io::Result<Mapping> {
    let mut tree = Mapping::reserve(RESERVED, GUARD)?;
    tree.grow((profiled::PAGES * WASM_PAGE) as usize)?;
    Ok(tree)
}

/// The use of page faults in the heap.
enum Tracking {
    /// The system tells which pages were written.
    Off,
    /// To know which pages were written.
    Free,
    /// To charge for pages.
    Charged(Word),
}

/// The memories of an instance.
struct Memories {
    heap: Mapping,
    /// The tracker of the heap, unless tracking is off.
    pages: Option<Arc<PageTracker>>,
    stable: Mapping,
    byte_map: Mapping,
}

fn map(
    state: &State,
    width: AddressWidth,
    rules: Rules,
    tracking: Tracking,
) -> io::Result<Memories> {
    let limits = &rules.set().memory;
    let stable_max = Bytes::from(limits.stable).get();
    let size = |bytes: u64| {
        usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))
    };
    let heap_max = match width {
        AddressWidth::Bits32 => RESERVED,
        AddressWidth::Bits64 => size(Bytes::from(limits.heap64).get())?,
    };
    let marks = size(stable_max / OS_PAGE)?;
    let mut byte_map = Mapping::reserve(marks.max(RESERVED), GUARD)?;
    byte_map.grow(marks)?;
    let tracked = |charges| state.heap.map_tracked(heap_max, GUARD, charges);
    let (heap, pages) = match tracking {
        Tracking::Off => (state.heap.map(heap_max, GUARD)?, None),
        Tracking::Free => tracked(None).map(|(heap, pages)| (heap, Some(pages)))?,
        Tracking::Charged(charges) => {
            tracked(Some(charges)).map(|(heap, pages)| (heap, Some(pages)))?
        }
    };
    Ok(Memories { heap, pages, stable: state.stable.map(size(stable_max)?, GUARD)?, byte_map })
}
