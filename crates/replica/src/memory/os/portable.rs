//! Any POSIX system, whatever the size of its pages.
//!
//! Memories are mapped and protected in whole Wasm pages of 64 KiB, which are a multiple of the
//! pages of all supported machines. Smaller ranges are read from the file instead. The system is not
//! asked which pages were written: those of the Wasm pages that became writable
//! ([`touch`](super::super::touch)) are compared with the committed ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::super::mapping::{Rights, bytes_of, map_over, set_rights};
use super::super::pages::{PAGE, Pages};
use super::backend::{Committed, Os};
use crate::units::WASM_PAGE;

/// Pages of a Wasm page.
const UNIT: usize = WASM_PAGE as usize / PAGE;
/// Up to this number, ranges are mapped again; beyond it they are read, because systems limit the
/// number of mappings.
const MAX_MAPPED: usize = 64;

/// The backend for all other systems.
#[derive(Debug)]
pub struct Portable;

impl Os for Portable {
    fn anonymous(&self) -> io::Result<File> {
        tempfile::tempfile()
    }

    fn written(&self, memory: &[u8]) -> Vec<Pages> {
        std::iter::once(0..memory.len().div_ceil(PAGE)).collect()
    }

    fn show(
        &self,
        memory: &mut [u8],
        pages: Pages,
        file: &File,
        offset: u64,
        rights: Rights,
    ) -> io::Result<()> {
        let mut whole = pages.start.next_multiple_of(UNIT)..pages.end / UNIT * UNIT;
        if whole.is_empty() || !offset.is_multiple_of(WASM_PAGE) {
            whole = pages.end..pages.end;
        }
        let parts = [pages.start..whole.start, whole.end..pages.end];
        // Parts of Wasm pages are read into them, which another layer may have made inaccessible.
        let opens = rights == Rights::None && parts.iter().any(|part| !part.is_empty());
        let end = pages.end.next_multiple_of(UNIT).min(memory.len() / PAGE);
        let around = pages.start / UNIT * UNIT..end;
        if opens {
            set_rights(memory, around.clone(), Rights::ReadWrite)?;
        }
        for part in parts {
            let from = offset + (part.start * PAGE) as u64;
            file.read_exact_at(bytes_of(memory, part), from)?;
        }
        map_over(memory, whole, file, offset, rights)?;
        if opens {
            set_rights(memory, around, Rights::None)?;
        }
        Ok(())
    }

    fn undo(
        &self,
        memory: &mut [u8],
        written: &[Pages],
        committed: &dyn Committed,
    ) -> io::Result<()> {
        if written.len() <= MAX_MAPPED {
            return written.iter().try_for_each(|range| committed.restore(memory, range.clone()));
        }
        let mut buffer = Vec::new();
        for range in written {
            committed.read(range.clone(), &mut buffer)?;
            bytes_of(memory, range.clone()).copy_from_slice(&buffer);
        }
        Ok(())
    }
}
