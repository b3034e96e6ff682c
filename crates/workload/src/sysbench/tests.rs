//! Scripts and model: what follows from what, and what does not.

use std::collections::BTreeSet;

use stablebench_protocol::SysbenchTask::{self, Populate, Workload};
use stablebench_protocol::SysbenchWorkload::*;
use stablebench_protocol::{Digest, Job, KeyShape, Part, Storage, Sysbench};

use super::action::{Action, Table, actions};
use super::shape::SHAPES;
use super::{Model, WORKLOADS, few, operations, populated, script, workload};
use crate::{Expected, Tables};

const ROWS: u64 = 1_200;
const SEED: u64 = 1;

fn job(shape: KeyShape, task: SysbenchTask) -> Sysbench {
    Sysbench { shape, storage: Storage::Stable, autocommit: false, rows: ROWS, task }
}

fn part(shape: KeyShape, task: SysbenchTask, from: u64, count: u64) -> Part {
    Part { job: Job::Sysbench(job(shape, task)), seed: SEED, from, count, each: false }
}

fn populated_model(shape: KeyShape) -> Model {
    let mut model = Model::new(shape);
    let found = model.perform(&part(shape, Populate, 0, populated(ROWS)));
    assert_eq!((found.rows, found.results), (populated(ROWS), None));
    model
}

/// Operations of a workload in messages of `size`; results are of each message.
fn perform(model: &mut Model, shape: KeyShape, of: SysbenchTask, size: u64) -> Vec<Expected> {
    let Workload(workload) = of else { panic!("only workloads") };
    let count = operations(workload, ROWS).max(7);
    let parts = (0..count).step_by(size as usize);
    parts.map(|from| model.perform(&part(shape, of, from, size.min(count - from)))).collect()
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
        let all = perform(&mut whole, KeyShape::Integer, task, u64::MAX);
        let parts = perform(&mut cut, KeyShape::Integer, task, 3);
        assert!(all.len() == 1 && parts.len() > 2, "{name}");
        assert_eq!(sum(&all), sum(&parts), "{name}");
        assert_eq!(whole.content(), cut.content(), "{name}");
        assert_eq!(whole.content() != before, workload::writes(of), "{name}");
        assert_eq!(all[0].results.is_none(), workload::writes(of), "{name}");
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
        // What is searched in the main table is always the same.
        assert_eq!(all(KeyShape::Integer, SEED + 1) == integer, of == TableScan, "{name}");
    }
}

/// Every table's first row, its place, and what tells it from the others.
#[test]
fn populating_fills_three_tables() {
    let job = job(KeyShape::Integer, Populate);
    let inserted = |index| match &actions(&job, SEED, index)[..] {
        [Action::Insert(table, row, _)] => (*table, *row),
        other => panic!("{other:?}"),
    };
    assert_eq!(inserted(0), (Table::Main, 1));
    assert_eq!(inserted(ROWS - 1), (Table::Main, ROWS));
    assert_eq!(inserted(ROWS), (Table::Second, 1));
    assert_eq!(inserted(ROWS + few(ROWS)), (Table::Types, 1));
    assert_eq!(inserted(populated(ROWS) - 1), (Table::Types, few(ROWS)));
    let rows: BTreeSet<String> =
        (0..populated(ROWS)).map(|index| format!("{:?}", actions(&job, SEED, index))).collect();
    assert_eq!(rows.len() as u64, populated(ROWS));
}

/// What a workload finds follows from the ranges alone, where no row is missing.
#[test]
fn workloads_find_as_many_rows_as_they_ask_for() {
    let mut model = populated_model(KeyShape::Blob);
    let mut found = |of| {
        let found = perform(&mut model, KeyShape::Blob, Workload(of), u64::MAX);
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
    // As many as have the number; of 1 000 rows with 1 200 numbers about 680 differ; with
    // few exceptions ten different keys.
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
            let mut model = Model::new(shape);
            let mut perform = |task, count| {
                let job = Job::Sysbench(Sysbench { rows, ..job(shape, task) });
                model.perform(&Part { job, seed: SEED, from: 0, count, each: false })
            };
            perform(Populate, populated(rows));
            for (of, name, _) in WORKLOADS {
                let found = perform(Workload(of), 5);
                assert!(found.rows > 0 || of == IndexScan || of == IndexJoin, "{name} {rows}");
            }
        }
    }
}
