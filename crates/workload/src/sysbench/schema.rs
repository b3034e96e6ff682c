//! The tables in SQL.

use stablebench_protocol::KeyShape::{self, *};

use super::action::Table;
use super::shape::{columns, of_table};

/// Tables whose rows are content, in the order of [`super::Model`]'s.
pub const CONTENT: [Table; 4] = [Table::Main, Table::Second, Table::Types, Table::Bulk];

/// The table's name.
pub fn name(table: Table) -> &'static str {
    match table {
        Table::Main => "sbtest1",
        Table::Second => "sbtest2",
        Table::Types => "sbtest_types",
        Table::Bulk => "sbtest_bulk",
    }
}

/// All columns as the model has them: of a REAL, its thousandths.
pub fn content_columns(shape: KeyShape, table: Table) -> String {
    let key = columns(of_table(shape, table), "");
    match table {
        Table::Types => format!("{key}, ival, CAST(round(rval * 1000) AS INTEGER), tval"),
        Table::Main | Table::Second | Table::Bulk => format!("{key}, k, c, pad"),
    }
}

/// What rows are ordered by.
pub fn content_order(shape: KeyShape, table: Table) -> String {
    columns(of_table(shape, table), "")
}

/// Statements that create all tables and their indexes.
pub fn create(shape: KeyShape) -> String {
    let mut statements = String::new();
    for table in CONTENT {
        let name = name(table);
        let key = match of_table(shape, table) {
            Integer => "id INTEGER PRIMARY KEY, ",
            Composite => "a INTEGER NOT NULL, b INTEGER NOT NULL, ",
            Blob => "id BLOB PRIMARY KEY, ",
            Text => "id TEXT PRIMARY KEY, ",
        };
        let columns = match table {
            Table::Types => "ival INTEGER, rval REAL, tval TEXT",
            Table::Main | Table::Second | Table::Bulk => "k INTEGER, c TEXT (60), pad TEXT (30)",
        };
        let end = match of_table(shape, table) {
            Composite => ", PRIMARY KEY (a, b)) WITHOUT ROWID",
            Integer | Blob | Text => ")",
        };
        statements += &format!("CREATE TABLE {name} ({key}{columns}{end};");
        if matches!(table, Table::Main | Table::Second) {
            statements += &format!("CREATE INDEX {name}_k ON {name} (k);");
        }
    }
    statements
}
