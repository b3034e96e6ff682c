//! Work operation by operation, in queries, and what it takes of storage.

use super::canister::Bench;
use stablebench_protocol::{
    Engine, EngineDescription, Error, Operation, OperationCost, Result, Selection, Work, Worked,
};

fn step(first: u64, step: u64, rows: u64) -> Selection {
    Selection::Step { first, step, rows }
}

/// Ids of rows that are there, in no order.
fn list() -> Selection {
    Selection::List((0..60).map(|number| number * 7_370 % 10_000).collect())
}

/// What an engine with rows 0, 10, … 9 990 can do, a query where it does not write.
fn operations(engine: Engine) -> Vec<Operation> {
    let mut operations =
        vec![Operation::Insert(step(10_000, 10, 900)), Operation::Scan(300), Operation::Count];
    if engine != Engine::Append {
        operations.extend([
            Operation::Insert(Selection::List((0..90).map(|id| id * 6_010 % 5_000 + 5).collect())),
            Operation::Overwrite(step(9_000, 5, 300)),
            Operation::Overwrite(list()),
            Operation::Update(list()),
            Operation::Delete(step(0, 10, 700)),
            Operation::Delete(Selection::List((0..60).map(|id| 5_000 - id * 10).collect())),
            Operation::Read(list()),
            Operation::Range { from: list(), rows: 20 },
        ]);
    }
    operations
}

fn writes(operation: &Operation) -> bool {
    use Operation::*;
    matches!(operation, Insert(_) | Overwrite(_) | Update(_) | Delete(_))
}

#[test]
fn each_operation_is_a_part_of_the_whole() {
    for engine in Engine::ALL {
        let filled = Bench::filled(&[engine], 1_000);
        for operation in operations(engine) {
            let work = Work { engine, operation, transaction: None, each: false };
            let case = format!("{work:?}");
            let mut once = filled.fork();
            let whole = once.work(&work);
            assert_eq!(whole.each, [], "{case}");
            let mut one_by_one = filled.fork();
            let Worked { measurement, each } =
                one_by_one.work(&Work { each: true, ..work.clone() });

            let number = match &work.operation {
                Operation::Scan(_) | Operation::Count => 1,
                Operation::Insert(rows)
                | Operation::Overwrite(rows)
                | Operation::Update(rows)
                | Operation::Delete(rows)
                | Operation::Read(rows)
                | Operation::Range { from: rows, .. } => match rows {
                    Selection::Step { rows, .. } => *rows as usize,
                    Selection::List(ids) => ids.len(),
                },
            };
            assert_eq!(each.len(), number, "{case}");
            let sum: u64 = each.iter().map(|cost| cost.instructions).sum();
            assert!(each.iter().all(|cost| cost.instructions > 200), "{case}");
            assert!(sum <= measurement.instructions, "{case}: {sum}, {measurement:?}");
            assert_eq!(measurement.rows, whole.measurement.rows, "{case}");
            assert_eq!(measurement.bytes, whole.measurement.bytes, "{case}");
            assert_eq!(one_by_one.contents(), once.contents(), "{case}");
            allocated(engine, &filled, &one_by_one, &each, &case);
            if !writes(&work.operation) {
                let looked: Worked = filled.query("look", (&work,)).unwrap();
                assert_eq!((looked.measurement.rows, looked.measurement.bytes), {
                    (measurement.rows, measurement.bytes)
                });
            }
        }
    }
}

/// What operations took is by how much the engine has grown.
fn allocated(engine: Engine, before: &Bench, after: &Bench, each: &[OperationCost], case: &str) {
    let sum: i64 = each.iter().map(|cost| cost.allocated).sum();
    let in_use = |bench: &Bench| match engine {
        Engine::Sqlite => {
            let settings = bench.settings();
            settings.page_count - settings.freelist_count
        }
        Engine::Btree => bench.describe_engine(engine).stored_bytes,
        Engine::Append | Engine::Array | Engine::Cuckoo | Engine::Leveldb => {
            bench.describe().stable_pages
        }
    };
    let grown = in_use(after) as i64 - in_use(before) as i64;
    if engine == Engine::Btree {
        // Nodes are of one size, which is not told.
        let node = NODE_BYTES as i64;
        assert_eq!(sum * node, grown, "{case}");
    } else {
        assert_eq!(sum, grown, "{case}");
    }
}

/// A node of the map from 64-bit ids to texts: a page of 1 024 bytes for keys and values
/// whose size has no bound, and the header of a chunk.
const NODE_BYTES: u64 = 1_024 + 16;

#[test]
fn what_is_stored_is_told() {
    for engine in Engine::ALL {
        let mut bench = Bench::filled(&[engine], 5_000);
        let EngineDescription { stored_bytes, virtual_bytes, cache_bytes, .. } =
            bench.describe_engine(engine);
        assert!(stored_bytes >= 5_000 * 108, "{engine}: {stored_bytes}");
        assert!(virtual_bytes >= stored_bytes, "{engine}: {virtual_bytes}");
        assert!(virtual_bytes <= bench.describe().stable_pages * 65_536, "{engine}");
        match engine {
            Engine::Sqlite => {
                // Every page was written by this connection, and is cached.
                assert!(cache_bytes > stored_bytes, "{cache_bytes}");
                bench.do_it("close_connection", ());
                assert_eq!(bench.describe_engine(engine).cache_bytes, 0);
            }
            Engine::Btree => {
                assert_eq!((stored_bytes - 100) % NODE_BYTES, 0, "{stored_bytes}");
                bench.do_it("reset", (engine,));
                assert_eq!(bench.describe_engine(engine).stored_bytes, 100);
            }
            Engine::Append | Engine::Array | Engine::Cuckoo | Engine::Leveldb => {
                assert_eq!(virtual_bytes, bench.describe().stable_pages * 65_536);
                assert_eq!(cache_bytes, 0);
            }
        }
    }
}

#[test]
fn a_query_does_not_write() {
    for engine in Engine::ALL {
        let bench = Bench::filled(&[engine], 1_000);
        for operation in operations(engine).into_iter().filter(writes) {
            let work = Work { engine, operation, transaction: None, each: false };
            let done: Result<Worked> = bench.query("look", (&work,));
            assert_eq!(done, Err(Error::WritesInQuery), "{work:?}");
        }
    }
}

#[test]
fn work_that_is_refused_changes_nothing() {
    for engine in Engine::ALL {
        let mut bench = Bench::filled(&[engine], 100);
        let before = bench.contents();
        let list = |ids: &[u64]| Selection::List(ids.to_vec());
        let work = |operation| Work { engine, operation, transaction: None, each: false };
        let insert = |rows| work(Operation::Insert(rows));
        let limit = (1 << 30) / 112;
        let range = Operation::Range { from: step(0, 10, 2), rows: limit };
        for (work, error) in [
            (insert(list(&[])), Error::NoRows),
            (insert(step(0, 0, 2)), Error::NoStep),
            (insert(list(&[2_015, 2_005, 2_015])), Error::IdTwice { id: 2_015 }),
            (insert(list(&[2_005, 990, 5, 40])), Error::IdExists { id: 40 }),
            (Work { transaction: Some(0), ..insert(step(5, 10, 1)) }, Error::EmptyTransaction),
            (
                Work { each: true, ..insert(step(5, 10, 100_001)) },
                Error::TooManyEach { limit: 100_000 },
            ),
            (work(Operation::Scan(0)), Error::NoRows),
            (work(Operation::Scan(limit + 1)), Error::TooManyRows { limit }),
            (work(range), Error::TooManyRows { limit }),
        ] {
            let done: Result<Worked> = bench.update("work", (&work,));
            assert_eq!(done, Err(error), "{work:?}");
            assert_eq!(bench.contents(), before, "{work:?}");
        }
        if engine != Engine::Append {
            for (operation, error) in [
                (Operation::Delete(list(&[20, 10, 20])), Error::IdTwice { id: 20 }),
                (Operation::Delete(list(&[20, 5, 10])), Error::IdMissing { id: 5 }),
                (Operation::Update(list(&[20, 1_000, 20, 5])), Error::IdMissing { id: 5 }),
            ] {
                let done: Result<Worked> = bench.update("work", (work(operation.clone()),));
                assert_eq!(done, Err(error), "{operation:?}");
                assert_eq!(bench.contents(), before, "{operation:?}");
            }
        }
    }
}
