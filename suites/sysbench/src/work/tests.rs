use super::model::MAX_NUMBER;
use super::*;
use crate::job::SysbenchTask::{Populate, Workload};
use stablebench_protocol::{Digest, Job, Storage};
use stablebench_workload::{Expected, Model};
use std::collections::BTreeSet;

const ROWS: u64 = 1_200;
const SEED: u64 = 1;

fn job(shape: KeyShape, task: SysbenchTask) -> Sysbench {
    Sysbench { shape, storage: Storage::Stable, autocommit: false, rows: ROWS, task }
}

fn part(shape: KeyShape, task: SysbenchTask, from: u64, count: u64) -> JobPart {
    JobPart { job: Job::new(&job(shape, task)), seed: SEED, from, count, each: false }
}

fn populated_model(shape: KeyShape) -> SysbenchModel {
    let mut model = SysbenchModel::new(shape);
    let found = model.execute(&part(shape, Populate, 0, populated(ROWS))).unwrap();
    assert_eq!((found.rows, found.results), (populated(ROWS), None));
    model
}

/// Operations of a workload in messages of `size`; results are of each message.
fn execute(
    model: &mut SysbenchModel,
    shape: KeyShape,
    of: SysbenchTask,
    size: u64,
) -> Vec<Expected> {
    let Workload(workload) = of else { panic!("only workloads") };
    let count = operations(workload, ROWS).max(7);
    let parts = (0..count).step_by(size as usize);
    parts
        .map(|from| model.execute(&part(shape, of, from, size.min(count - from))).unwrap())
        .collect()
}

fn sum(found: &[Expected]) -> (u64, u64) {
    found.iter().fold((0, 0), |sum, of| (sum.0 + of.rows, sum.1 + of.bytes))
}

#[test]
fn how_operations_are_cut_into_messages_does_not_matter() {
    for (of, name, _) in WORKLOADS {
        let task = Workload(of);
        let (mut whole, mut cut) =
            (populated_model(KeyShape::Integer), populated_model(KeyShape::Integer));
        let before = whole.content();
        let all = execute(&mut whole, KeyShape::Integer, task, u64::MAX);
        let parts = execute(&mut cut, KeyShape::Integer, task, 3);
        assert!(all.len() == 1 && parts.len() > 2, "{name}");
        assert_eq!(sum(&all), sum(&parts), "{name}");
        assert_eq!(whole.content(), cut.content(), "{name}");
        assert_eq!(whole.content() != before, writes(of), "{name}");
        assert_eq!(all[0].results.is_none(), writes(of), "{name}");
        // Statements and parameters too.
        let job = job(KeyShape::Text, task);
        let of_parts = [(0, 2), (2, 5)]
            .map(|(from, count)| script(&job, &part(KeyShape::Text, task, from, count)));
        let of_all = script(&job, &part(KeyShape::Text, task, 0, 7));
        assert!(of_parts.iter().all(|part| part.statements == of_all.statements), "{name}");
        let joined = of_parts.map(|part| part.operations).concat();
        assert_eq!(joined, of_all.operations, "{name}");
    }
}

#[test]
fn every_shape_does_the_same_and_a_seed_is_a_choice() {
    for (of, name, _) in WORKLOADS {
        let all = |shape, seed| -> Vec<_> {
            (0..20).map(|index| actions(&job(shape, Workload(of)), seed, index)).collect()
        };
        let integer = all(KeyShape::Integer, SEED);
        assert!(SHAPES.map(|shape| all(shape, SEED)).iter().all(|of| *of == integer), "{name}");
        // The search in the main table is always the same.
        assert_eq!(all(KeyShape::Integer, SEED + 1) == integer, of == TableScan, "{name}");
    }
}

/// The first and the last row of each table.
#[test]
fn populating_fills_three_tables() {
    let job = job(KeyShape::Integer, Populate);
    let inserted = |index| match &actions(&job, SEED, index)[..] {
        [Action::Insert(table, row, _)] => (*table, *row),
        other => panic!("{other:?}"),
    };
    assert_eq!(inserted(0), (SysbenchTable::Main, 1));
    assert_eq!(inserted(ROWS - 1), (SysbenchTable::Main, ROWS));
    assert_eq!(inserted(ROWS), (SysbenchTable::Second, 1));
    assert_eq!(inserted(ROWS + few(ROWS)), (SysbenchTable::Types, 1));
    assert_eq!(inserted(populated(ROWS) - 1), (SysbenchTable::Types, few(ROWS)));
    let rows: BTreeSet<String> =
        (0..populated(ROWS)).map(|index| format!("{:?}", actions(&job, SEED, index))).collect();
    assert_eq!(rows.len() as u64, populated(ROWS));
}

/// The number of results follows from the ranges alone if no row is missing.
#[test]
fn workloads_find_as_many_rows_as_they_ask_for() {
    let mut model = populated_model(KeyShape::Blob);
    let mut found = |of| {
        let found = execute(&mut model, KeyShape::Blob, Workload(of), u64::MAX);
        (found[0].rows, operations(of, ROWS).max(7))
    };
    for (of, rows) in [
        (PointSelect, 1),
        (RangeSelect, 100),
        (SumRange, 1),
        (OrderRange, 100),
        (DistinctRange, 100),
        (SelectRandomRanges, 1),
        (CoveringIndexScan, 1),
        (IndexJoinScan, 1),
        (TypesTableScan, 1),
        (TableScan, 1),
        (ReadOnly, 10 + 100 + 1 + 100 + 100),
        (BulkInsert, 1),
        (Insert, 1),
        (UpdateIndex, 1),
        (UpdateNonIndex, 1),
        (DeleteInsert, 2),
        (WriteOnly, 4),
        (TypesDeleteInsert, 2),
        (ReadWrite, 10 + 100 + 1 + 4),
    ] {
        let (found, operations) = found(of);
        assert_eq!(found, rows * operations, "{of:?}");
    }
    // The rows with a number; about 680 distinct ones of 1 000 rows with 1 200 numbers; with few
    // exceptions ten distinct keys.
    assert!((1..=40).contains(&found(IndexScan).0));
    let (groups, operations) = found(GroupbyScan);
    assert!((600 * operations..750 * operations).contains(&groups), "{groups}");
    let (points, operations) = found(SelectRandomPoints);
    assert!((9 * operations..=10 * operations).contains(&points), "{points}");
    assert!(found(IndexJoin).0 > 0);
}

/// Known once, and never another: what is measured follows from the seed on any machine.
#[test]
fn what_the_model_holds_never_changes() {
    let content = populated_model(KeyShape::Text).content();
    assert_eq!(
        content,
        Digest { rows: 3_200, low: 18_082_057_394_889_602_106, high: 2_569_607_587_701_829_243 }
    );
}

#[test]
fn small_tables_have_ranges_too() {
    for rows in [1, 2, 9, 60] {
        for shape in SHAPES {
            let mut model = SysbenchModel::new(shape);
            let mut execute = |task, count| {
                let job = Job::new(&Sysbench { rows, ..job(shape, task) });
                model.execute(&JobPart { job, seed: SEED, from: 0, count, each: false }).unwrap()
            };
            execute(Populate, populated(rows));
            for (of, name, _) in WORKLOADS {
                let found = execute(Workload(of), 5);
                assert!(found.rows > 0 || of == IndexScan || of == IndexJoin, "{name} {rows}");
            }
        }
    }
}

#[test]
fn fifteen_read_and_eight_write() {
    let names: BTreeSet<&str> = WORKLOADS.iter().map(|(_, name, _)| *name).collect();
    assert_eq!(names.len(), 23);
    let writing = WORKLOADS.iter().filter(|(workload, _, _)| writes(*workload));
    assert_eq!(writing.count(), 8);
}

#[test]
fn operations_are_in_proportion_to_the_rows() {
    for (workload, _, published) in WORKLOADS {
        assert_eq!(operations(workload, PUBLISHED_ROWS), published);
        assert_eq!(operations(workload, 10 * PUBLISHED_ROWS), 10 * published);
        assert!(operations(workload, 0) == 1 && operations(workload, u64::MAX) > published);
    }
    assert_eq!(operations(OrderRange, 10_000), 10);
    assert_eq!(operations(OrderRange, 1_999), 1, "rounded down");
    assert_eq!(operations(OrderRange, 999), 1, "never less");
    // Every new row is inserted, however many there are.
    assert_eq!(operations(BulkInsert, 12_345), 12_345);
}

#[test]
fn the_small_tables_are_never_larger_than_the_main_one() {
    assert_eq!([1, 999, 1_000, 1_001].map(populated), [3, 2_997, 3_000, 3_001]);
}

#[test]
fn texts_have_their_lengths_and_all_letters() {
    let text = letters(&mut Rng::new(3), 10_000);
    assert_eq!(text.len(), 10_000);
    assert!(('a'..='z').all(|letter| text.matches(letter).count() > 300));
    for count in [0, 1, 7, 8, 9, 60] {
        let text = letters(&mut Rng::new(3), count);
        assert!(text.len() == count && text.bytes().all(|byte| byte.is_ascii_lowercase()));
    }
}

#[test]
fn numbers_are_on_both_sides_of_zero() {
    let mut rng = Rng::new(1);
    let (mut below, mut above) = (0, 0);
    for _ in 0..1_000 {
        let SysbenchRow::Types { integer, thousandths, .. } = SysbenchRow::types(&mut rng) else {
            panic!("not of the table of types");
        };
        assert!(integer.unsigned_abs() <= MAX_NUMBER);
        assert!(thousandths.unsigned_abs() <= 1_000 * MAX_NUMBER);
        below += u64::from(integer < 0) + u64::from(thousandths < 0);
        above += u64::from(integer > 0) + u64::from(thousandths > 0);
    }
    assert!(below > 900 && above > 900, "{below} {above}");
}

#[test]
fn the_order_of_keys_is_the_order_of_rows() {
    let rows = [1, 2, 9, 10, 255, 256, 9_999, 10_000, 10_001, 65_536, 123_456, 99_999_999, 1 << 40];
    for shape in SHAPES {
        let keys = rows.map(|row| key(shape, row));
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{shape:?}");
    }
}

#[test]
fn keys_have_their_shapes() {
    assert_eq!(key(KeyShape::Composite, 123_456), [Value::Integer(12), Value::Integer(3_456)]);
    let [Value::Blob(bytes)] = &key(KeyShape::Blob, 258)[..] else { panic!("not a blob") };
    assert!(bytes.len() == 16 && bytes.ends_with(&[0, 1, 2]));
    let [Value::Text(text)] = &key(KeyShape::Text, 258)[..] else { panic!("not a text") };
    assert_eq!(text, "00000000000000000000000000000102");
}
