//! Modules that measure each operator and each call of the System API.
//!
//! A case is a module with many update methods. Each is a [`Measurement`], so that a difference names
//! the operator. Operands, immediates, sizes and repetitions follow from the seed.
//!
//! `operators` has measurements and those of operators; here are those of the heap, the table, stable
//! memory and the System API, and the modules.

mod operators;

use std::fmt::Write;

use stablebench_conformance::{Call, Case, MessageKind, Source};
use stablebench_workload::Rng;

pub use operators::{AddedWork, Group, Measurement, UNMEASURED};
use operators::{OPERANDS, times};

/// Address of the reply, which nothing else uses.
const ANSWER: u32 = 3 << 16;

/// Measurements of everything, once.
pub fn groups(rng: &mut Rng) -> Vec<Group> {
    let mut groups = operators::groups(rng);
    groups.extend([heap_group(rng), system_group(rng), stable_group(rng)]);
    groups
}

/// Generates cases in which everything is measured `rounds` times with different operands.
pub fn cases(seed: u64, rounds: u16) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    (0..rounds)
        .flat_map(|round| {
            let groups = groups(&mut rng);
            groups.into_iter().map(move |group| case(&group, round))
        })
        .collect()
}

fn case(group: &Group, round: u16) -> Case {
    let call = |name: &str| Call::new(MessageKind::Update, name, group.argument.clone());
    let mut calls: Vec<Call> =
        group.measurements.iter().map(|measurement| call(&measurement.name)).collect();
    calls.push(call("unreachable"));
    Case {
        name: format!("{}_{round:02}", group.name),
        group: "measured".to_owned(),
        module: Source::Wat(module(group)),
        install: None,
        calls,
    }
}

/// The text of a module: a heap, a table, globals, helper functions, and the methods.
fn module(group: &Group) -> String {
    let methods: String = group.measurements.iter().map(Measurement::method).collect();
    let imports = &group.imports;
    format!(
        r#"(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
{imports}  (type $plain (func))
  (memory 4)
  (data (i32.const 0) "\04stablebench")
  (data $bytes "bytes for memory.init: sixty-four of them, so that there is choice")
  (data $dropped "gone")
  (global $narrow (mut i32) (i32.const 1))
  (global $wide (mut i64) (i64.const 1))
  (table $table 4 funcref)
  (elem (i32.const 0) $empty $returns $tail $tail_indirect)
  (elem $elements func $empty)
  (func $empty)
  (func $returns return)
  (func $tail (return_call $empty))
  (func $tail_indirect (return_call_indirect (type $plain) (i32.const 0)))
  (func $answer (param $count i64)
    (i64.store (i32.const {ANSWER}) (local.get $count))
    (call $append (i32.const {ANSWER}) (i32.const 8)))
  (func (export "canister_update unreachable") unreachable)
{methods})
"#
    )
}

/// Size of the passive data segment of `memory.init`.
const SEGMENT: u64 = 64;

/// The heap and the table: sizes, growth, copies.
fn heap_group(rng: &mut Rng) -> Group {
    let bulk = ["i32.const", "i32.const", "i32.const"];
    let bulk = |operator| [&bulk[..], &[operator]].concat();
    let mut measurements = vec![
        Measurement::of("memory.size", "(drop (memory.size))", &["memory.size", "drop"]),
        Measurement::of("data.drop", "(data.drop $dropped)", &["data.drop"]),
        Measurement::of("elem.drop", "(elem.drop $elements)", &["elem.drop"]),
        Measurement::of("table.size", "(drop (table.size $table))", &["table.size", "drop"]),
        Measurement::of(
            "table.get",
            format!("(drop (table.get $table (i32.const {})))", rng.below(4)),
            &["i32.const", "table.get", "drop"],
        ),
    ];
    for pages in [0, 1 + rng.below(3), 1 << 20] {
        let code = format!("(drop (memory.grow (i32.const {pages})))");
        let name = format!("memory.grow_by_{pages}");
        measurements.push(Measurement::of(name, code, &["i32.const", "memory.grow", "drop"]));
    }
    for bytes in [0, 1, 1 + rng.below(4_096), rng.below(OPERANDS)] {
        let (to, from) = (rng.below(OPERANDS), rng.below(OPERANDS));
        let fill = format!("(memory.fill (i32.const {to}) (i32.const 7) (i32.const {bytes}))");
        let copy = format!("(memory.copy (i32.const {to}) (i32.const {from}) (i32.const {bytes}))");
        measurements.extend([
            Measurement::of(format!("memory.fill_of_{bytes}"), fill, &bulk("memory.fill"))
                .about(bytes),
            Measurement::of(format!("memory.copy_of_{bytes}"), copy, &bulk("memory.copy"))
                .about(bytes),
        ]);
    }
    for bytes in [0, 1, rng.below(SEGMENT), SEGMENT] {
        let (to, from) = (rng.below(OPERANDS), rng.below(SEGMENT - bytes + 1));
        let init =
            format!("(memory.init $bytes (i32.const {to}) (i32.const {from}) (i32.const {bytes}))");
        measurements.push(
            Measurement::of(format!("memory.init_of_{bytes}"), init, &bulk("memory.init"))
                .about(bytes),
        );
    }
    measurements.sort_by(|one, other| one.name.cmp(&other.name));
    measurements.dedup_by(|one, other| one.name == other.name);
    for measurement in &mut measurements {
        measurement.times = times(rng);
    }
    Group { name: "memory", imports: String::new(), measurements, argument: Vec::new() }
}

/// Size of stable memory after the first method, in bytes.
const SIZE: u64 = 4 << 16;
/// Largest number of bytes read or written at once.
const LONGEST_COPY: u64 = 3 * 4_096;
/// Number of measurements of each kind.
const EACH: u64 = 4;

const IMPORTS: &str = r#"  (import "ic0" "stable64_size" (func $stable64_size (result i64)))
  (import "ic0" "stable64_grow" (func $stable64_grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $stable64_read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $stable64_write (param i64 i64 i64)))
  (import "ic0" "stable_size" (func $stable_size (result i32)))
  (import "ic0" "stable_grow" (func $stable_grow (param i32) (result i32)))
  (import "ic0" "stable_read" (func $stable_read (param i32 i32 i32)))
  (import "ic0" "stable_write" (func $stable_write (param i32 i32 i32)))
"#;

/// Stable memory: sizes, growth, copies. Each measurement is a message, which starts without written
/// stable pages. Some write a page twice.
fn stable_group(rng: &mut Rng) -> Group {
    let mut measurements = vec![
        grow("stable64_grow", "i64", SIZE >> 16),
        grow("stable_grow", "i32", 1),
        grow("stable64_grow", "i64", 0),
        grow("stable64_grow", "i64", 1 << 40),
        size("stable64_size"),
        size("stable_size"),
    ];
    for number in 0..EACH {
        for (name, ty) in [
            ("stable64_read", "i64"),
            ("stable64_write", "i64"),
            ("stable_read", "i32"),
            ("stable_write", "i32"),
        ] {
            let bytes = [0, 1, rng.below(LONGEST_COPY), 4_096][number as usize % 4];
            let stable = rng.below(SIZE - LONGEST_COPY);
            let moved = moved(name, ty, stable, rng.below(1_000), bytes);
            measurements.push(Measurement { name: format!("{name}_{number}"), ..moved });
        }
    }
    for number in 0..EACH {
        measurements.push(overlapping(number, rng));
    }
    Group { name: "stable", imports: IMPORTS.to_owned(), measurements, argument: Vec::new() }
}

fn grow(call: &'static str, ty: &str, pages: u64) -> Measurement {
    let code = format!("(drop (call ${call} ({ty}.const {pages})))");
    let constant = format!("{ty}.const");
    Measurement::of(format!("{call}_by_{pages}"), code, &[&constant, "call", "drop"])
        .calling(call, &[pages])
}

fn size(call: &'static str) -> Measurement {
    Measurement::of(call, format!("(drop (call ${call}))"), &["call", "drop"]).calling(call, &[])
}

/// A read to, or a write from, the heap.
fn moved(call: &'static str, ty: &str, stable: u64, heap: u64, bytes: u64) -> Measurement {
    let args = if call.ends_with("read") { [heap, stable, bytes] } else { [stable, heap, bytes] };
    let constants: String = args.iter().map(|arg| format!(" ({ty}.const {arg})")).collect();
    let constant = format!("{ty}.const");
    Measurement::of(
        call,
        format!("(call ${call}{constants})"),
        &[constant.as_str(), &constant, &constant, "call"],
    )
    .calling(call, &args)
}

/// A write, a read, and a write to a part of the same pages.
fn overlapping(number: u64, rng: &mut Rng) -> Measurement {
    let stable = rng.below(SIZE - 3 * LONGEST_COPY);
    let parts = [
        moved("stable64_write", "i64", stable, 0, 1 + rng.below(LONGEST_COPY)),
        moved("stable64_read", "i64", stable + rng.below(4_096), 0, 1 + rng.below(LONGEST_COPY)),
        moved(
            "stable_write",
            "i32",
            stable + rng.below(LONGEST_COPY),
            0,
            1 + rng.below(LONGEST_COPY),
        ),
    ];
    let mut whole = Measurement::of(format!("overlapping_{number}"), "", &[]);
    for Measurement { with, work, .. } in parts {
        whole.with += &with;
        whole.work.operators.extend(work.operators);
        whole.work.calls.extend(work.calls);
    }
    whole
}

/// A call: its name, arguments and result.
///
/// Arguments are words: `to` is an address to write to, `from` one to read from, `caller` the address
/// of the anonymous principal, `size` a number of bytes up to 32, and a number is itself; with `wide:`
/// before it, it has 64 bits. The result is `-`, `i32` or `i64`.
type Row = (&'static str, &'static str, &'static str);

/// Every call that an update of a single canister can make without ending.
#[rustfmt::skip]
const CALLS: &[Row] = &[
    ("msg_arg_data_size", "", "i32"),
    ("msg_arg_data_copy", "to 0 size", "-"),
    ("msg_caller_size", "", "i32"),
    ("msg_caller_copy", "to 0 1", "-"),
    ("msg_deadline", "", "i64"),
    ("in_replicated_execution", "", "i32"),
    ("msg_reply_data_append", "from size", "-"),
    ("msg_cycles_available", "", "i64"),
    ("msg_cycles_available128", "to", "-"),
    ("msg_cycles_accept", "wide:7", "i64"),
    ("msg_cycles_accept128", "wide:0 wide:7 to", "-"),
    ("canister_cycle_balance", "", "i64"),
    ("canister_cycle_balance128", "to", "-"),
    ("canister_liquid_cycle_balance128", "to", "-"),
    ("cycles_burn128", "wide:0 wide:1000 to", "-"),
    ("cost_call", "wide:3 wide:100 to", "-"),
    ("cost_create_canister", "to", "-"),
    ("cost_http_request", "wide:100 wide:1000 to", "-"),
    ("canister_self_size", "", "i32"),
    ("canister_self_copy", "to 0 10", "-"),
    ("canister_status", "", "i32"),
    ("canister_version", "", "i64"),
    ("subnet_self_size", "", "i32"),
    ("subnet_self_copy", "to 0 1", "-"),
    ("is_controller", "caller 1", "i32"),
    ("time", "", "i64"),
    ("global_timer_set", "wide:0", "i64"),
    ("performance_counter", "0", "i64"),
    ("env_var_count", "", "i32"),
    ("env_var_name_exists", "from 5", "i32"),
    ("certified_data_set", "from size", "-"),
    ("data_certificate_present", "", "i32"),
    ("debug_print", "from size", "-"),
];

/// Calls that are not measured, with the reason.
#[rustfmt::skip]
pub const NOT_CALLED: &[(&str, &str)] = &[
    ("msg_method_name_size", "for canister_inspect_message"),
    ("msg_method_name_copy", "for canister_inspect_message"),
    ("accept_message", "for canister_inspect_message"),
    ("msg_reject_code", "for callbacks"),
    ("msg_reject_msg_size", "for callbacks"),
    ("msg_reject_msg_copy", "for callbacks"),
    ("msg_cycles_refunded", "for callbacks"),
    ("msg_cycles_refunded128", "for callbacks"),
    ("msg_reply", "no counter can be returned after it; in the cycles of every update"),
    ("msg_reject", "no counter can be returned after it"),
    ("trap", "no counter can be returned after it"),
    ("mint_cycles128", "for the cycles minting canister"),
    ("msg_caller_info_data_size", "not there by the rules of 2025"),
    ("msg_caller_info_data_copy", "not there by the rules of 2025"),
    ("msg_caller_info_signer_size", "not there by the rules of 2025"),
    ("msg_caller_info_signer_copy", "not there by the rules of 2025"),
    ("cost_http_request_v2", "not there by the rules of 2025"),
    ("subnet_self_node_count", "not there by the rules of 2025 and of August 2026"),
    ("cost_sign_with_ecdsa", "needs a key, which a subnet may not have"),
    ("cost_sign_with_schnorr", "needs a key, which a subnet may not have"),
    ("cost_vetkd_derive_key", "needs a key, which a subnet may not have"),
    ("env_var_name_size", "traps: there are no variables"),
    ("env_var_name_copy", "traps: there are no variables"),
    ("env_var_value_size", "traps: there are no variables"),
    ("env_var_value_copy", "traps: there are no variables"),
    ("data_certificate_size", "for queries"),
    ("data_certificate_copy", "for queries"),
    ("root_key_size", "in replicated execution traps on some versions"),
    ("root_key_copy", "in replicated execution traps on some versions"),
    ("call_new", "there is no other canister"),
    ("call_data_append", "there is no other canister"),
    ("call_on_cleanup", "there is no other canister"),
    ("call_cycles_add", "there is no other canister"),
    ("call_cycles_add128", "there is no other canister"),
    ("call_with_best_effort_response", "there is no other canister"),
    ("call_perform", "there is no other canister"),
];

/// Largest `size`.
const LONGEST: u64 = 32;

/// System API calls in an update.
fn system_group(rng: &mut Rng) -> Group {
    let mut imports = String::new();
    let mut measurements = Vec::new();
    for (name, words, result) in CALLS {
        let (mut types, mut args, mut code) = (String::new(), Vec::new(), String::new());
        let mut operators = Vec::new();
        for word in words.split_whitespace() {
            let (ty, value) = argument(word, rng);
            let _ = write!(types, " {ty}");
            let _ = write!(code, " ({ty}.const {value})");
            operators.push(if ty == "i64" { "i64.const" } else { "i32.const" });
            args.push(value);
        }
        let mut code = format!("(call $ic_{name}{code})");
        operators.push("call");
        let mut results = String::new();
        if *result != "-" {
            code = format!("(drop {code})");
            operators.push("drop");
            results = format!(" (result {result})");
        }
        let params = if types.is_empty() { types } else { format!(" (param{types})") };
        let _ =
            writeln!(imports, "  (import \"ic0\" \"{name}\" (func $ic_{name}{params}{results}))");
        measurements.push(
            Measurement::of(*name, code, &operators).calling(name, &args).repeated(times(rng)),
        );
    }
    let argument = (0..LONGEST).map(|_| rng.next_u64() as u8).collect();
    Group { name: "system_api", imports, measurements, argument }
}

/// The type and value of an argument.
fn argument(word: &str, rng: &mut Rng) -> (&'static str, u64) {
    match word {
        "to" => ("i32", 1_024 + 16 * rng.below(64)),
        "from" => ("i32", 1 + rng.below(4)),
        // The module stores the principal there.
        "caller" => ("i32", 0),
        "size" => ("i32", rng.below(LONGEST + 1)),
        word => match word.strip_prefix("wide:") {
            Some(number) => ("i64", number.parse().unwrap_or_default()),
            None => ("i32", word.parse().unwrap_or_default()),
        },
    }
}
