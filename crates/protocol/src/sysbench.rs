use candid::CandidType;
use serde::{Deserialize, Serialize};

use crate::Storage;

/// A job of the suite: tables with a shape of key, and what is done to them.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysbench {
    /// What the primary keys are.
    pub shape: KeyShape,
    /// Where the database is.
    pub storage: Storage,
    /// Whether each statement is a transaction of its own, else all of a message are one.
    pub autocommit: bool,
    /// Rows of the main table once it is populated.
    pub rows: u64,
    /// What is done.
    pub task: SysbenchTask,
}

/// What a primary key is.
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

/// What is done to the tables.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SysbenchTask {
    /// Creates the tables and their indexes; one operation.
    #[serde(rename = "create")]
    Create,
    /// Puts in the first rows; an operation a row.
    #[serde(rename = "populate")]
    Populate,
    /// Is measured.
    #[serde(rename = "workload")]
    Workload(SysbenchWorkload),
}

/// What is measured, by the published names.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SysbenchWorkload {
    /// One row by its key.
    #[serde(rename = "point_select")]
    PointSelect,
    /// 100 rows that follow each other.
    #[serde(rename = "range_select")]
    RangeSelect,
    /// The sum of a column of 100 rows.
    #[serde(rename = "sum_range")]
    SumRange,
    /// 100 rows, sorted by a text.
    #[serde(rename = "order_range")]
    OrderRange,
    /// The different texts of 100 rows, sorted.
    #[serde(rename = "distinct_range")]
    DistinctRange,
    /// Rows by a column with an index.
    #[serde(rename = "index_scan")]
    IndexScan,
    /// Ten rows by a list of keys.
    #[serde(rename = "select_random_points")]
    SelectRandomPoints,
    /// The count of ten rows that follow each other.
    #[serde(rename = "select_random_ranges")]
    SelectRandomRanges,
    /// The count of rows in a range of a column with an index.
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
    /// A text searched in all rows of the third table.
    #[serde(rename = "types_table_scan")]
    TypesTableScan,
    /// A text searched in all rows of the main table.
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
    /// A column with an index is changed.
    #[serde(rename = "update_index")]
    UpdateIndex,
    /// A column without an index is changed.
    #[serde(rename = "update_non_index")]
    UpdateNonIndex,
    /// A row is removed and another put in its place.
    #[serde(rename = "delete_insert")]
    DeleteInsert,
    /// Two updates, a removal and an insert.
    #[serde(rename = "write_only")]
    WriteOnly,
    /// As `delete_insert`, in the third table.
    #[serde(rename = "types_delete_insert")]
    TypesDeleteInsert,
    /// Ten points and two ranges, two updates, a removal and an insert.
    #[serde(rename = "read_write")]
    ReadWrite,
}
