//! The environment that LevelDB requires of an operating system, on [`Files`].
//!
//! Failures are recorded: LevelDB ignores some of them (a compaction that could not be written still
//! removes its inputs; a table that cannot be opened is skipped), so that its callers have to check
//! afterwards.
//!
//! There is no clock and no sleep, and locks have no effect: a heap has one open database.

use crate::files::{FileId, Files};
use crate::{Error, Result};
use ic_stable_structures::Memory;
use rusty_leveldb::env::{Env, FileLock, Logger, RandomAccess, path_to_str};
use rusty_leveldb::{Status, StatusCode};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
pub fn directory(path: &Path) -> String {
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
