//! Random programs.
//!
//! ```text
//!   functions 0 to n       (i32, i64) → i64; each calls only lower ones
//!    └ statements          nested: if, loop, br_table, blocks left early,
//!       └ expressions      stores, bulk copies, stable memory, calls, globals
//! ```
//!
//! Loops count down in their own locals, and calls are only generated where their estimated work,
//! multiplied by the iterations of the surrounding loops, is small, so every program ends soon. Most
//! programs cannot trap; the others may divide by zero, or convert, read or jump out of range.
//!
//! A method copies its argument to the heap, runs the last function, and replies with the counter and
//! a checksum of everything that was computed: values, the heap, and bytes read from stable memory.
//! Heap and stable memory persist from call to call.

mod program;

use program::Body;
use stablebench_conformance::{Call, Case, Kind, Source};
use stablebench_workload::Rng;

/// Generates `count` programs with a few calls each.
pub fn cases(seed: u64, count: u16) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    (0..count).map(|number| case(number, &mut rng)).collect()
}

fn case(number: u16, rng: &mut Rng) -> Case {
    let text = module(rng);
    let mut call = |kind, method: &str| {
        let bytes = 16 + rng.below(48);
        let arg: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
        Call::new(kind, method, arg)
    };
    let calls = vec![
        call(Kind::Update, "run"),
        call(Kind::Query, "peek"),
        call(Kind::Update, "run"),
        // The heap is emptied, stable memory stays.
        Call::new(Kind::Upgrade, "", []),
        call(Kind::Update, "run"),
    ];
    Case {
        name: format!("random_{number:03}"),
        group: "random".to_owned(),
        module: Source::Wat(text),
        install: None,
        calls,
    }
}

/// Minimum size of stable memory in Wasm pages.
const STABLE_PAGES: u64 = 4;

/// A module with the methods `run` and `peek`.
fn module(rng: &mut Rng) -> String {
    let may_trap = rng.below(5) == 0;
    let count = 2 + rng.below(4) as usize;
    let mut functions = String::new();
    let mut work: Vec<u64> = Vec::new();
    for number in 0..count {
        let mut body = Body::new(may_trap, &work, rng);
        let (text, estimate) = body.function(number);
        functions += &text;
        work.push(estimate);
    }
    let listed: String = (0..count).map(|number| format!(" $f{number}")).collect();
    let last = count - 1;
    format!(
        r#"(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_arg_data_size" (func $size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "stable64_size" (func $stable_size (result i64)))
  (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
  (import "ic0" "stable_read" (func $stable_read32 (param i32 i32 i32)))
  (import "ic0" "stable_write" (func $stable_write32 (param i32 i32 i32)))
  (type $f (func (param $i32 i32) (param $i64 i64) (result i64)))
  (memory 2)
  (table {count} funcref)
  (elem (i32.const 0){listed})
  (global $sum (mut i64) (i64.const 0))
  (global $i32 (mut i32) (i32.const {})) (global $i64 (mut i64) (i64.const {}))
  (global $f32 (mut f32) (f32.const 0.5)) (global $f64 (mut f64) (f64.const -2.25))
  (func $mix (param $value i64)
    (global.set $sum (i64.add (i64.mul (i64.rotl (global.get $sum) (i64.const 13))
      (i64.const 0x9e3779b97f4a7c15)) (local.get $value))))
{functions}  (func $method (local $at i32)
    (call $copy (i32.const 0) (i32.const 0) (call $size))
    (if (i64.lt_u (call $stable_size) (i64.const {STABLE_PAGES}))
      (then (drop (call $stable_grow (i64.const {STABLE_PAGES})))))
    (call $mix (call $f{last} (i32.load (i32.const 0)) (i64.load (i32.const 8))))
    (loop $heap
      (call $mix (i64.load (local.get $at)))
      (br_if $heap (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 264)))
        (i32.const 65536))))
    (i64.store (i32.const 131064) (global.get $sum))
    (i64.store (i32.const 131056) (call $counter (i32.const 0)))
    (call $append (i32.const 131056) (i32.const 16))
    (call $reply))
  (export "canister_update run" (func $method))
  (export "canister_query peek" (func $method)))
"#,
        rng.next_u64() as i32,
        rng.next_u64() as i64,
    )
}
