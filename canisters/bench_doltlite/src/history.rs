//! The suite history: work on a table and its commits.

use stablebench_harness::sql::{self, Table};
use stablebench_harness::{Sql, measure, trap};
use stablebench_protocol::{DigestPart, Engine, Error, Job, Part, Performed, Result};
use stablebench_workload::Amount;
use stablebench_workload::history::{Work, work};

const TABLE: Table<'_> = Table { name: "history", columns: "id, value", order: "id" };

/// Does a part, measured.
pub fn perform(sql: &mut dyn Sql, part: &Part) -> Result<Performed> {
    let Job::History(job) = &part.job else {
        return Err(Error::EngineUnavailable { engine: Engine::Sqlite });
    };
    match work(job, part) {
        Work::Script(script) => sql::perform(sql, &script, part.each),
        Work::Batch(statements) => {
            // A part of it may be done: the system undoes it.
            let measured = measure(|| sql.batch(&statements).map(|()| Amount::default()));
            let measurement = measured.unwrap_or_else(|error| trap(&error));
            Ok(Performed { measurement, each: Vec::new(), results: None })
        }
    }
}

/// All rows of the table, on the branch where one is.
pub fn content(sql: &mut dyn Sql, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
    sql::content(sql, &[TABLE], part, limit)
}
