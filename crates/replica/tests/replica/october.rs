//! The additions of the rules of October 2026, each next to the rules before.

use candid::{decode_one, encode_args, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterInfoResult, CanisterInstallMode,
    CanisterStatusResult, FetchCanisterLogsArgs,
};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{ErrorCode, Principal, Reject, Replica, Rules};

use super::managed::{self, MANAGEMENT, PLENTY, RELAY, USER, code, manage};

const STRANGER: Principal = Principal::from_slice(&[7; 29]);

/// The node count costs as much as the other calls that return a size, and has the width of an address.
#[test]
fn canisters_ask_for_the_number_of_nodes() {
    let wide = "(i64.extend_i32_u (call $nodes))";
    for (memory, width, nodes) in [("1", "i32", wide), ("i64 1", "i64", "(call $nodes)")] {
        let wat = format!(
            r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "msg_reply_data_append" (func $append (param {width} {width})))
            (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
            (import "ic0" "subnet_self_size" (func $size (result {width})))
            (import "ic0" "subnet_self_node_count" (func $nodes (result {width})))
            (memory {memory})
            (func $use (export "canister_update count") (export "canister_query ask")
                (local $first i64) (local $second i64)
                (local.set $first (call $counter (i32.const 0)))
                (drop (call $size))
                (local.set $second (call $counter (i32.const 0)))
                (i64.store ({width}.const 0) (i64.sub (local.get $second) (local.get $first)))
                (local.set $first (call $counter (i32.const 0)))
                (i64.store ({width}.const 16) {nodes})
                (local.set $second (call $counter (i32.const 0)))
                (i64.store ({width}.const 8) (i64.sub (local.get $second) (local.get $first)))
                (call $append ({width}.const 0) ({width}.const 24)) (call $reply)))"#
        );
        let wasm = wat::parse_str(&wat).unwrap();
        let replica = Replica::new(Rules::today(), None).unwrap();
        let module = replica.compile(&wasm).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, USER, &[]).unwrap().outcome.unwrap();
        let update = canister.update(USER, "count", &[]).unwrap().outcome.unwrap();
        let query = canister.query(USER, "ask", &[]).unwrap().outcome.unwrap();
        for reply in [update, query] {
            let number = |at: usize| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap());
            // Each with the price of the counter that is read afterwards.
            assert_eq!([number(0), number(8), number(16)], [700, 700, 13]);
        }
        for older in [Rules::of_2025_10(), Rules::of_2026_08()] {
            let refusal = Replica::new(older, None).unwrap().compile(&wasm).unwrap_err().message;
            let words = "'subnet_self_node_count' from 'ic0' that is not exported";
            assert!(refusal.contains(words), "{refusal}");
        }
    }
}

#[test]
fn the_start_function_does_not_know_the_number_of_nodes() {
    let wat = r#"(module
        (import "ic0" "subnet_self_node_count" (func $nodes (result i32)))
        (start $go) (func $go (drop (call $nodes))))"#;
    let replica = Replica::new(Rules::today(), None).unwrap();
    let module = replica.compile(&wat::parse_str(wat).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let reject = canister.install(&module, USER, &[]).unwrap().outcome.unwrap_err();
    let words = "\"ic0_subnet_self_node_count\" cannot be executed in start mode";
    assert!(reject.message.contains(words), "{reject}");
}

#[test]
fn canister_info_is_a_query() {
    let ask = |rules, canister_id: Option<Principal>| {
        let (subnet, id) = managed::subnet(rules, PLENTY, RELAY);
        let canister_id = canister_id.unwrap_or(id);
        let args = CanisterInfoArgs { canister_id, num_requested_changes: Some(1) };
        let argument = encode_one(args).unwrap();
        subnet.query(STRANGER, MANAGEMENT, "canister_info", &argument).unwrap().response
    };
    let info = decode_one::<CanisterInfoResult>(&ask(Rules::today(), None).unwrap()).unwrap();
    assert_eq!((info.total_num_changes, info.recent_changes.len()), (2, 1));
    assert_eq!(info.controllers, [USER]);
    let missing = ask(Rules::today(), Some(STRANGER)).unwrap_err();
    assert_eq!(missing.code, ErrorCode::CanisterNotFound, "{missing}");
    let older = ask(Rules::of_2026_08(), None).unwrap_err();
    assert_eq!(older.code, ErrorCode::CanisterMethodNotFound, "{older}");
    // As an update it is still for canisters only.
    let (mut subnet, canister_id) = managed::subnet(Rules::today(), PLENTY, RELAY);
    let args = CanisterInfoArgs { canister_id, num_requested_changes: None };
    let argument = encode_one(args).unwrap();
    let refused = subnet.update(USER, MANAGEMENT, "canister_info", &argument).unwrap().response;
    assert_eq!(refused.unwrap_err().message, "Only canisters can call ic00 method canister_info");
}

#[test]
fn composite_queries_ask_the_management_canister() {
    let (subnet_of_today, id) = managed::subnet(Rules::today(), PLENTY, RELAY);
    let ask = |subnet: &Subnet, method: &str, argument: Vec<u8>| -> Result<Vec<u8>, Reject> {
        let argument = [method.as_bytes(), b" ", &argument].concat();
        subnet.query(USER, id, "ask", &argument).unwrap().response
    };
    let record = || encode_one(CanisterIdRecord { canister_id: id }).unwrap();
    let status = ask(&subnet_of_today, "canister_status", record()).unwrap();
    // A canister sees its own status.
    assert_eq!(decode_one::<CanisterStatusResult>(&status).unwrap().settings.controllers, [USER]);
    let info = CanisterInfoArgs { canister_id: id, num_requested_changes: None };
    let info = ask(&subnet_of_today, "canister_info", encode_one(info).unwrap()).unwrap();
    assert_eq!(decode_one::<CanisterInfoResult>(&info).unwrap().controllers, [USER]);
    // It is subject to the access control of the caller, which is the canister.
    let logs = encode_one(FetchCanisterLogsArgs { canister_id: id, filter: None }).unwrap();
    let refused = ask(&subnet_of_today, "fetch_canister_logs", logs).unwrap_err();
    assert!(refused.message.contains(&format!("Caller {id} is not allowed")), "{refused}");
    let empty = || encode_args(()).unwrap();
    for (method, words) in [
        ("list_canisters", "list_canisters is only available on subnets with subnet admins"),
        ("canister_metrics", "The embedded replica does not support canister_metrics"),
        ("raw_rand", "Query method raw_rand not found."),
        ("start_canister", "Query method start_canister not found."),
    ] {
        let refused = ask(&subnet_of_today, method, empty()).unwrap_err();
        assert!(refused.message.starts_with(words), "{refused}");
    }
    let (older, other) = managed::subnet(Rules::of_2026_08(), PLENTY, RELAY);
    assert_eq!(other, id);
    ask(&older, "canister_status", record()).unwrap_err();
}

/// Instructions of `canister_init` cost the same whatever the heap.
#[test]
fn installing_a_64_bit_module_costs_as_a_32_bit_one() {
    let cost = |rules: Rules, memory: &str| {
        let wat = format!(
            r#"(module (memory {memory}) (func (export "canister_init") (local $n i32)
                (loop $next
                    (br_if $next (i32.lt_u
                        (local.tee $n (i32.add (local.get $n) (i32.const 1)))
                        (i32.const 1000000))))))"#
        );
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile(&wat::parse_str(&wat).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        let installed = canister.install(&module, USER, &[]).unwrap();
        (installed.instructions.get(), installed.cycles.get())
    };
    for (rules, factor) in [(Rules::today(), 1), (Rules::of_2026_08(), 2)] {
        let [(used, narrow), (same, wide)] = ["1", "i64 1"].map(|memory| cost(rules, memory));
        assert_eq!(used, same);
        assert_eq!(wide - narrow, u128::from(used) * (factor - 1), "{rules}");
    }
}

/// `go` calls `raw_rand`, whose answer comes two rounds later.
fn caller(memory: &str, width: &str) -> Vec<u8> {
    let zero = format!("({width}.const 0)");
    let wat = format!(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "call_new" (func $new (param {width} {width} {width} {width} {width}
            {width} {width} {width})))
        (import "ic0" "call_data_append" (func $data (param {width} {width})))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (memory {memory}) (table 1 funcref) (elem (i32.const 0) $back)
        (data ({width}.const 0) "raw_randDIDL\00\00")
        (func $back (param {width}) (call $reply))
        (func (export "canister_update go")
            (call $new {zero} {zero} {zero} ({width}.const 8) {zero} {zero} {zero} {zero})
            (call $data ({width}.const 8) ({width}.const 6))
            (drop (call $perform))))"#
    );
    wat::parse_str(wat).unwrap()
}

#[test]
fn a_callback_is_prepaid_by_the_heap_that_it_finds() {
    let modules = [caller("1", "i32"), caller("i64 1", "i64")];
    // The cycles that the canister gets back when the callback has run.
    let refund = |rules: Rules, at_the_call: usize, at_the_response: usize| {
        let mut subnet = Subnet::new(&Replica::new(rules, None).unwrap());
        let canister_id = managed::create(&mut subnet, PLENTY);
        let install = |subnet: &mut Subnet, mode, module: usize| {
            let args = code(mode, canister_id, modules[module].clone());
            manage(subnet, "install_code", args).unwrap();
        };
        install(&mut subnet, CanisterInstallMode::Install, at_the_call);
        let message = subnet.submit(USER, canister_id, "go", &[]).unwrap().unwrap();
        subnet.tick().unwrap();
        // In the round in which the management canister answers.
        install(&mut subnet, CanisterInstallMode::Upgrade(None), at_the_response);
        assert!(subnet.take_answer(message).is_none());
        let balance = |subnet: &Subnet| subnet.canister(&canister_id).unwrap().balance().get();
        let before = balance(&subnet);
        subnet.tick().unwrap();
        assert_eq!(subnet.take_answer(message), Some(Ok(Vec::new())));
        balance(&subnet).cast_signed() - before.cast_signed()
    };
    let [today, older] = [Rules::today(), Rules::of_2026_08()]
        .map(|rules| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(call, now)| refund(rules, call, now)));
    let [narrow, widened, narrowed, wide] = today;
    assert_eq!((wide - widened, narrowed - narrow), (40_000_000_000, 40_000_000_000));
    // Before, what was refunded by the new width was at most what was prepaid by the old one, with
    // its base fee.
    let [narrow, widened, narrowed, _] = older;
    assert!((5_000_000..6_000_000).contains(&(widened - narrow)), "{older:?}");
    assert_eq!(narrowed, narrow);
}

/// A response to a call of code that was uninstalled runs nothing. What was prepaid for that comes
/// back, whatever code the canister has by then, without the base fee.
#[test]
fn a_callback_that_was_uninstalled_costs_the_base_fee() {
    let modules = [caller("1", "i32"), caller("i64 1", "i64")];
    // The cycles that the canister gets back with the response.
    let refund = |rules: Rules, at_the_call: usize, at_the_response: Option<usize>| {
        let (mut subnet, canister_id) = managed::subnet(rules, PLENTY, "(module)");
        let install = |module: usize| {
            code(CanisterInstallMode::Install, canister_id, modules[module].clone())
        };
        let submit = |subnet: &mut Subnet, method: &str, argument: Vec<u8>| {
            subnet.submit(USER, MANAGEMENT, method, &argument).unwrap().unwrap()
        };
        let record = || encode_one(CanisterIdRecord { canister_id }).unwrap();
        manage(&mut subnet, "uninstall_code", CanisterIdRecord { canister_id }).unwrap();
        manage(&mut subnet, "install_code", install(at_the_call)).unwrap();
        subnet.submit(USER, canister_id, "go", &[]).unwrap().unwrap();
        subnet.tick().unwrap();
        // In the round in which the management canister answers.
        let mut sent = vec![submit(&mut subnet, "uninstall_code", record())];
        if let Some(module) = at_the_response {
            let argument = encode_one(install(module)).unwrap();
            sent.push(submit(&mut subnet, "install_code", argument));
        }
        subnet.tick().unwrap();
        for message in sent {
            subnet.take_answer(message).unwrap().unwrap();
        }
        let balance = |subnet: &Subnet| subnet.canister(&canister_id).unwrap().balance().get();
        let before = balance(&subnet);
        subnet.tick().unwrap();
        let refund = balance(&subnet) - before;
        subnet.tick().unwrap();
        assert_eq!(balance(&subnet), before + refund);
        refund
    };
    // What is returned for the transmission of a response, 32 bytes in Candid, of at most 2 MiB.
    let transmission = 1_000 * ((2 << 20) - 42);
    let (narrow, wide, base) = (40_000_000_000, 80_000_000_000, 5_000_000);
    for (rules, at_the_call, [none, to_narrow, to_wide]) in [
        (Rules::today(), 0, [narrow; 3]),
        (Rules::today(), 1, [wide; 3]),
        // By the width of the code that is there, and at most what was prepaid.
        (Rules::of_2026_08(), 0, [narrow, narrow, narrow + base]),
        (Rules::of_2026_08(), 1, [narrow, narrow, wide]),
    ] {
        for (now, expected) in [(None, none), (Some(0), to_narrow), (Some(1), to_wide)] {
            let refund = refund(rules, at_the_call, now);
            assert_eq!(refund, transmission + expected, "{rules}: {at_the_call}, {now:?}");
        }
    }
}
