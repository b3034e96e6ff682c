//! A database of LevelDB as an engine of keys and values, with its settings.
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
use getrandom::register_custom_getrandom;
use ic_stable_structures::memory_manager::VirtualMemory;
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use stablebench_harness::{Records, VisitRecord, trap};
use stablebench_leveldb::{Config, Disk, Store};
use stablebench_protocol::{Engine, Error, Result, Setting};
use stablebench_suite_users::canister::{ById, Done, KeyValue, VisitRow, Writes};
use stablebench_suite_users::work::{IdSet, Selected};
use stablebench_workload::Amount;
use std::cell::Cell;

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

/// The rows of the suite users: [`ById`] on a database that, like a connection, is opened when it is
/// needed.
///
/// LevelDB does not store its number of rows. Inserted rows do not exist before and deleted rows do, so
/// that the number is kept on the heap. After an upgrade, or after rows were written whether or not
/// they existed, it is unknown and counted when it is needed. Work that counts always counts.
pub struct Users {
    rows: ById<Leveldb>,
    /// True if the database was closed before the message.
    was_closed: bool,
    /// The number of rows, if it is known.
    number: Option<u64>,
}

impl Users {
    pub fn new(leveldb: Leveldb) -> Self {
        Self { rows: ById(leveldb), was_closed: false, number: None }
    }

    pub fn leveldb(&mut self) -> &mut Leveldb {
        &mut self.rows.0
    }
}

impl KeyValue for Users {
    fn prepare(&mut self) -> Result<()> {
        // Opening creates it, like a table.
        if self.rows.0.create()? {
            self.number = Some(0);
        }
        self.was_closed = !self.rows.0.is_open();
        Ok(())
    }

    fn admit(&self, ids: &IdSet, payload_bytes: u32) -> Result<()> {
        self.rows.admit(ids, payload_bytes)
    }

    fn settle(&mut self) {
        if self.was_closed {
            // Nothing was written, so that closing has nothing to lose.
            let _ = self.rows.0.close();
        }
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.rows.visit(position, visit)
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        self.rows.last_id()
    }

    fn rows(&mut self) -> Result<u64> {
        let number = match self.number {
            Some(number) => number,
            None => self.rows.rows()?,
        };
        self.number = Some(number);
        Ok(number)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.rows.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.rows.virtual_bytes()
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        let mut number = self.number.take();
        let done =
            self.rows.transaction(&mut |rows| work(&mut Counted { rows, number: &mut number }));
        if done.is_ok() {
            self.number = number;
        }
        done
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        self.rows.read(rows)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        self.rows.range(from, rows)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        KeyValue::scan(&mut self.rows, limit)
    }

    fn count(&mut self) -> Result<u64> {
        self.rows.count()
    }

    fn reset(&mut self) -> Result<()> {
        self.rows.reset()?;
        self.number = Some(0);
        Ok(())
    }
}

/// Writes that update the number of rows.
struct Counted<'a> {
    rows: &'a mut dyn Writes,
    number: &'a mut Option<u64>,
}

impl Writes for Counted<'_> {
    fn allocated_units(&mut self) -> Result<u64> {
        self.rows.allocated_units()
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        *self.number = self.number.map(|number| number + rows.rows());
        self.rows.insert(rows, payload)
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        *self.number = None;
        self.rows.overwrite(rows, payload)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.rows.update(rows, payload)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        *self.number = self.number.map(|number| number.saturating_sub(rows.rows()));
        self.rows.delete(rows)
    }
}

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Fills bytes with the random numbers of `rand`: SplitMix64, starting at 0, a sequence that is the same in
/// every canister.
///
/// A canister cannot get randomness and continue in the same message, and two runs of one build must
/// cost the same. LevelDB uses random numbers to sample its reads for files that are searched too
/// often. The heights of nodes of its table on the heap follow from its own seed.
fn fill_random(bytes: &mut [u8]) -> std::result::Result<(), getrandom::Error> {
    for part in bytes.chunks_mut(8) {
        RANDOM.set(RANDOM.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut word = RANDOM.get();
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
    }
    Ok(())
}

register_custom_getrandom!(fill_random);
