//! Files in a stable memory. Writes append to a file, reads start anywhere.
//!
//! ```text
//! page 0          header     magic "FILES\0\0\1" ↕ 8   entries in use or used before ↕ 4
//! page 1 … 16     directory  16 384 entries of 64 bytes
//! page 17 … 80    links      2^20 of 4 bytes, one per chunk
//! page 81 …       chunks     of a page each
//!
//! entry           bytes of the name, 0 if it is free ↕ 1   name ↕ 47
//!                 bytes of the file ↕ 8   its first chunk + 1, or 0 ↕ 4   0 ↕ 4
//! link            0: the chunk is free   2^32 − 1: the last of its file   else the next + 1
//! ```
//!
//! A page is a wasm page (64 KiB), and numbers are little-endian. The heap has a copy of the directory
//! and of the links, which is read once; every change is written to both. A new chunk is the first free
//! one, or the memory grows by one. So the places of files follow from the content of the memory alone.
//!
//! Nothing is written twice, and there is no journal: the system undoes a message that fails, including
//! the copy on the heap.

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
const MAX_CHUNKS: u32 = 1 << 20;
const CHUNKS_FROM_PAGE: u64 = 81;
const LAST: u32 = u32::MAX;

/// A file, until it is removed. Its number is not reused while the heap exists.
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
    /// Entries that are or were in use.
    entries: u32,
    free_entries: BTreeSet<u32>,
    chunks: u32,
    free_chunks: BTreeSet<u32>,
}

impl<M: Memory> Files<M> {
    /// Opens the files of a memory; none if it is empty.
    ///
    /// # Errors
    ///
    /// If it contains something else, or cannot grow.
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
        self.chunks = (self.memory.size() - CHUNKS_FROM_PAGE).min(MAX_CHUNKS.into()) as u32;
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

    /// Creates an empty file, replacing one with the same name.
    ///
    /// # Errors
    ///
    /// If the name is too long, or the directory is full.
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

    /// Finds a file by its name.
    pub fn find(&self, name: &str) -> Option<FileId> {
        self.names.get(name).copied()
    }

    /// Returns all names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Returns the length of a file in bytes; nothing if it was removed.
    pub fn bytes(&self, id: FileId) -> Option<u64> {
        self.files.get(&id).map(|file| file.bytes)
    }

    /// Returns the total length of all files whose names have a prefix.
    pub fn bytes_of(&self, prefix: &str) -> u64 {
        let named = self.names.range(prefix.to_owned()..);
        let named = named.take_while(|(name, _)| name.starts_with(prefix));
        named.filter_map(|(_, id)| self.bytes(*id)).sum()
    }

    /// Returns the number of chunks in use.
    pub fn used_chunks(&self) -> u64 {
        u64::from(self.chunks) - self.free_chunks.len() as u64
    }

    /// Returns the memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Appends bytes to a file.
    ///
    /// # Errors
    ///
    /// If the file was removed, or the memory cannot grow; then a part of them may be written.
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
                        if self.chunks == MAX_CHUNKS || self.memory.grow(1) < 0 {
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

    /// Reads from a position of a file into `bytes`, up to the end of the file. Returns the number of
    /// bytes.
    ///
    /// # Errors
    ///
    /// If the file was removed.
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

    /// Removes a file and frees its chunks.
    ///
    /// # Errors
    ///
    /// If it does not exist.
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

    /// Renames a file, replacing one with the new name.
    ///
    /// # Errors
    ///
    /// If it does not exist, or the name is too long.
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

/// The number in the first four bytes; 0 if there are fewer.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
