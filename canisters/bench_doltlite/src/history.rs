//! The suite history: work on a table and its commits.

use stablebench_harness::sql::{self, Measured, Table};
use stablebench_harness::{Sql, measure, trap};
use stablebench_protocol::{Digest, DigestPart, Engine, Error, History, Job, Part, Result, Worked};
use stablebench_workload::Amount;
use stablebench_workload::history::{Work, work};

const TABLE: Table<'_> = Table { name: "history", columns: "id, value", order: "id" };

/// Does a part, measured.
pub fn perform(sql: &mut dyn Sql, part: &Part) -> Result<Worked> {
    match work(job(part)?, part) {
        Work::Script(script) => Measured::new(script, part.each).run(sql),
        Work::Batch(statements) => {
            // A part of it may be done: the system undoes it.
            let measured = measure(|| sql.batch(&statements).map(|()| Amount::default()));
            let measurement = measured.unwrap_or_else(|error| trap(&error));
            Ok(Worked { measurement, each: Vec::new() })
        }
    }
}

/// The digest of what a part reads.
pub fn results(sql: &mut dyn Sql, part: &Part) -> Result<Option<Digest>> {
    match work(job(part)?, part) {
        Work::Script(script) => sql::results(sql, &script),
        Work::Batch(_) => Ok(None),
    }
}

fn job(part: &Part) -> Result<&History> {
    match &part.job {
        Job::History(job) => Ok(job),
        _ => Err(Error::EngineUnavailable { engine: Engine::Sqlite }),
    }
}

/// All rows of the table, on the branch where one is.
pub fn content(sql: &mut dyn Sql, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
    sql::content(sql, &[TABLE], part, limit)
}
