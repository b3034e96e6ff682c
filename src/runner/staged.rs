//! Measured messages: work is staged by a message before it, so that the measured one holds
//! the work and next to nothing else.
//!
//! ```text
//!   results                  the digest of what a part of a job will read
//!   stage_work, stage_part   decodes, checks and expands; may be sent again
//!   run(call id)             the work, measured; done once
//! ```

use anyhow::{Context, Result};
use candid::encode_args;
use candid::utils::ArgumentEncoder;
use stablebench_protocol::{Digest, Part, Work, Worked};

use super::capacity::is_too_much;
use super::case::add;
use crate::replica::decoding::decode_one;
use crate::replica::{Answer, Cost, Messages, Receipt, query, update};
use crate::results::{Case, Measured, Outcome, State};

/// Section and name of the message without work, in results.
const HARNESS: &str = "harness";
const EMPTY: &str = "empty message";

/// Does work in a message of its own.
pub(super) fn work(canister: &mut dyn Messages, work: &Work) -> Result<(Worked, Receipt)> {
    stage(canister, "stage_work", (work,))?;
    run(canister)
}

/// Does work that changes no rows in a query of its own.
pub(super) fn look(canister: &mut dyn Messages, work: &Work) -> Result<(Worked, Receipt)> {
    stage(canister, "stage_work", (work,))?;
    let answer = canister.measure_query("run_query", &encode_args(())?)?;
    decode("run_query", answer)
}

/// Does a part of a job in a message of its own.
pub(super) fn part(canister: &mut dyn Messages, part: &Part) -> Result<(Worked, Receipt)> {
    stage(canister, "stage_part", (part,))?;
    run(canister)
}

/// Sends the messages that [`part`] sends, for the state that they leave in the canister.
pub(super) fn as_measured(canister: &mut dyn Messages, part: &Part) -> Result<(Worked, Cost)> {
    stage(canister, "stage_part", (part,))?;
    let (worked, receipt) = unobserved(canister)?;
    Ok((worked, receipt.cost))
}

/// The digest of what a part of a job reads; nothing where it writes.
pub(super) fn results(canister: &mut dyn Messages, part: &Part) -> Result<Option<Digest>> {
    match query(canister, "results", (part,)) {
        // As an update, a query may use more instructions, and its changes are dropped all the
        // same.
        Err(error) if is_too_much(&error) => {
            update(canister, "results", (part,)).map(|(results, _)| results)
        }
        answer => answer,
    }
}

/// Measures the message without work: what is left is the harness.
pub(super) fn empty(canister: &mut dyn Messages, name: &str) -> Result<Case> {
    // The first message grows the heap.
    unobserved(canister)?;
    // No profile shows this message, so it is not sent as a measurement either.
    let (worked, receipt) = unobserved(canister)?;
    let measured = Measured {
        instructions: worked.measurement.instructions,
        operations: 0,
        capacity: None,
        detail: Some(add(None, &worked.measurement, &receipt)),
        each: None,
        phases: None,
    };
    Ok(Case {
        section: HARNESS.to_owned(),
        name: EMPTY.to_owned(),
        column: name.to_owned(),
        rows: 0,
        payload: 0,
        state: State::Warm,
        outcome: Outcome::Measured(measured),
    })
}

fn stage(canister: &mut dyn Messages, method: &str, work: impl ArgumentEncoder) -> Result<()> {
    // Staged twice is staged once: a message that has taken an id is sent again where its
    // answer is lost.
    canister.call_id();
    update::<()>(canister, method, work).map(drop)
}

fn run(canister: &mut dyn Messages) -> Result<(Worked, Receipt)> {
    let id = canister.call_id();
    let answer = canister.measure("run", &encode_args((id,))?)?;
    decode("run", answer)
}

/// Runs what is staged like [`run`], but not as a measurement for those who look into such.
fn unobserved(canister: &mut dyn Messages) -> Result<(Worked, Receipt)> {
    let id = canister.call_id();
    let answer = canister.update("run", &encode_args((id,))?)?;
    decode("run", answer)
}

fn decode(method: &'static str, answer: Answer) -> Result<(Worked, Receipt)> {
    let Answer { outcome, cost, readings } = answer;
    let bytes = outcome.context(method)?;
    let worked = decode_one::<stablebench_protocol::Result<Worked>>(&bytes)
        .with_context(|| format!("{method} answered something else than expected"))?;
    Ok((worked.context(method)?, Receipt { cost, readings }))
}
