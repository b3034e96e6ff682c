//! Published figures that ours are printed beside.

use stablebench_protocol::JournalMode;

/// The forum post of 2025, "Writing into StableBTreeMap vs SQLite": instructions
/// for new rows in the middle of 100 000 rows with ids 0, 10, 20, …
///
/// It counts the span of the new ids, ten times the number of rows: its loop is
/// `while i < count { add(offset + i); i += 10 }`.
pub const USERS: Users = Users {
    source: "developer forum post, 2025: ic-rusqlite 0.4.3, ic-stable-structures 0.7",
    populated_span: 1_000_000,
    rows: &[
        UsersRow { span: 1, instructions: [49_359, 407_462, 202_686, 149_520] },
        UsersRow { span: 10, instructions: [49_359, 407_462, 202_686, 149_520] },
        UsersRow { span: 50, instructions: [256_551, 453_089, 248_313, 195_171] },
        UsersRow { span: 100, instructions: [548_249, 529_542, 324_840, 271_660] },
        UsersRow { span: 1_000, instructions: [5_706_594, 2_334_600, 2_064_459, 1_993_575] },
        UsersRow { span: 10_000, instructions: [57_301_658, 20_441_029, 18_909_213, 18_612_903] },
    ],
};

/// The journal modes of the post's columns after the first, StableBTreeMap:
/// "SQLite", "SQLite in-memory journal", "SQLite no journal".
pub const USERS_JOURNAL_MODES: [JournalMode; 3] =
    [JournalMode::Delete, JournalMode::Memory, JournalMode::Off];

/// A published table.
#[derive(Debug)]
pub struct Users {
    pub source: &'static str,
    /// The span of ids that was populated.
    pub populated_span: u64,
    pub rows: &'static [UsersRow],
}

/// A row of it.
#[derive(Debug)]
pub struct UsersRow {
    /// What the post calls "new elements".
    pub span: u64,
    /// StableBTreeMap, then the journal modes.
    pub instructions: [u64; 4],
}

impl UsersRow {
    /// Rows that were in fact added.
    pub fn rows(&self) -> u64 {
        self.span.div_ceil(stablebench_workload::ids::STEP)
    }
}
