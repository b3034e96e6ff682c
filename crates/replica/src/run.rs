//! Runs one function of a module on a canister's memory.
//!
//! ```text
//!   map the images → instantiate → set globals and counter → call
//!     → count changed pages → the new images, or nothing
//! ```

use std::fmt;
use std::io;

use wasmparser::ValType;
use wasmtime::{Extern, Global, Instance, Store, StoreLimitsBuilder, Val};

use crate::engine::{GUARD, RESERVED, STACK};
use crate::execution::{MemoryUse, StableCalls};
use crate::fault::Fault;
use crate::limits;
use crate::memory::{Image, Mapping, PAGE, prepare, written_pages};
use crate::module::Module;
use crate::system_api::host::{Host, Parts};
use crate::system_api::message::{Effects, Message};
use crate::system_api::names::AddressWidth;
use crate::system_api::slices::Slices;
use crate::units::{Bytes, Cycles, Instructions, OS_PAGE, OsPages, WASM_PAGE, WasmPages};

/// What a canister keeps between messages.
#[derive(Clone, Debug)]
pub struct State {
    /// The heap.
    pub heap: Image,
    /// Stable memory.
    pub stable: Image,
    /// Mutable globals, in the order of the module; empty before the first run,
    /// when they have the values that the module gives them.
    pub globals: Vec<GlobalValue>,
    /// Certified data.
    pub certified_data: Vec<u8>,
    /// The global timer, 0 when not set.
    pub timer: u64,
}

impl State {
    /// What a canister without a module keeps.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn empty() -> io::Result<Self> {
        Ok(Self {
            heap: Image::new()?,
            stable: Image::new()?,
            globals: Vec::new(),
            certified_data: Vec::new(),
            timer: 0,
        })
    }
}

/// The value of a mutable global, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum GlobalValue {
    /// `i32`
    I32(i32),
    /// `i64`
    I64(i64),
    /// `f32`
    F32(u32),
    /// `f64`
    F64(u64),
    /// `v128`
    V128(u128),
}

impl GlobalValue {
    /// The value, unless it is a reference.
    pub fn read(value: &Val) -> Option<Self> {
        Some(match value {
            Val::I32(value) => Self::I32(*value),
            Val::I64(value) => Self::I64(*value),
            Val::F32(bits) => Self::F32(*bits),
            Val::F64(bits) => Self::F64(*bits),
            Val::V128(bits) => Self::V128(bits.as_u128()),
            _ => return None,
        })
    }

    /// Its type.
    pub fn ty(self) -> ValType {
        match self {
            Self::I32(_) => ValType::I32,
            Self::I64(_) => ValType::I64,
            Self::F32(_) => ValType::F32,
            Self::F64(_) => ValType::F64,
            Self::V128(_) => ValType::V128,
        }
    }

    /// The value as the engine has it.
    pub fn value(self) -> Val {
        match self {
            Self::I32(value) => Val::I32(value),
            Self::I64(value) => Val::I64(value),
            Self::F32(bits) => Val::F32(bits),
            Self::F64(bits) => Val::F64(bits),
            Self::V128(bits) => Val::V128(bits.into()),
        }
    }
}

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
    /// Pages touched.
    pub memory: MemoryUse,
    /// Calls that read and wrote stable memory.
    pub stable_calls: StableCalls,
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
pub struct Changes {
    store: Store<Host>,
    parts: Parts,
    heap: Vec<usize>,
    stable: Vec<usize>,
    globals: Vec<GlobalValue>,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

impl Changes {
    /// Makes the changes to the state on which the message ran.
    ///
    /// # Errors
    ///
    /// If the host has no memory left; the state is then not to be used.
    pub fn commit(self, state: &mut State) -> io::Result<()> {
        state.heap.commit(self.parts.heap.data(&self.store), &self.heap)?;
        state.stable.commit(self.parts.stable.data(&self.store), &self.stable)?;
        state.globals = self.globals;
        let effects = &self.store.data().effects;
        state.timer = effects.timer;
        if let Some(data) = &effects.certified_data {
            state.certified_data.clone_from(data);
        }
        Ok(())
    }
}

/// Runs the exported function `export` of `module`, at most `total` instructions.
///
/// # Errors
///
/// If the host has no memory left. What the canister does wrong is in
/// [`Run::result`].
pub fn run(
    module: &Module,
    state: &State,
    message: Message,
    export: &str,
    total: Instructions,
) -> io::Result<Run> {
    // Compiled code runs on this thread's stack, and running out of that would
    // end the process instead of the message.
    stacker::maybe_grow(STACK, 2 * STACK, || run_here(module, state, message, export, total))
}

fn run_here(
    module: &Module,
    state: &State,
    message: Message,
    export: &str,
    total: Instructions,
) -> io::Result<Run> {
    let (mode, timer) = (message.mode, message.timer);
    let (limit, slice) = mode.instructions();
    let total = total.min(limit);
    let host = Host {
        effects: Effects::new(timer),
        slices: Slices::new(total, slice),
        has_heap: module.rewritten().has_heap,
        limits: StoreLimitsBuilder::new()
            .memory_size(
                usize::try_from(Bytes::from(limits::MAX_STABLE).get()).unwrap_or(usize::MAX),
            )
            .tables(1)
            .table_elements(limits::MAX_TABLE_ELEMENTS)
            .build(),
        parts: None,
        message,
    };
    let mut store = Store::new(module.ready().module().engine(), host);
    store.limiter(|host| &mut host.limits);

    prepare(map(state, module.rewritten().address_width)?);
    let mut live = match Live::new(&mut store, module, state) {
        Ok(live) => live,
        Err(error) => {
            return Ok(Run {
                result: Err(Fault::Engine(format!("Failed to instantiate module: {error:#}"))),
                effects: store.into_data().effects,
                instructions: Instructions(0),
                charge: Instructions(0),
                memory: MemoryUse::default(),
                stable_calls: StableCalls::default(),
                changes: None,
            });
        }
    };
    let result = live.call(&mut store, export).map_err(Fault::from_engine);
    live.finish(store, module, &state.heap, result)
}

/// The memories of a message: heap, stable memory, byte map.
fn map(state: &State, width: AddressWidth) -> io::Result<[Mapping; 3]> {
    let stable_max = Bytes::from(limits::MAX_STABLE).get();
    let size = |bytes: u64| {
        usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))
    };
    let heap_max = match width {
        AddressWidth::Bits32 => RESERVED,
        AddressWidth::Bits64 => size(Bytes::from(limits::MAX_HEAP64).get())?,
    };
    let byte_map = size(stable_max / OS_PAGE)?;
    let mut marks = Image::new()?.map(byte_map.max(RESERVED), GUARD)?;
    marks.grow(byte_map)?;
    Ok([state.heap.map(heap_max, GUARD)?, state.stable.map(size(stable_max)?, GUARD)?, marks])
}

/// An instantiated module.
struct Live {
    instance: Instance,
    parts: Parts,
    counted: Counted,
}

/// Globals that count stable calls; each instance begins with zeros.
struct Counted {
    reads: Global,
    bytes_read: Global,
    writes: Global,
    bytes_written: Global,
}

impl Counted {
    fn read(&self, store: &mut Store<Host>) -> StableCalls {
        let mut number =
            |global: &Global| global.get(&mut *store).i64().unwrap_or(0).cast_unsigned();
        StableCalls {
            reads: number(&self.reads),
            bytes_read: Bytes(number(&self.bytes_read)),
            writes: number(&self.writes),
            bytes_written: Bytes(number(&self.bytes_written)),
        }
    }
}

impl Live {
    fn new(store: &mut Store<Host>, module: &Module, state: &State) -> wasmtime::Result<Self> {
        let instance = module.ready().instantiate(&mut *store)?;
        let missing = |name: &str| wasmtime::Error::msg(format!("{name} is not exported"));
        let mut memory =
            |name: &str| instance.get_memory(&mut *store, name).ok_or_else(|| missing(name));
        let (heap, stable, byte_map) = (memory("heap")?, memory("stable")?, memory("byte map")?);
        let mut global =
            |name: &str| instance.get_global(&mut *store, name).ok_or_else(|| missing(name));
        let counter = global("counter")?;
        let (accessible, writable) = (global("accessible")?, global("writable")?);
        let counted = Counted {
            reads: global("stable reads")?,
            bytes_read: global("stable bytes read")?,
            writes: global("stable writes")?,
            bytes_written: global("stable bytes written")?,
        };
        let parts = Parts { counter, heap, stable, byte_map };

        for ((index, _), value) in module.rewritten().globals.iter().zip(&state.globals) {
            let name = format!("global {index}");
            let global = instance.get_global(&mut *store, &name).ok_or_else(|| missing(&name))?;
            global.set(&mut *store, value.value())?;
        }
        let first = store.data().slices.first();
        counter.set(&mut *store, Val::I64(first))?;
        let pages = store.data().message.mode.stable_pages().get().cast_signed();
        accessible.set(&mut *store, Val::I64(pages))?;
        writable.set(&mut *store, Val::I64(pages))?;
        store.data_mut().parts = Some(parts);
        Ok(Self { instance, parts, counted })
    }

    fn call(&mut self, store: &mut Store<Host>, export: &str) -> wasmtime::Result<()> {
        self.instance.get_typed_func::<(), ()>(&mut *store, export)?.call(store, ())
    }

    fn finish(
        &mut self,
        mut store: Store<Host>,
        module: &Module,
        before: &Image,
        result: Result<(), Fault>,
    ) -> io::Result<Run> {
        let counter = self.parts.counter.get(&mut store).i64().unwrap_or(0);
        let stable_calls = self.counted.read(&mut store);
        let mode = store.data().message.mode;
        let heap = self.parts.heap.data(&store);
        let stable = self.parts.stable.data(&store);
        let marks = &self.parts.byte_map.data(&store)[..stable.len().div_ceil(PAGE)];
        let marked = |bit: u8| -> Vec<usize> {
            (0..).zip(marks).filter(|(_, mark)| **mark & bit != 0).map(|(page, _)| page).collect()
        };
        let (stable_written, stable_accessed) = (marked(1), marked(2).len());

        // What is not kept is not compared and not charged.
        let (written, changed) = if mode.keeps_changes() {
            let written = written_pages(heap);
            let changed = changed_pages(before, heap, &written)?;
            (written.len(), changed)
        } else {
            (0, Vec::new())
        };
        let factor = match module.rewritten().address_width {
            AddressWidth::Bits32 => 1,
            AddressWidth::Bits64 => limits::WASM64_PAGE_FACTOR,
        };
        let for_pages = limits::HEAP_PAGE_CHANGED_COST.get() * factor * changed.len() as u64;
        let slices = store.data().slices;
        let memory = MemoryUse {
            heap_written: OsPages(written as u64),
            heap_changed: OsPages(changed.len() as u64),
            stable_written: OsPages(stable_written.len() as u64),
            stable_accessed: OsPages(stable_accessed as u64),
            heap: WasmPages(heap.len() as u64 / WASM_PAGE),
            stable: WasmPages(stable.len() as u64 / WASM_PAGE),
        };
        let effects = store.data().effects.clone();
        let keep = result.is_ok() && mode.keeps_changes();
        let changes = keep.then(|| Changes {
            globals: self.globals(&mut store, module),
            parts: self.parts,
            heap: changed,
            stable: stable_written,
            store,
        });
        Ok(Run {
            result,
            instructions: slices.used(counter),
            charge: slices.used_within_limit(counter.saturating_sub_unsigned(for_pages)),
            memory,
            stable_calls,
            changes,
            effects,
        })
    }

    fn globals(&self, store: &mut Store<Host>, module: &Module) -> Vec<GlobalValue> {
        let globals = &module.rewritten().globals;
        globals
            .iter()
            .filter_map(|(index, _)| {
                match self.instance.get_export(&mut *store, &format!("global {index}")) {
                    Some(Extern::Global(global)) => GlobalValue::read(&global.get(&mut *store)),
                    _ => None,
                }
            })
            .collect()
    }
}

/// Those of `pages` whose content differs from the image's.
fn changed_pages(before: &Image, after: &[u8], pages: &[usize]) -> io::Result<Vec<usize>> {
    const ZERO: [u8; PAGE] = [0; PAGE];
    let before = before.read()?;
    let before = before.bytes();
    let page = |bytes: &[u8], page: usize| -> bool {
        // Beyond the image a page was zero.
        let old = before.get(page * PAGE..(page + 1) * PAGE).unwrap_or(&ZERO);
        bytes[page * PAGE..(page + 1) * PAGE] != *old
    };
    Ok(pages.iter().copied().filter(|index| page(after, *index)).collect())
}
