//! State of a canister between messages.

use std::collections::BTreeSet;
use std::io;

use crate::globals::GlobalValue;
use crate::memory::pages::push;
use crate::memory::{Image, PAGE};
use crate::module::Module;
use crate::units::WASM_PAGE;

/// State of a canister between messages.
#[derive(Clone, Debug)]
pub struct State {
    /// The heap.
    pub heap: Image,
    /// Stable memory.
    pub stable: Image,
    /// Mutable globals, in the order of the module; empty before the first message, when they
    /// have their initial values.
    pub globals: Vec<GlobalValue>,
    /// Certified data.
    pub certified_data: Vec<u8>,
    /// The global timer, 0 when not set.
    pub timer: u64,
    /// True if a message was committed only in part, so that the memories are inconsistent.
    pub torn: bool,
}

impl State {
    /// The state of a canister without a module.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn empty() -> io::Result<Self> {
        Ok(Self {
            heap: Image::new(),
            stable: Image::new(),
            globals: Vec::new(),
            certified_data: Vec::new(),
            timer: 0,
            torn: false,
        })
    }

    /// The state of a canister before the first function of `module` runs.
    pub fn initial(module: &Module, stable: Image) -> io::Result<Self> {
        let rewritten = module.rewritten();
        let mut heap = Image::new();
        let size = usize::try_from(rewritten.heap_pages * WASM_PAGE)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut mapping = heap.map(size, 0)?;
        mapping.grow(size)?;
        let mut pages = BTreeSet::new();
        for (address, bytes) in &rewritten.data {
            let outside = || io::Error::new(io::ErrorKind::InvalidData, "data outside the heap");
            let start = usize::try_from(*address).map_err(|_| outside())?;
            let end = start.checked_add(bytes.len()).ok_or_else(outside)?;
            mapping.bytes_mut().get_mut(start..end).ok_or_else(outside)?.copy_from_slice(bytes);
            pages.extend(start / PAGE..end.div_ceil(PAGE));
        }
        let mut ranges = Vec::new();
        pages.into_iter().for_each(|page| push(&mut ranges, page));
        heap.store(mapping.bytes(), &ranges)?;
        Ok(Self { heap, stable, ..Self::empty()? })
    }

    /// Replaces the heap by one that an upgrade keeps. A heap smaller than the first size of the
    /// module grows to it.
    pub fn keep_heap(&mut self, mut heap: Image) -> io::Result<()> {
        let size = self.heap.size();
        if heap.size() < size {
            let mut mapping = heap.map(size, 0)?;
            mapping.grow(size)?;
            heap.store(mapping.bytes(), &[])?;
        }
        self.heap = heap;
        Ok(())
    }
}
