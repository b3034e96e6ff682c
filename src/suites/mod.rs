//! What is measured.
//!
//! ```text
//!   users                                       a plan of its own: one table, and what is
//!                                               done to it
//!   db_bench keys sysbench cuckoo vfs history   lanes of steps, see `lane.rs`
//! ```

pub mod command;
pub mod cuckoo;
pub mod db_bench;
pub mod history;
pub mod keys;
pub mod lane;
pub mod outline;
pub mod published;
pub mod sysbench;
pub mod users;
pub mod vfs;

/// Names and questions of all suites.
pub const SUITES: &[(&str, &str)] = &[
    ("users", "What does it cost to add, read, change and remove rows among many?"),
    (db_bench::NAME, "Is a table without rowid cheaper, and what does a map cost?"),
    (keys::NAME, "What do integers, ULIDs and UUIDs cost as keys, and what does a rowid?"),
    (sysbench::NAME, "How much more does each statement cost on one side than on the other?"),
    (cuckoo::NAME, "How cheap can a point read be where rows never change?"),
    (vfs::NAME, "What does the file layer below SQLite cost, in one library and the other?"),
    (history::NAME, "What do commits, branches and diffs of a table cost in DoltLite?"),
];

/// What a section of a suite is about.
pub fn describe(suite: &str, section: &str) -> Option<String> {
    match suite {
        db_bench::NAME => db_bench::describe(section),
        keys::NAME => keys::describe(section),
        sysbench::NAME => sysbench::describe(section),
        cuckoo::NAME => cuckoo::describe(section),
        vfs::NAME => vfs::describe(section),
        history::NAME => history::describe(section),
        _ => users::describe(section).map(str::to_owned),
    }
}
