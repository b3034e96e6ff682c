//! The engines of the suite users: rows of an id and a text.

use crate::work::{IdSet, Selected};
use stablebench_harness::{Canister, Records, description, max_rows, sql};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, Description, Digest, Engine, EngineDescription, Error, Occupant, Result,
    Setting, SqliteConfig, SqliteSettings,
};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// Starting to visit rows costs about as much as visiting this number of rows.
const SKIPPED_BEFORE_RESTART: u32 = 64;

/// The maximum number of rows, and of their bytes, whose digest `describe` includes.
const DESCRIBED_ROWS: u64 = 10_000;
const DESCRIBED_BYTES: u64 = 16 << 20;

/// A row as it is visited.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    /// Its position: the id, except in a log, which has positions of its own.
    pub position: u64,
    /// Its id.
    pub id: u64,
    /// Its text.
    pub payload: &'a [u8],
}

/// A visitor of rows, which decides whether the next row is visited.
pub type VisitRow<'a> = dyn FnMut(StoredRow<'_>) -> ControlFlow<()> + 'a;

/// An engine of rows with ids and texts.
///
/// Methods that are called by hand use an engine in this order: `prepare`, `admit`, methods that
/// look at ids, `settle`, and then the methods of work, which are measured. There, the work can
/// rely on the checks: ids to insert do not exist, ids to update or delete exist, ids to insert or
/// delete are listed once. In jobs, the caller ensures that.
pub trait KeyValue {
    /// Prepares what is not part of the work, such as creating a table.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()>;

    /// Refuses ids and payloads that the engine cannot store. Changes nothing.
    ///
    /// # Errors
    ///
    /// The first id, or the payload, that the engine cannot store.
    fn admit(&self, ids: &IdSet, payload_bytes: u32) -> Result<()>;

    /// Restores the state before the checks, such as closing what they opened: cold work stays
    /// cold.
    fn settle(&mut self) {}

    /// Visits rows in the engine's order, starting at a position.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Returns the smallest of the ids that exists.
    ///
    /// Ids asked for and ids that exist are merged. If many existing ids are between two that are
    /// asked for, the visit starts again at the next one asked for. So the number of ids asked for
    /// bounds the cost, however dense the rows are.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_present(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        let mut next = Some(ids.first());
        while let Some(from) = next.take() {
            let mut found = None;
            let mut skipped = 0;
            self.visit(from, &mut |row| match ids.at_or_after(row.id) {
                None => ControlFlow::Break(()),
                Some(member) if member == row.id => {
                    found = Some(row.id);
                    ControlFlow::Break(())
                }
                Some(_) if skipped < SKIPPED_BEFORE_RESTART => {
                    skipped += 1;
                    ControlFlow::Continue(())
                }
                Some(member) => {
                    next = Some(member);
                    ControlFlow::Break(())
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the smallest of the ids that does not exist; see
    /// [`first_present`](Self::first_present).
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_missing(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        let mut wanted = ids.iter().peekable();
        while let Some(from) = wanted.peek().copied() {
            let mut progress = false;
            let mut skipped = 0;
            self.visit(from, &mut |row| match wanted.peek() {
                Some(next) if *next == row.id => {
                    wanted.next();
                    progress = true;
                    skipped = 0;
                    ControlFlow::Continue(())
                }
                Some(next) if *next > row.id && skipped < SKIPPED_BEFORE_RESTART => {
                    skipped += 1;
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Break(()),
            })?;
            if !progress {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }

    /// Returns the largest id.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn last_id(&mut self) -> Result<Option<u64>>;

    /// Returns the number of rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn rows(&mut self) -> Result<u64>;

    /// Returns the bytes of stable memory in use, including the free space in pages and nodes.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Returns the bytes of the virtual memories that contain the rows, or of stable memory if
    /// there are none.
    fn virtual_bytes(&self) -> u64;

    /// Returns the bytes of heap of the page cache. Opens nothing: what is closed has no cache.
    fn cache_bytes(&self) -> u64 {
        0
    }

    /// Work: does `work` in one transaction, if the engine has transactions.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work.
    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done;

    /// Work: looks rows up one by one and copies their texts. Returns the size of those that exist.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn read(&mut self, rows: Selected<'_>) -> Result<Amount>;

    /// Work: starting at each id, copies the ids and texts of at most `rows` rows in the order of
    /// ids. Returns the size of those that exist.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount>;

    /// Work: copies the ids and texts of the first `limit` rows. Returns the size of those that
    /// exist.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn scan(&mut self, limit: u64) -> Result<Amount>;

    /// Work: counts the rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn count(&mut self) -> Result<u64>;

    /// Removes all rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn reset(&mut self) -> Result<()>;
}

/// Adds at most `limit` rows, starting at a position, to a digest. Returns the position of the next
/// row, if there is one.
///
/// # Errors
///
/// The engine's.
pub fn digest_rows(
    engine: &mut dyn KeyValue,
    position: u64,
    limit: u64,
    digest: &mut ContentDigest,
) -> Result<Option<u64>> {
    let (mut left, mut next) = (limit, None);
    engine.visit(position, &mut |row| {
        if left == 0 {
            next = Some(row.position);
            return ControlFlow::Break(());
        }
        left -= 1;
        digest.add(row.id, row.payload);
        ControlFlow::Continue(())
    })?;
    Ok(next)
}

/// The outcome of a transaction.
pub type Done = std::result::Result<(), Failed>;

/// A transaction that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The reason.
    pub because: Error,
    /// True if the engine has undone all of it. An engine without transactions undoes the call that
    /// failed, and none before.
    pub undone: bool,
}

impl Failed {
    /// A failure of an engine without transactions.
    pub fn kept(because: Error) -> Self {
        Self { because, undone: false }
    }

    /// A transaction that was rolled back.
    pub fn undone(because: Error) -> Self {
        Self { because, undone: true }
    }
}

/// Changes of an engine's rows, in a transaction if the engine has them.
pub trait Writes {
    /// Returns the number of units of storage in use: pages of a database, nodes of a tree, or wasm
    /// pages of stable memory. Called between operations of work, and not measured.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn allocated_units(&mut self) -> Result<u64>;

    /// Work: adds rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was added, unless the transaction undoes that.
    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()>;

    /// Work: adds rows, or replaces their texts if they exist.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was changed, unless the transaction undoes that.
    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()>;

    /// Work: replaces the texts of rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was changed, unless the transaction undoes that.
    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()>;

    /// Work: removes rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was removed, unless the transaction undoes that.
    fn delete(&mut self, rows: Selected<'_>) -> Result<()>;
}

/// A canister with engines of rows.
pub trait RowEngines: Canister {
    /// Its engines, in the order in which `describe` lists them.
    const ENGINES: &'static [Engine];

    /// Returns an engine.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue>;

    /// Returns the SQL database with the table of the rows.
    ///
    /// # Errors
    ///
    /// If the canister has none, or another engine owns the stable memory.
    fn database(&mut self) -> Result<&mut dyn Database> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Returns the payload of rows that methods called by hand write. An upgrade keeps it.
    fn payload(&mut self) -> &mut PayloadBytes;
}

/// The payload of rows that methods called by hand write, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadBytes(pub u32);

impl Default for PayloadBytes {
    fn default() -> Self {
        Self(DEFAULT_PAYLOAD_BYTES)
    }
}

/// An SQL database, in addition to what [`KeyValue`] requires.
pub trait Database {
    /// Closes the connection and opens it with other settings; a setting that is left out takes the
    /// library's default. Returns the settings in effect.
    ///
    /// # Errors
    ///
    /// If a setting was not taken; then the settings are unchanged.
    fn configure(&mut self, config: SqliteConfig) -> Result<SqliteSettings>;

    /// Returns the settings in effect. Opens the connection if it is closed.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn settings(&mut self) -> Result<SqliteSettings>;

    /// Closes the connection. The next use opens it with the same settings.
    fn close(&mut self);

    /// Opens the connection if it is closed.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn open(&mut self) -> Result<()>;

    /// Work: `VACUUM`.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn vacuum(&mut self) -> Result<()>;
}

/// Opens the connection of a canister's database with these settings: [`Canister::configure`] where the
/// database is the only engine with settings.
///
/// # Errors
///
/// If a setting is unknown or was not taken; then the settings are unchanged.
pub fn configure(canister: &mut impl RowEngines, settings: &[Setting]) -> Result<Vec<Setting>> {
    let database = canister.database()?;
    let settings = database.configure(sql::parse_settings(settings)?)?;
    Ok(settings.list())
}

/// Describes a canister and the rows of its engines: [`Canister::describe`].
///
/// # Errors
///
/// The engines'.
pub fn describe<C: RowEngines>(canister: &mut C) -> Result<Description> {
    // Looking at the engines may open what was closed, and so grow both memories.
    let mut description = description(canister);
    let PayloadBytes(payload_bytes) = *canister.payload();
    description.payload_bytes = payload_bytes;
    description.max_rows = max_rows(payload_bytes);
    for &engine in C::ENGINES {
        if description.occupant == Occupant::Nobody {
            description.engines.push(EngineDescription {
                engine,
                rows: 0,
                stored_bytes: 0,
                virtual_bytes: 0,
                cache_bytes: 0,
                digest: Some(Digest::default()),
            });
        } else if let Ok(store) = canister.engine(engine) {
            description.engines.push(described(engine, store)?);
        }
    }
    Ok(description)
}

fn described(engine: Engine, store: &mut dyn KeyValue) -> Result<EngineDescription> {
    let (virtual_bytes, cache_bytes) = (store.virtual_bytes(), store.cache_bytes());
    store.prepare()?;
    let (rows, stored_bytes) = (store.rows()?, store.stored_bytes()?);
    let mut digest = None;
    if rows <= DESCRIBED_ROWS && stored_bytes <= DESCRIBED_BYTES {
        let mut content = ContentDigest::default();
        digest_rows(store, 0, rows, &mut content)?;
        digest = Some(content.value());
    }
    Ok(EngineDescription { engine, rows, stored_bytes, virtual_bytes, cache_bytes, digest })
}

/// Rows of an id and a text in any engine of keys and values.
///
/// A key is the id in 8 bytes, big-endian: the order of keys is the order of ids.
#[derive(Clone, Debug, Default)]
pub struct ById<R>(
    /// The engine.
    pub R,
);

fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// The id of a key; nothing if it has another length.
fn id(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

impl<R: Records> ById<R> {
    fn put(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        rows.try_each(|id| self.0.put(&key(id), payload.as_bytes()))
    }

    /// Copies at most `limit` rows, starting at an id.
    fn copy_rows(&mut self, from: u64, limit: u64) -> Result<Amount> {
        let mut read = Amount::default();
        if limit > 0 {
            self.0.scan(&key(from), &mut |key, payload| {
                black_box((key, payload));
                read += Amount { rows: 1, bytes: payload.len() as u64 };
                if read.rows < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(read)
    }
}

impl<R: Records> KeyValue for ById<R> {
    fn prepare(&mut self) -> Result<()> {
        self.0.prepare()
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.0.scan(&key(position), &mut |key, payload| match id(key) {
            Some(id) => visit(StoredRow { position: id, id, payload }),
            None => ControlFlow::Break(()),
        })
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.0.last_key()?.as_deref().and_then(id))
    }

    fn rows(&mut self) -> Result<u64> {
        self.0.rows()
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.0.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.0.virtual_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        self.0.cache_bytes()
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        let outcome = self.0.begin().and_then(|()| work(self)).and_then(|()| self.0.commit());
        outcome.map_err(|because| Failed { undone: self.0.rollback(&because), because })
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut found = Amount::default();
        rows.try_each(|id| {
            self.0.get(&key(id), &mut |payload| {
                black_box(payload);
                found += Amount { rows: 1, bytes: payload.len() as u64 };
            })?;
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.try_each(|id| {
            found += self.copy_rows(id, rows)?;
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        self.copy_rows(0, limit)
    }

    fn count(&mut self) -> Result<u64> {
        self.0.rows()
    }

    fn reset(&mut self) -> Result<()> {
        self.0.clear()
    }
}

impl<R: Records> Writes for ById<R> {
    fn allocated_units(&mut self) -> Result<u64> {
        self.0.allocated_units()
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.put(rows, payload)
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.put(rows, payload)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.put(rows, payload)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        rows.try_each(|id| self.0.delete(&key(id)))
    }
}
