//! Work in one transaction and in many.

use super::canister::{Bench, CONTROLLER};
use super::sqlite::MODES;
use candid::encode_args;
use stablebench_protocol::{Engine, JournalMode, Operation, Selection, SqliteConfig, Work};

const SIZES: [Option<u64>; 5] = [None, Some(200), Some(7), Some(2), Some(1)];

fn operations() -> [Operation; 4] {
    let step = |first, step, rows| Selection::Step { first, step, rows };
    [
        Operation::Insert(step(5, 50, 200)),
        Operation::Overwrite(step(0, 5, 200)),
        Operation::Update(Selection::List((0..200).map(|id| id * 9_990 % 10_000).collect())),
        Operation::Delete(step(3_000, 10, 200)),
    ]
}

fn in_mode(mode: JournalMode) -> Bench {
    let config = SqliteConfig { journal_mode: Some(mode), ..SqliteConfig::default() };
    let mut bench = Bench::configured(config);
    bench.measure("add_users", (Engine::Sqlite, 0_u64, 10_u64, 1_000_u64));
    bench
}

#[test]
fn the_size_of_transactions_changes_the_cost_and_not_the_content() {
    for mode in MODES {
        let filled = in_mode(mode);
        for operation in operations() {
            let costs = SIZES.map(|transaction| {
                let mut bench = filled.fork();
                let operation = operation.clone();
                let work = Work { engine: Engine::Sqlite, operation, transaction, each: false };
                let measurement = bench.work(&work).measurement;
                let contents = bench.contents();
                let digests = contents.engines.iter().map(|(_, digest)| *digest);
                (measurement.rows, digests.collect::<Vec<_>>(), measurement.instructions)
            });
            for pair in costs.windows(2) {
                let case = format!("{mode:?} {operation:?}: {costs:?}");
                assert_eq!(pair[0].0, pair[1].0, "{case}");
                assert_eq!(pair[0].1, pair[1].1, "{case}");
            }
            let [all, also_all, seven, two, one] = costs.map(|(.., cost)| cost);
            // The number is read from another place.
            assert!(all.abs_diff(also_all) < 100, "{mode:?} {operation:?}: {all}, {also_all}");
            assert!(all < seven && seven < two && two < one, "{mode:?} {operation:?}");
        }
    }
}

#[test]
fn engines_without_transactions_do_the_same_work() {
    for engine in [Engine::Btree, Engine::Array] {
        let filled = Bench::filled(&[engine], 1_000);
        for operation in operations() {
            let costs = SIZES.map(|transaction| {
                let mut bench = filled.fork();
                let operation = operation.clone();
                let work = Work { engine, operation, transaction, each: false };
                let measurement = bench.work(&work).measurement;
                (measurement.rows, bench.contents(), measurement.instructions)
            });
            for (rows, contents, cost) in &costs {
                assert_eq!((rows, contents), (&costs[0].0, &costs[0].1), "{engine} {operation:?}");
                // A floor makes its slot anew each time, which is dear beside so little.
                let most = costs[0].2 * 102 / 100;
                assert!(
                    engine == Engine::Array || *cost <= most,
                    "{engine} {operation:?}: {cost} of {most}"
                );
            }
        }
    }
}

#[test]
fn what_fails_after_a_commit_is_undone_by_the_system() {
    // The second slot of the array is past the end of stable memory.
    let mut bench = Bench::filled(&[Engine::Array], 10);
    let before = bench.contents();
    let operation = Operation::Insert(Selection::List(vec![100, ((1 << 40) / 104 - 1) * 5]));
    let work = Work { engine: Engine::Array, operation, transaction: Some(1), each: false };
    let arguments = encode_args((&work,)).unwrap();
    let reject = bench.0.update(CONTROLLER, "work", &arguments).unwrap().outcome.unwrap_err();
    assert!(reject.to_string().contains("stable memory cannot grow"), "{reject}");
    assert_eq!(bench.contents(), before);
}
