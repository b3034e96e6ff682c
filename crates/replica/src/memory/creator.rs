//! Hands prepared mappings to the engine when it instantiates a module.

use std::cell::RefCell;
use std::collections::VecDeque;

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::Mapping;

thread_local! {
    static PREPARED: RefCell<VecDeque<Mapping>> = const { RefCell::new(VecDeque::new()) };
}

/// Sets the memories that the next instantiation on this thread receives, in
/// the order in which the module defines them. The engine asks for memories in
/// that order and says no index.
pub fn prepare(mappings: impl IntoIterator<Item = Mapping>) {
    PREPARED.with_borrow_mut(|prepared| {
        prepared.clear();
        prepared.extend(mappings);
    });
}

/// The engine's source of memories: what [`prepare`] has laid ready.
#[derive(Debug)]
pub struct Creator;

// SAFETY: the engine gets a range that nobody else uses, reserved and guarded
// as it asks; a mapping with less is refused.
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        _ty: MemoryType,
        minimum: usize,
        _maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let mapping = PREPARED
            .with_borrow_mut(VecDeque::pop_front)
            .ok_or("a memory was created that was not prepared")?;
        if mapping.size() < minimum
            || mapping.reserved() < reserved.unwrap_or(0)
            || mapping.guard() < guard
        {
            return Err("the prepared memory is too small".to_owned());
        }
        Ok(Box::new(mapping))
    }
}

// SAFETY: the base never moves, and bytes below `byte_size` are accessible.
unsafe impl LinearMemory for Mapping {
    fn byte_size(&self) -> usize {
        self.size()
    }

    fn byte_capacity(&self) -> usize {
        self.reserved()
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        Ok(self.grow(size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        Mapping::as_ptr(self)
    }
}
