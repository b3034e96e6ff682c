//! Questions: what does counting instructions cost, and what does profiling cost?
//!
//! The same module is compiled by the same optimizer with charges, without them, and in the form for
//! profiles. Each round runs the same message in one form after the other, on a fork of the same
//! canister, so that all forms meet the same state of the machine.
//!
//! ```text
//!   cargo bench -p stablebench-replica --bench metering -- [ROUNDS]
//! ```

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]
#![allow(clippy::print_stdout, reason = "benchmarks print what they measure")]
#![allow(clippy::disallowed_methods, reason = "benchmarks measure time")]

mod support;

use std::time::Instant;

use stablebench_replica::{Canister, Module, Principal, Replica, Rules, Span};
use support::{install_on, on_a_large_stack, update, users, wat};

fn main() {
    on_a_large_stack(|| {
        for name in Rules::SETS {
            let replica = Replica::new(name.parse().unwrap(), None).unwrap();
            for work in [LOOP, SQLITE, MAP] {
                compare(&replica, name, &work);
            }
        }
    });
}

/// Rounds, unless the command line contains another number.
const ROUNDS: usize = 11;
/// Iterations of the loop.
const TURNS: u64 = 100_000_000;
/// Rows that are inserted into an empty table or map.
const ROWS: u64 = 100_000;

/// A message to a canister.
struct MeasuredMessage {
    name: &'static str,
    module: fn() -> Vec<u8>,
    prepare: fn(&mut Canister),
    method: &'static str,
    argument: fn() -> Vec<u8>,
}

const LOOP: MeasuredMessage = MeasuredMessage {
    name: "a loop of 100 M turns",
    module: generator,
    prepare: |_| {},
    method: "run",
    argument: Vec::new,
};

const SQLITE: MeasuredMessage = MeasuredMessage {
    name: "SQLite, 100 000 inserts",
    module: users_module,
    prepare: users::create_table,
    method: "add_users_sqlite",
    argument: || users::rows(0, ROWS),
};

const MAP: MeasuredMessage = MeasuredMessage {
    name: "StableBTreeMap, 100 000 inserts",
    prepare: |_| {},
    method: "add_users_btree",
    ..SQLITE
};

fn users_module() -> Vec<u8> {
    users::uploaded().to_vec()
}

/// A linear congruential generator, `TURNS` times.
fn generator() -> Vec<u8> {
    wat(&format!(
        r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (global $sum (mut i64) (i64.const 0))
            (func (export "canister_update run") (local $left i64) (local $x i64)
                (local.set $left (i64.const {TURNS}))
                (loop $next
                    (local.set $x (i64.add
                        (i64.mul (local.get $x) (i64.const 6364136223846793005))
                        (local.get $left)))
                    (local.tee $left (i64.sub (local.get $left) (i64.const 1)))
                    (i64.const 0)
                    (br_if $next (i64.ne)))
                (global.set $sum (local.get $x))
                (call $reply)))"#
    ))
}

fn compare(replica: &Replica, rules: &str, work: &MeasuredMessage) {
    let module = (work.module)();
    let installed = |module: &Module| {
        let mut canister = install_on(replica, module);
        (work.prepare)(&mut canister);
        canister
    };
    let counted = installed(&replica.compile(&module).unwrap());
    let unmetered = installed(&replica.compile_unmetered(&module).unwrap());
    let argument = (work.argument)();
    let send = |canister: &Canister| {
        let mut fork = canister.fork();
        seconds(|| drop(update(&mut fork, work.method, &argument)))
    };
    let profile = |canister: &Canister| {
        let mut fork = canister.fork();
        let caller = Principal::anonymous();
        seconds(|| {
            let (execution, profile) =
                fork.profile_update(caller, work.method, &argument, Span::Message).unwrap();
            assert_eq!(profile.instructions, execution.instructions);
        })
    };
    // The form for profiles is compiled when it is first used.
    profile(&counted);
    let rounds = std::env::args().find_map(|it| it.parse().ok()).unwrap_or(ROUNDS).max(1);
    let times: Vec<[f64; 3]> =
        (0..rounds).map(|_| [send(&unmetered), send(&counted), profile(&counted)]).collect();
    let over = |above: usize, below: usize| {
        quartiles(times.iter().map(|times| times[above] / times[below]).collect())
    };
    let [_, median, _] = quartiles(times.iter().map(|times| times[0]).collect());
    println!("{rules}, {}, {rounds} rounds", work.name);
    println!("  not counted         {median:.3} s");
    for (name, [low, median, high]) in
        [("counted / not", over(1, 0)), ("profiled / counted", over(2, 1))]
    {
        println!("  {name:<19} {median:.2} × ({low:.2} to {high:.2})");
    }
}

fn seconds(run: impl FnOnce()) -> f64 {
    let began = Instant::now();
    run();
    began.elapsed().as_secs_f64()
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}
