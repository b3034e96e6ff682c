//! The first work after an upgrade opens what the engine needs, and pays for it.

use super::canister::Bench;
use stablebench_protocol::{Engine, Error, Operation, Result, Selection, Work, Worked};

const MANAGED: [Engine; 2] = [Engine::Btree, Engine::Sqlite];

fn upgraded(engine: Engine) -> Bench {
    let mut bench = Bench::filled(&[engine], 2_000);
    bench.upgrade();
    bench
}

fn ids(ids: &[u64]) -> Selection {
    Selection::List(ids.to_vec())
}

fn cost(bench: &mut Bench, engine: Engine, operation: Operation) -> u64 {
    let work = Work { engine, operation, transaction: None, each: false };
    bench.work(&work).measurement.instructions
}

#[test]
fn the_first_work_after_an_upgrade_is_cold() {
    for engine in MANAGED {
        for operation in [
            Operation::Read(ids(&[5_000])),
            Operation::Range { from: ids(&[5_000]), rows: 3 },
            Operation::Scan(3),
            Operation::Count,
            Operation::Overwrite(ids(&[5_000])),
            // Its checks look at ids, and leave the cold state cold.
            Operation::Update(ids(&[5_000])),
        ] {
            let mut bench = upgraded(engine);
            let mut again = || cost(&mut bench, engine, operation.clone());
            let (first, second, third) = (again(), again(), again());
            let opening = first - second;
            assert!(first > second, "{engine} {operation:?}: {first}, then {second}");
            assert!(opening > 2 * second.abs_diff(third), "{engine}: {first}, {second}, {third}");
        }
    }
}

#[test]
fn checks_and_queries_before_it_warm_nothing() {
    for engine in MANAGED {
        let read = || Operation::Read(ids(&[5_000]));
        let mut bench = upgraded(engine);
        let mut looked_at = bench.fork();
        let cold = cost(&mut bench, engine, read());

        let operation = Operation::Delete(ids(&[5]));
        let work = Work { engine, operation, transaction: None, each: false };
        let refused: Result<Worked> = looked_at.update("work", (work,));
        assert_eq!(refused, Err(Error::IdMissing { id: 5 }));
        looked_at.contents();
        let look = Work { engine, operation: read(), transaction: None, each: false };
        for _ in 0..2 {
            let looked: Worked = looked_at.query("look", (&look,)).unwrap();
            assert_eq!(looked.measurement.rows, 1);
        }
        let still_cold = cost(&mut looked_at, engine, read());
        let warm = cost(&mut looked_at, engine, read());
        // The allocator has been at work: not to the instruction.
        let opening = cold - warm;
        assert!(
            still_cold.abs_diff(cold) <= opening / 4,
            "{engine}: {cold}, then {still_cold}, warm {warm}"
        );
    }
}
