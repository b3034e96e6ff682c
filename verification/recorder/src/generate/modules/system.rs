//! System API calls in an update.

use std::fmt::Write;

use stablebench_workload::Rng;

use super::measurement::{Group, Measurement, times};

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

pub(super) fn group(rng: &mut Rng) -> Group {
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
