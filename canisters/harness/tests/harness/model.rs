//! Engines against the model, through the host, over seeded streams of operations.

use crate::heap::HeapCanister;
use stablebench_harness::Host;
use stablebench_protocol::{Digest, DigestPart, Engine, Error};
use stablebench_workload::{Ids, Model, Operation, operations};

fn digest(host: &mut Host<HeapCanister>, engine: Engine, limit: u64) -> Digest {
    let mut part: Option<DigestPart> = None;
    loop {
        let next = host.digest(engine, part, limit).unwrap();
        if next.done {
            return next.digest;
        }
        assert_eq!(next.digest.rows - part.map_or(0, |part| part.digest.rows), limit);
        part = Some(next);
    }
}

fn check(engine: Engine, seed: u64) {
    let mut host = Host::new(HeapCanister::default());
    let mut model = Model::default();
    // Slots of the array hold what the first batch held: it begins with the longest.
    host.set_payload(200).unwrap();
    host.add(engine, 5000, 5, 1).unwrap();
    model.insert(Ids::new(5000, 5, 1).unwrap(), 200).unwrap();
    for operation in operations::stream(seed).take(120) {
        let (done, expected) = match operation {
            Operation::Insert { ids, bytes } => {
                host.set_payload(bytes).unwrap();
                let done = host.add(engine, ids.first(), ids.step(), ids.rows());
                (done, model.insert(ids, bytes).map(|()| ids.rows()))
            }
            Operation::Update { ids, bytes } => {
                host.set_payload(bytes).unwrap();
                let done = host.update(engine, ids.first(), ids.step(), ids.rows());
                (done, model.clone().update(ids, bytes).map(|()| ids.rows()))
            }
            Operation::Delete { ids } => (
                host.delete(engine, ids.first(), ids.step(), ids.rows()),
                model.clone().delete(ids).map(|()| ids.rows()),
            ),
            Operation::Read { ids } => {
                (host.read(engine, ids.first(), ids.step(), ids.rows()), Ok(model.read(ids)))
            }
        };
        if let Err(Error::Unsupported { .. }) = done {
            assert_eq!(engine, Engine::Append);
        } else {
            assert_eq!(done.map(|measurement| measurement.rows), expected, "{operation:?}");
            match operation {
                Operation::Update { ids, bytes } if expected.is_ok() => {
                    model.update(ids, bytes).unwrap();
                }
                Operation::Delete { ids } if expected.is_ok() => model.delete(ids).unwrap(),
                _ => {}
            }
        }
        assert_eq!(digest(&mut host, engine, 7), model.digest(), "{operation:?}");
    }
    assert_eq!(host.scan(engine, 10_000).unwrap().rows, model.rows());
    assert_eq!(host.scan(engine, 1).unwrap().rows, 1);
}

#[test]
fn a_map_is_the_model() {
    (0..50).for_each(|seed| check(Engine::Btree, seed));
}

#[test]
fn the_array_is_the_model() {
    (0..50).for_each(|seed| check(Engine::Array, seed));
}

#[test]
fn the_log_is_the_model() {
    (0..50).for_each(|seed| check(Engine::Append, seed));
}

#[test]
fn dense_rows_between_sparse_ids_are_stepped_over() {
    let mut host = Host::new(HeapCanister::default());
    host.add(Engine::Btree, 0, 1, 100_000).unwrap();
    assert_eq!(host.update(Engine::Btree, 7, 1000, 100).unwrap().rows, 100);
    assert_eq!(host.update(Engine::Btree, 7, 1000, 101), Err(Error::IdMissing { id: 100_007 }),);
    host.delete(Engine::Btree, 50_007, 1000, 1).unwrap();
    assert_eq!(host.update(Engine::Btree, 7, 1000, 100), Err(Error::IdMissing { id: 50_007 }),);
    assert_eq!(host.add(Engine::Btree, 50_007, 1000, 2), Err(Error::IdExists { id: 51_007 }));
    assert_eq!(host.add(Engine::Btree, 50_007, 1000, 1).unwrap().rows, 1);
}
