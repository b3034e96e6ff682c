//! The canister of the suite calls, which calls others and keeps its rows on the heap.
//!
//! ```text
//!   stage          prepares a part of a job: the argument of its calls
//!   run            makes the calls, measured, and awaits the replies
//!   content        the digest of the replies and of the rows on the heap
//!   upgrade        writes the rows to stable memory as one Candid value, and reads them back
//! ```
//!
//! A call costs instructions here and there: those here are the difference of
//! `performance_counter(1)`, which counts all messages of the call to `run`. Those of the canister
//! that is called are in its replies.

mod callee;

use std::cell::RefCell;
use std::collections::BTreeMap;

use callee::CountedTask;
use candid::Principal;
use ic_cdk::api::canister_self;
use stablebench_harness::endpoints::require_controller;
use stablebench_harness::{crate_versions, heap_pages, measure as measure_now, stable_pages};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, Description, Digest, DigestPart, Engine, Error, Executed, Inspected,
    Job, JobPart, Measurement, Occupant, PartCost, Result,
};
use stablebench_suite_calls::work::{self as model, Reply};
use stablebench_suite_calls::{CallOptions, CallSize, Calls};
use stablebench_workload::{Amount, ContentDigest};

/// The interface, for `dfx`, `icp` and web interfaces.
#[used]
#[cfg_attr(target_family = "wasm", unsafe(link_section = "icp:public candid:service"))]
static CANDID: [u8; include_bytes!("../bench_calls.did").len()] =
    *include_bytes!("../bench_calls.did");

/// The most rows that a message adds to the map.
const MAX_ROWS: u64 = 1_000_000;

#[derive(Default)]
struct HeapState {
    /// The canister that is called.
    callee: Option<Principal>,
    rows: HeapRows,
    /// The replies to the calls of the last message.
    replies: Vec<Reply>,
    /// The largest id of a measured call since the heap was created.
    last_call: u64,
    /// The work of the next measured message.
    staged: Option<StagedPart>,
}

/// A part of a job, with the argument of its calls.
struct StagedPart {
    job: Calls,
    part: JobPart,
    argument: Vec<u8>,
    callee: Option<Principal>,
}

thread_local! {
    static STATE: RefCell<HeapState> = RefCell::default();
}

fn with<T>(use_it: impl FnOnce(&mut HeapState) -> T) -> T {
    STATE.with_borrow_mut(use_it)
}

/// Admits a call: ids increase, so that a call that arrives twice is executed once.
fn admit(call_id: Option<u64>) -> Result<()> {
    require_controller()?;
    let Some(id) = call_id else { return Ok(()) };
    with(|state| {
        if id <= state.last_call {
            return Err(Error::Repeated { last: state.last_call });
        }
        state.last_call = id;
        Ok(())
    })
}

fn prepare(part: &JobPart) -> Result<StagedPart> {
    let job: Calls = part.job.decode()?;
    if part.count == 0 {
        return Err(Error::NoRows);
    }
    if part.count > MAX_ROWS {
        return Err(Error::TooManyRows { limit: MAX_ROWS });
    }
    model::check(&job, part)?;
    let argument = match &job {
        Calls::Call(call) => model::argument(call.size),
        Calls::Install(_) | Calls::Message | Calls::Rounds | Calls::Insert(_) => Vec::new(),
    };
    let callee = with(|state| state.callee);
    Ok(StagedPart { job, part: part.clone(), argument, callee })
}

/// Does a part, measured.
async fn execute_part(staged: &StagedPart) -> Result<PartCost> {
    let StagedPart { job, part, argument, callee } = staged;
    let count = part.count;
    with(|state| state.replies.clear());
    let other = || callee.ok_or_else(|| unsupported("calls before a canister is installed"));
    let measured = match *job {
        Calls::Install(of) => {
            let callee = callee::install(of).await;
            with(|state| state.callee = Some(callee));
            measure_now(|| Ok(Amount::default()))?
        }
        Calls::Message => measure_message()?,
        Calls::Insert(bytes) => {
            measure_now(|| with(|state| state.rows.insert(part.from, count, bytes)))?
        }
        Calls::Rounds => {
            let task = CountedTask::new(other()?, count).await;
            measure(async { Ok(WorkReport::of_tasks(task.counted().await)) }).await?
        }
        Calls::Call(call) => {
            let other = other()?;
            let (measured, replies) = measure_calls(call, other, argument, count).await?;
            with(|state| state.replies = replies);
            measured
        }
    };
    Ok(measured.into())
}

/// Measures the message itself, from its beginning.
fn measure_message() -> Result<Measurement> {
    let nothing = measure_now(|| Ok(Amount::default()))?;
    Ok(Measurement { instructions: nothing.message_instructions, ..nothing })
}

async fn measure_calls(
    call: CallOptions,
    other: Principal,
    argument: &[u8],
    count: u64,
) -> Result<(Measurement, Vec<Reply>)> {
    let mut replies = Vec::with_capacity(count as usize);
    let measured = measure(async {
        callee::call(call, other, canister_self(), argument, count, &mut replies).await;
        Ok(WorkReport::default())
    })
    .await?;
    let replies = replies.into_iter().map(callee::reply).collect::<Vec<_>>();
    Ok((with_replies(measured, call.size, &replies), replies))
}

/// What work that may await replies reports when it is done.
#[derive(Clone, Copy, Debug, Default)]
struct WorkReport {
    /// The size of the work.
    amount: Amount,
    /// Instructions of tasks, which are measured instead of the work.
    tasks: Option<u64>,
}

impl WorkReport {
    /// Executions of a task, and their instructions.
    fn of_tasks((executions, instructions): (u64, u64)) -> Self {
        Self { amount: Amount { rows: executions, bytes: 0 }, tasks: Some(instructions) }
    }
}

/// Measures work that may await replies: `performance_counter(1)`, and pages of memory.
///
/// # Errors
///
/// Those of the work.
async fn measure(work: impl Future<Output = Result<WorkReport>>) -> Result<Measurement> {
    let heap_pages_before = heap_pages();
    let stable_pages_before = stable_pages();
    let calibration = instructions();
    let counter_overhead = instructions() - calibration;

    let before = instructions();
    let outcome = work.await;
    let after = instructions();

    let WorkReport { amount, tasks } = outcome?;
    Ok(Measurement {
        instructions: tasks.unwrap_or(after - before),
        counter_overhead: if tasks.is_some() { 0 } else { counter_overhead },
        message_instructions: after,
        rows: amount.rows,
        bytes: amount.bytes,
        heap_pages_before,
        heap_pages_after: heap_pages(),
        stable_pages_before,
        stable_pages_after: stable_pages(),
    })
}

/// Adds the replies to the measurement of the calls that they answer.
fn with_replies(measured: Measurement, size: CallSize, replies: &[Reply]) -> Measurement {
    let there: u64 = replies.iter().map(Reply::instructions).sum();
    let bytes = replies.iter().map(|reply| match size {
        CallSize::Argument(_) => model::carried(size),
        CallSize::Reply(_) => reply.payload_bytes(),
    });
    Measurement {
        instructions: measured.instructions + there,
        message_instructions: measured.message_instructions + there,
        rows: replies.len() as u64,
        bytes: bytes.sum(),
        ..measured
    }
}

/// Instructions of the call so far, in all of its messages.
#[inline(always)]
fn instructions() -> u64 {
    ic_cdk::api::performance_counter(1_u32)
}

fn unsupported(operation: &str) -> Error {
    Error::Unsupported { engine: Engine::named("calls"), operation: operation.to_owned() }
}

/// Does the staged part; nothing if none is staged.
async fn run_staged(staged: Option<StagedPart>) -> Result<PartCost> {
    match &staged {
        Some(staged) => execute_part(staged).await,
        None => Ok(measure_now(|| Ok(Amount::default()))?.into()),
    }
}

#[ic_cdk::update]
fn stage(part: JobPart) -> Result<()> {
    require_controller()?;
    let staged = prepare(&part)?;
    with(|state| state.staged = Some(staged));
    Ok(())
}

#[ic_cdk::update(
    hidden = true,
    decode_with = "stablebench_harness::endpoints::call_id",
    encode_with = "stablebench_harness::endpoints::part_cost"
)]
async fn run(call_id: u64) -> Result<PartCost> {
    admit(Some(call_id))?;
    run_staged(with(|state| state.staged.take())).await
}

#[ic_cdk::query(hidden = true, encode_with = "stablebench_harness::endpoints::part_cost")]
fn run_query() -> Result<PartCost> {
    match with(|state| state.staged.take()).map(|staged| staged.job) {
        None | Some(Calls::Message) => measure_message().map(PartCost::from),
        Some(_) => Err(Error::WritesInQuery),
    }
}

#[ic_cdk::query(
    composite = true,
    hidden = true,
    encode_with = "stablebench_harness::endpoints::part_cost"
)]
async fn run_composite_query() -> Result<PartCost> {
    let staged = with(|state| state.staged.take());
    match staged.as_ref().map(|staged| staged.job) {
        None | Some(Calls::Message) => run_staged(staged).await,
        Some(Calls::Call(call)) if call.from_query => run_staged(staged).await,
        Some(_) => Err(Error::WritesInQuery),
    }
}

#[ic_cdk::query]
fn results(part: JobPart) -> Result<Option<Digest>> {
    prepare(&part).map(|_| None)
}

#[ic_cdk::update]
async fn execute(part: JobPart, call_id: Option<u64>) -> Result<Executed> {
    admit(call_id)?;
    let PartCost { measurement, each } = execute_part(&prepare(&part)?).await?;
    Ok(Executed { measurement, each, results: None })
}

#[ic_cdk::query]
fn content(job: Job, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
    job.decode::<Calls>()?;
    let part = part.unwrap_or_default();
    if part.done {
        return Err(Error::DigestDone);
    }
    if limit == 0 {
        return Err(Error::NoRows);
    }
    with(|state| {
        let mut digest = ContentDigest::from(part.digest);
        let next = state.rows.add_to(&mut digest, part.position, limit);
        if next.is_none() {
            model::add_replies(&mut digest, &state.replies);
        }
        Ok(DigestPart {
            digest: digest.value(),
            position: next.unwrap_or(0),
            done: next.is_none(),
            message_instructions: stablebench_harness::instructions(),
        })
    })
}

#[ic_cdk::query]
fn inspect(job: Job) -> Result<Inspected> {
    job.decode::<Calls>()?;
    Ok(Inspected {
        stored_bytes: with(|state| state.rows.bytes()),
        virtual_bytes: 0,
        cache_bytes: 0,
        sqlite: None,
        objects: Vec::new(),
    })
}

#[ic_cdk::query]
fn describe() -> Result<Description> {
    Ok(Description {
        occupant: Occupant::Nobody,
        engines: Vec::new(),
        payload_bytes: DEFAULT_PAYLOAD_BYTES,
        max_rows: MAX_ROWS,
        heap_pages: heap_pages(),
        stable_pages: stable_pages(),
        sqlite: None,
        crates: crate_versions(env!("CRATE_VERSIONS")),
    })
}

#[ic_cdk::pre_upgrade]
fn pre_upgrade() {
    let saved = with(|state| state.rows.save(state.callee));
    // A trap keeps the canister as it is.
    if let Err(error) = saved {
        ic_cdk::api::trap(error);
    }
}

#[ic_cdk::post_upgrade]
fn post_upgrade() {
    match HeapRows::load() {
        Ok((rows, callee)) => {
            with(|state| *state = HeapState { rows, callee, ..HeapState::default() })
        }
        Err(error) => ic_cdk::api::trap(error),
    }
}

/// Rows on the heap, which an upgrade writes to stable memory as one Candid value.
#[derive(Default)]
struct HeapRows(BTreeMap<u64, String>);

impl HeapRows {
    /// Adds rows from an id on, with texts of this length.
    ///
    /// # Errors
    ///
    /// If one of them exists; then nothing has changed.
    fn insert(&mut self, from: u64, count: u64, bytes: u32) -> Result<Amount> {
        if let Some((id, _)) = self.0.range(from..from + count).next() {
            return Err(Error::IdExists { id: *id });
        }
        for id in from..from + count {
            self.0.insert(id, model::text(id, bytes));
        }
        Ok(Amount { rows: count, bytes: count * u64::from(bytes) })
    }

    /// Adds at most `limit` rows from an id on to a digest. Returns the id of the next row.
    fn add_to(&self, digest: &mut ContentDigest, from: u64, limit: u64) -> Option<u64> {
        let mut rows = self.0.range(from..);
        for (id, text) in rows.by_ref().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            digest.add(*id, text.as_bytes());
        }
        rows.next().map(|(id, _)| *id)
    }

    /// Returns the bytes of the ids and texts.
    fn bytes(&self) -> u64 {
        self.0.values().map(|text| 8 + text.len() as u64).sum()
    }

    /// Writes the rows and the canister that is called to stable memory.
    ///
    /// # Errors
    ///
    /// If the memory cannot grow.
    fn save(&self, callee: Option<Principal>) -> std::result::Result<(), String> {
        ic_cdk::storage::stable_save((&self.0, callee)).map_err(|error| error.to_string())
    }

    /// Reads what was written.
    ///
    /// # Errors
    ///
    /// If stable memory does not begin with it.
    fn load() -> std::result::Result<(Self, Option<Principal>), String> {
        let (rows, callee) = ic_cdk::storage::stable_restore()?;
        Ok((Self(rows), callee))
    }
}
