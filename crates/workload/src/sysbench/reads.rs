//! The operations of workloads that only read.

use stablebench_protocol::SysbenchWorkload::{self, *};

use super::action::{Action, JOINED, LONG, POINTS, RANGE, SHORT, Table};
use super::few;
use super::record::letters;
use crate::Rng;

/// Searched in the main table; about one row in 320 has it.
const SEARCHED: &str = "abc";

/// What one operation does; nothing where the workload writes.
pub fn actions(workload: SysbenchWorkload, rows: u64, mut rng: Rng) -> Vec<Action> {
    let rng = &mut rng;
    let action = match workload {
        PointSelect => Action::Point(row(rng, rows)),
        RangeSelect => Action::Range(range(rng, rows, RANGE)),
        SumRange => Action::Sum(range(rng, rows, RANGE)),
        OrderRange => Action::Order(range(rng, rows, RANGE)),
        DistinctRange => Action::Distinct(range(rng, rows, RANGE)),
        IndexScan => Action::WithK(row(rng, rows)),
        SelectRandomPoints => Action::Points((0..POINTS).map(|_| row(rng, rows)).collect()),
        SelectRandomRanges => Action::Count(range(rng, rows, SHORT)),
        CoveringIndexScan => Action::CountK(range(rng, rows, RANGE)),
        GroupbyScan => Action::Group(range(rng, rows, LONG)),
        IndexJoin => Action::Join(range(rng, rows, SHORT)),
        IndexJoinScan => Action::JoinScan(range(rng, few(rows), JOINED)),
        TypesTableScan => Action::Like(Table::Types, letters(rng, SEARCHED.len())),
        TableScan => Action::Like(Table::Main, SEARCHED.to_owned()),
        ReadOnly => {
            let mut actions = points(rng, rows);
            actions.extend(
                [Action::Range, Action::Sum, Action::Order, Action::Distinct]
                    .map(|action| action(range(rng, rows, RANGE))),
            );
            return actions;
        }
        BulkInsert | Insert | UpdateIndex | UpdateNonIndex | DeleteInsert | WriteOnly
        | TypesDeleteInsert | ReadWrite => return Vec::new(),
    };
    vec![action]
}

/// A row of a table of so many.
pub fn row(rng: &mut Rng, rows: u64) -> u64 {
    1 + rng.below(rows)
}

/// The first of so many rows that follow each other.
pub fn range(rng: &mut Rng, rows: u64, length: u64) -> u64 {
    1 + rng.below(rows.saturating_sub(length).max(1))
}

/// Ten rows one by one.
pub fn points(rng: &mut Rng, rows: u64) -> Vec<Action> {
    (0..POINTS).map(|_| Action::Point(row(rng, rows))).collect()
}
