//! The point reads of the suite cuckoo on an engine of keys and values, against the model.

use crate::heap_records::RecordsCanister;
use stablebench_harness::Host;
use stablebench_protocol::{
    Cuckoo, CuckooKeys, CuckooTask, DigestPart, Engine, Error, Job, Lookups, Part, PointStore,
};
use stablebench_workload::cuckoo::CuckooModel;
use stablebench_workload::{Expected, Tables};

const ITEMS: u64 = 90;

fn part(keys: CuckooKeys, task: CuckooTask, from: u64, count: u64) -> Part {
    let job = Cuckoo { store: PointStore::Btree, keys, buckets: 128, items: ITEMS, task };
    Part { job: Job::Cuckoo(job), seed: 3, from, count, each: false }
}

#[test]
fn an_engine_of_keys_and_values_looks_items_up() {
    let (hit, miss) = (CuckooTask::Hit(Lookups::Single), CuckooTask::Miss(Lookups::Single));
    for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
        let (mut host, mut model) = (Host::new(RecordsCanister::default()), CuckooModel::default());
        for (task, from, count) in [
            (CuckooTask::Build, 0, 50),
            (CuckooTask::Build, 50, 40),
            (hit, 0, ITEMS),
            (miss, 0, ITEMS),
        ] {
            let part = part(keys, task, from, count);
            let expected = model.perform(&part);
            let performed = host.perform(&part).unwrap();
            let found = Expected {
                rows: performed.measurement.rows,
                bytes: performed.measurement.bytes,
                results: performed.results,
            };
            assert_eq!(found, expected, "{part:?}");
            assert_eq!(found.rows, if task == miss { 0 } else { count }, "{part:?}");
        }
        let job = part(keys, hit, 0, 1).job;
        let mut content: Option<DigestPart> = None;
        while content.is_none_or(|part| !part.done) {
            content = Some(host.content(&job, content, 9).unwrap());
        }
        assert_eq!(content.unwrap().digest, model.content());
        assert_eq!(host.inspect(&job).unwrap().stored_bytes, ITEMS * 12);
        let batch = part(keys, CuckooTask::Hit(Lookups::Batch(10)), 0, 10);
        let operation = "look up in batches".to_owned();
        let refused = Err(Error::Unsupported { engine: Engine::Btree, operation });
        assert_eq!(host.perform(&batch), refused);
    }
}
