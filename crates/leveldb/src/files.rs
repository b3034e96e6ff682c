//! Files in a stable memory, as LevelDB requires them of an operating system. Writes append to a file,
//! reads start anywhere.
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
//!
//! In [`Disk`], failures are recorded: LevelDB ignores some of them (a compaction that could not be written still
//! removes its inputs; a table that cannot be opened is skipped), so that its callers have to check
//! afterwards.
//!
//! There is no clock and no sleep, and locks have no effect: a heap has one open database.

use crate::{Error, Result};
use ic_stable_structures::Memory;
use rusty_leveldb::env::{Env, FileLock, Logger, RandomAccess, path_to_str};
use rusty_leveldb::{Status, StatusCode};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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

/// Files that several databases share, and the first failure that was not reported yet.
#[derive(Debug)]
pub struct Disk<M> {
    files: Rc<RefCell<Files<M>>>,
    failure: Rc<RefCell<Option<Error>>>,
}

impl<M> Clone for Disk<M> {
    fn clone(&self) -> Self {
        Self { files: self.files.clone(), failure: self.failure.clone() }
    }
}

impl<M: Memory> Disk<M> {
    /// Opens the files of a memory.
    ///
    /// # Errors
    ///
    /// If it contains something else, or cannot grow.
    pub fn open(memory: M) -> Result<Self> {
        Ok(Self { files: Rc::new(RefCell::new(Files::open(memory)?)), failure: Rc::default() })
    }

    /// Works on the files.
    pub fn with<T>(&self, work: impl FnOnce(&mut Files<M>) -> T) -> T {
        work(&mut self.files.borrow_mut())
    }

    /// Reports the first failure since the last check.
    ///
    /// # Errors
    ///
    /// That failure.
    pub fn check(&self) -> Result<()> {
        self.failure.borrow_mut().take().map_or(Ok(()), Err)
    }

    fn keep<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome {
            self.failure.borrow_mut().get_or_insert_with(|| error.clone());
        }
        outcome
    }

    fn find(&self, path: &Path) -> rusty_leveldb::Result<FileId> {
        let name = path_to_str(path);
        self.files.borrow().find(name).ok_or_else(|| not_found(name))
    }

    fn create(&self, path: &Path) -> rusty_leveldb::Result<FileId> {
        self.keep(self.with(|files| files.create(path_to_str(path)))).map_err(status)
    }
}

/// A file with a place in it: read from there, or written at the end.
struct Open<M> {
    disk: Disk<M>,
    id: FileId,
    at: u64,
}

impl<M: Memory> Open<M> {
    fn read_from(&self, from: u64, bytes: &mut [u8]) -> Result<usize> {
        self.disk.keep(self.disk.files.borrow().read(self.id, from, bytes))
    }
}

impl<M: Memory> RandomAccess for Open<M> {
    fn read_at(&self, from: usize, bytes: &mut [u8]) -> rusty_leveldb::Result<usize> {
        self.read_from(from as u64, bytes).map_err(status)
    }
}

impl<M: Memory> Read for Open<M> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.read_from(self.at, bytes).map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<M: Memory> Write for Open<M> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.disk.with(|files| files.append(self.id, bytes));
        self.disk.keep(outcome).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<M: Memory + 'static> Env for Disk<M> {
    fn open_sequential_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Read>> {
        Ok(Box::new(Open { disk: self.clone(), id: self.find(path)?, at: 0 }))
    }

    fn open_random_access_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn RandomAccess>> {
        let missing = || Error::Missing { name: path_to_str(path).to_owned() };
        let found = self.files.borrow().find(path_to_str(path)).ok_or_else(missing);
        let id = self.keep(found).map_err(status)?;
        Ok(Box::new(Open { disk: self.clone(), id, at: 0 }))
    }

    fn open_writable_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Write>> {
        Ok(Box::new(Open { disk: self.clone(), id: self.create(path)?, at: 0 }))
    }

    fn open_appendable_file(&self, path: &Path) -> rusty_leveldb::Result<Box<dyn Write>> {
        let id = self.find(path).or_else(|_| self.create(path))?;
        Ok(Box::new(Open { disk: self.clone(), id, at: 0 }))
    }

    fn exists(&self, path: &Path) -> rusty_leveldb::Result<bool> {
        Ok(self.find(path).is_ok())
    }

    fn children(&self, path: &Path) -> rusty_leveldb::Result<Vec<PathBuf>> {
        let prefix = directory(path);
        let files = self.files.borrow();
        let names = files.names().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.map(PathBuf::from).collect())
    }

    fn size_of(&self, path: &Path) -> rusty_leveldb::Result<usize> {
        let bytes = self.files.borrow().bytes(self.find(path)?);
        Ok(bytes.unwrap_or_default() as usize)
    }

    fn delete(&self, path: &Path) -> rusty_leveldb::Result<()> {
        self.with(|files| files.remove(path_to_str(path))).map_err(status)
    }

    fn mkdir(&self, _: &Path) -> rusty_leveldb::Result<()> {
        // A directory is what names have in common.
        Ok(())
    }

    fn rmdir(&self, _: &Path) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> rusty_leveldb::Result<()> {
        let outcome = self.with(|files| files.rename(path_to_str(from), path_to_str(to)));
        self.keep(outcome).map_err(status)
    }

    fn lock(&self, path: &Path) -> rusty_leveldb::Result<FileLock> {
        Ok(FileLock { id: path_to_str(path).to_owned() })
    }

    fn unlock(&self, _: FileLock) -> rusty_leveldb::Result<()> {
        Ok(())
    }

    fn new_logger(&self, _: &Path) -> rusty_leveldb::Result<Logger> {
        Ok(Logger::new(Box::new(io::sink())))
    }

    fn micros(&self) -> u64 {
        0
    }

    fn sleep_for(&self, _: u32) {}
}

/// The prefix of the names of the files in a directory.
pub(crate) fn directory(path: &Path) -> String {
    format!("{}/", path_to_str(path))
}

fn not_found(name: &str) -> Status {
    Status::new(StatusCode::NotFound, name)
}

fn status(error: Error) -> Status {
    let code = match error {
        Error::Missing { .. } => StatusCode::NotFound,
        _ => StatusCode::IOError,
    };
    Status::new(code, &error.to_string())
}
