//! The suite users: engines against the model, operation by operation, in transactions, cold and
//! warm, and the overhead of measured messages.

use super::canister::{
    Bench, CONTROLLER, ENGINES, MANAGED, Pair, Which, count, follow, in_transactions, rows,
    users_part, whole,
};
use super::sqlite::MODES;
use candid::{decode_one, encode_args};
use stablebench_protocol::{
    DigestPart, Engine, EngineDescription, Error, Executed, Inspected, JobPart, JournalMode,
    Measurement, OperationCost, PartCost, Result, SqliteConfig, SqliteSettings,
};
use stablebench_replica::Execution;
use stablebench_suite_users::work::{Ids, UsersModel};
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::{Model, Neighbours};

fn step(first: u64, step: u64, rows: u64) -> Selection {
    Selection::Step { first, step, rows }
}

/// Calls the methods that need no index.
fn fill(engine: Engine) -> Pair {
    let mut pair = Pair::new(engine, Bench::new(), 97);
    let bytes = 100;
    let insert = Operation::Insert;
    assert_eq!(pair.apply(insert(step(0, 10, 1_000)), bytes), Ok(1_000));
    let middle = Ids::middle(pair.model.last_id(), 50).unwrap();
    assert_eq!(middle.first(), 5_005);
    pair.place("insert_middle", middle, bytes);
    let end = Ids::end(pair.model.last_id(), 30).unwrap();
    assert_eq!(end.first(), 10_000);
    pair.place("insert_end", end, bytes);
    let refused = pair.apply(insert(step(10_285, 5, 3)), bytes);
    assert_eq!(refused, Err(Error::IdExists { id: 10_290 }));
    for (limit, scanned) in [(1, 1), (500, 500), (5_000, 1_080)] {
        let measurement = pair.bench.measure("scan_users", count(engine, limit));
        assert_eq!(measurement.rows, scanned);
    }
    pair
}

#[test]
fn rows_are_written_and_read_like_in_the_model() {
    for engine in [Engine::BTREE, Engine::SQLITE, Engine::ARRAY] {
        let mut pair = fill(engine);
        let read = |rows| (Operation::Read(rows), 0);
        // Rows around the half and after the end: every second id is there.
        let mut apply = |(operation, bytes)| pair.apply(operation, bytes);
        assert_eq!(apply(read(step(0, 10, 1_000))), Ok(1_000));
        assert_eq!(apply(read(step(0, 5, 400))), Ok(200));
        assert_eq!(apply(read(step(5_000, 5, 100))), Ok(100));
        assert_eq!(apply(read(step(10_300, 10, 100))), Ok(0));

        // Shorter texts than before, and longer ones in SQLite and the map.
        let longest = if engine == Engine::ARRAY { 100 } else { 5_000 };
        for bytes in [0, 37, longest] {
            let update = |rows| (Operation::Update(rows), bytes);
            assert_eq!(apply(update(step(100, 20, 40))), Ok(40));
            let missing = apply(update(step(100, 15, 40)));
            assert_eq!(missing, Err(Error::IdMissing { id: 115 }));
            // Half of these are new the first time.
            let overwrite = Operation::Overwrite(step(3_000, 5, 20));
            assert_eq!(apply((overwrite, bytes)), Ok(20));
            let repeated = Selection::List(vec![4_000, 55, 4_000, 20]);
            assert_eq!(apply((Operation::Overwrite(repeated), bytes)), Ok(4));
        }
        let delete = |rows| (Operation::Delete(rows), 0);
        assert_eq!(apply(delete(step(0, 30, 100))), Ok(100));
        let missing = apply(delete(step(40, 10, 100)));
        assert_eq!(missing, Err(Error::IdMissing { id: 60 }));
        assert_eq!(apply(read(step(2_000, 10, 100))), Ok(67));
        let shuffled = Selection::List(vec![20, 9_000, 4_010, 20, 10]);
        assert_eq!(apply(read(shuffled.clone())), Ok(5));
        assert_eq!(apply((Operation::Range { from: shuffled, rows: 3 }, 0)), Ok(15));
        // Removed rows can be added again.
        assert_eq!(apply((Operation::Insert(step(0, 30, 100)), 1)), Ok(100));
        let removed = Selection::List(vec![30, 9_990, 10]);
        assert_eq!(apply(delete(removed.clone())), Ok(3));
        assert_eq!(apply((Operation::Insert(removed), 9)), Ok(3));
        // 1 080 rows, and 11 that were overwritten into being.
        assert_eq!(apply((Operation::Count, 0)), Ok(1_091));
    }
}

#[test]
fn a_log_is_added_to_and_scanned_and_nothing_else() {
    let mut pair = fill(Engine::APPEND);
    let before = pair.bench.contents();
    for (method, operation) in [
        ("read_users", "look rows up by id"),
        ("update_users", "change or remove rows"),
        ("delete_users", "change or remove rows"),
    ] {
        let arguments = rows(Engine::APPEND, 0, 10, 1);
        let done: Result<Measurement> = pair.bench.update(method, arguments);
        let unsupported =
            Error::Unsupported { engine: Engine::APPEND, operation: operation.to_owned() };
        assert_eq!(done, Err(unsupported), "{method}");
    }
    let work = |operation| users_part(Engine::APPEND, operation);
    for operation in [
        Operation::Overwrite(step(0, 10, 1)),
        Operation::Range { from: step(0, 10, 1), rows: 1 },
        Operation::Update(step(0, 10, 1)),
    ] {
        let done = pair.bench.execute_part(&work(operation));
        assert!(matches!(done, Err(Error::Unsupported { engine: Engine::APPEND, .. })), "{done:?}");
    }
    assert_eq!(pair.bench.contents(), before);
    assert_eq!(pair.bench.run_part(&work(Operation::Count)).measurement.rows, 1_080);
}

#[test]
fn the_methods_named_for_an_engine_add_to_it() {
    for (method, engine) in
        [("add_users_btree", Engine::BTREE), ("add_users_sqlite", Engine::SQLITE)]
    {
        let mut pair = Pair::new(engine, Bench::new(), 7);
        let measurement = pair.bench.measure(method, (5_u64, 3_u64, 40_u64));
        assert_eq!(measurement.rows, 40);
        pair.model.apply(&Operation::Insert(step(5, 3, 40)), 100).unwrap();
        pair.compare(method);
    }
}

#[test]
fn every_limit_gives_the_same_digest() {
    for engine in ENGINES {
        let bench = Bench::filled(&[engine], 100);
        let mut model = UsersModel::default();
        model.apply(&Operation::Insert(step(0, 10, 100)), 100).unwrap();
        for limit in [1, 2, 99, 100, 101, 1_000_000] {
            let digest = bench.digest(engine, limit);
            assert_eq!(digest, model.content(), "{engine}, {limit} rows per message");
        }
    }
}

#[test]
fn the_map_follows_the_model() {
    (0..8).for_each(|seed| follow(Engine::BTREE, Bench::new(), seed));
}

#[test]
fn sqlite_follows_the_model_in_every_journal_mode() {
    use JournalMode::*;
    // Small pages: rows are split, and the larger ones overflow.
    for (seed, mode) in (10..).zip([Delete, Truncate, Persist, Memory, Wal, Off]) {
        let bench = Bench::configured(SqliteConfig {
            journal_mode: Some(mode),
            page_size: Some(512),
            ..SqliteConfig::default()
        });
        let settings: SqliteSettings = bench.settings();
        assert_eq!((settings.journal_mode, settings.page_size), (mode, 512));
        follow(Engine::SQLITE, bench, seed);
    }
}

#[test]
fn describe_includes_the_digest_of_few_rows() {
    for engine in ENGINES {
        let mut bench = Bench::filled(&[engine], 10_000);
        let described = |bench: &Bench| bench.describe_engine(engine).digest;
        assert_eq!(described(&bench), Some(bench.digest(engine, 3_000)), "{engine}");
        bench.measure("insert_end", count(engine, 1));
        assert_eq!(described(&bench), None, "{engine}");
    }
}

/// Ids of existing rows in no order.
fn list() -> Selection {
    Selection::List((0..60).map(|number| number * 7_370 % 10_000).collect())
}

/// Operations of an engine with rows 0, 10, … 9 990.
fn operations(engine: Engine) -> Vec<Operation> {
    let mut operations =
        vec![Operation::Insert(step(10_000, 10, 900)), Operation::Scan(300), Operation::Count];
    if engine != Engine::APPEND {
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

#[test]
fn each_operation_is_a_part_of_the_whole() {
    for engine in ENGINES {
        let filled = Bench::filled(&[engine], 1_000);
        for operation in operations(engine) {
            let part = users_part(engine, operation.clone());
            let case = format!("{engine} {operation:?}");
            let mut once = filled.fork();
            let whole = once.run_part(&part);
            assert_eq!(whole.each, [], "{case}");
            let mut one_by_one = filled.fork();
            let one = JobPart { each: true, ..part.clone() };
            let Executed { measurement, each, .. } = one_by_one.run_part(&one);

            assert_eq!(each.len() as u64, part.count, "{case}");
            let sum: u64 = each.iter().map(|cost| cost.instructions).sum();
            assert!(each.iter().all(|cost| cost.instructions > 200), "{case}");
            assert!(sum <= measurement.instructions, "{case}: {sum}, {measurement:?}");
            assert_eq!(measurement.rows, whole.measurement.rows, "{case}");
            assert_eq!(measurement.bytes, whole.measurement.bytes, "{case}");
            assert_eq!(one_by_one.contents(), once.contents(), "{case}");
            allocated(engine, &filled, &one_by_one, &each, &case);
            if !operation.writes() {
                let looked = filled.run_in_query(&part).unwrap();
                assert_eq!((looked.measurement.rows, looked.measurement.bytes), {
                    (measurement.rows, measurement.bytes)
                });
            }
        }
    }
}

/// The storage that operations took is the growth of the engine.
fn allocated(engine: Engine, before: &Bench, after: &Bench, each: &[OperationCost], case: &str) {
    let sum: i64 = each.iter().map(|cost| cost.allocated).sum();
    let in_use = |bench: &Bench| match engine {
        Engine::SQLITE => {
            let settings = bench.settings();
            settings.page_count - settings.freelist_count
        }
        Engine::BTREE => bench.describe_engine(engine).stored_bytes,
        _ => bench.describe().stable_pages,
    };
    let grown = in_use(after) as i64 - in_use(before) as i64;
    if engine == Engine::BTREE {
        // All nodes have one size, which is not reported.
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
fn the_storage_of_an_engine_is_described() {
    for engine in ENGINES {
        let mut bench = Bench::filled(&[engine], 5_000);
        let EngineDescription { stored_bytes, virtual_bytes, cache_bytes, .. } =
            bench.describe_engine(engine);
        assert!(stored_bytes >= 5_000 * 108, "{engine}: {stored_bytes}");
        assert!(virtual_bytes >= stored_bytes, "{engine}: {virtual_bytes}");
        assert!(virtual_bytes <= bench.describe().stable_pages * 65_536, "{engine}");
        match engine {
            Engine::SQLITE => {
                // Every page was written by this connection, and is cached.
                assert!(cache_bytes > stored_bytes, "{cache_bytes}");
                bench.call("close_connection", ());
                assert_eq!(bench.describe_engine(engine).cache_bytes, 0);
            }
            Engine::BTREE => {
                assert_eq!((stored_bytes - 100) % NODE_BYTES, 0, "{stored_bytes}");
                bench.call("reset", (engine,));
                assert_eq!(bench.describe_engine(engine).stored_bytes, 100);
            }
            _ => {
                assert_eq!(virtual_bytes, bench.describe().stable_pages * 65_536);
                assert_eq!(cache_bytes, 0);
            }
        }
    }
}

#[test]
fn a_query_does_not_write() {
    for engine in ENGINES {
        let bench = Bench::filled(&[engine], 1_000);
        for operation in operations(engine).into_iter().filter(Operation::writes) {
            let done = bench.run_in_query(&users_part(engine, operation.clone()));
            assert_eq!(done, Err(Error::WritesInQuery), "{engine} {operation:?}");
        }
    }
}

#[test]
fn parts_that_are_refused_change_nothing() {
    for engine in ENGINES {
        let mut bench = Bench::filled(&[engine], 100);
        let before = bench.contents();
        let list = |ids: &[u64]| Selection::List(ids.to_vec());
        let work = |operation| users_part(engine, operation);
        let insert = |rows| work(Operation::Insert(rows));
        let limit = (1 << 30) / 112;
        let range = Operation::Range { from: step(0, 10, 2), rows: limit };
        for (part, error) in [
            (insert(list(&[])), Error::NoRows),
            (insert(step(0, 0, 2)), Error::NoStep),
            (JobPart { from: 1, ..insert(list(&[5, 15])) }, Error::TooManyRows { limit: 2 }),
            (in_transactions(&insert(step(5, 10, 1)), Some(0)), Error::EmptyTransaction),
            (
                JobPart { each: true, ..insert(step(5, 10, 100_001)) },
                Error::TooManyEach { limit: 100_000 },
            ),
            (work(Operation::Scan(0)), Error::NoRows),
            (work(Operation::Scan(limit + 1)), Error::TooManyRows { limit }),
            (work(range), Error::TooManyRows { limit }),
        ] {
            assert_eq!(bench.execute_part(&part), Err(error), "{part:?}");
            assert_eq!(bench.contents(), before, "{part:?}");
        }
    }
}

/// A suite ensures that ids to insert do not exist. SQLite notices if one does.
#[test]
fn a_constraint_of_sqlite_undoes_the_transaction() {
    let mut bench = Bench::filled(&[Engine::SQLITE], 100);
    let before = bench.digest(Engine::SQLITE, 1_000);
    let insert = users_part(Engine::SQLITE, Operation::Insert(Selection::List(vec![5, 15, 20])));
    let refused = bench.execute_part(&insert);
    assert!(matches!(&refused, Err(Error::Sqlite { message }) if message.contains("UNIQUE")));
    assert_eq!(bench.digest(Engine::SQLITE, 1_000), before);
}

#[test]
fn a_connection_is_closed_and_vacuumed() {
    let mut bench = Bench::filled(&[Engine::SQLITE], 2_000);
    bench.measure("delete_users", rows(Engine::SQLITE, 0, 10, 1_500));
    let (before, digest) = (bench.settings(), bench.digest(Engine::SQLITE, 1_000));
    assert!(before.freelist_count > 0);
    let part = |task| whole(&Users { engine: Engine::SQLITE, payload_bytes: 100, task });
    let mut by_hand = bench.fork();
    for task in [UsersTask::Close, UsersTask::Vacuum, UsersTask::Vacuum, UsersTask::Close] {
        let measured = bench.run_part(&part(task.clone()));
        assert_eq!((measured.measurement.rows, measured.results), (0, None));
        if task == UsersTask::Close {
            assert_eq!(bench.describe_engine(Engine::SQLITE).cache_bytes, 0);
            by_hand.call("close_connection", ());
        } else {
            let vacuumed = by_hand.measure("vacuum", ()).instructions;
            assert!(measured.measurement.instructions.abs_diff(vacuumed) < vacuumed / 100);
            assert_eq!(bench.settings().freelist_count, 0);
        }
        assert_eq!(bench.digest(Engine::SQLITE, 1_000), digest);
    }
}

#[test]
fn an_inspection_is_a_description() {
    for engine in ENGINES {
        let bench = Bench::filled(&[engine], 1_000);
        let job = users_part(engine, Operation::Count).job;
        let inspected: Inspected = bench.query("inspect", (job,)).unwrap();
        let described = bench.describe_engine(engine);
        assert_eq!(inspected.stored_bytes, described.stored_bytes);
        assert_eq!(inspected.virtual_bytes, described.virtual_bytes);
        assert_eq!(inspected.cache_bytes, described.cache_bytes);
        let settings = (engine == Engine::SQLITE).then(|| bench.settings());
        assert_eq!((inspected.sqlite, inspected.objects.len()), (settings, 0));
    }
}

/// The rows around those that were written, at the position that the model says.
#[test]
fn neighbours_are_read_back_from_a_position() {
    for engine in ENGINES {
        let mut bench = Bench::filled(&[engine], 3_000);
        let mut model = UsersModel::default();
        model.apply(&Operation::Insert(step(0, 10, 3_000)), 100).unwrap();
        let insert = users_part(engine, Operation::Insert(Selection::List(vec![15_005, 15_015])));
        bench.run_part(&insert);
        model.execute(&insert).unwrap();
        let Neighbours { position, digest } = model.neighbours(&insert).unwrap();
        assert!(digest.rows > 1_000 && position > 0, "{engine}");
        let part = DigestPart { position, ..DigestPart::default() };
        let arguments = (&insert.job, Some(part), digest.rows);
        let read: DigestPart = bench.query("content", arguments).unwrap();
        assert_eq!(read.digest, digest, "{engine}");
    }
}

const SIZES: [Option<u64>; 5] = [None, Some(200), Some(7), Some(2), Some(1)];

fn writing_operations() -> [Operation; 4] {
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
    bench.measure("add_users", (Engine::SQLITE, 0_u64, 10_u64, 1_000_u64));
    bench
}

#[test]
fn the_size_of_transactions_changes_the_cost_and_not_the_content() {
    for mode in MODES {
        let filled = in_mode(mode);
        for operation in writing_operations() {
            let costs = SIZES.map(|transaction| {
                let mut bench = filled.fork();
                let part = users_part(Engine::SQLITE, operation.clone());
                let measurement = bench.run_part(&in_transactions(&part, transaction)).measurement;
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
            // The job is another, and so is the state of the allocator.
            assert!(all.abs_diff(also_all) < 500, "{mode:?} {operation:?}: {all}, {also_all}");
            assert!(all < seven && seven < two && two < one, "{mode:?} {operation:?}");
        }
    }
}

#[test]
fn engines_without_transactions_do_the_same_work() {
    for engine in [Engine::BTREE, Engine::ARRAY] {
        let filled = Bench::filled(&[engine], 1_000);
        for operation in writing_operations() {
            let costs = SIZES.map(|transaction| {
                let mut bench = filled.fork();
                let part = in_transactions(&users_part(engine, operation.clone()), transaction);
                let measurement = bench.run_part(&part).measurement;
                (measurement.rows, bench.contents(), measurement.instructions)
            });
            for (rows, contents, cost) in &costs {
                assert_eq!((rows, contents), (&costs[0].0, &costs[0].1), "{engine} {operation:?}");
                // A floor allocates its buffer for each transaction, which is expensive for so little
                // work.
                let most = costs[0].2 * 102 / 100;
                assert!(
                    engine == Engine::ARRAY || *cost <= most,
                    "{engine} {operation:?}: {cost} of {most}"
                );
            }
        }
    }
}

#[test]
fn a_failure_after_a_commit_is_undone_by_the_system() {
    // The second slot of the array is past the end of stable memory.
    let mut bench = Bench::filled(&[Engine::ARRAY], 10);
    let before = bench.contents();
    let operation = Operation::Insert(Selection::List(vec![100, ((1 << 40) / 104 - 1) * 5]));
    let reject = bench.trapped(&in_transactions(&users_part(Engine::ARRAY, operation), Some(1)));
    assert!(reject.contains("stable memory cannot grow"), "{reject}");
    assert_eq!(bench.contents(), before);
}

fn upgraded(engine: Engine) -> Bench {
    let mut bench = Bench::filled(&[engine], 2_000);
    bench.upgrade();
    bench
}

fn ids(ids: &[u64]) -> Selection {
    Selection::List(ids.to_vec())
}

fn cost(bench: &mut Bench, engine: Engine, operation: Operation) -> u64 {
    bench.run_part(&users_part(engine, operation)).measurement.instructions
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
        // Both get a message, since it leaves the allocator in another state; this one is refused
        // before any engine is asked.
        let refused: Result<Measurement> = bench.update("delete_users", rows(engine, 5, 10, 0));
        assert_eq!(refused, Err(Error::NoRows));
        let cold = cost(&mut bench, engine, read());

        let refused: Result<Measurement> = looked_at.update("delete_users", rows(engine, 5, 10, 1));
        assert_eq!(refused, Err(Error::IdMissing { id: 5 }));
        looked_at.contents();
        for _ in 0..2 {
            let found = looked_at.run_in_query(&users_part(engine, read())).unwrap();
            assert_eq!(found.measurement.rows, 1);
        }
        let still_cold = cost(&mut looked_at, engine, read());
        let warm = cost(&mut looked_at, engine, read());
        // What was opened and closed was on the heap, so that other pages are touched.
        let opening = cold - warm;
        assert!(
            still_cold.abs_diff(cold) <= opening / 4,
            "{engine}: {cold}, then {still_cold}, warm {warm}"
        );
    }
}

/// The maximum number of instructions of a message without work. It calls `performance_counter` five
/// times at 200 each and `is_controller`, and copies the argument, the caller and the reply, 500 to
/// 1 000 per call. The rest is Rust, for which 20 000 instructions are enough.
const EMPTY: u64 = 20_000;

/// The maximum number of instructions per row in addition to the work.
const PER_ROW: u64 = 20;

/// Stages a part and sends the measured message.
fn run(bench: &mut Bench, part: &JobPart) -> (PartCost, Execution) {
    bench.call("stage", (part,));
    send(bench)
}

fn send(bench: &mut Bench) -> (PartCost, Execution) {
    let id = bench.0.version() + 1;
    let (cost, execution) = bench.execute(CONTROLLER, "run", (id,));
    (cost.unwrap_or_else(|error| panic!("run: {error}")), execution)
}

/// Instructions of the message in addition to the work.
fn overhead((cost, execution): &(PartCost, Execution)) -> u64 {
    execution.instructions.get() - cost.measurement.instructions
}

#[test]
fn a_message_without_work_is_cheap() {
    for which in Which::ENGINES {
        let mut bench = Bench::of(which);
        send(&mut bench);
        let (cost, execution) = send(&mut bench);
        assert_eq!(cost.measurement.rows, 0, "{which:?}");
        let whole = execution.instructions.get();
        assert!(whole < EMPTY, "{which:?}: {whole}");
    }
}

#[test]
fn a_message_costs_what_its_work_costs() {
    for engine in ENGINES {
        let filled = Bench::filled(&[engine], 1_000);
        let mut empty = filled.fork();
        send(&mut empty);
        let empty = overhead(&send(&mut empty));
        for rows in [1, 100] {
            let ids = (0..rows).map(|row| row * 70 % 9_990 / 10 * 10 + 5).collect();
            for rows_of in [Selection::Step { first: 10_000, step: 10, rows }, Selection::List(ids)]
            {
                let mut bench = filled.fork();
                let insert = users_part(engine, Operation::Insert(rows_of));
                let run = run(&mut bench, &insert);
                assert_eq!(run.0.measurement.rows, rows);
                // The engine is selected and transactions are counted.
                let most = empty + 5_000 + PER_ROW * rows;
                let overhead = overhead(&run);
                assert!(overhead <= most, "{engine}, {rows} rows: {overhead}, not {most}");
            }
        }
    }
}

/// Staged or not, the work and its effect are the same.
#[test]
fn a_staged_part_has_the_same_effect() {
    for engine in ENGINES {
        let filled = Bench::filled(&[engine], 1_000);
        let insert = users_part(engine, Operation::Insert(Selection::List(vec![9_995, 5, 10_000])));
        let (mut staged, mut at_once) = (filled.fork(), filled.fork());
        let (run, _) = run(&mut staged, &insert);
        let executed = at_once.run_part(&insert).measurement;
        let staged_cost = run.measurement;
        assert_eq!((staged_cost.rows, staged_cost.bytes), (executed.rows, executed.bytes));
        assert_eq!(staged.digest(engine, 10_000), at_once.digest(engine, 10_000), "{engine}");
    }
}

#[test]
fn a_staged_part_is_run_once() {
    let mut bench = Bench::filled(&[Engine::BTREE], 100);
    let insert = users_part(Engine::BTREE, Operation::Insert(step(7, 10, 3)));
    bench.call("stage", (&insert,));
    let run = |bench: &mut Bench, id: u64| {
        let cost: Result<PartCost> = bench.update("run", (id,));
        cost.map(|cost| cost.measurement.rows)
    };
    assert_eq!(run(&mut bench, 5), Ok(3));
    let before = bench.contents();
    assert_eq!(run(&mut bench, 5), Err(Error::Repeated { last: 5 }));
    assert_eq!(run(&mut bench, 6), Ok(0), "nothing is staged any more");
    assert_eq!(bench.contents(), before);
    // An upgrade drops the staged part.
    bench.call("stage", (&insert,));
    bench.upgrade();
    assert_eq!(run(&mut bench, 1), Ok(0));
    assert_eq!(bench.digest(Engine::BTREE, 1_000).rows, 103);
}

#[test]
fn a_part_that_writes_is_not_run_in_a_query() {
    let bench = Bench::filled(&[Engine::BTREE], 100);
    let rows = || Selection::List(vec![10, 7]);
    for (operation, found) in [
        (Operation::Read(rows()), Ok(1)),
        (Operation::Overwrite(rows()), Err(Error::WritesInQuery)),
    ] {
        let cost = bench.run_in_query(&users_part(Engine::BTREE, operation));
        assert_eq!(cost.map(|cost| cost.measurement.rows), found);
    }
}

/// The argument is decoded by hand: another type is refused before anything is done.
#[test]
fn another_argument_traps() {
    let mut bench = Bench::new();
    for argument in [encode_args(()), encode_args((7_u32,)), encode_args((7_u64, 8_u64))] {
        let execution = bench.0.update(CONTROLLER, "run", &argument.unwrap()).unwrap();
        let reject = execution.outcome.unwrap_err();
        assert!(reject.message.contains("run takes the id"), "{reject}");
    }
    let execution = bench.0.update(CONTROLLER, "run", &encode_args((7_u64,)).unwrap()).unwrap();
    decode_one::<Result<PartCost>>(&execution.outcome.unwrap()).unwrap().unwrap();
}
