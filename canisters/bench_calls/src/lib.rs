//! A canister that calls others, and one that keeps its rows on the heap.
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
mod itself;
mod measure;
mod rows;

use std::cell::RefCell;

use callee::Started;
use candid::Principal;
use ic_cdk::api::canister_self;
use measure::{Work, measure};
use rows::Rows;
use stablebench_harness::endpoints::require_controller;
use stablebench_harness::{crate_versions, measure as measure_now};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, Description, Digest, DigestPart, Engine, Error, Executed, Inspected,
    Job, Measurement, Occupant, Part, PartCost, Result,
};
use stablebench_suite_calls::work::{self as model, Reply};
use stablebench_suite_calls::{Call, Calls};
use stablebench_workload::{Amount, ContentDigest};

/// The interface, for `dfx`, `icp` and web interfaces.
#[used]
#[cfg_attr(target_family = "wasm", unsafe(link_section = "icp:public candid:service"))]
static CANDID: [u8; include_bytes!("../bench_calls.did").len()] =
    *include_bytes!("../bench_calls.did");

/// The most rows that a message adds to the map.
const MAX_ROWS: u64 = 1_000_000;

#[derive(Default)]
struct State {
    /// The canister that is called.
    callee: Option<Principal>,
    rows: Rows,
    /// The replies to the calls of the last message.
    replies: Vec<Reply>,
    /// The largest id of a measured call since the heap was created.
    last_call: u64,
    /// The work of the next measured message.
    staged: Option<Staged>,
}

/// A part of a job, with the argument of its calls.
struct Staged {
    job: Calls,
    part: Part,
    argument: Vec<u8>,
    callee: Option<Principal>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(use_it: impl FnOnce(&mut State) -> T) -> T {
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

fn prepare(part: &Part) -> Result<Staged> {
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
    Ok(Staged { job, part: part.clone(), argument, callee })
}

/// Does a part, measured.
async fn work(staged: &Staged) -> Result<PartCost> {
    let Staged { job, part, argument, callee } = staged;
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
            let started = Started::new(other()?, count).await;
            measure(async { Ok(Work::of_tasks(started.counted().await)) }).await?
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
    call: Call,
    other: Principal,
    argument: &[u8],
    count: u64,
) -> Result<(Measurement, Vec<Reply>)> {
    let mut replies = Vec::with_capacity(count as usize);
    let measured = measure(async {
        callee::call(call, other, canister_self(), argument, count, &mut replies).await;
        Ok(Work::default())
    })
    .await?;
    let replies = replies.into_iter().map(callee::reply).collect::<Vec<_>>();
    Ok((measure::with_replies(measured, call.size, &replies), replies))
}

fn unsupported(operation: &str) -> Error {
    Error::Unsupported { engine: Engine::named("calls"), operation: operation.to_owned() }
}

/// Does the staged part; nothing if none is staged.
async fn run_staged(staged: Option<Staged>) -> Result<PartCost> {
    match &staged {
        Some(staged) => work(staged).await,
        None => Ok(measure_now(|| Ok(Amount::default()))?.into()),
    }
}

#[ic_cdk::update]
fn stage(part: Part) -> Result<()> {
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
fn results(part: Part) -> Result<Option<Digest>> {
    prepare(&part).map(|_| None)
}

#[ic_cdk::update]
async fn execute(part: Part, call_id: Option<u64>) -> Result<Executed> {
    admit(call_id)?;
    let PartCost { measurement, each } = work(&prepare(&part)?).await?;
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
        heap_pages: stablebench_harness::heap_pages(),
        stable_pages: stablebench_harness::stable_pages(),
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
    match Rows::load() {
        Ok((rows, callee)) => with(|state| *state = State { rows, callee, ..State::default() }),
        Err(error) => ic_cdk::api::trap(error),
    }
}
