//! Memories for tests, and tables in them.

use ic_stable_structures::{Memory, VectorMemory};
use stablebench_cuckoo::{Builder, Cuckoo, Error, Plan};
use std::cell::Cell;
use std::rc::Rc;

/// A table of `u64` keys, and half of each as its value.
pub type Table<M = VectorMemory> = Cuckoo<u64, u32, M>;

pub fn items(keys: impl IntoIterator<Item = u64>) -> impl Iterator<Item = (u64, u32)> {
    keys.into_iter().map(|key| (key, (key / 2) as u32))
}

pub fn build(keys: impl IntoIterator<Item = u64>, plan: Plan) -> Result<Table, Error> {
    let mut builder = Builder::new(VectorMemory::default(), plan)?;
    builder.extend(items(keys))?;
    Ok(builder.finish())
}

/// All bytes of a memory.
pub fn bytes(memory: &VectorMemory) -> Vec<u8> {
    memory.borrow().clone()
}

/// A memory with these bytes.
pub fn memory(bytes: Vec<u8>) -> VectorMemory {
    Rc::new(bytes.into())
}

/// A memory that counts its reads and does not grow past a number of pages.
#[derive(Clone, Default)]
pub struct Counted {
    pub memory: VectorMemory,
    pub reads: Rc<Cell<u64>>,
    pub most: Option<u64>,
}

impl Memory for Counted {
    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn grow(&self, pages: u64) -> i64 {
        match self.most {
            Some(most) if self.size() + pages > most => -1,
            _ => self.memory.grow(pages),
        }
    }

    fn read(&self, offset: u64, dst: &mut [u8]) {
        self.reads.set(self.reads.get() + 1);
        self.memory.read(offset, dst);
    }

    fn write(&self, offset: u64, src: &[u8]) {
        self.memory.write(offset, src);
    }
}
