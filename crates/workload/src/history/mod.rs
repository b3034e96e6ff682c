//! The history suite's work: a table whose rows are changed, committed, branched off and merged.
//!
//! ```text
//!   CREATE TABLE history (id INTEGER PRIMARY KEY, value TEXT NOT NULL)
//!
//!   id      0, 1, 2, …
//!   value   row-00000042-     and dots, 100 bytes: as inserted
//!           changed-00000042- likewise: changed
//!           here-00000000-    likewise: the row that is changed where a branch was left
//! ```
//!
//! Rows that are changed are spread over the table evenly, from its first on; the row that is changed
//! elsewhere is its last.
//!
//! * [`script`]: the work in SQL, with DoltLite's functions;
//! * [`model`]: what it must find and leave.

mod model;
mod script;

pub use model::HistoryModel;
pub use script::{Work, work};

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// The branch that is left and come back to.
pub const BRANCH: &str = "other";

/// Bytes of a commit's hash in hexadecimal digits.
const HASH_BYTES: u64 = 40;

/// What a value says of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Inserted,
    Changed,
    ChangedHere,
}

impl Version {
    fn value(self, id: u64) -> String {
        let word = match self {
            Self::Inserted => "row",
            Self::Changed => "changed",
            Self::ChangedHere => "here",
        };
        format!("{:.<VALUE_BYTES$}", format!("{word}-{id:08}-"))
    }
}

/// The distance between rows that are changed, so that `changed` of `rows` are.
fn step(rows: u64, changed: u64) -> u64 {
    (rows / changed.max(1)).max(1)
}

/// Rows that are changed.
fn changed_ids(rows: u64, changed: u64) -> impl Iterator<Item = u64> {
    let step = step(rows, changed);
    (0..changed.min(rows)).map(move |number| number * step)
}
