//! A database of LevelDB as an engine of keys and values, and its settings.
//!
//! A transaction is one `WriteBatch`. If each put is its own batch, it is written when it is put, so
//! that the cost of an operation is complete. With syncing, LevelDB's log is written to stable memory
//! completely. Otherwise its last bytes, fewer than 8 KiB, stay on the heap until there are more, or
//! until the database is closed before an upgrade. Nothing is lost either way.
//!
//! The settings, by the names of LevelDB's options, are in a file:
//!
//! ```text
//! compression         none, snappy: of tables that are written from now on
//! write_buffer_size   bytes of rows on the heap, and in the log, that become a table
//! ```

use candid::{decode_one, encode_one};
use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::Memory;
use ic_stable_structures::memory_manager::VirtualMemory;
use stablebench_harness::{Records, VisitRecord, trap};
use stablebench_leveldb::{Config, Disk, Store};
use stablebench_protocol::{Engine, Error, Result, Setting};

/// A memory of the manager.
pub type Virtual = VirtualMemory<DefaultMemoryImpl>;

/// The file with the settings.
const CONFIG: &str = "config";

const COMPRESSION: &str = "compression";
const WRITE_BUFFER_SIZE: &str = "write_buffer_size";

/// The values to which LevelDB's own `SanitizeOptions` clips the size.
const WRITE_BUFFER_SIZES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;

const WASM_PAGE_BYTES: u64 = 65536;

/// A database.
pub struct Leveldb {
    store: Store<Virtual>,
}

/// An error of LevelDB or its files as one of the protocol.
pub fn error(error: stablebench_leveldb::Error) -> Error {
    match error {
        stablebench_leveldb::Error::OutOfMemory { pages } => Error::OutOfStableMemory { pages },
        other => {
            Error::Unsupported { engine: Engine::LEVELDB, operation: format!("do that: {other}") }
        }
    }
}

impl Leveldb {
    /// Returns the closed database in a directory.
    pub fn new(disk: &Disk<Virtual>, name: &'static str) -> Result<Self> {
        Ok(Self { store: Store::new(disk.clone(), name, load_config(disk)?) })
    }

    /// Creates the database if there is none, and returns whether it did. An existing one stays closed.
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

    /// Opens the database and returns its settings.
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
        // A failure has removed files: the system undoes that.
        self.store.clear().or_else(|failed| trap(&error(failed)))
    }

    fn begin(&mut self) -> Result<()> {
        self.store.begin();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        // A failure has changed the table on the heap, if nothing else: the system undoes it.
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

/// Parses settings; one that is left out is LevelDB's default.
///
/// # Errors
///
/// If a name is unknown, or LevelDB would take another value than the one asked for.
pub fn parse_config(settings: &[Setting]) -> Result<Config> {
    let mut config = Config::default();
    for setting in settings {
        let invalid = |reason: String| {
            let Setting { name, value } = setting.clone();
            Err(Error::InvalidSetting { setting: name, value, reason })
        };
        match (setting.name.as_str(), setting.value.as_str()) {
            (COMPRESSION, "none") => config.snappy = false,
            (COMPRESSION, "snappy") => config.snappy = true,
            (COMPRESSION, _) => return invalid("it is none or snappy".to_owned()),
            (WRITE_BUFFER_SIZE, bytes) => match bytes.parse() {
                Ok(bytes) if WRITE_BUFFER_SIZES.contains(&bytes) => {
                    config.write_buffer_size = bytes;
                }
                _ => {
                    let (least, most) = WRITE_BUFFER_SIZES.into_inner();
                    return invalid(format!("it is between {least} and {most}"));
                }
            },
            _ => return invalid("there is no such setting".to_owned()),
        }
    }
    Ok(config)
}

/// Returns all settings.
pub fn list_config(config: Config) -> Vec<Setting> {
    let compression = if config.snappy { "snappy" } else { "none" };
    vec![
        Setting::new(COMPRESSION, compression),
        Setting::new(WRITE_BUFFER_SIZE, config.write_buffer_size),
    ]
}

/// Saves the settings for the next opening.
pub fn save_config(disk: &Disk<Virtual>, config: Config) -> Result<()> {
    // Encoding a derived type cannot fail.
    let bytes = encode_one(list_config(config)).unwrap_or_default();
    disk.with(|files| {
        let file = files.create(CONFIG)?;
        files.append(file, &bytes)
    })
    .map_err(error)
}

/// Loads the saved settings; LevelDB's defaults if there are none.
fn load_config(disk: &Disk<Virtual>) -> Result<Config> {
    let bytes = disk.with(|files| {
        let Some(file) = files.find(CONFIG) else { return Ok(Vec::new()) };
        let mut bytes = vec![0; files.bytes(file).unwrap_or_default() as usize];
        files.read(file, 0, &mut bytes)?;
        Ok(bytes)
    });
    let settings: Vec<Setting> = decode_one(&bytes.map_err(error)?).unwrap_or_default();
    parse_config(&settings)
}
