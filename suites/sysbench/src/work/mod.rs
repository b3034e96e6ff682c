//! The sysbench suite: SQL statements like those of that program, on tables whose primary key has
//! one of four shapes.
//!
//! ```text
//!   sbtest1       key, k INTEGER with an index, c TEXT of 60, pad TEXT of 30      rows
//!   sbtest2       the same                                             at most 1 000 rows
//!   sbtest_types  key, ival INTEGER, rval REAL, tval TEXT of 50        at most 1 000 rows
//!   sbtest_bulk   like sbtest1, without the index                                 empty
//! ```
//!
//! Rows are numbered from 1; a key is a number in a shape. `k` is a random number of a row of
//! sbtest1, texts are random lower-case letters. Operation i of a workload follows from the seed, the
//! workload's name, the number of rows, and i, and not from the shape of the key, so that every shape
//! does the same work.

mod actions;
mod model;
mod script;
mod tables;
#[cfg(test)]
mod tests;

pub use model::SysbenchModel;
pub use script::script;
pub use tables::{CONTENT, SHAPES, content_columns, content_order, create, name as table_name};

use crate::job::SysbenchTask;
use crate::job::SysbenchWorkload::{self, *};
use stablebench_workload::Rng;

/// The maximum number of rows of the second and third table.
pub const FEW: u64 = 1_000;

/// The number of rows of the main table for the published numbers of operations.
pub const PUBLISHED_ROWS: u64 = 100_000;

/// Each workload, its name, and its published number of operations.
pub const WORKLOADS: [(SysbenchWorkload, &str, u64); 23] = [
    (PointSelect, "point_select", 10_000),
    (RangeSelect, "range_select", 1_000),
    (SumRange, "sum_range", 1_000),
    (OrderRange, "order_range", 100),
    (DistinctRange, "distinct_range", 100),
    (IndexScan, "index_scan", 1_000),
    (SelectRandomPoints, "select_random_points", 1_000),
    (SelectRandomRanges, "select_random_ranges", 1_000),
    (CoveringIndexScan, "covering_index_scan", 1_000),
    (GroupbyScan, "groupby_scan", 100),
    (IndexJoin, "index_join", 500),
    (IndexJoinScan, "index_join_scan", 100),
    (TypesTableScan, "types_table_scan", 100),
    (TableScan, "table_scan", 100),
    (ReadOnly, "read_only", 1_000),
    (BulkInsert, "bulk_insert", PUBLISHED_ROWS),
    (Insert, "insert", 5_000),
    (UpdateIndex, "update_index", 10_000),
    (UpdateNonIndex, "update_non_index", 10_000),
    (DeleteInsert, "delete_insert", 5_000),
    (WriteOnly, "write_only", 1_000),
    (TypesDeleteInsert, "types_delete_insert", 5_000),
    (ReadWrite, "read_write", 1_000),
];

/// The published name.
pub fn name(workload: SysbenchWorkload) -> &'static str {
    of(workload).map_or("", |(_, name, _)| name)
}

/// The number of operations of a workload: the published one in proportion to the rows of the main
/// table, rounded down; at least one.
pub fn operations(workload: SysbenchWorkload, rows: u64) -> u64 {
    let published = of(workload).map_or(0, |(_, _, operations)| *operations);
    let scaled = u128::from(published) * u128::from(rows) / u128::from(PUBLISHED_ROWS);
    u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
}

/// Returns `true` if a workload changes rows.
pub fn writes(workload: SysbenchWorkload) -> bool {
    matches!(
        workload,
        BulkInsert
            | Insert
            | UpdateIndex
            | UpdateNonIndex
            | DeleteInsert
            | WriteOnly
            | TypesDeleteInsert
            | ReadWrite
    )
}

/// Returns `true` if a task changes rows.
pub fn changes_rows(task: SysbenchTask) -> bool {
    match task {
        SysbenchTask::Create | SysbenchTask::Populate => true,
        SysbenchTask::Workload(workload) => writes(workload),
    }
}

/// The number of rows that populating inserts.
pub fn populated(rows: u64) -> u64 {
    rows.saturating_add(2 * few(rows))
}

fn of(workload: SysbenchWorkload) -> Option<&'static (SysbenchWorkload, &'static str, u64)> {
    WORKLOADS.iter().find(|(one, _, _)| *one == workload)
}

/// The number of rows of the second and third table.
pub fn few(rows: u64) -> u64 {
    rows.min(FEW)
}

/// The generator of one operation.
fn rng(seed: u64, stream: &str, index: u64) -> Rng {
    // FNV-1a, so that the name alone decides.
    let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = Rng::new(Rng::new(seed).next_u64() ^ name).next_u64();
    Rng::new(Rng::new(mixed ^ index).next_u64())
}
