//! Independence of the host: counts and replies are the same on every operating system, page size and
//! processor, and a canister that a host without file descriptors has damaged is not used.

use std::env;
use std::fmt::Write;
use std::fs::File;
use std::process::{Command, Output};

use stablebench_replica::testing::Canister as Tested;
use stablebench_replica::{Canister, Execution, HostError, Replica, Rules};

use crate::support::{CALLER, compile, install, query, update};

/// Writes to and reads from scattered pages of the heap and of stable memory. The argument has the
/// number of accesses and a seed, the reply a checksum.
const SCATTER: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 100)
    (global $seed (mut i64) (i64.const 0))
    (global $sum (mut i64) (i64.const 0))
    (func (export "canister_init") (drop (call $grow (i64.const 100))))

    ;; An address of a word in the first 6 MiB, behind the first page.
    (func $next (result i32)
        (global.set $seed (i64.add
            (i64.mul (global.get $seed) (i64.const 6364136223846793005))
            (i64.const 1442695040888963407)))
        (i32.add (i32.const 65536) (i32.and (i32.const 0x3ffff8)
            (i32.wrap_i64 (i64.shr_u (global.get $seed) (i64.const 33))))))
    (func $scatter (local $left i32) (local $at i32)
        (call $argument (i32.const 0) (i32.const 0) (i32.const 16))
        (local.set $left (i32.load (i32.const 0)))
        (global.set $seed (i64.load (i32.const 8)))
        (loop $again
            (local.set $at (call $next))
            (i64.store (local.get $at) (i64.and (global.get $seed) (i64.const 3)))
            (local.set $at (call $next))
            (global.set $sum (i64.add (global.get $sum) (i64.load (local.get $at))))
            (call $write (i64.extend_i32_u (call $next)) (i64.const 8) (i64.const 8))
            (call $read (i64.const 24) (i64.extend_i32_u (call $next)) (i64.const 8))
            (global.set $sum (i64.xor (global.get $sum) (i64.load (i32.const 24))))
            (local.set $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $again (local.get $left)))
        (i64.store (i32.const 32) (global.get $sum))
        (call $append (i32.const 32) (i32.const 8))
        (call $reply))
    (func (export "canister_update work") (call $scatter))
    (func (export "canister_query look") (call $scatter))
    (func (export "canister_update trap") (call $scatter) (unreachable))
    (func (export "canister_update more")
        (drop (memory.grow (i32.const 30))) (drop (call $grow (i64.const 30)))
        (call $scatter)))"#;

fn argument(accesses: u64, seed: u64) -> Vec<u8> {
    [accesses.to_le_bytes(), seed.to_le_bytes()].concat()
}

fn described(text: &mut String, what: &str, execution: &Execution) {
    let reply = execution.outcome.as_ref().map(Vec::as_slice).unwrap_or_default();
    let counts = execution.counts().to_string().replace('\n', ", ");
    writeln!(text, "{what}: {reply:?}\n    {counts}").unwrap();
}

/// The counts and checksums of messages that commit, are undone, grow and run on forks.
fn messages(rules: Rules) -> String {
    let mut text = format!("{rules}\n");
    let replica = Replica::new(rules, None).unwrap_or_else(|error| panic!("{error}"));
    let module = replica.compile(&wat::parse_str(SCATTER).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    described(&mut text, "install", &canister.install(&module, CALLER, &[]).unwrap());
    let mut forks: Vec<Canister> = Vec::new();
    for (round, accesses) in [(1, 5), (2, 200), (3, 3_000), (4, 1)] {
        described(&mut text, "work", &update(&mut canister, "work", &argument(accesses, round)));
        described(&mut text, "look", &query(&canister, "look", &argument(accesses, round + 10)));
        described(
            &mut text,
            "trap",
            &update(&mut canister, "trap", &argument(accesses, round + 20)),
        );
        forks.push(canister.fork());
    }
    described(&mut text, "more", &update(&mut canister, "more", &argument(100, 5)));
    for (number, fork) in forks.iter_mut().enumerate() {
        described(&mut text, &format!("fork {number}"), &update(fork, "work", &argument(50, 6)));
        described(&mut text, "again", &update(fork, "work", &argument(50, 6)));
    }
    let upgraded = canister.upgrade(&module, CALLER, &[]).unwrap();
    described(&mut text, "upgrade", &upgraded);
    described(&mut text, "after it", &query(&canister, "look", &argument(3_000, 7)));
    text
}

#[test]
fn messages_count_what_they_count_on_every_host() {
    insta::assert_snapshot!(
        [messages(Rules::of_2025_10()), messages(Rules::of_2026_08())].join("\n")
    );
}

/// Runs the test above in a process with a backend for memories.
fn run_with(backend: &str) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "hosts::messages_count_what_they_count_on_every_host"])
        .env("STABLEBENCH_MEMORY", backend)
        .output()
        .unwrap()
}

#[test]
fn every_backend_counts_the_same() {
    let backends: &[&str] =
        if cfg!(target_os = "linux") { &["linux", "portable"] } else { &["portable"] };
    for backend in backends {
        let output = run_with(backend);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{backend}: {stdout}");
        assert!(stdout.contains("1 passed"), "{backend}: {stdout}");
    }
}

#[test]
fn an_unknown_backend_is_refused() {
    let output = run_with("mmap");
    assert!(!output.status.success());
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.contains("STABLEBENCH_MEMORY") && output.contains("portable"), "{output}");
}

/// Numbers in which processors differ: NaNs with payloads, signalling NaNs, zeros, infinities.
const SPECIAL: [u64; 14] = [
    0x7ff8_0000_0000_0000,
    0xfff8_0000_0000_0001,
    0x7ff8_dead_beef_0001,
    0x7ff0_0000_0000_0001,
    0xfff4_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x3ff8_0000_0000_0000,
    0xc004_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x0000_0000_0000_0001,
    0xbfe0_0000_0000_0000,
];

/// The same kinds of numbers with 32 bits.
fn narrow(wide: u64) -> u32 {
    let number = f64::from_bits(wide);
    match number.is_nan() {
        true => {
            (wide >> 32) as u32 & 0x8000_0000 | 0x7f80_0000 | (wide >> 29) as u32 & 0x7f_ffff | 1
        }
        false => (number as f32).to_bits(),
    }
}

/// WebAssembly's operators on the bits of a type. Arithmetic on a NaN gives the canonical NaN, and
/// the others only change the sign.
macro_rules! model {
    ($name:ident, $float:ty, $bits:ty, $nan:literal) => {
        fn $name(operator: &str, a: $bits, b: $bits) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            let (x, y) = (<$float>::from_bits(a), <$float>::from_bits(b));
            let canonical = |number: $float| if number.is_nan() { $nan } else { number.to_bits() };
            match operator {
                "add" => canonical(x + y),
                "sub" => canonical(x - y),
                "mul" => canonical(x * y),
                "div" => canonical(x / y),
                "min" | "max" if x.is_nan() || y.is_nan() => $nan,
                "min" if x == y => a | b,
                "max" if x == y => a & b,
                "min" => canonical(x.min(y)),
                "max" => canonical(x.max(y)),
                "sqrt" => canonical(x.sqrt()),
                "ceil" => canonical(x.ceil()),
                "floor" => canonical(x.floor()),
                "trunc" => canonical(x.trunc()),
                "nearest" => canonical(x.round_ties_even()),
                "abs" => a & !SIGN,
                "neg" => a ^ SIGN,
                "copysign" => a & !SIGN | b & SIGN,
                other => panic!("{other}"),
            }
        }
    };
}

model!(wide_model, f64, u64, 0x7ff8_0000_0000_0000);
model!(narrow_model, f32, u32, 0x7fc0_0000);

const OF_TWO: [&str; 7] = ["add", "sub", "mul", "div", "min", "max", "copysign"];
const OF_ONE: [&str; 7] = ["sqrt", "ceil", "floor", "trunc", "nearest", "abs", "neg"];

/// A module with a query for each operator of each type, which applies it to both halves of the
/// argument, and to all lanes for vectors.
fn operators() -> String {
    let mut text = String::from(
        r#"(module
        (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func $get (call $argument (i32.const 0) (i32.const 0) (i32.const 32)))
        (func $put (call $append (i32.const 32) (i32.const 16)) (call $reply))"#,
    );
    let mut method = |name: &str, load: &str, store: &str, two: bool| {
        let second = if two { format!("({load} (i32.const 16))") } else { String::new() };
        writeln!(
            text,
            r#"(func (export "canister_query {name}") (call $get)
                ({store} (i32.const 32) ({name} ({load} (i32.const 0)) {second})) (call $put))"#
        )
        .unwrap();
    };
    for (ty, load) in
        [("f32", "f32.load"), ("f64", "f64.load"), ("f32x4", "v128.load"), ("f64x2", "v128.load")]
    {
        let store = load.replace("load", "store");
        for operator in OF_TWO.iter().filter(|it| **it != "copysign" || !ty.contains('x')) {
            method(&format!("{ty}.{operator}"), load, &store, true);
        }
        for operator in OF_ONE {
            method(&format!("{ty}.{operator}"), load, &store, false);
        }
    }
    method("f64.promote_f32", "f32.load", "f64.store", false);
    method("f32.demote_f64", "f64.load", "f32.store", false);
    method("f64x2.promote_low_f32x4", "v128.load", "v128.store", false);
    method("f32x4.demote_f64x2_zero", "v128.load", "v128.store", false);
    text.push(')');
    text
}

#[test]
fn floating_point_results_are_those_of_the_replica() {
    let module = wat::parse_str(operators()).unwrap();
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let canister = Tested::install_under(rules, &module, ());
        let calculate = |method: &str, a: [u64; 2], b: [u64; 2]| -> [u64; 2] {
            let argument: Vec<u8> =
                [a, b].as_flattened().iter().flat_map(|it| it.to_le_bytes()).collect();
            let reply = query(&canister, method, &argument).outcome.unwrap();
            let half = |at: usize| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap());
            [half(0), half(8)]
        };
        for a in SPECIAL {
            for b in SPECIAL {
                let (x, y) = (narrow(a), narrow(b));
                let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
                for operator in OF_TWO.into_iter().chain(OF_ONE) {
                    let case = format!("{operator} {a:x} {b:x}");
                    let wide = wide_model(operator, a, b);
                    assert_eq!(
                        calculate(&format!("f64.{operator}"), [a, 0], [b, 0])[0],
                        wide,
                        "{case}"
                    );
                    let small = narrow_model(operator, x, y);
                    let got = calculate(&format!("f32.{operator}"), [x.into(), 0], [y.into(), 0]);
                    assert_eq!(got[0] as u32, small, "{case} with 32 bits");
                    if operator == "copysign" {
                        continue;
                    }
                    let got = calculate(&format!("f64x2.{operator}"), [a, b], [b, a]);
                    assert_eq!(got, [wide, wide_model(operator, b, a)], "{case} in vectors");
                    let got =
                        calculate(&format!("f32x4.{operator}"), [pair(x, y); 2], [pair(y, x); 2]);
                    let other = narrow_model(operator, y, x);
                    assert_eq!(got, [pair(small, other); 2], "{case} in vectors with 32 bits");
                }
            }
            let canonical = |wide: f64| if wide.is_nan() { 0x7ff8 << 48 } else { wide.to_bits() };
            let promoted = canonical(f32::from_bits(narrow(a)).into());
            let lanes = u64::from(narrow(a)) | u64::from(narrow(a)) << 32;
            assert_eq!(calculate("f64.promote_f32", [lanes, 0], [0; 2])[0], promoted, "{a:x}");
            let got = calculate("f64x2.promote_low_f32x4", [lanes, 0], [0; 2]);
            assert_eq!(got, [promoted; 2], "{a:x}");
            let wide = f64::from_bits(a);
            let demoted = if wide.is_nan() { 0x7fc0_0000 } else { (wide as f32).to_bits() };
            assert_eq!(calculate("f32.demote_f64", [a, 0], [0; 2])[0] as u32, demoted, "{a:x}");
            let got = calculate("f32x4.demote_f64x2_zero", [a, a], [0; 2]);
            assert_eq!(got, [u64::from(demoted) | u64::from(demoted) << 32, 0], "{a:x}");
        }
    }
}

/// Adds one to a number on the heap and to one in stable memory, and replies with both.
const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 1)
    (func $answer
        (call $read (i64.const 8) (i64.const 0) (i64.const 8))
        (call $append (i32.const 0) (i32.const 16))
        (call $reply))
    (func (export "canister_init") (drop (call $grow (i64.const 1))))
    (func (export "canister_query both") (call $answer))
    (func (export "canister_update count")
        (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
        (call $write (i64.const 0) (i64.const 0) (i64.const 8))
        (call $answer)))"#;

const CHILD: &str = "STABLEBENCH_FEW_FILES";

/// A host without free file descriptors, in a process of its own, because the limit applies to a
/// process and other tests open files.
#[test]
fn a_partly_committed_message_makes_the_canister_unusable() {
    if env::var_os(CHILD).is_some() {
        return with_few_files();
    }
    let program = env::current_exe().unwrap();
    let status = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" --exact hosts::a_partly_committed_message_makes_the_canister_unusable --nocapture"])
        .arg(program)
        .env(CHILD, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

fn with_few_files() {
    let saved = tempfile::tempdir().unwrap();
    let base = install(MODULE);
    let mut torn = 0;
    // From no descriptors, so that nothing can be committed, to enough for everything.
    for left in 0..6 {
        let mut canister = base.fork();
        let mut held = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            held.push(file);
        }
        held.truncate(held.len() - left);
        let counted = canister.update(CALLER, "count", &[]);
        drop(held);
        let path = saved.path().join(left.to_string());
        match counted {
            Ok(execution) => {
                execution.outcome.unwrap();
                assert_eq!(both(&canister), [1, 1], "{left} left");
                canister.save(&path).unwrap();
            }
            Err(error) => {
                assert!(matches!(error, HostError::Exhausted(_)), "{error}");
                if canister.query(CALLER, "both", &[]).is_ok() {
                    assert_eq!(both(&canister), [0, 0], "{left} left");
                    continue;
                }
                torn += 1;
                is_refused(&mut canister);
                assert!(canister.save(&path).is_err() && !path.exists(), "{left} left");
                canister.install(&compile(MODULE), CALLER, &[]).unwrap().outcome.unwrap();
                assert_eq!(both(&canister), [0, 0], "{left} left");
            }
        }
    }
    assert!((1..6).contains(&torn), "{torn} were inconsistent");
    assert_eq!(both(&base), [0, 0]);
}

/// All operations report the inconsistent state.
fn is_refused(canister: &mut Canister) {
    let module = canister.module().unwrap().clone();
    let refusals = [
        canister.update(CALLER, "count", &[]),
        canister.query(CALLER, "both", &[]),
        canister.upgrade(&module, CALLER, &[]),
        canister.fork().query(CALLER, "both", &[]),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(HostError::Torn)), "{refusal:?}");
    }
}

fn both(canister: &Canister) -> [u64; 2] {
    let reply = canister.query(CALLER, "both", &[]).unwrap().outcome.unwrap();
    [0, 8].map(|at| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap()))
}
