//! Question: how much longer than native code does a canister take, and why?
//!
//! The same Rust code runs natively and as a canister. Between the two is a ladder, of which each rung adds
//! one thing. A round goes once up the ladder, so that all rungs meet the same state of the machine. Times
//! are those of the processor, and the fastest of all rounds counts: what else the machine does only adds
//! to them.
//!
//! ```text
//!   native         map: `VectorMemory`, SQLite: the library in rusqlite on its VFS in memory
//!   wasm           the module as it is; stable memory is a plain second memory
//!   stable memory  its calls check, mark pages and count themselves; pages are files, copied when written
//!   charges        each run of operators is charged: rules of 2025-10
//!   page tracking  heap pages fault when first touched: rules of today, whose code is not the same
//!   commit         pages are compared and kept; so far, they were dropped
//! ```
//!
//! Before the last rung, the method traps at its end. Both sides insert into an empty map or table in one
//! message, and SQLite in one transaction. Both libraries of SQLite are compiled from C with
//! optimisations, but not from the same version.
//!
//! ```text
//!   cargo bench -p stablebench-replica --bench native -- [ROUNDS]
//! ```

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]
#![allow(clippy::print_stdout, reason = "benchmarks print what they measure")]
#![allow(clippy::disallowed_methods, reason = "benchmarks measure time")]

#[path = "support/plain.rs"]
mod plain;
mod support;

use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{BTreeMap, DefaultMemoryImpl};
use plain::{Form, Plain, Running};
use rusqlite::{Connection, OpenFlags};
use stablebench_replica::{Canister, Principal, Replica, Rules};
use support::{install_on, on_a_large_stack, users};

fn main() {
    on_a_large_stack(|| {
        let rounds = std::env::args().find_map(|it| it.parse().ok()).unwrap_or(ROUNDS).max(1);
        let plain = Plain::new(users::uploaded());
        for work in [&MAP, &SQLITE] {
            climb(&plain, work, rounds);
        }
    });
}

/// Rounds, unless the command line contains another number.
const ROUNDS: usize = 11;
/// Rows that are inserted.
const ROWS: u64 = 100_000;
const RUNGS: [&str; 6] = ["native", "wasm", "stable memory", "charges", "page tracking", "commit"];

/// A workload that runs natively and in a canister.
struct Work {
    name: &'static str,
    /// Inserts rows; returns the seconds that the inserts take.
    native: fn() -> f64,
    prepare: fn(&mut Canister),
    prepare_plain: fn(&mut Running),
    method: &'static str,
}

const MAP: Work = Work {
    name: "StableBTreeMap",
    native: native_map,
    prepare: |_| {},
    prepare_plain: |_| {},
    method: "add_users_btree",
};

const SQLITE: Work = Work {
    name: "SQLite",
    native: native_sqlite,
    prepare: users::create_table,
    prepare_plain: |running| running.call("canister_update create_tables", users::JOURNAL),
    method: "add_users_sqlite",
};

fn climb(plain: &Plain, work: &Work, rounds: usize) {
    let canister = |rules: Rules, form: Form, metered: bool| {
        let replica = Replica::new(rules, None).unwrap();
        let uploaded = form.of(users::uploaded());
        let compile = if metered { Replica::compile } else { Replica::compile_unmetered };
        let mut canister = install_on(&replica, &compile(&replica, &uploaded).unwrap());
        (work.prepare)(&mut canister);
        (canister, form)
    };
    let (charges, today) = (Rules::of_2025_10(), Rules::today());
    let canisters = [
        canister(charges, Form::Dropping, false),
        canister(charges, Form::Dropping, true),
        canister(today, Form::Dropping, true),
        canister(today, Form::Committing, true),
    ];
    let argument = users::rows(0, ROWS);
    let mut best = [f64::INFINITY; RUNGS.len()];
    for _ in 0..rounds {
        let mut times = vec![(work.native)()];
        let mut running = plain.instantiate();
        (work.prepare_plain)(&mut running);
        let method = format!("canister_update {}", work.method);
        times.push(seconds(|| running.call(&method, &argument)));
        for (canister, form) in &canisters {
            let mut fork = canister.fork();
            times.push(seconds(|| {
                let execution = fork.update(Principal::anonymous(), work.method, &argument);
                assert_eq!(execution.unwrap().outcome.is_ok(), *form == Form::Committing);
            }));
        }
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    println!("{}, {ROWS} inserts, fastest of {rounds} rounds", work.name);
    for (name, time) in RUNGS.iter().zip(best) {
        let ratio = time / best[0];
        println!("  {name:<14} {time:.3} s {ratio:5.2} × {}", "█".repeat((ratio * 20.0) as usize));
    }
}

/// The time that this thread has executed code in `run`, and the kernel for it.
fn seconds(run: impl FnOnce()) -> f64 {
    let began = executed();
    run();
    executed() - began
}

fn executed() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the pointer is that of a value which only this function has.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn payload() -> String {
    "a".repeat(100)
}

fn native_map() -> f64 {
    let manager = MemoryManager::init(DefaultMemoryImpl::default());
    let mut map: BTreeMap<u64, String, VirtualMemory<DefaultMemoryImpl>> =
        BTreeMap::init(manager.get(MemoryId::new(0)));
    let payload = payload();
    seconds(|| {
        for row in 0..ROWS {
            map.insert(row * 10, payload.clone());
        }
    })
}

/// The statements of the canister, with the settings of `ic-rusqlite`.
fn native_sqlite() -> f64 {
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags("file:/users?vfs=memdb", flags).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=memory; PRAGMA synchronous=off; PRAGMA locking_mode=exclusive;
             PRAGMA temp_store=memory; PRAGMA cache_size=500000;
             CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL)",
        )
        .unwrap();
    let payload = payload();
    seconds(|| {
        let transaction = connection.transaction().unwrap();
        let insert = "insert into users (id, username) values (?, ?);";
        let mut statement = transaction.prepare(insert).unwrap();
        for row in 0..ROWS {
            statement.execute(((row * 10) as i64, &payload)).unwrap();
        }
        drop(statement);
        transaction.commit().unwrap();
    })
}
