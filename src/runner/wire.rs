//! The messages of our canisters: the only place that knows their methods.
//!
//! A measured message contains the work and next to nothing else, because a message before it
//! stages the work:
//!
//! ```text
//!   results         the digest of what a part of a job will read, unless that exceeds the limits of
//!                   this message: the digest of a million rows costs more than reading them
//!   stage           decodes, checks and expands; may be sent again
//!   run(call id)    the work, measured; executed once
//! ```

use anyhow::{Context, Result, bail};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, encode_args};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Executed, Inspected, Job, JobPart, KeptPart, Measurement,
    OperationCost, PartCost, PhaseCost, Setting,
};

use crate::replica::decoding::decode_one;
use crate::replica::{Answer, Messages, Receipt, Reject, query, query_all, update};
use crate::results::ConfigurationInfo;
use stablebench_suite::plan::{Search, Sent};

/// The outcome of a message.
pub struct MessageOutcome {
    pub measurement: Measurement,
    /// The cost of each operation, if it was measured.
    pub each: Vec<OperationCost>,
    pub results: ResultDigest,
    pub receipt: Receipt,
}

/// The results of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultDigest {
    /// The digest of what was read; `None` if the message wrote.
    Known(Option<Digest>),
    /// Not known: the digest exceeds the limits of a message, or was not requested.
    Unknown,
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

/// Executes a part of a job.
pub fn execute(
    canister: &mut dyn Messages,
    part: &JobPart,
    purpose: Purpose,
) -> Result<MessageOutcome> {
    if purpose == Purpose::Prepare {
        let id = Some(canister.call_id());
        let (executed, cost) = update(canister, "execute", (part, id))?;
        let Executed { measurement, each, results } = executed;
        let receipt = Receipt { cost, ..Receipt::default() };
        return Ok(MessageOutcome {
            measurement,
            each,
            results: ResultDigest::Known(results),
            receipt,
        });
    }
    let results = match ask(canister, "results", (part,)) {
        Ok(results) => ResultDigest::Known(results),
        Err(error) if exceeds_limit(&error) => ResultDigest::Unknown,
        Err(error) => return Err(error),
    };
    let mut done =
        MessageOutcome { results, ..run_staged(canister, part, purpose == Purpose::Measure)? };
    if purpose == Purpose::AsMeasured {
        done.receipt = Receipt { cost: done.receipt.cost, ..Receipt::default() };
    }
    Ok(done)
}

/// Executes a part of a job in a measured message, whose results are not read.
pub fn execute_unread(
    canister: &mut dyn Messages,
    part: &JobPart,
    search: Search,
) -> Result<MessageOutcome> {
    match search {
        Search::Update => run_staged(canister, part, true),
        Search::Query => run_query(canister, part, "run_query"),
        Search::Upgrade => bail!("an upgrade executes no part of a job"),
    }
}

/// Executes a part of a job in a measured query.
///
/// # Errors
///
/// If it is no query, or the canister refuses.
pub fn execute_query(
    canister: &mut dyn Messages,
    part: &JobPart,
    sent: Sent,
) -> Result<MessageOutcome> {
    match sent {
        Sent::Update => bail!("an update is no query"),
        Sent::Query => run_query(canister, part, "run_query"),
        // Its results are not read: a query calls no other.
        Sent::CompositeQuery => run_query(canister, part, "run_composite_query"),
    }
}

/// Executes a message without work: what is left is the harness.
pub fn execute_nothing(canister: &mut dyn Messages) -> Result<MessageOutcome> {
    // No profile shows this message, so it is not sent as a measurement.
    run(canister, false)
}

/// The phases of a part of a job.
pub fn phases(canister: &mut dyn Messages, part: &JobPart) -> Result<Vec<PhaseCost>> {
    let id = Some(canister.call_id());
    Ok(update(canister, "phases", (part, id))?.0)
}

/// Sets the engine of a fresh canister up.
///
/// # Errors
///
/// If the engine does not take a setting; the canister reads them back.
pub fn configure(canister: &mut dyn Messages, configuration: &ConfigurationInfo) -> Result<()> {
    if let Some(settings) = &configuration.settings {
        let settings: Vec<Setting> =
            settings.iter().map(|(name, value)| Setting::new(name, value)).collect();
        update::<Vec<Setting>>(canister, "configure", (settings,))?;
    }
    Ok(())
}

/// Sets the length of texts that decides how many rows a message may write.
pub fn set_payload(canister: &mut dyn Messages, bytes: u32) -> Result<()> {
    update::<()>(canister, "set_payload", (bytes,)).map(drop)
}

/// Reads the digest of at most `rows` rows of a job's tables after those of `part`.
pub fn content(
    canister: &mut dyn Messages,
    job: &Job,
    part: DigestPart,
    rows: u64,
) -> Result<DigestPart> {
    /// Rows from which on a query reads most of a canister's memory.
    const MANY_ROWS: u64 = 100_000;
    let arguments = (job, Some(part), rows);
    match rows < MANY_ROWS {
        true => query(canister, "content", arguments),
        false => query_all(canister, "content", arguments),
    }
}

/// A part of what a job's suite keeps for the caller, and the position of the next part.
pub fn kept(
    canister: &mut dyn Messages,
    job: &Job,
    position: u64,
) -> Result<(Vec<u8>, Option<u64>)> {
    let KeptPart { bytes, next } = ask(canister, "kept", (job, position))?;
    Ok((bytes, next))
}

/// The size of a job's tables and the settings of the engine.
pub fn inspect(canister: &mut dyn Messages, job: &Job) -> Result<Inspected> {
    ask(canister, "inspect", (job,))
}

/// The description of a canister.
pub fn describe(canister: &mut dyn Messages) -> Result<Description> {
    ask(canister, "describe", ())
}

/// Sends a query, and again as an update if it exceeds the limits of queries: an update may read
/// more pages, and the changes of a query's method are dropped as well.
fn ask<T: CandidType + DeserializeOwned>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder + Copy,
) -> Result<T> {
    match query(canister, method, arguments) {
        Err(error) if exceeds_limit(&error) => {
            update(canister, method, arguments).map(|(answer, _)| answer)
        }
        answer => answer,
    }
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
        Search::Upgrade => 300_000_000_000,
    }
}

fn run_staged(
    canister: &mut dyn Messages,
    part: &JobPart,
    measure: bool,
) -> Result<MessageOutcome> {
    stage(canister, part)?;
    run(canister, measure)
}

fn run_query(
    canister: &mut dyn Messages,
    part: &JobPart,
    method: &'static str,
) -> Result<MessageOutcome> {
    stage(canister, part)?;
    let answer = canister.measure_query(method, &encode_args(())?)?;
    decode(method, answer)
}

fn stage(canister: &mut dyn Messages, part: &JobPart) -> Result<()> {
    // Work that is staged twice is staged once: a message with an id is sent again if its answer
    // is lost.
    canister.call_id();
    update::<()>(canister, "stage", (part,)).map(drop)
}

/// Executes the staged work; `measure` is true if profilers and the like observe it.
fn run(canister: &mut dyn Messages, measure: bool) -> Result<MessageOutcome> {
    let id = encode_args((canister.call_id(),))?;
    let answer = match measure {
        true => canister.measure("run", &id)?,
        false => canister.update("run", &id)?,
    };
    decode("run", answer)
}

fn decode(method: &'static str, answer: Answer) -> Result<MessageOutcome> {
    let Answer { outcome, cost, readings } = answer;
    let bytes = outcome.context(method)?;
    let cost_of_part = decode_one::<stablebench_protocol::Result<PartCost>>(&bytes)
        .with_context(|| format!("{method} returned another type than expected"))?;
    let PartCost { measurement, each } = cost_of_part.context(method)?;
    Ok(MessageOutcome {
        measurement,
        each,
        results: ResultDigest::Unknown,
        receipt: Receipt { cost, readings },
    })
}

#[cfg(test)]
mod tests {
    use stablebench_protocol::Result as Reply;

    use super::*;
    use crate::replica::Cost;

    /// A canister whose queries are rejected with this code.
    struct Rejecting(&'static str);

    impl Messages for Rejecting {
        fn update(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            let reply: Reply<u64> = Ok(7);
            Ok(Answer {
                outcome: Ok(encode_args((reply,))?),
                cost: Cost::default(),
                readings: crate::replica::Readings::default(),
            })
        }

        fn query(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            let reject = Reject { code: self.0.to_owned(), message: String::new() };
            Ok(Answer { outcome: Err(reject), ..self.update("", &[])? })
        }

        fn upgrade(&mut self) -> Result<Cost> {
            unreachable!()
        }
    }

    #[test]
    fn a_query_that_exceeds_its_limits_is_sent_as_an_update() {
        for (code, answer) in [
            ("CanisterInstructionLimitExceeded", Some(7)),
            ("CanisterMemoryAccessLimitExceeded", Some(7)),
            ("CanisterTrapped", None),
        ] {
            assert_eq!(ask::<u64>(&mut Rejecting(code), "describe", ()).ok(), answer, "{code}");
        }
    }
}
