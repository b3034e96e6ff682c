//! A memory of a model, as far as it is not zero.

use std::collections::BTreeSet;

use super::content::{PAGE, Pages};

pub const WASM_PAGE: u64 = 65_536;

/// A memory of which pages that are not zero are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub pages: Pages,
    /// In pages of WebAssembly.
    pub size: u64,
}

impl Memory {
    pub fn holds(&self, at: u64, length: u64) -> bool {
        at.checked_add(length).is_some_and(|end| end <= self.size * WASM_PAGE)
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            let page = self.pages.entry(at / PAGE as u64).or_insert_with(|| vec![0; PAGE]);
            page[at as usize % PAGE] = *byte;
        }
        self.pages.retain(|_, page| page.iter().any(|byte| *byte != 0));
    }

    pub fn read(&self, at: u64, length: u64) -> Vec<u8> {
        let byte = |at: u64| {
            self.pages.get(&(at / PAGE as u64)).map_or(0, |page| page[at as usize % PAGE])
        };
        (at..at + length).map(byte).collect()
    }

    pub fn number(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.read(at, 8).try_into().expect("eight bytes"))
    }

    pub fn grow(&mut self, delta: u64, most: u64) -> u64 {
        let before = self.size;
        match before.checked_add(delta) {
            Some(after) if after <= most => self.size = after,
            _ => return u64::MAX,
        }
        before
    }
}

/// Heap pages whose content differs.
pub fn changed(before: &Memory, after: &Memory) -> u64 {
    let pages: BTreeSet<u64> = before.pages.keys().chain(after.pages.keys()).copied().collect();
    let differs = |page: &&u64| before.pages.get(page) != after.pages.get(page);
    pages.iter().filter(differs).count() as u64
}
