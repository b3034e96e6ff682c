//! What users of canisters do, one subject a file. A scenario takes any replica.

mod callers;
mod counts;
mod fill;
mod installing;
mod life;
mod limits;
mod slices;
pub mod suite;
mod traps;

use stablebench_protocol::{Engine, JournalMode};

use crate::canister::Replica;

/// What is done on a replica; it panics where the replica does otherwise.
pub type Scenario = fn(&dyn Replica);

/// Every scenario by its name.
#[rustfmt::skip]
pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("controllers_call_every_method", callers::controllers_call_every_method),
    ("strangers_may_only_ask", callers::strangers_may_only_ask),
    ("counts_of_btree", |replica| counts::engine(replica, Engine::Btree)),
    ("counts_of_append", |replica| counts::engine(replica, Engine::Append)),
    ("counts_of_array", |replica| counts::engine(replica, Engine::Array)),
    ("counts_of_sqlite_delete", |replica| counts::sqlite(replica, JournalMode::Delete)),
    ("counts_of_sqlite_truncate", |replica| counts::sqlite(replica, JournalMode::Truncate)),
    ("counts_of_sqlite_persist", |replica| counts::sqlite(replica, JournalMode::Persist)),
    ("counts_of_sqlite_memory", |replica| counts::sqlite(replica, JournalMode::Memory)),
    ("counts_of_sqlite_wal", |replica| counts::sqlite(replica, JournalMode::Wal)),
    ("counts_of_sqlite_off", |replica| counts::sqlite(replica, JournalMode::Off)),
    ("install_small_and_large", installing::small_and_large),
    ("install_refused", installing::refused),
    ("install_that_traps", installing::that_traps),
    ("upgrade", life::upgrade),
    ("upgrade_that_traps", life::upgrade_that_traps),
    ("upgrade_that_is_put_back", life::upgrade_that_is_put_back),
    ("reinstall", life::reinstall),
    ("snapshot", life::snapshot),
    ("snapshot_again_and_again", life::snapshot_again_and_again),
    ("snapshot_of_warm_and_cold", life::snapshot_of_warm_and_cold),
    ("limit_of_instructions_of_a_query", limits::instructions_of_a_query),
    ("limit_of_instructions_of_an_update", limits::instructions_of_an_update),
    ("limit_of_replies", limits::replies),
    ("limit_of_stable_pages_of_a_query", limits::stable_pages_of_a_query),
    ("long_message", slices::long_message),
    ("long_message_that_traps", slices::long_message_that_traps),
    ("suite_users", |replica| suite::suite(replica, suite::USERS)),
    ("suite_db_bench", |replica| suite::suite(replica, suite::DB_BENCH)),
    ("suite_keys", |replica| suite::suite(replica, suite::KEYS)),
    ("suite_sysbench", |replica| suite::suite(replica, suite::SYSBENCH)),
    ("suite_cuckoo", |replica| suite::suite(replica, suite::CUCKOO)),
    ("traps_leave_nothing", traps::leave_nothing),
    ("rejects_leave_everything", traps::rejects_leave_everything),
    ("queries_leave_nothing", traps::queries_leave_nothing),
];
