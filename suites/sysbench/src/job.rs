use candid::CandidType;
use serde::{Deserialize, Serialize};

use stablebench_protocol::{Storage, SuiteJob};

/// A job of the suite sysbench: a task on tables with one shape of key.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysbench {
    /// The shape of the primary keys.
    pub shape: KeyShape,
    /// The place of the database.
    pub storage: Storage,
    /// True if each statement is its own transaction; otherwise all of a message are one.
    pub autocommit: bool,
    /// The number of rows of the populated main table.
    pub rows: u64,
    /// The task.
    pub task: SysbenchTask,
}

impl SuiteJob for Sysbench {
    const SUITE: &'static str = "sysbench";
}

/// The shape of a primary key.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyShape {
    /// `INTEGER PRIMARY KEY`: the rowid itself.
    #[serde(rename = "integer")]
    Integer,
    /// Two integers, `WITHOUT ROWID`.
    #[serde(rename = "composite")]
    Composite,
    /// A blob of 16 bytes, the number in big-endian order.
    #[serde(rename = "blob")]
    Blob,
    /// A text of 32 hexadecimal digits.
    #[serde(rename = "text")]
    Text,
}

/// A task on the tables.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SysbenchTask {
    /// Creates the tables and their indexes; one operation.
    #[serde(rename = "create")]
    Create,
    /// Inserts the first rows, one per operation.
    #[serde(rename = "populate")]
    Populate,
    /// Runs a measured workload.
    #[serde(rename = "workload")]
    Workload(SysbenchWorkload),
}

/// The workloads, by their published names.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SysbenchWorkload {
    /// One row by its key.
    #[serde(rename = "point_select")]
    PointSelect,
    /// 100 consecutive rows.
    #[serde(rename = "range_select")]
    RangeSelect,
    /// The sum of a column of 100 rows.
    #[serde(rename = "sum_range")]
    SumRange,
    /// 100 rows, sorted by a text.
    #[serde(rename = "order_range")]
    OrderRange,
    /// The distinct texts of 100 rows, sorted.
    #[serde(rename = "distinct_range")]
    DistinctRange,
    /// Rows by an indexed column.
    #[serde(rename = "index_scan")]
    IndexScan,
    /// Ten rows by a list of keys.
    #[serde(rename = "select_random_points")]
    SelectRandomPoints,
    /// The count of ten consecutive rows.
    #[serde(rename = "select_random_ranges")]
    SelectRandomRanges,
    /// The count of rows in a range of an indexed column.
    #[serde(rename = "covering_index_scan")]
    CoveringIndexScan,
    /// The counts of each value among 1 000 rows.
    #[serde(rename = "groupby_scan")]
    GroupbyScan,
    /// Ten rows joined with the second table.
    #[serde(rename = "index_join")]
    IndexJoin,
    /// 50 rows of the second table joined with the main one.
    #[serde(rename = "index_join_scan")]
    IndexJoinScan,
    /// A substring search in all rows of the third table.
    #[serde(rename = "types_table_scan")]
    TypesTableScan,
    /// A substring search in all rows of the main table.
    #[serde(rename = "table_scan")]
    TableScan,
    /// Ten points and four ranges.
    #[serde(rename = "read_only")]
    ReadOnly,
    /// New rows in an empty table.
    #[serde(rename = "bulk_insert")]
    BulkInsert,
    /// New rows at the end.
    #[serde(rename = "insert")]
    Insert,
    /// Changes an indexed column.
    #[serde(rename = "update_index")]
    UpdateIndex,
    /// Changes a column without an index.
    #[serde(rename = "update_non_index")]
    UpdateNonIndex,
    /// Deletes a row and inserts another in its place.
    #[serde(rename = "delete_insert")]
    DeleteInsert,
    /// Two updates, a delete and an insert.
    #[serde(rename = "write_only")]
    WriteOnly,
    /// Like `delete_insert`, in the third table.
    #[serde(rename = "types_delete_insert")]
    TypesDeleteInsert,
    /// Ten points and two ranges, two updates, a delete and an insert.
    #[serde(rename = "read_write")]
    ReadWrite,
}
