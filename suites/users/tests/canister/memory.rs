//! Stable memory on the heap.

use stablebench_suite_users::canister::floor::RawMemory;
use std::cell::RefCell;
use std::rc::Rc;

/// Stable memory of at most `limit` pages.
#[derive(Clone)]
pub struct HeapMemory {
    bytes: Rc<RefCell<Vec<u8>>>,
    limit: u64,
}

impl Default for HeapMemory {
    fn default() -> Self {
        Self { bytes: Rc::default(), limit: 1000 }
    }
}

impl RawMemory for HeapMemory {
    fn pages(&self) -> u64 {
        self.bytes.borrow().len() as u64 / 65536
    }

    fn grow(&mut self, pages: u64) -> bool {
        let pages = self.pages() + pages;
        let fits = pages <= self.limit;
        if fits {
            self.bytes.borrow_mut().resize(pages as usize * 65536, 0);
        }
        fits
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.bytes.borrow_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.bytes.borrow()[offset as usize..][..bytes.len()]);
    }
}
