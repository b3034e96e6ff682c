//! Engines against the model, through the host, over seeded streams of operations.

use crate::heap::HeapCanister;
use crate::heap_records::RecordsCanister;
use stablebench_harness::{Canister, Host};
use stablebench_protocol::{Digest, DigestPart, Engine, Error, Measurement, Operation, Work};
use stablebench_workload::{Amount, Ids, Model, Selected, operations};

fn digest<C: Canister>(host: &mut Host<C>, engine: Engine, limit: u64) -> Digest {
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

/// How many operations are measured where each is.
fn operations_in(operation: &Operation) -> u64 {
    use Operation::*;
    match operation {
        Insert(rows)
        | Overwrite(rows)
        | Update(rows)
        | Delete(rows)
        | Read(rows)
        | Range { from: rows, .. } => Selected::asked(rows),
        Scan(_) | Count => 1,
    }
}

fn check<C: Canister + Default>(engine: Engine, seed: u64) {
    let mut host = Host::new(C::default());
    let mut model = Model::default();
    // Slots of the array hold what the first batch held: it begins with the longest.
    host.set_payload(200).unwrap();
    host.add(engine, 5000, 5, 1).unwrap();
    model.insert(Ids::new(5000, 5, 1).unwrap(), 200).unwrap();
    for (number, (operation, bytes)) in operations::stream(seed).take(120).enumerate() {
        host.set_payload(bytes).unwrap();
        let sizes = [None, Some(1), Some(7), Some(1_000)];
        let transaction = sizes[number % sizes.len()];
        let each = number % 3 == 0;
        let work = Work { engine, operation: operation.clone(), transaction, each };
        let done = host.work(&work);
        if let Err(Error::Unsupported { .. }) = done {
            assert_eq!(engine, Engine::Append);
        } else {
            let mut expected = model.apply(&operation, bytes);
            if each && let Ok(worked) = &done {
                assert_eq!(worked.each.len() as u64, operations_in(&operation));
            }
            let mut amount = done.map(|worked| {
                let Measurement { rows, bytes, .. } = worked.measurement;
                Amount { rows, bytes }
            });
            if engine == Engine::Append && matches!(operation, Operation::Scan(_)) {
                // A log is in another order, so its first rows have other lengths.
                amount = amount.map(|amount| Amount { bytes: 0, ..amount });
                expected = expected.map(|amount| Amount { bytes: 0, ..amount });
            }
            assert_eq!(amount, expected, "{operation:?}");
        }
        assert_eq!(digest(&mut host, engine, 7), model.digest(), "{operation:?}");
    }
    assert_eq!(host.scan(engine, 10_000).unwrap().rows, model.rows());
    assert_eq!(host.scan(engine, 1).unwrap().rows, 1);
}

#[test]
fn a_map_is_the_model() {
    (0..50).for_each(|seed| check::<HeapCanister>(Engine::Btree, seed));
}

/// An engine that implements `Records` alone is an engine of the users suite.
#[test]
fn any_engine_of_keys_and_values_is_the_model() {
    (0..50).for_each(|seed| check::<RecordsCanister>(Engine::Btree, seed));
}

#[test]
fn the_array_is_the_model() {
    (0..50).for_each(|seed| check::<HeapCanister>(Engine::Array, seed));
}

#[test]
fn the_log_is_the_model() {
    (0..50).for_each(|seed| check::<HeapCanister>(Engine::Append, seed));
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
