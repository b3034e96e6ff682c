//! Work that is refused, and transactions that fail.

use crate::heap::HeapCanister;
use crate::heap_map::failure;
use stablebench_harness::{Host, MAX_EACH, MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS};
use stablebench_protocol::{
    Engine, Error, Operation, OperationCost, Result, Selection, Work, Worked,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ENGINE: Engine = Engine::Btree;

fn list(ids: &[u64]) -> Selection {
    Selection::List(ids.to_vec())
}

fn step(rows: u64) -> Selection {
    Selection::Step { first: 0, step: 10, rows }
}

fn work(operation: Operation) -> Work {
    Work { engine: ENGINE, operation, transaction: None, each: false }
}

/// Rows 0, 10, … 990.
fn filled() -> Host<HeapCanister> {
    let mut host = Host::new(HeapCanister::default());
    host.add(ENGINE, 0, 10, 100).unwrap();
    host
}

#[track_caller]
fn refused(host: &mut Host<HeapCanister>, work: &Work, error: Error) {
    let before = host.describe().unwrap();
    assert_eq!(host.work(work), Err(error));
    assert_eq!(host.describe().unwrap(), before);
}

#[test]
fn lists_are_checked() {
    let mut host = filled();
    for operation in [
        Operation::Insert,
        Operation::Overwrite,
        Operation::Update,
        Operation::Delete,
        Operation::Read,
        |from| Operation::Range { from, rows: 1 },
    ] {
        refused(&mut host, &work(operation(list(&[]))), Error::NoRows);
    }
    let twice = [30, 5, 7, 5, 30];
    for operation in [Operation::Insert, Operation::Delete] {
        refused(&mut host, &work(operation(list(&twice))), Error::IdTwice { id: 5 });
    }
    // The smallest id that is wrong is told, wherever it stands.
    let insert = Operation::Insert(list(&[995, 990, 5, 20]));
    refused(&mut host, &work(insert), Error::IdExists { id: 20 });
    for operation in [Operation::Update, Operation::Delete] {
        let operation = operation(list(&[990, 995, 0, 7]));
        refused(&mut host, &work(operation), Error::IdMissing { id: 7 });
    }
    let array = |operation| Work { engine: Engine::Array, ..work(operation) };
    let insert = array(Operation::Insert(list(&[10, 8, 6])));
    refused(&mut host, &insert, Error::IdNotMultiple { id: 6, multiple: 5 });
}

#[test]
fn a_message_is_about_so_many_rows() {
    let mut host = filled();
    let limit = MAX_MESSAGE_BYTES / 112;
    let range = |starts, rows| work(Operation::Range { from: step(starts), rows });
    for many in [
        work(Operation::Read(step(limit + 1))),
        work(Operation::Scan(limit + 1)),
        range(1, limit + 1),
        range(2, limit / 2 + 1),
        range(2, u64::MAX),
    ] {
        refused(&mut host, &many, Error::TooManyRows { limit });
    }
    for none in [range(1, 0), work(Operation::Scan(0)), work(Operation::Read(step(0)))] {
        refused(&mut host, &none, Error::NoRows);
    }
    let found = host.work(&range(2, limit / 2)).unwrap().measurement;
    assert_eq!((found.rows, found.bytes), (199, 19_900));
    host.set_payload(0).unwrap();
    assert_eq!(host.describe().unwrap().max_rows, MAX_MESSAGE_ROWS);
}

#[test]
fn a_message_tells_the_costs_of_so_many_operations() {
    let mut host = Host::new(HeapCanister::default());
    let insert = |rows| Work { each: true, ..work(Operation::Insert(step(rows))) };
    refused(&mut host, &insert(MAX_EACH + 1), Error::TooManyEach { limit: MAX_EACH });
    let worked = host.work(&insert(MAX_EACH)).unwrap();
    assert_eq!(worked.each.len() as u64, MAX_EACH);
    let reply = candid::encode_one(Result::<Worked>::Ok(worked)).unwrap();
    assert!(reply.len() < 2 << 20, "{} bytes", reply.len());
}

#[test]
fn a_query_does_not_write() {
    let mut host = filled();
    let (there, free) = (list(&[20, 10]), list(&[25, 5]));
    for write in [
        Operation::Insert(free.clone()),
        Operation::Overwrite(free),
        Operation::Update(there.clone()),
        Operation::Delete(there.clone()),
    ] {
        let write = work(write);
        assert_eq!(host.look(&write), Err(Error::WritesInQuery));
        host.work(&write).unwrap();
    }
    for look in [
        Operation::Read(there.clone()),
        Operation::Range { from: there, rows: 3 },
        Operation::Scan(7),
        Operation::Count,
    ] {
        let look = work(look);
        assert_eq!(host.look(&look), host.work(&look));
    }
}

#[test]
fn rows_are_changed_in_transactions() {
    for (transaction, committed) in
        [(None, 1), (Some(1), 30), (Some(7), 5), (Some(30), 1), (Some(u64::MAX), 1)]
    {
        for each in [false, true] {
            let mut host = Host::new(HeapCanister::default());
            let insert = Operation::Insert(step(30));
            let worked = host.work(&Work { transaction, each, ..work(insert) }).unwrap();
            assert_eq!((worked.measurement.rows, worked.measurement.bytes), (30, 3_000));
            let cost = OperationCost { instructions: 0, allocated: 1 };
            assert_eq!(worked.each, vec![cost; if each { 30 } else { 0 }]);
            let delete = Operation::Delete(list(&[20, 0]));
            let worked = host.work(&Work { transaction, each, ..work(delete) }).unwrap();
            assert_eq!((worked.measurement.rows, worked.measurement.bytes), (2, 0));
            assert!(worked.each.iter().all(|cost| cost.allocated == -1));
            let map = &host.into_canister().map;
            assert_eq!(map.committed, committed + if transaction == Some(1) { 2 } else { 1 });
        }
    }
    let mut host = filled();
    for operation in [Operation::Insert(list(&[5])), Operation::Count] {
        let none = Work { transaction: Some(0), ..work(operation) };
        refused(&mut host, &none, Error::EmptyTransaction);
        assert_eq!(host.look(&none), Err(Error::EmptyTransaction));
    }
}

/// A host whose map fails at the id 205, and an insert that comes to it as the 21st.
fn failing(transaction: Option<u64>, each: bool) -> (Host<HeapCanister>, Work) {
    let mut canister = HeapCanister::default();
    canister.map.fails_at = Some(205);
    let mut host = Host::new(canister);
    host.add(ENGINE, 0, 10, 100).unwrap();
    let insert = Operation::Insert(Selection::Step { first: 5, step: 10, rows: 30 });
    (host, Work { transaction, each, ..work(insert) })
}

#[test]
fn a_transaction_that_fails_leaves_nothing() {
    for each in [false, true] {
        for transaction in [None, Some(21), Some(1_000)] {
            let (mut host, insert) = failing(transaction, each);
            refused(&mut host, &insert, failure());
            // And the next one begins anew.
            host.add(ENGINE, 1, 10, 10).unwrap();
        }
        for transaction in [Some(1), Some(7), Some(20)] {
            let (mut host, insert) = failing(transaction, each);
            // Transactions before it are committed: the message must trap.
            let outcome = catch_unwind(AssertUnwindSafe(|| host.work(&insert)));
            let message = outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(*message, failure().to_string());
        }
    }
}

#[test]
fn without_transactions_an_operation_that_succeeded_is_undone_by_a_trap() {
    // The memory of the test ends before the second slot; the first one fits. A slot has
    // 104 bytes, and a page is the header's.
    let pages = 1 + u64::div_ceil(1_000_001 * 104, 65_536);
    let insert =
        Work { engine: Engine::Array, ..work(Operation::Insert(list(&[0, 5 * 1_000_000]))) };
    let (none, single) = (insert.clone(), Some(1));
    for trapping in [Work { each: true, ..none }, Work { transaction: single, ..insert.clone() }] {
        let mut host = Host::new(HeapCanister::default());
        refused(&mut host, &insert, Error::OutOfStableMemory { pages });
        let outcome = catch_unwind(AssertUnwindSafe(|| host.work(&trapping)));
        assert!(outcome.is_err(), "{outcome:?}");
    }
}
