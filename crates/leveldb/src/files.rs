//! Files in a stable memory: what is written is added to the end of a file, and read from
//! anywhere.
//!
//! ```text
//! page 0          header     magic "FILES\0\0\1" ↕ 8   entries in use or used before ↕ 4
//! page 1 … 16     directory  16 384 entries of 64 bytes
//! page 17 … 80    links      2^20 of 4 bytes, one a chunk
//! page 81 …       chunks     of a page each
//!
//! entry           bytes of the name, 0 where it is free ↕ 1   name ↕ 47
//!                 bytes of the file ↕ 8   its first chunk + 1, or 0 ↕ 4   0 ↕ 4
//! link            0: the chunk is free   2^32 − 1: the last of its file   else the next + 1
//! ```
//!
//! A page is a wasm page (64 KiB), numbers are little-endian. The heap has a copy of the
//! directory and of the links, which is read once; every change is written through. A new
//! chunk is the free one that is nearest to the beginning, or else the memory grows by one:
//! where a file is put follows from what the memory holds, not from when that was read.
//!
//! Nothing is written twice, and there is no journal: a message that fails is undone by the
//! system, the heap's copy with it.

use crate::{Error, Result};
use ic_stable_structures::Memory;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a chunk.
pub const CHUNK_BYTES: u64 = 65536;

const MAGIC: [u8; 8] = *b"FILES\0\0\x01";
const ENTRIES: u32 = 16_384;
const ENTRY_BYTES: u64 = 64;
const NAME_BYTES: usize = 47;
const DIRECTORY: u64 = CHUNK_BYTES;
const LINKS: u64 = 17 * CHUNK_BYTES;
const MOST_CHUNKS: u32 = 1 << 20;
const CHUNKS_FROM_PAGE: u64 = 81;
const LAST: u32 = u32::MAX;

/// A file, until it is removed; its number is not used again while the heap lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(u64);

#[derive(Clone, Debug)]
struct File {
    entry: u32,
    bytes: u64,
    chunks: Vec<u32>,
}

/// Files in a memory.
#[derive(Debug)]
pub struct Files<M> {
    memory: M,
    names: BTreeMap<String, FileId>,
    files: BTreeMap<FileId, File>,
    next_id: u64,
    /// Entries in use, or that were.
    entries: u32,
    free_entries: BTreeSet<u32>,
    chunks: u32,
    free_chunks: BTreeSet<u32>,
}

impl<M: Memory> Files<M> {
    /// The files that a memory holds; none where it is empty.
    ///
    /// # Errors
    ///
    /// Where it holds something else, or cannot grow.
    pub fn open(memory: M) -> Result<Self> {
        let mut files = Self {
            memory,
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            next_id: 0,
            entries: 0,
            free_entries: BTreeSet::new(),
            chunks: 0,
            free_chunks: BTreeSet::new(),
        };
        if files.memory.size() == 0 {
            if files.memory.grow(CHUNKS_FROM_PAGE) < 0 {
                return Err(Error::OutOfMemory { pages: CHUNKS_FROM_PAGE });
            }
            files.memory.write(0, &MAGIC);
        } else {
            files.read_directory()?;
        }
        Ok(files)
    }

    fn read_directory(&mut self) -> Result<()> {
        let mut header = [0; 12];
        self.memory.read(0, &mut header);
        if header[..8] != MAGIC || self.memory.size() < CHUNKS_FROM_PAGE {
            return Err(Error::Foreign);
        }
        self.entries = number(&header[8..]);
        self.chunks = (self.memory.size() - CHUNKS_FROM_PAGE).min(MOST_CHUNKS.into()) as u32;
        let mut links = vec![0; self.chunks as usize * 4];
        self.memory.read(LINKS, &mut links);
        let link = |chunk: u32| number(links.get(chunk as usize * 4..).unwrap_or_default());
        self.free_chunks = (0..self.chunks).filter(|chunk| link(*chunk) == 0).collect();

        let mut directory = vec![0; (u64::from(self.entries) * ENTRY_BYTES) as usize];
        self.memory.read(DIRECTORY, &mut directory);
        for (place, entry) in (0..).zip(directory.chunks_exact(ENTRY_BYTES as usize)) {
            let length = usize::from(entry[0]);
            if length == 0 {
                self.free_entries.insert(place);
                continue;
            }
            let name = entry.get(1..=length).ok_or(Error::Foreign)?;
            let name = String::from_utf8(name.to_vec()).map_err(|_| Error::Foreign)?;
            let bytes = u64::from(number(&entry[48..])) | u64::from(number(&entry[52..])) << 32;
            let mut chunks = Vec::new();
            let mut next = number(&entry[56..]);
            while next != 0 && next != LAST {
                // A file has no more chunks than there are: a circle is none of ours.
                if next > self.chunks || chunks.len() > self.chunks as usize {
                    return Err(Error::Foreign);
                }
                chunks.push(next - 1);
                next = link(next - 1);
            }
            let id = self.new_id();
            self.names.insert(name, id);
            self.files.insert(id, File { entry: place, bytes, chunks });
        }
        Ok(())
    }

    fn new_id(&mut self) -> FileId {
        self.next_id += 1;
        FileId(self.next_id)
    }

    /// Makes a file of no bytes; one of that name is gone then.
    ///
    /// # Errors
    ///
    /// Where the name is too long, or the directory is full.
    pub fn create(&mut self, name: &str) -> Result<FileId> {
        if name.is_empty() || name.len() > NAME_BYTES {
            return Err(Error::NameTooLong { name: name.to_owned() });
        }
        if self.names.contains_key(name) {
            self.remove(name)?;
        }
        let entry = match self.free_entries.pop_first() {
            Some(entry) => entry,
            None if self.entries == ENTRIES => return Err(Error::Full),
            None => {
                self.entries += 1;
                self.memory.write(8, &self.entries.to_le_bytes());
                self.entries - 1
            }
        };
        self.write_entry(entry, name, 0, 0);
        let id = self.new_id();
        self.names.insert(name.to_owned(), id);
        self.files.insert(id, File { entry, bytes: 0, chunks: Vec::new() });
        Ok(id)
    }

    fn write_entry(&self, entry: u32, name: &str, bytes: u64, first: u32) {
        let mut all = [0; ENTRY_BYTES as usize];
        all[0] = name.len() as u8;
        all[1..=name.len()].copy_from_slice(name.as_bytes());
        all[48..56].copy_from_slice(&bytes.to_le_bytes());
        all[56..60].copy_from_slice(&first.to_le_bytes());
        self.memory.write(entry_at(entry), &all);
    }

    /// The file of a name.
    pub fn find(&self, name: &str) -> Option<FileId> {
        self.names.get(name).copied()
    }

    /// All names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// How long a file is; nothing where it was removed.
    pub fn bytes(&self, id: FileId) -> Option<u64> {
        self.files.get(&id).map(|file| file.bytes)
    }

    /// The lengths of all files whose names begin so.
    pub fn bytes_of(&self, prefix: &str) -> u64 {
        let named = self.names.range(prefix.to_owned()..);
        let named = named.take_while(|(name, _)| name.starts_with(prefix));
        named.filter_map(|(_, id)| self.bytes(*id)).sum()
    }

    /// Chunks that are not free.
    pub fn used_chunks(&self) -> u64 {
        u64::from(self.chunks) - self.free_chunks.len() as u64
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Adds bytes to the end of a file.
    ///
    /// # Errors
    ///
    /// Where the file was removed, or the memory cannot grow: part of them may be there then.
    pub fn append(&mut self, id: FileId, mut bytes: &[u8]) -> Result<()> {
        let file = self.files.get_mut(&id).ok_or_else(removed)?;
        if bytes.is_empty() {
            return Ok(());
        }
        while !bytes.is_empty() {
            let within = file.bytes % CHUNK_BYTES;
            if within == 0 {
                let chunk = match self.free_chunks.pop_first() {
                    Some(chunk) => chunk,
                    None => {
                        if self.chunks == MOST_CHUNKS || self.memory.grow(1) < 0 {
                            return Err(Error::OutOfMemory { pages: 1 });
                        }
                        self.chunks += 1;
                        self.chunks - 1
                    }
                };
                self.memory.write(link_at(chunk), &LAST.to_le_bytes());
                let before = match file.chunks.last() {
                    Some(before) => link_at(*before),
                    None => entry_at(file.entry) + 56,
                };
                self.memory.write(before, &(chunk + 1).to_le_bytes());
                file.chunks.push(chunk);
            }
            let Some(chunk) = file.chunks.last() else { return Err(Error::Foreign) };
            let room = (CHUNK_BYTES - within) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.memory.write(chunk_at(*chunk) + within, now);
            file.bytes += now.len() as u64;
            bytes = later;
        }
        self.memory.write(entry_at(file.entry) + 48, &file.bytes.to_le_bytes());
        Ok(())
    }

    /// Fills `bytes` from a place in a file on, or as much of it as there is; tells how much.
    ///
    /// # Errors
    ///
    /// Where the file was removed.
    pub fn read(&self, id: FileId, from: u64, bytes: &mut [u8]) -> Result<usize> {
        let file = self.files.get(&id).ok_or_else(removed)?;
        let there = file.bytes.saturating_sub(from).min(bytes.len() as u64) as usize;
        let mut read = 0;
        while read < there {
            let at = from + read as u64;
            let within = at % CHUNK_BYTES;
            let length = ((CHUNK_BYTES - within) as usize).min(there - read);
            let chunk = file.chunks.get((at / CHUNK_BYTES) as usize).ok_or(Error::Foreign)?;
            self.memory.read(chunk_at(*chunk) + within, &mut bytes[read..read + length]);
            read += length;
        }
        Ok(there)
    }

    /// Removes a file; its chunks are free.
    ///
    /// # Errors
    ///
    /// Where it is not there.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let missing = || Error::Missing { name: name.to_owned() };
        let id = self.names.remove(name).ok_or_else(missing)?;
        let file = self.files.remove(&id).ok_or_else(missing)?;
        self.memory.write(entry_at(file.entry), &[0]);
        self.free_entries.insert(file.entry);
        for chunk in file.chunks {
            self.memory.write(link_at(chunk), &[0; 4]);
            self.free_chunks.insert(chunk);
        }
        Ok(())
    }

    /// Gives a file another name; one of that name is gone then.
    ///
    /// # Errors
    ///
    /// Where it is not there, or the name is too long.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        if to.is_empty() || to.len() > NAME_BYTES {
            return Err(Error::NameTooLong { name: to.to_owned() });
        }
        let missing = || Error::Missing { name: from.to_owned() };
        let id = self.find(from).ok_or_else(missing)?;
        if from == to {
            return Ok(());
        }
        if self.names.contains_key(to) {
            self.remove(to)?;
        }
        self.names.remove(from);
        let file = self.files.get(&id).ok_or_else(missing)?;
        let first = file.chunks.first().map_or(0, |chunk| chunk + 1);
        self.write_entry(file.entry, to, file.bytes, first);
        self.names.insert(to.to_owned(), id);
        Ok(())
    }
}

fn removed() -> Error {
    Error::Missing { name: "that was removed".to_owned() }
}

fn entry_at(entry: u32) -> u64 {
    DIRECTORY + u64::from(entry) * ENTRY_BYTES
}

fn link_at(chunk: u32) -> u64 {
    LINKS + u64::from(chunk) * 4
}

fn chunk_at(chunk: u32) -> u64 {
    (CHUNKS_FROM_PAGE + u64::from(chunk)) * CHUNK_BYTES
}

/// The number in the first four bytes; 0 where there are fewer.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
