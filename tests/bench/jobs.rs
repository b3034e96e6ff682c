//! Jobs of the suites, as the canister takes them; what they find is tested suite by suite.

use super::canister::{Bench, CONTROLLER};
use candid::encode_args;
use stablebench_protocol::{
    DigestPart, Error, Inspected, Job, KeyKind, Keys, KeysTask, LinkSchema, Part, Performed,
};

/// As many operations as a message can list one by one.
const MAX_EACH: u64 = 100_000;

/// One user with one movie on the list.
fn keys(task: KeysTask) -> Job {
    Job::Keys(Keys {
        schema: LinkSchema::Id,
        key: KeyKind::Integer,
        users: 1,
        movies: 1,
        watches: 1,
        rows_a_millisecond: 1,
        foreign_keys: false,
        task,
    })
}

/// The tables of the suite keys are made.
pub fn create() -> Part {
    Part { job: keys(KeysTask::Create), seed: 1, from: 0, count: 1, each: false }
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let mut bench = Bench::new();
    for (part, error) in [
        (Part { count: 0, ..create() }, Error::NoRows),
        (Part { from: u64::MAX, ..create() }, Error::IdOverflow { largest: u64::MAX }),
        (
            Part { count: MAX_EACH + 1, each: true, ..create() },
            Error::TooManyEach { limit: MAX_EACH },
        ),
    ] {
        let (done, _) = bench.execute::<Performed>(CONTROLLER, "perform", (&part,));
        assert_eq!(done, Err(error), "{part:?}");
    }
    let argument = encode_args((create().job, None::<DigestPart>, 0_u64)).unwrap();
    let content = bench.0.query(CONTROLLER, "content", &argument).unwrap();
    let content: stablebench_protocol::Result<DigestPart> =
        candid::decode_one(&content.outcome.unwrap()).unwrap();
    assert_eq!(content, Err(Error::NoRows));
}

/// What fails after rows may have changed ends the message, and the next finds nothing of it.
#[test]
fn a_part_that_fails_leaves_nothing() {
    let mut bench = Bench::new();
    let users = Part { job: keys(KeysTask::Users), ..create() };
    for part in [&create(), &users] {
        let (done, _) = bench.execute::<Performed>(CONTROLLER, "perform", (part,));
        assert_eq!(done.unwrap().results, None);
    }
    let before = inspected(&bench);
    let again = bench.0.update(CONTROLLER, "perform", &encode_args((&users,)).unwrap()).unwrap();
    let reject = again.outcome.unwrap_err();
    assert!(format!("{reject:?}").contains("UNIQUE constraint failed"), "{reject:?}");
    assert_eq!(inspected(&bench), before);
    let movies = Part { job: keys(KeysTask::Movies), ..create() };
    let (done, _) = bench.execute::<Performed>(CONTROLLER, "perform", (&movies,));
    assert_eq!(done.unwrap().measurement.rows, 1, "no transaction was left open");
}

fn inspected(bench: &Bench) -> Inspected {
    let argument = encode_args((create().job,)).unwrap();
    let answer = bench.0.query(CONTROLLER, "inspect", &argument).unwrap();
    let inspected: stablebench_protocol::Result<Inspected> =
        candid::decode_one(&answer.outcome.unwrap()).unwrap();
    inspected.unwrap()
}
