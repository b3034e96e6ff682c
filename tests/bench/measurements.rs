//! What a measurement says agrees with what the replica saw, each time anew.

use super::canister::{Bench, CONTROLLER, count, rows};
use stablebench_protocol::{Engine, Measurement, Result};
use stablebench_replica::Execution;

/// What reading the counter costs: `performance_counter` has a price of 200. The
/// operators around both calls lie in one straight run, which is charged where it
/// begins, so between the two values there is the price alone.
const COUNTER: u64 = 200;

/// A piece of work.
#[derive(Clone, Copy, Debug)]
enum Work {
    Rows(&'static str, Engine, u64),
    Count(&'static str, Engine, u64),
    Vacuum,
}

impl Work {
    fn on(self, bench: &mut Bench) -> (Measurement, Execution) {
        let (measured, execution): (Result<Measurement>, _) = match self {
            Self::Rows(method, engine, first) => {
                bench.execute(CONTROLLER, method, rows(engine, first, 10, 200))
            }
            Self::Count(method, engine, number) => {
                bench.execute(CONTROLLER, method, count(engine, number))
            }
            Self::Vacuum => bench.execute(CONTROLLER, "vacuum", ()),
        };
        let measurement = measured.unwrap_or_else(|error| panic!("{self:?}: {error}"));
        (measurement, execution)
    }
}

/// All that can be measured of an engine with 1 000 rows.
fn works(engine: Engine) -> Vec<Work> {
    let mut works = vec![
        Work::Rows("add_users", engine, 10_000),
        Work::Count("insert_middle", engine, 100),
        Work::Count("insert_end", engine, 1_000),
        Work::Count("scan_users", engine, 500),
    ];
    if engine != Engine::Append {
        let by_id = ["read_users", "update_users", "delete_users"];
        works.extend(by_id.map(|method| Work::Rows(method, engine, 1_000)));
    }
    if engine == Engine::Sqlite {
        works.push(Work::Vacuum);
    }
    works
}

#[test]
fn a_measurement_is_part_of_its_message() {
    for engine in Engine::ALL {
        let filled = Bench::filled(&[engine], 1_000);
        for work in works(engine) {
            let mut bench = filled.fork();
            let (heap, stable) = (bench.0.heap_size(), bench.0.stable_size());
            let (measurement, execution) = work.on(&mut bench);
            let case = format!("{work:?}: {measurement:?}, {execution:?}");

            assert_eq!(measurement.counter_overhead, COUNTER, "{case}");
            assert!(measurement.instructions > COUNTER, "{case}");
            // Before the work, the counter was read three times.
            let least = measurement.instructions + 2 * COUNTER;
            assert!(measurement.message_instructions > least, "{case}");
            // After it, the reply is written.
            let message = execution.instructions.get();
            assert!(message > measurement.message_instructions, "{case}");
            let changed = execution.memory.heap_changed.get();
            assert_eq!(execution.charge.get(), message + 1_000 * changed, "{case}");

            // Checks may have grown the heap; stable memory only the work grows.
            assert!(measurement.heap_pages_before >= heap.get(), "{case}");
            assert!(measurement.heap_pages_after >= measurement.heap_pages_before, "{case}");
            // Writing the reply may grow the heap once more.
            let in_the_end = execution.memory.heap.get();
            assert!((0..=1).contains(&(in_the_end - measurement.heap_pages_after)), "{case}");
            assert_eq!(measurement.stable_pages_before, stable.get(), "{case}");
            assert_eq!(measurement.stable_pages_after, execution.memory.stable.get(), "{case}");
            assert_eq!(bench.describe().stable_pages, bench.0.stable_size().get());
            assert_eq!(bench.describe().heap_pages, bench.0.heap_size().get());
        }
    }
}

#[test]
fn rows_cost_by_their_number() {
    for engine in Engine::ALL {
        let filled = Bench::filled(&[engine], 1_000);
        let cost = |number| {
            let measurement = filled.fork().measure("insert_end", count(engine, number));
            measurement.instructions
        };
        let (ten, hundred, thousand) = (cost(10), cost(100), cost(1_000));
        // A batch has a price of its own, so ten times the rows are at most about ten
        // times as dear; and rows are not free.
        assert!(ten < hundred && hundred * 5 < thousand, "{engine}");
        assert!(thousand < hundred * 12, "{engine}: {hundred}, {thousand}");
    }
}

#[test]
fn the_floor_is_below() {
    let cost = |engine| {
        let mut bench = Bench::filled(&[engine], 1_000);
        bench.measure("insert_end", count(engine, 1_000)).instructions
    };
    for above in [Engine::Btree, Engine::Sqlite] {
        for floor in [Engine::Append, Engine::Array] {
            assert!(cost(floor) < cost(above), "{floor} and {above}");
        }
    }
}

#[test]
fn work_can_be_repeated() {
    for engine in Engine::ALL {
        let (one, other) = (Bench::filled(&[engine], 1_000), Bench::filled(&[engine], 1_000));
        for work in works(engine) {
            let first = counts(work.on(&mut one.fork()));
            assert_eq!(first, counts(work.on(&mut one.fork())), "a second fork");
            assert_eq!(first, counts(work.on(&mut other.fork())), "another canister");
        }
    }
}

/// All of it but how long it took.
fn counts((measurement, execution): (Measurement, Execution)) -> impl PartialEq + std::fmt::Debug {
    let counts = (execution.instructions, execution.charge, execution.cycles);
    let reply = execution.outcome.unwrap();
    (measurement, counts, execution.memory, reply)
}
