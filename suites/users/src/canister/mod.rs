//! The suite users in a canister: operations on rows of an id and a text, in transactions.
//!
//! A canister implements [`KeyValue`] for each of its engines, or takes one of these:
//!
//! ```text
//!   ById         rows in any engine of keys and values
//!   UsersTable   rows in any SQL engine
//!   floor        rows on bare stable memory
//! ```
//!
//! It lists them as [`RowEngines`], and exports the methods that are called by hand.

mod by_hand;
mod by_id;
pub mod floor;
mod key_value;
mod row_engines;
mod table;
mod work;

pub use by_hand::ByHand;
pub use by_id::ById;
pub use key_value::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes, digest_rows};
pub use row_engines::{Database, PayloadBytes, RowEngines, configure, describe};
pub use table::{Databases, UsersTable};

use crate::types::{Users, UsersTask};
use crate::work::check_single;
use stablebench_harness::{Staged, Suite, max_rows, measure_step};
use stablebench_protocol::{Digest, Engine, Error, Inspected, Part, PartCost, Result};
use stablebench_workload::ContentDigest;

use self::work::{Manner, Work, check_payload, check_rows};

impl<C: RowEngines> Suite<C> for Users {
    fn stage(self, part: &Part) -> Result<Staged<C>> {
        let Self { engine, payload_bytes, task } = self;
        check_payload(payload_bytes)?;
        let UsersTask::Operation { operation, transaction } = task else {
            check_single(part)?;
            require_connection(engine)?;
            let vacuum = task == UsersTask::Vacuum;
            return Ok(Staged::writing(move |canister: &mut C| connection(canister, vacuum)));
        };
        let (from, count) = (part.from, part.count);
        let work = Work::of_part(&operation, from, count, payload_bytes)?;
        let manner = Manner { transaction, each: part.each };
        manner.check(&work)?;
        let (writes, text) = (operation.writes(), work.text(payload_bytes));
        Ok(Staged::new(writes, move |canister: &mut C| {
            let work = Work::of_part(&operation, from, count, payload_bytes)?;
            let engine = canister.engine(engine)?;
            engine.prepare()?;
            work.measure(engine, &text, manner)
        }))
    }

    fn results(&self, canister: &mut C, part: &Part) -> Result<Option<Digest>> {
        let UsersTask::Operation { operation, .. } = &self.task else {
            return Ok(None);
        };
        let work = Work::of_part(operation, part.from, part.count, self.payload_bytes)?;
        let engine = canister.engine(self.engine)?;
        engine.prepare()?;
        work.results(engine)
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        check_rows(limit, max_rows(self.payload_bytes))?;
        let engine = canister.engine(self.engine)?;
        engine.prepare()?;
        digest_rows(engine, position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        let engine = canister.engine(self.engine)?;
        // A connection that is closed has no cache.
        let (virtual_bytes, cache_bytes) = (engine.virtual_bytes(), engine.cache_bytes());
        engine.prepare()?;
        let stored_bytes = engine.stored_bytes()?;
        let sqlite = match self.engine {
            Engine::SQLITE => Some(canister.database()?.settings()?),
            _ => None,
        };
        Ok(Inspected { stored_bytes, virtual_bytes, cache_bytes, sqlite, objects: Vec::new() })
    }
}

fn require_connection(engine: Engine) -> Result<()> {
    match engine {
        Engine::SQLITE => Ok(()),
        _ => {
            let operation = "close or vacuum a connection".to_owned();
            Err(Error::Unsupported { engine, operation })
        }
    }
}

/// Closes or vacuums the connection.
fn connection<C: RowEngines>(canister: &mut C, vacuum: bool) -> Result<PartCost> {
    let database = canister.database()?;
    let measurement = if vacuum {
        database.open()?;
        measure_step(|| database.vacuum())
    } else {
        measure_step(|| {
            database.close();
            Ok(())
        })
    };
    measurement.map(PartCost::from)
}
