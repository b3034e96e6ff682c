//! What the endpoints do. Work on rows is in [`work`]; here is everything else.

mod describe;
mod perform;
mod staged;
mod task;
mod work;

use crate::{Canister, instructions, measure};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, DigestPart, Engine, Error, MAX_PAYLOAD_BYTES, Measurement, Result,
    SqliteConfig, SqliteSettings,
};
use stablebench_workload::{Amount, ContentDigest};
pub(crate) use staged::Run;
use staged::Staged;

/// The most rows a message may be about, however short.
pub const MAX_MESSAGE_ROWS: u64 = 10_000_000;

/// The most bytes of rows a message may be about: half of what a message may write.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// An id and a length, as an engine that wastes nothing would store them.
const ROW_OVERHEAD_BYTES: u64 = 12;

/// The most operations of which a message tells each cost: at 16 bytes each, they leave
/// room in the 2 MiB of a reply.
pub const MAX_EACH: u64 = 100_000;

/// The endpoints' logic: checks first, then the work, measured.
pub struct Host<C> {
    pub(crate) canister: C,
    payload_bytes: u32,
    /// The largest id of a measured call, since the heap began.
    last_call: u64,
    /// The work that the next measured message does.
    staged: Option<Staged<C>>,
    /// The work that the last one did.
    ran: Option<Staged<C>>,
}

impl<C: Canister + Default> Default for Host<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

impl<C: Canister> Host<C> {
    /// A host with the default payload.
    pub fn new(canister: C) -> Self {
        Self {
            canister,
            payload_bytes: DEFAULT_PAYLOAD_BYTES,
            last_call: 0,
            staged: None,
            ran: None,
        }
    }

    /// The canister.
    pub fn into_canister(self) -> C {
        self.canister
    }

    /// Takes note of a measured call's id, where it has one: ids rise, so that a call that
    /// arrives twice is done once.
    ///
    /// # Errors
    ///
    /// Where that call, or a later one, was here already.
    pub fn admit(&mut self, call_id: Option<u64>) -> Result<()> {
        if let Some(id) = call_id {
            if id <= self.last_call {
                return Err(Error::Repeated { last: self.last_call });
            }
            self.last_call = id;
        }
        Ok(())
    }

    /// Sets the length of the payloads written from now on.
    ///
    /// # Errors
    ///
    /// Where it is too long.
    pub fn set_payload(&mut self, bytes: u32) -> Result<()> {
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES });
        }
        self.payload_bytes = bytes;
        Ok(())
    }

    /// Begins a digest, or carries one on, by at most `limit` rows.
    ///
    /// # Errors
    ///
    /// Where the limit is 0 or too high, or the digest is done.
    pub fn digest(
        &mut self,
        engine: Engine,
        part: Option<DigestPart>,
        limit: u64,
    ) -> Result<DigestPart> {
        self.check_rows(limit)?;
        let part = part.unwrap_or_default();
        if part.done {
            return Err(Error::DigestDone);
        }
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        let mut digest = ContentDigest::from(part.digest);
        let next = engine.digest(part.position, limit, &mut digest)?;
        Ok(DigestPart {
            digest: digest.value(),
            position: next.unwrap_or(0),
            done: next.is_none(),
            message_instructions: instructions(),
        })
    }

    /// Removes all rows of an engine.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn reset(&mut self, engine: Engine) -> Result<()> {
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        engine.reset()
    }

    /// Opens SQLite's connection anew with the settings chosen.
    ///
    /// # Errors
    ///
    /// Where a setting was not taken.
    pub fn configure_sqlite(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        self.canister.database()?.configure(config)
    }

    /// The settings of SQLite's connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn sqlite_settings(&mut self) -> Result<SqliteSettings> {
        self.canister.database()?.settings()
    }

    /// Closes SQLite's connection: the next work opens it, and pays for that.
    ///
    /// # Errors
    ///
    /// Where there is no SQLite.
    pub fn close_connection(&mut self) -> Result<()> {
        self.canister.database()?.close();
        Ok(())
    }

    /// `VACUUM`, on an open connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn vacuum(&mut self) -> Result<Measurement> {
        let database = self.canister.database()?;
        database.open()?;
        measure(|| database.vacuum().map(|()| Amount::default()))
    }

    /// Writes the settings to stable memory.
    ///
    /// # Errors
    ///
    /// Where there is no room.
    pub fn pre_upgrade(&mut self) -> Result<()> {
        self.canister.save(self.payload_bytes)
    }

    /// Takes the settings up again.
    pub fn post_upgrade(&mut self) {
        self.payload_bytes = self.canister.load();
    }

    /// The most rows a message may be about, at the payload's length.
    fn max_rows(&self) -> u64 {
        let row_bytes = u64::from(self.payload_bytes) + ROW_OVERHEAD_BYTES;
        MAX_MESSAGE_ROWS.min(MAX_MESSAGE_BYTES / row_bytes)
    }

    fn check_rows(&self, rows: u64) -> Result<()> {
        task::check_rows(rows, self.max_rows())
    }

    /// The canister, for methods that no other has.
    pub fn canister(&mut self) -> &mut C {
        &mut self.canister
    }
}
