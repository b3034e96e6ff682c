//! The argument of a call, and the reply of the canister that is called.
//!
//! ```text
//!   argument   bytes that count up: 0, 1, … 250, 0, …
//!              or, for a call with a large reply, the size of that, 4 bytes, little-endian
//!
//!   reply      zeros: none, or as many as were asked for
//!              instructions so far ↕ 8, bytes of the argument ↕ 4
//! ```
//!
//! The rows that a model checks are the replies to the calls of the last message, without the
//! instructions, and the rows of the map on the heap.

use stablebench_protocol::{Digest, Error, JobPart, MAX_PAYLOAD_BYTES, Result};
use stablebench_workload::{ContentDigest, Expected, Model};

use crate::job::{CallOptions, CallSize, Callee, Calls};

/// Bytes at the end of each reply.
pub const TAIL: usize = 12;

/// The largest argument or reply of a call in bytes: those of a message may have 2 MiB, names and
/// the end of the reply included.
pub const MAX_CALL_BYTES: u32 = (2 << 20) - 64;

/// The most calls that a canister can have open to another one.
pub const MAX_PARALLEL: u64 = 500;

/// The ids of replies begin here, so that no row of the map has one of them.
const REPLIES: u64 = 1 << 63;

/// Returns the argument of a call.
pub fn argument(size: CallSize) -> Vec<u8> {
    match size {
        CallSize::Argument(bytes) => (0..bytes).map(|at| (at % 251) as u8).collect(),
        CallSize::Reply(bytes) => bytes.to_le_bytes().to_vec(),
    }
}

/// Returns the reply to a call, without the instructions.
fn reply(size: CallSize) -> Vec<u8> {
    let (zeros, argument) = match size {
        CallSize::Argument(bytes) => (0, bytes),
        CallSize::Reply(bytes) => (bytes, 4),
    };
    let mut reply = vec![0; zeros as usize];
    reply.extend(argument.to_le_bytes());
    reply
}

/// A reply that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(Vec<u8>);

impl Reply {
    /// Takes the bytes of a reply. `None` if they are too few.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= TAIL).then_some(Self(bytes))
    }

    /// Returns the instructions of the canister that was called, up to its reply.
    pub fn instructions(&self) -> u64 {
        let (_, tail) = self.parts();
        tail.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns the bytes that it was asked for.
    pub fn payload_bytes(&self) -> u64 {
        self.parts().0.len() as u64
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        self.0.split_at(self.0.len() - TAIL)
    }
}

/// Returns the bytes that a call carries there and back, besides those of each reply.
pub fn carried(size: CallSize) -> u64 {
    match size {
        CallSize::Argument(bytes) | CallSize::Reply(bytes) => bytes.into(),
    }
}

/// Adds replies to a digest.
pub fn add_replies(digest: &mut ContentDigest, replies: &[Reply]) {
    for (id, reply) in (REPLIES..).zip(replies) {
        let (zeros, tail) = reply.parts();
        digest.add(id, &[zeros, &tail[8..]].concat());
    }
}

/// Returns the text of a row of the map.
pub fn text(id: u64, bytes: u32) -> String {
    let width = bytes as usize;
    let mut text = format!("{:.<width$}", format!("row-{id:08}-"));
    text.truncate(width);
    text
}

/// Checks a part.
///
/// # Errors
///
/// If it has more calls, or larger ones, than there can be.
pub fn check(job: &Calls, part: &JobPart) -> Result<()> {
    match *job {
        Calls::Call(CallOptions { size, parallel, .. }) => {
            if carried(size) > u64::from(MAX_CALL_BYTES) {
                return Err(Error::PayloadTooLong { limit: MAX_CALL_BYTES });
            }
            if parallel && part.count > MAX_PARALLEL {
                return Err(Error::TooManyRows { limit: MAX_PARALLEL });
            }
        }
        Calls::Insert(bytes) if bytes > MAX_PAYLOAD_BYTES => {
            return Err(Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES });
        }
        Calls::Install(_) | Calls::Message | Calls::Rounds | Calls::Insert(_) => {}
    }
    if part.from.checked_add(part.count).is_none_or(|end| end >= REPLIES) {
        return Err(Error::IdOverflow { largest: REPLIES - 1 });
    }
    Ok(())
}

/// The expected replies and rows.
#[derive(Clone, Debug, Default)]
pub struct CallsModel {
    callee: Callee,
    rows: ContentDigest,
    replies: Digest,
}

impl Model for CallsModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: Calls = part.job.decode()?;
        check(&job, part)?;
        let mut expected = Expected::default();
        self.replies = Digest::default();
        match job {
            Calls::Install(callee) => self.callee = callee,
            Calls::Message => {}
            Calls::Call(call) => {
                let reply = reply(call.size);
                let mut replies = ContentDigest::default();
                (0..part.count).for_each(|at| replies.add(REPLIES + at, &reply));
                match call.from_query {
                    true => expected.results = Some(replies.value()),
                    false => self.replies = replies.value(),
                }
                expected.rows = part.count;
                expected.bytes = part.count * carried(call.size);
            }
            Calls::Rounds if self.callee == Callee::Plain => {}
            Calls::Rounds => expected.rows = part.count,
            Calls::Insert(bytes) => {
                for id in part.from..part.from + part.count {
                    self.rows.add(id, text(id, bytes).as_bytes());
                }
                expected.rows = part.count;
                expected.bytes = part.count * u64::from(bytes);
            }
        }
        Ok(expected)
    }

    fn content(&self) -> Digest {
        let (rows, replies) = (self.rows.value(), self.replies);
        Digest {
            rows: rows.rows + replies.rows,
            low: rows.low.wrapping_add(replies.low),
            high: rows.high.wrapping_add(replies.high),
        }
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use stablebench_protocol::Job;

    use super::*;
    use crate::job::CallTo;

    fn part(job: &Calls, count: u64) -> JobPart {
        JobPart { job: Job::new(job), seed: 1, from: 0, count, each: false }
    }

    fn call(size: CallSize) -> Calls {
        Calls::Call(CallOptions { to: CallTo::Other, size, parallel: true, from_query: false })
    }

    /// The replies that a canister must have received, made from the description above.
    #[test]
    fn the_model_expects_the_replies_that_are_described() {
        for (size, zeros, argument) in
            [(CallSize::Argument(7), 0, 7_u32), (CallSize::Reply(300), 300, 4)]
        {
            let mut model = CallsModel::default();
            let expected = model.execute(&part(&call(size), 3)).unwrap();
            assert_eq!((expected.rows, expected.bytes), (3, 3 * carried(size)));
            let mut digest = ContentDigest::default();
            let reply = |instructions: u64| {
                let mut bytes = vec![0; zeros];
                bytes.extend(instructions.to_le_bytes());
                bytes.extend(argument.to_le_bytes());
                Reply::new(bytes).unwrap()
            };
            // Instructions are no part of it.
            let replies = [reply(5), reply(6), reply(7)];
            add_replies(&mut digest, &replies);
            assert_eq!(digest.value(), model.content());
            assert_eq!(replies[1].instructions(), 6);
            assert_eq!(replies[1].payload_bytes(), zeros as u64);
        }
        assert_eq!(Reply::new(vec![0; TAIL - 1]), None);
    }

    #[test]
    fn rows_stay_and_replies_are_those_of_the_last_message() {
        let mut model = CallsModel::default();
        model.execute(&part(&Calls::Insert(20), 4)).unwrap();
        let rows = model.content();
        model.execute(&part(&call(CallSize::Argument(0)), 2)).unwrap();
        assert_eq!(model.content().rows, 6);
        model.execute(&part(&call(CallSize::Argument(0)), 1)).unwrap();
        assert_eq!(model.content().rows, 5);
        assert_eq!(rows.rows, 4);
        assert_eq!(text(42, 20), "row-00000042-.......");
        assert_eq!(text(42, 5), "row-0");
    }

    #[test]
    fn replies_to_a_query_are_its_results() {
        let size = CallSize::Argument(3);
        let call = CallOptions { to: CallTo::Query, size, parallel: false, from_query: true };
        let mut model = CallsModel::default();
        let results = model.execute(&part(&Calls::Call(call), 2)).unwrap().results.unwrap();
        assert_eq!((results.rows, model.content().rows), (2, 0));
        let update = CallOptions { from_query: false, ..call };
        assert_eq!(model.execute(&part(&Calls::Call(update), 2)).unwrap().results, None);
        assert_eq!(model.content(), results);
    }

    #[test]
    fn tasks_run_only_where_they_were_installed() {
        let mut model = CallsModel::default();
        assert_eq!(model.execute(&part(&Calls::Rounds, 9)).unwrap().rows, 0);
        model.execute(&part(&Calls::Install(Callee::Timer), 1)).unwrap();
        assert_eq!(model.execute(&part(&Calls::Rounds, 9)).unwrap().rows, 9);
    }

    #[test]
    fn calls_that_no_canister_could_make_are_refused() {
        let mut model = CallsModel::default();
        let mut refused = |job: &Calls, count| model.execute(&part(job, count)).unwrap_err();
        let long = call(CallSize::Argument(MAX_CALL_BYTES + 1));
        assert_eq!(refused(&long, 1), Error::PayloadTooLong { limit: MAX_CALL_BYTES });
        let many = call(CallSize::Reply(1));
        assert_eq!(refused(&many, 501), Error::TooManyRows { limit: MAX_PARALLEL });
        let long = Calls::Insert(MAX_PAYLOAD_BYTES + 1);
        assert_eq!(refused(&long, 1), Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES });
    }
}
