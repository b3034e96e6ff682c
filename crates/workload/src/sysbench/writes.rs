//! The operations of workloads that change rows.
//!
//! Whatever is removed is put back by the same operation, so that every row is there when
//! the next begins.

use stablebench_protocol::SysbenchWorkload::{self, *};

use super::action::{Action, RANGE, Table};
use super::few;
use super::reads::{points, range, row};
use super::record::{C_BYTES, Record, letters};
use crate::Rng;

/// What operation `index` does; nothing where the workload only reads.
pub fn actions(workload: SysbenchWorkload, rows: u64, index: u64, mut rng: Rng) -> Vec<Action> {
    let rng = &mut rng;
    match workload {
        BulkInsert => vec![Action::Insert(Table::Bulk, index + 1, Record::main(rng, rows))],
        Insert => vec![Action::Insert(Table::Main, rows + 1 + index, Record::main(rng, rows))],
        UpdateIndex => vec![set_k(rng, rows)],
        UpdateNonIndex => vec![set_c(rng, rows)],
        DeleteInsert => renew(rng, rows).to_vec(),
        WriteOnly => changes(rng, rows),
        TypesDeleteInsert => {
            let row = row(rng, few(rows));
            let record = Record::types(rng);
            vec![Action::Delete(Table::Types, row), Action::Replace(Table::Types, row, record)]
        }
        ReadWrite => {
            let mut actions = points(rng, rows);
            actions.push(Action::Range(range(rng, rows, RANGE)));
            actions.push(Action::Sum(range(rng, rows, RANGE)));
            actions.extend(changes(rng, rows));
            actions
        }
        PointSelect | RangeSelect | SumRange | OrderRange | DistinctRange | IndexScan
        | SelectRandomPoints | SelectRandomRanges | CoveringIndexScan | GroupbyScan | IndexJoin
        | IndexJoinScan | TypesTableScan | TableScan | ReadOnly => Vec::new(),
    }
}

/// Two updates, a removal and an insert.
fn changes(rng: &mut Rng, rows: u64) -> Vec<Action> {
    let mut actions = vec![set_k(rng, rows), set_c(rng, rows)];
    actions.extend(renew(rng, rows));
    actions
}

fn set_k(rng: &mut Rng, rows: u64) -> Action {
    Action::SetK(row(rng, rows), row(rng, rows))
}

fn set_c(rng: &mut Rng, rows: u64) -> Action {
    Action::SetC(row(rng, rows), letters(rng, C_BYTES))
}

/// A row goes, and another comes in its place.
fn renew(rng: &mut Rng, rows: u64) -> [Action; 2] {
    let row = row(rng, rows);
    let record = Record::main(rng, rows);
    [Action::Delete(Table::Main, row), Action::Replace(Table::Main, row, record)]
}
