//! Parts of jobs on a canister that needs no wasm, against the model.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(missing_docs)]

#[path = "../../../canisters/harness/tests/heap/mod.rs"]
mod heap;

use heap::HeapRecords;
use stablebench_harness::{Canister, Host, SuiteEntry};
use stablebench_protocol::{
    CrateVersion, DigestPart, Engine, Error, Job, JobPart, Occupant, Result,
};
use stablebench_suite_cuckoo::canister::{ByKey, PointEngines, Points};
use stablebench_suite_cuckoo::work::CuckooModel;
use stablebench_suite_cuckoo::{Cuckoo, CuckooKeys, CuckooTask, Lookups};
use stablebench_workload::{Expected, Model};

/// A canister with an engine of keys and values on the heap.
struct HeapCanister(ByKey<HeapRecords>);

impl Default for HeapCanister {
    fn default() -> Self {
        Self(ByKey { engine: Engine::BTREE, records: HeapRecords::default() })
    }
}

impl Canister for HeapCanister {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<Cuckoo>()];

    fn occupant(&self) -> Occupant {
        Occupant::Manager
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self) -> Result<()> {
        Ok(())
    }

    fn load(&mut self) {}
}

impl PointEngines for HeapCanister {
    fn points(&mut self, _: &Cuckoo, _: u64) -> Result<&mut dyn Points> {
        Ok(&mut self.0)
    }
}

const ITEMS: u64 = 90;

fn items(keys: CuckooKeys, task: CuckooTask, from: u64, count: u64) -> JobPart {
    let (engine, buckets) = (Engine::BTREE, 128);
    let job = Cuckoo { engine, first_hash: None, keys, buckets, items: ITEMS, task };
    JobPart { job: Job::new(&job), seed: 3, from, count, each: false }
}

#[test]
fn an_engine_of_keys_and_values_looks_items_up() {
    let (hit, miss) = (CuckooTask::Hit(Lookups::Single), CuckooTask::Miss(Lookups::Single));
    for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
        let (mut host, mut model) = (Host::new(HeapCanister::default()), CuckooModel::default());
        for (task, from, count) in [
            (CuckooTask::Build, 0, 50),
            (CuckooTask::Build, 50, 40),
            (hit, 0, ITEMS),
            (miss, 0, ITEMS),
        ] {
            let part = items(keys, task, from, count);
            let expected = model.execute(&part).unwrap();
            let executed = host.execute(&part).unwrap();
            let found = Expected {
                rows: executed.measurement.rows,
                bytes: executed.measurement.bytes,
                results: executed.results,
            };
            assert_eq!(found, expected, "{part:?}");
            assert_eq!(found.rows, if task == miss { 0 } else { count }, "{part:?}");
        }
        let job = items(keys, hit, 0, 1).job;
        let mut content: Option<DigestPart> = None;
        while content.is_none_or(|part| !part.done) {
            content = Some(host.content(&job, content, 9).unwrap());
        }
        assert_eq!(content.unwrap().digest, model.content());
        assert_eq!(host.inspect(&job).unwrap().stored_bytes, ITEMS * 12);
        let batch = items(keys, CuckooTask::Hit(Lookups::Batch(10)), 0, 10);
        let operation = "look up in batches".to_owned();
        let refused = Err(Error::Unsupported { engine: Engine::BTREE, operation });
        assert_eq!(host.execute(&batch), refused);
    }
}
