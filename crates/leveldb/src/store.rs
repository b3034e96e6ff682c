//! A database: what is asked of LevelDB, and what is to be done around it.
//!
//! * A batch is LevelDB's own: in the log as one record, there as a whole or not at all.
//! * LevelDB has no count of its keys and no way to the last one: the first is a scan, the
//!   second a search for the largest key that has one at or behind it.
//! * `DB::get` of `rusty-leveldb` 4.0.2 says that a key is not there where a newer table has
//!   the next larger key as a deleted one (`Version::get` does not compare the keys of what it
//!   finds before it believes a deletion). Where keys were ever deleted, an iterator is asked
//!   whether it is so.
//! * Its information log is dropped: a canister has nobody who reads it.

use crate::env::directory;
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

/// Told a key and a value; says whether the next are wanted.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What a database is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether blocks of tables are compressed, by Snappy.
    pub snappy: bool,
    /// Bytes of the table on the heap that make a file of it.
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
    /// Whether a batch that ends goes to the log's file, and not only to what is kept for it
    /// on the heap.
    sync: bool,
    /// Whether what is put is a batch of its own.
    single: bool,
    /// Whether keys were deleted since the database was made; read when it is opened.
    deleted: bool,
}

impl<M: Memory + 'static> Store<M> {
    /// The database in a directory; closed.
    pub fn new(disk: Disk<M>, name: &'static str, config: Config) -> Self {
        let batch = WriteBatch::default();
        Self { disk, name, config, db: None, batch, sync: false, single: false, deleted: false }
    }

    /// Whether there is a database.
    pub fn exists(&self) -> bool {
        self.disk.with(|files| files.find(&format!("{}/CURRENT", self.name)).is_some())
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// What it is opened with.
    pub fn config(&self) -> Config {
        self.config
    }

    /// The files that it is among.
    pub fn disk(&self) -> &Disk<M> {
        &self.disk
    }

    /// Opens it, or makes it, where it is not open: replays the log.
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

    /// The file that says, while the database is closed, that keys were deleted.
    fn mark(&self) -> String {
        format!("{}.deleted", self.name)
    }

    /// Closes it: what the log keeps on the heap is written.
    ///
    /// # Errors
    ///
    /// Where there is no room.
    pub fn close(&mut self) -> Result<()> {
        if self.db.take().is_some() && self.deleted {
            self.disk.with(|files| files.create(&self.mark()))?;
        }
        self.disk.check()
    }

    /// Closes it; from the next opening on, it has other settings. Tables that are there stay
    /// as they are: each of their blocks tells how it is compressed.
    ///
    /// # Errors
    ///
    /// Those of [`close`](Self::close).
    pub fn configure(&mut self, config: Config) -> Result<()> {
        self.close()?;
        self.config = config;
        Ok(())
    }

    /// Whether batches are synced from now on.
    pub fn set_sync(&mut self, sync: bool) {
        self.sync = sync;
    }

    /// Whether each key that is put is a batch of its own from now on, as `DB::put` has it, or
    /// waits for the end of the batch.
    pub fn set_single(&mut self, single: bool) {
        self.single = single;
    }

    /// Removes the database and makes an empty one.
    ///
    /// # Errors
    ///
    /// Where there is no room.
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

    /// Begins a batch; one that was not committed is forgotten.
    pub fn begin(&mut self) {
        self.batch = WriteBatch::default();
    }

    /// Puts a value under a key: at once, or when the batch is committed.
    ///
    /// # Errors
    ///
    /// At once, those of [`commit`](Self::commit).
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
    /// LevelDB's, and what it does not tell of the files. Then something has changed on the
    /// heap that has not in the files: the message has to be undone.
    pub fn commit(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.count() > 0 {
            let (sync, deleted) = (self.sync, self.deleted);
            self.opened()?.write(batch, sync)?;
            // Opening it has looked whether keys were deleted before.
            self.deleted |= deleted;
        }
        self.disk.check()
    }

    /// Shows the value under a key; tells whether there is one.
    ///
    /// # Errors
    ///
    /// What failed.
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

    /// Shows keys and values from a key on, ascending, until told to stop.
    ///
    /// # Errors
    ///
    /// What failed.
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

    /// How many keys there are: reads them all.
    ///
    /// # Errors
    ///
    /// What failed.
    pub fn count(&mut self) -> Result<u64> {
        let mut keys = 0;
        self.scan(&[], &mut |_, _| {
            keys += 1;
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    /// The largest key: byte by byte, the largest with which a key begins that is there.
    ///
    /// # Errors
    ///
    /// What failed.
    pub fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        let mut rows = self.opened()?.new_iter()?;
        let mut last = Vec::new();
        // The byte at the end of what is looked for, of the first key from there on.
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

    /// Bytes of its files.
    pub fn file_bytes(&self) -> u64 {
        self.disk.with(|files| files.bytes_of(&directory(Path::new(self.name))))
    }
}
