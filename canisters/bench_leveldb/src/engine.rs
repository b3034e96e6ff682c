//! A database of LevelDB, as an engine of keys and values.
//!
//! A transaction is one `WriteBatch`. Where each put is one, it is written when it is put, so
//! that the cost of an operation is all of it. Synced, LevelDB's log goes to stable memory as far as
//! it was written; otherwise its last bytes, fewer than 8 KiB, stay on the heap until there
//! are more, or the database is closed: before every upgrade. Nothing is lost either way.

use crate::config;
use crate::memory::{Memories, Virtual};
use ic_stable_structures::Memory;
use stablebench_harness::{Records, VisitRecord, trap};
use stablebench_leveldb::{Config, Store};
use stablebench_protocol::{Engine, Error, Result};

const WASM_PAGE_BYTES: u64 = 65536;

/// The engine.
pub struct Leveldb {
    store: Store<Virtual>,
}

/// What LevelDB or its files say.
pub fn error(error: stablebench_leveldb::Error) -> Error {
    match error {
        stablebench_leveldb::Error::OutOfMemory { pages } => Error::OutOfStableMemory { pages },
        other => {
            Error::Unsupported { engine: Engine::Leveldb, operation: format!("do that: {other}") }
        }
    }
}

impl Leveldb {
    /// The database in a directory, closed.
    pub fn new(memories: &Memories, name: &'static str) -> Result<Self> {
        let disk = memories.disk();
        Ok(Self { store: Store::new(disk.clone(), name, config::load(disk)?) })
    }

    /// Makes the database where there is none, and tells whether it did. One that is there
    /// stays closed.
    pub fn create(&mut self) -> Result<bool> {
        if self.store.exists() {
            return Ok(false);
        }
        self.store.open().map_err(error)?;
        Ok(true)
    }

    pub fn is_open(&self) -> bool {
        self.store.is_open()
    }

    pub fn close(&mut self) -> Result<()> {
        self.store.close().map_err(error)
    }

    pub fn configure(&mut self, config: Config) -> Result<()> {
        self.store.configure(config).map_err(error)
    }

    /// What the database runs with once it is open.
    pub fn opened(&mut self) -> Result<Config> {
        self.store.open().map_err(error)?;
        Ok(self.store.config())
    }

    pub fn set_single(&mut self, single: bool) {
        self.store.set_single(single);
    }

    pub fn set_sync(&mut self, sync: bool) {
        self.store.set_sync(sync);
    }
}

impl Records for Leveldb {
    fn prepare(&mut self) -> Result<()> {
        self.store.open().map_err(error)
    }

    fn clear(&mut self) -> Result<()> {
        // What fails has removed files.
        self.store.clear().or_else(|failed| trap(&error(failed)))
    }

    fn begin(&mut self) -> Result<()> {
        self.store.begin();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        // What fails has changed the table on the heap, if nothing else: the system undoes it.
        self.store.commit().or_else(|failed| trap(&error(failed)))
    }

    fn rollback(&mut self, _: &Error) -> bool {
        self.store.begin();
        true
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // See `commit`.
        self.store.put(key, value).or_else(|failed| trap(&error(failed)))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.delete(key);
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.store.get(key, visit).or_else(|failed| trap(&error(failed)))
    }

    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()> {
        self.store.scan(from, visit).map_err(error)
    }

    fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        self.store.last_key().map_err(error)
    }

    fn rows(&mut self) -> Result<u64> {
        self.store.count().map_err(error)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.store.file_bytes())
    }

    fn virtual_bytes(&self) -> u64 {
        self.store.disk().with(|files| files.memory().size() * WASM_PAGE_BYTES)
    }

    fn allocated_units(&mut self) -> Result<u64> {
        Ok(self.store.disk().with(|files| files.used_chunks()))
    }
}
