//! Stores of the suite db-bench: whose the stable memory is, and what an upgrade keeps.

use super::canister::Bench;
use stablebench_protocol::{
    DbBench, DbBenchTask, DbBenchWrite, Digest, DigestPart, Engine, Error, Job, Occupant, Part,
    Performed, Result,
};

fn job(engine: Engine, task: DbBenchTask) -> Job {
    Job::DbBench(DbBench { engine, rowids: false, task })
}

fn perform(bench: &mut Bench, engine: Engine, task: DbBenchTask, count: u64) -> Result<Performed> {
    let part = Part { job: job(engine, task), seed: 1, from: 0, count, each: false };
    bench.update("perform", (part,))
}

const READY: DbBenchTask = DbBenchTask::Ready { fresh: true, sync: false };

fn fill(bench: &mut Bench, engine: Engine) {
    let write = DbBenchWrite { random: true, keys: 50, value_bytes: 70, batch: 7, stream: 0 };
    perform(bench, engine, READY, 1).unwrap();
    perform(bench, engine, DbBenchTask::Write(write), 50).unwrap();
}

fn content(bench: &Bench, engine: Engine) -> Digest {
    let part = None::<DigestPart>;
    let part: DigestPart = bench.query("content", (job(engine, READY), part, 1_000_u64)).unwrap();
    assert!(part.done);
    part.digest
}

const ENGINES: [Engine; 3] = [Engine::Sqlite, Engine::Btree, Engine::Array];

#[test]
fn stores_survive_an_upgrade() {
    let digests = ENGINES.map(|engine| {
        let mut bench = Bench::new();
        fill(&mut bench, engine);
        let before = content(&bench, engine);
        bench.upgrade();
        assert_eq!(content(&bench, engine), before, "{engine}");
        before
    });
    assert!(digests[0].rows > 20 && digests.iter().all(|digest| *digest == digests[0]));
}

#[test]
fn a_store_that_is_made_ready_is_empty() {
    for engine in ENGINES {
        let mut bench = Bench::new();
        fill(&mut bench, engine);
        perform(&mut bench, engine, READY, 1).unwrap();
        assert_eq!(content(&bench, engine), Digest::default(), "{engine}");
    }
}

#[test]
fn the_floor_shares_with_nobody() {
    let mut bench = Bench::new();
    fill(&mut bench, Engine::Btree);
    fill(&mut bench, Engine::Sqlite);
    let taken = Err(Error::StableMemoryTaken { occupant: Occupant::Manager });
    assert_eq!(perform(&mut bench, Engine::Array, READY, 1), taken);
    let mut bench = Bench::new();
    fill(&mut bench, Engine::Array);
    let taken = Error::StableMemoryTaken { occupant: Occupant::Floor(Engine::Array) };
    for engine in [Engine::Btree, Engine::Sqlite] {
        assert_eq!(perform(&mut bench, engine, READY, 1), Err(taken.clone()));
    }
    for engine in [Engine::Append, Engine::Cuckoo] {
        assert!(perform(&mut bench, engine, READY, 1).is_err(), "{engine}");
    }
}
