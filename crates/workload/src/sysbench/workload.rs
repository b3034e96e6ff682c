//! The 23 workloads, by their published names.

use stablebench_protocol::SysbenchTask;
use stablebench_protocol::SysbenchWorkload::{self, *};

use super::few;

/// Rows of the main table that the published counts of operations are for.
pub const PUBLISHED_ROWS: u64 = 100_000;

/// A workload, its name, and its published number of operations.
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

/// Operations of a workload where the main table has so many rows: the published number,
/// in proportion to the rows, rounded down; at least one.
pub fn operations(workload: SysbenchWorkload, rows: u64) -> u64 {
    let published = of(workload).map_or(0, |(_, _, operations)| *operations);
    let scaled = u128::from(published) * u128::from(rows) / u128::from(PUBLISHED_ROWS);
    u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
}

/// Whether rows are changed.
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

/// Whether a task changes rows.
pub fn changes_rows(task: SysbenchTask) -> bool {
    match task {
        SysbenchTask::Create | SysbenchTask::Populate => true,
        SysbenchTask::Workload(workload) => writes(workload),
    }
}

/// Rows that populating puts in.
pub fn populated(rows: u64) -> u64 {
    rows.saturating_add(2 * few(rows))
}

fn of(workload: SysbenchWorkload) -> Option<&'static (SysbenchWorkload, &'static str, u64)> {
    WORKLOADS.iter().find(|(one, _, _)| *one == workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
}
