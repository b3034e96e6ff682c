//! The vfs suite's work: a table of texts under texts, as the benchmark has it that the
//! authors of `ic-sqlite-vfs` publish.
//!
//! ```text
//!   CREATE TABLE bench (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID
//!
//!   key     k00000042   inserted        value   value-00000042-stable-vfs
//!           w00000042   upserted                updated-00000042-stable-vfs, where it was
//!                                               upserted or updated
//! ```
//!
//! * [`mod@script`]: the work in SQL;
//! * [`model`]: what it must find and leave.

pub mod model;
pub mod script;

pub use model::VfsModel;
pub use script::{CREATE, READ_ALL, script};

use stablebench_protocol::Part;
use std::ops::Range;

/// The key of a row that is inserted.
pub fn key(index: u64) -> String {
    format!("k{index:08}")
}

/// The key of a row that is upserted.
pub fn upserted_key(index: u64) -> String {
    format!("w{index:08}")
}

/// The value of a row that is inserted.
pub fn value(index: u64) -> String {
    format!("value-{index:08}-stable-vfs")
}

/// The value of a row that is upserted or updated.
pub fn updated_value(index: u64) -> String {
    format!("updated-{index:08}-stable-vfs")
}

fn operations(part: &Part) -> Range<u64> {
    part.from..part.from.saturating_add(part.count)
}
