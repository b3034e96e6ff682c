//! Scenarios: the use of canisters, on any replica.

mod callers;
mod life;
mod limits;
pub mod suites;

use stablebench_protocol::{Engine, JournalMode};

use crate::replica::Replica;

/// A test on a replica. It panics if the replica does not behave as expected.
pub type Scenario = fn(&dyn Replica);

/// All scenarios by name.
#[rustfmt::skip]
pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("controllers_call_every_method", callers::controllers_call_every_method),
    ("strangers_may_only_query", callers::strangers_may_only_query),
    ("counts_of_btree", |replica| suites::counts_of_engine(replica, Engine::BTREE)),
    ("counts_of_append", |replica| suites::counts_of_engine(replica, Engine::APPEND)),
    ("counts_of_array", |replica| suites::counts_of_engine(replica, Engine::ARRAY)),
    ("counts_of_sqlite_delete", |replica| suites::counts_of_sqlite(replica, JournalMode::Delete)),
    ("counts_of_sqlite_truncate", |replica| suites::counts_of_sqlite(replica, JournalMode::Truncate)),
    ("counts_of_sqlite_persist", |replica| suites::counts_of_sqlite(replica, JournalMode::Persist)),
    ("counts_of_sqlite_memory", |replica| suites::counts_of_sqlite(replica, JournalMode::Memory)),
    ("counts_of_sqlite_wal", |replica| suites::counts_of_sqlite(replica, JournalMode::Wal)),
    ("counts_of_sqlite_off", |replica| suites::counts_of_sqlite(replica, JournalMode::Off)),
    ("suite_users", |replica| suites::suite(replica, suites::USERS)),
    ("suite_db_bench", |replica| suites::suite(replica, suites::DB_BENCH)),
    ("suite_keys", |replica| suites::suite(replica, suites::KEYS)),
    ("suite_sysbench", |replica| suites::suite(replica, suites::SYSBENCH)),
    ("suite_cuckoo", |replica| suites::suite(replica, suites::CUCKOO)),
    ("suite_sql", |replica| suites::suite(replica, suites::SQL)),
    ("suite_mix", |replica| suites::suite(replica, suites::MIX)),
    ("install_small_and_large", life::install_small_and_large),
    ("install_refused", life::install_refused),
    ("install_that_traps", life::install_that_traps),
    ("upgrade", life::upgrade),
    ("upgrade_that_traps", life::upgrade_that_traps),
    ("upgrade_then_restore", life::upgrade_then_restore),
    ("reinstall", life::reinstall),
    ("snapshot", life::snapshot),
    ("snapshots_replace_each_other", life::snapshots_replace_each_other),
    ("snapshot_of_an_open_connection", life::snapshot_of_an_open_connection),
    ("traps_roll_back", life::traps_roll_back),
    ("rejects_keep_changes", life::rejects_keep_changes),
    ("queries_roll_back", life::queries_roll_back),
    ("query_instruction_limit", limits::query_instructions),
    ("update_instruction_limit", limits::update_instructions),
    ("reply_size_limit", limits::reply_size),
    ("query_stable_page_limit", limits::query_stable_pages),
    ("long_message", limits::long_message),
    ("long_message_that_traps", limits::long_message_that_traps),
];
