//! The messages of our canisters: the only place that knows their methods.
//!
//! A measured message contains the work and next to nothing else, because a message before it
//! stages the work:
//!
//! ```text
//!   results                  the digest of what a part of a job will read
//!   stage_work, stage_part   decodes, checks and expands; may be sent again
//!   run(call id)             the work, measured; executed once
//! ```

use anyhow::{Context, Result};
use candid::encode_args;
use candid::utils::ArgumentEncoder;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Inspected, LeveldbConfig, Measurement, Operation,
    OperationCost, Part as SuitePart, Performed, PhaseCost, Selection, SqliteSettings, Work,
    Worked,
};

use crate::replica::decoding::decode_one;
use crate::replica::{Answer, Messages, Receipt, Reject, query, query_all, update};
use crate::results::Column;
use crate::suites::plan::{Job, Part, Search};

/// The outcome of a message.
pub struct Done {
    pub measurement: Measurement,
    /// The cost of each operation, if it was measured.
    pub each: Vec<OperationCost>,
    /// The digest of what was read, if the canister reports it.
    pub results: Option<Digest>,
    pub receipt: Receipt,
}

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A measurement.
    Measure,
    /// The same messages as for a measurement, for the state that they leave in the canister.
    AsMeasured,
    /// Preparation, in one message.
    Prepare,
}

/// Executes a part of a job on an engine.
pub fn execute(
    canister: &mut dyn Messages,
    engine: Engine,
    part: &Part<'_>,
    purpose: Purpose,
) -> Result<Done> {
    if let Some(suite) = part.of_suite() {
        return execute_suite(canister, &suite, purpose);
    }
    let plain = |(measurement, cost): (Measurement, _)| Done {
        measurement,
        each: Vec::new(),
        results: None,
        receipt: Receipt { cost, ..Receipt::default() },
    };
    let work = match part.job {
        Job::Close => {
            let (_, cost) = update::<()>(canister, "close_connection", ())?;
            return Ok(plain((Measurement::default(), cost)));
        }
        Job::Vacuum => return update::<Measurement>(canister, "vacuum", ()).map(plain),
        _ => work(engine, part)?,
    };
    if purpose == Purpose::Prepare {
        if let Operation::Insert(Selection::Step { first, step, rows }) = work.operation {
            return update(canister, "add_users", (engine, first, step, rows)).map(plain);
        }
        let (Worked { measurement, each }, cost) = update(canister, "work", (work,))?;
        return Ok(Done { each, ..plain((measurement, cost)) });
    }
    stage(canister, "stage_work", (&work,))?;
    let (worked, receipt) = run(canister, purpose == Purpose::Measure)?;
    Ok(done(worked, None, receipt))
}

/// Executes work that changes no rows in a query.
pub fn execute_query(canister: &mut dyn Messages, engine: Engine, part: &Part<'_>) -> Result<Done> {
    stage(canister, "stage_work", (&work(engine, part)?,))?;
    let answer = canister.measure_query("run_query", &encode_args(())?)?;
    let (worked, receipt) = decode("run_query", answer)?;
    Ok(done(worked, None, receipt))
}

/// Executes a message without work: what is left is the harness.
pub fn execute_nothing(canister: &mut dyn Messages) -> Result<Done> {
    // No profile shows this message, so it is not sent as a measurement.
    let (worked, receipt) = run(canister, false)?;
    Ok(done(worked, None, receipt))
}

fn execute_suite(canister: &mut dyn Messages, part: &SuitePart, purpose: Purpose) -> Result<Done> {
    if purpose == Purpose::Prepare {
        let (Performed { measurement, each, results }, cost) =
            update(canister, "perform", (part,))?;
        let receipt = Receipt { cost, ..Receipt::default() };
        return Ok(Done { measurement, each, results, receipt });
    }
    // The query leaves nothing behind: if it reaches a limit, nothing has happened.
    let results = match query(canister, "results", (part,)) {
        // An update may use more instructions, and its changes are none.
        Err(error) if exceeds_limit(&error) => {
            update(canister, "results", (part,)).map(|(results, _)| results)
        }
        answer => answer,
    }?;
    stage(canister, "stage_part", (part,))?;
    let (worked, receipt) = run(canister, purpose == Purpose::Measure)?;
    let mut done = done(worked, results, receipt);
    if purpose == Purpose::AsMeasured {
        done.receipt = Receipt { cost: done.receipt.cost, ..Receipt::default() };
    }
    Ok(done)
}

fn work(engine: Engine, part: &Part<'_>) -> Result<Work> {
    let transaction = match part.job {
        Job::Rows { work, .. } => work.transaction,
        _ => None,
    };
    let operation = part.operation()?.context("the job has no operation")?;
    Ok(Work { engine, operation, transaction, each: part.each })
}

/// The phases of a job of another suite than users.
pub fn phases(canister: &mut dyn Messages, part: &Part<'_>) -> Result<Vec<PhaseCost>> {
    let part = part.of_suite().context("only jobs of other suites than users have phases")?;
    let id = Some(canister.call_id());
    Ok(update(canister, "phases", (&part, id))?.0)
}

/// Sets the engine of a fresh canister up.
///
/// # Errors
///
/// If the engine does not take a setting; the canister reads them back.
pub fn configure(canister: &mut dyn Messages, column: &Column) -> Result<()> {
    if let Some(config) = column.sqlite {
        update::<SqliteSettings>(canister, "configure_sqlite", (config,))?;
    }
    if let Some(config) = column.leveldb {
        update::<LeveldbConfig>(canister, "configure_leveldb", (config,))?;
    }
    Ok(())
}

/// Sets the length of the texts of the users suite.
pub fn set_payload(canister: &mut dyn Messages, bytes: u32) -> Result<()> {
    update::<()>(canister, "set_payload", (bytes,)).map(drop)
}

/// Reads the digest of at most `rows` rows after those of `part`.
pub fn content(
    canister: &mut dyn Messages,
    engine: Engine,
    job: &Job,
    part: DigestPart,
    rows: u64,
) -> Result<DigestPart> {
    match job {
        Job::Suite(job) => {
            let part = (part != DigestPart::default()).then_some(part);
            ask(canister, rows, "content", (job, part, rows))
        }
        _ => ask(canister, rows, "digest", (engine, Some(part), rows)),
    }
}

/// Sends a query that reads so many rows.
fn ask(
    canister: &mut dyn Messages,
    rows: u64,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<DigestPart> {
    /// Rows from which on a query reads most of a canister's memory.
    const MANY_ROWS: u64 = 100_000;
    match rows < MANY_ROWS {
        true => query(canister, method, arguments),
        false => query_all(canister, method, arguments),
    }
}

/// The size of a job's tables and the settings of the engine.
pub fn inspect(canister: &mut dyn Messages, column: &Column, job: &Job) -> Result<Inspected> {
    if let Job::Suite(job) = job {
        let inspected: Inspected = query(canister, "inspect", (job,))?;
        let sqlite = inspected.sqlite.filter(|_| column.sqlite.is_some());
        return Ok(Inspected { sqlite, ..inspected });
    }
    let description = describe(canister)?;
    let held = description.engines.iter().find(|held| held.engine == column.engine);
    let held = held.context("the canister does not describe its engine")?;
    let sqlite = match column.sqlite {
        Some(_) => Some(query(canister, "sqlite_settings", ())?),
        None => None,
    };
    Ok(Inspected {
        stored_bytes: held.stored_bytes,
        virtual_bytes: held.virtual_bytes,
        cache_bytes: held.cache_bytes,
        sqlite,
        objects: Vec::new(),
    })
}

/// The description of a canister.
pub fn describe(canister: &mut dyn Messages) -> Result<Description> {
    query(canister, "describe", ())
}

/// True if a message has reached one of its limits.
pub fn exceeds_limit(error: &anyhow::Error) -> bool {
    use stablebench_protocol::Error;
    let limit = |reject: &Reject| {
        matches!(
            reject.code.as_str(),
            "CanisterInstructionLimitExceeded" | "CanisterMemoryAccessLimitExceeded"
        )
    };
    error.downcast_ref::<Reject>().is_some_and(limit)
        || matches!(
            error.downcast_ref::<Error>(),
            Some(Error::TooManyRows { .. } | Error::TooManyEach { .. })
        )
}

/// The most instructions of a message.
pub fn limit(search: Search) -> u64 {
    match search {
        Search::Update => 40_000_000_000,
        Search::Query => 5_000_000_000,
    }
}

fn stage(canister: &mut dyn Messages, method: &str, work: impl ArgumentEncoder) -> Result<()> {
    // Work that is staged twice is staged once: a message with an id is sent again if its answer
    // is lost.
    canister.call_id();
    update::<()>(canister, method, work).map(drop)
}

/// Executes the staged work; `measure` is true if profilers and the like observe it.
fn run(canister: &mut dyn Messages, measure: bool) -> Result<(Worked, Receipt)> {
    let id = encode_args((canister.call_id(),))?;
    let answer = match measure {
        true => canister.measure("run", &id)?,
        false => canister.update("run", &id)?,
    };
    decode("run", answer)
}

fn done(Worked { measurement, each }: Worked, results: Option<Digest>, receipt: Receipt) -> Done {
    Done { measurement, each, results, receipt }
}

fn decode(method: &'static str, answer: Answer) -> Result<(Worked, Receipt)> {
    let Answer { outcome, cost, readings } = answer;
    let bytes = outcome.context(method)?;
    let worked = decode_one::<stablebench_protocol::Result<Worked>>(&bytes)
        .with_context(|| format!("{method} returned another type than expected"))?;
    Ok((worked.context(method)?, Receipt { cost, readings }))
}
