//! A memory of a model. Other tests include this file too.

use std::collections::BTreeSet;
use std::ops::Range;

use super::content::{PAGE, Pages};

pub const WASM_PAGE: u64 = 65_536;

/// A memory; only pages that are not zero are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub pages: Pages,
    /// In WebAssembly pages.
    pub size: u64,
}

impl Memory {
    pub fn contains(&self, at: u64, length: u64) -> bool {
        at.checked_add(length).is_some_and(|end| end <= self.size * WASM_PAGE)
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        for (page, at, part) in parts(at, bytes.len() as u64) {
            let content = self.pages.entry(page).or_insert_with(|| vec![0; PAGE]);
            content[at..at + part.len()].copy_from_slice(&bytes[part]);
            if content.iter().all(|byte| *byte == 0) {
                self.pages.remove(&page);
            }
        }
    }

    pub fn read(&self, at: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        for (page, at, part) in parts(at, length) {
            if let Some(content) = self.pages.get(&page) {
                let size = part.len();
                bytes[part].copy_from_slice(&content[at..at + size]);
            }
        }
        bytes
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

/// Numbers of the pages whose content differs.
pub fn changed(before: &Memory, after: &Memory) -> Vec<u64> {
    let pages: BTreeSet<u64> = before.pages.keys().chain(after.pages.keys()).copied().collect();
    let differs = |page: &u64| before.pages.get(page) != after.pages.get(page);
    pages.into_iter().filter(differs).collect()
}

/// The parts of a range in each page: number of the page, offset in it, part of the range.
fn parts(at: u64, length: u64) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let end = at + length;
    (at / PAGE as u64..end.div_ceil(PAGE as u64)).map(move |page| {
        let (first, next) = (page * PAGE as u64, (page + 1) * PAGE as u64);
        let part = first.max(at)..next.min(end);
        let inside = (part.start - at) as usize..(part.end - at) as usize;
        (page, (part.start - first) as usize, inside)
    })
}
