//! A database, and workarounds for LevelDB.
//!
//! * A batch is LevelDB's own: one record of the log, atomic.
//! * LevelDB has no number of its keys and no access to the last one: the first is a scan, the second a
//!   search for the largest key that has one at or after it.
//! * `DB::get` of `rusty-leveldb` 4.0.2 does not find a key if a newer table contains the deletion of the
//!   next larger key (`Version::get` does not compare keys before it accepts a deletion). If keys were
//!   ever deleted, an iterator checks the result.
//! * Its information log is dropped: no one reads it in a canister.

use crate::files::directory;
use crate::{Disk, Error, Result};
use ic_stable_structures::Memory;
use rusty_leveldb::compressor::{NoneCompressor, SnappyCompressor};
use rusty_leveldb::infolog::Logger;
use rusty_leveldb::{CompressorId, DB, LdbIterator, Options, WriteBatch};
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

/// A visitor of keys and values, which decides whether the next pair is visited.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// The settings of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// True if blocks of tables are compressed with Snappy.
    pub snappy: bool,
    /// The size of the table on the heap, in bytes, at which it becomes a file.
    pub write_buffer_size: usize,
}

impl Default for Config {
    fn default() -> Self {
        let options = Options::default();
        Self {
            snappy: options.compressor == SnappyCompressor::ID,
            write_buffer_size: options.write_buffer_size,
        }
    }
}

/// A database in a directory.
pub struct Store<M> {
    disk: Disk<M>,
    name: &'static str,
    config: Config,
    db: Option<DB>,
    batch: WriteBatch,
    /// True if each batch is written to the log's file, and not only to its buffer on the heap.
    sync: bool,
    /// True if each put is its own batch.
    single: bool,
    /// True if keys were deleted since the database was created; read when it is opened.
    deleted: bool,
}

impl<M: Memory + 'static> Store<M> {
    /// The closed database in a directory.
    pub fn new(disk: Disk<M>, name: &'static str, config: Config) -> Self {
        let batch = WriteBatch::default();
        Self { disk, name, config, db: None, batch, sync: false, single: false, deleted: false }
    }

    /// Returns `true` if the database exists.
    pub fn exists(&self) -> bool {
        self.disk.with(|files| files.find(&format!("{}/CURRENT", self.name)).is_some())
    }

    /// Returns `true` if it is open.
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// Returns its settings.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Returns the files that contain it.
    pub fn disk(&self) -> &Disk<M> {
        &self.disk
    }

    /// Opens it if it is closed, which replays the log. Creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// LevelDB's.
    pub fn open(&mut self) -> Result<()> {
        self.opened().map(drop)
    }

    fn opened(&mut self) -> Result<&mut DB> {
        if self.db.is_none() {
            let db = DB::open(self.name, self.options())?;
            self.disk.check()?;
            self.deleted = self.disk.with(|files| files.find(&self.mark()).is_some());
            self.db = Some(db);
        }
        self.db.as_mut().ok_or(Error::Foreign)
    }

    fn options(&self) -> Options {
        let Config { snappy, write_buffer_size } = self.config;
        Options {
            env: Rc::new(Box::new(self.disk.clone())),
            log: Some(Rc::new(RefCell::new(Logger(Box::new(io::sink()))))),
            compressor: if snappy { SnappyCompressor::ID } else { NoneCompressor::ID },
            write_buffer_size,
            ..Options::default()
        }
    }

    /// The file that records, while the database is closed, that keys were deleted.
    fn mark(&self) -> String {
        format!("{}.deleted", self.name)
    }

    /// Closes it, which writes the log's buffer.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn close(&mut self) -> Result<()> {
        if self.db.take().is_some() && self.deleted {
            self.disk.with(|files| files.create(&self.mark()))?;
        }
        self.disk.check()
    }

    /// Closes it; the next opening has other settings. Existing tables are unchanged: each block contains
    /// the kind of its compression.
    ///
    /// # Errors
    ///
    /// Those of [`close`](Self::close).
    pub fn configure(&mut self, config: Config) -> Result<()> {
        self.close()?;
        self.config = config;
        Ok(())
    }

    /// Sets whether batches are synced.
    pub fn set_sync(&mut self, sync: bool) {
        self.sync = sync;
    }

    /// Sets whether each put is its own batch, like `DB::put`, or waits for the end of the batch.
    pub fn set_single(&mut self, single: bool) {
        self.single = single;
    }

    /// Removes the database and creates an empty one.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn clear(&mut self) -> Result<()> {
        self.db = None;
        let prefix = directory(Path::new(self.name));
        self.disk.with(|files| {
            let within = |name: &&str| name.starts_with(&prefix) || **name == *self.mark();
            let names: Vec<String> = files.names().filter(within).map(str::to_owned).collect();
            names.iter().try_for_each(|name| files.remove(name))
        })?;
        self.open()
    }

    /// Begins a batch, and drops one that was not committed.
    pub fn begin(&mut self) {
        self.batch = WriteBatch::default();
    }

    /// Writes a value under a key: immediately, or when the batch is committed.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit), if it is written immediately.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value);
        if self.single { self.commit() } else { Ok(()) }
    }

    /// Removes a key, when the batch is committed.
    pub fn delete(&mut self, key: &[u8]) {
        self.deleted = true;
        self.batch.delete(key);
    }

    /// Writes the batch.
    ///
    /// # Errors
    ///
    /// LevelDB's, and those of files that it does not report. Then the heap has changed and the files have
    /// not: the message has to be undone.
    pub fn commit(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.count() > 0 {
            let (sync, deleted) = (self.sync, self.deleted);
            self.opened()?.write(batch, sync)?;
            // Opening it has read whether keys were deleted before.
            self.deleted |= deleted;
        }
        self.disk.check()
    }

    /// Visits the value of a key, and returns whether there is one.
    ///
    /// # Errors
    ///
    /// LevelDB's, and those of files.
    pub fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.opened()?.get(key);
        self.disk.check()?;
        match value {
            Some(value) => {
                visit(&value);
                Ok(true)
            }
            None if self.deleted => self.get_by_iterator(key, visit),
            None => Ok(false),
        }
    }

    fn get_by_iterator(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut found = false;
        self.scan(key, &mut |at, value| {
            found = at == key;
            if found {
                visit(value);
            }
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Visits keys and values in ascending order, starting at a key.
    ///
    /// # Errors
    ///
    /// LevelDB's, and those of files.
    pub fn scan(&mut self, from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let mut rows = self.opened()?.new_iter()?;
        rows.seek(from);
        while let Some((key, value)) = rows.current() {
            if visit(&key, &value).is_break() || !rows.advance() {
                break;
            }
        }
        self.disk.check()
    }

    /// Counts the keys by reading them all.
    ///
    /// # Errors
    ///
    /// LevelDB's, and those of files.
    pub fn count(&mut self) -> Result<u64> {
        let mut keys = 0;
        self.scan(&[], &mut |_, _| {
            keys += 1;
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    /// Returns the largest key. Finds, byte by byte, the largest byte with which an existing key continues.
    ///
    /// # Errors
    ///
    /// LevelDB's, and those of files.
    pub fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        let mut rows = self.opened()?.new_iter()?;
        let mut last = Vec::new();
        // The byte at the end of the probe, of the first key at or after it.
        let mut next = |probe: &[u8]| {
            rows.seek(probe);
            rows.current().map(|(key, _)| key.get(probe.len() - 1).copied().unwrap_or(0))
        };
        loop {
            last.push(0);
            let place = last.len() - 1;
            let Some(mut there) = next(&last) else {
                last.pop();
                break;
            };
            let mut beyond = 256;
            while u16::from(there) + 1 < beyond {
                let middle = (u16::from(there) + 1).midpoint(beyond - 1);
                last[place] = middle as u8;
                match next(&last) {
                    Some(byte) => there = byte.max(middle as u8),
                    None => beyond = middle,
                }
            }
            last[place] = there;
        }
        self.disk.check()?;
        // An empty key would be the only one.
        Ok((!last.is_empty()).then_some(last))
    }

    /// Returns the bytes of its files.
    pub fn file_bytes(&self) -> u64 {
        self.disk.with(|files| files.bytes_of(&directory(Path::new(self.name))))
    }
}
