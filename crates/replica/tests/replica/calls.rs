//! Calls to other canisters by a canister that runs by itself, without a subnet; calls to remote
//! canisters, which are not on the subnet and which a function answers; and what callbacks cost.
//!
//! The modes that allow each call, the order of checks and the error messages are from
//! `rs/embedders/src/wasmtime_embedder/system_api.rs` of the replica, the prices from
//! `system_api_complexity.rs`. No recorded case contains a call that its mode does not allow.

use candid::encode_one;
use ic_management_canister_types::{CanisterIdRecord, CanisterInstallMode};
use stablebench_replica::subnet::{RemoteCall, Subnet};
use stablebench_replica::{
    Canister, Cycles, ErrorCode, Principal, RejectCode, Replica, Rules, Span,
};

use crate::support::managed::{self, MANAGEMENT, PLENTY, USER, code, manage};
use crate::support::{CALLER, RECORDED, compile, install, query, rejected, update, words};

/// Every call with valid arguments and its cost: the call, its operator, its arguments, and the
/// function around it.
const CALLS: [(&str, &str, u64); 7] = [
    // Ten bytes of an id and three of a name.
    ("call_new", CALL_NEW, 1_500 + 13 + 5 + 8 + 1),
    ("call_data_append", "(call $call_data_append (i32.const 0) (i32.const 7))", 500 + 350 + 8),
    ("call_on_cleanup", "(call $call_on_cleanup (i32.const 0) (i32.const 0))", 500 + 8),
    ("call_cycles_add", "(call $call_cycles_add (i64.const 1))", 500 + 7),
    ("call_cycles_add128", "(call $call_cycles_add128 (i64.const 0) (i64.const 1))", 500 + 8),
    (
        "call_with_best_effort_response",
        "(call $call_with_best_effort_response (i32.const 1))",
        500 + 7,
    ),
    ("call_perform", "(drop (call $call_perform))", 5_000 + 7),
];

/// The `call` operator of `msg_reply`, which is charged with the operators before it.
const REPLY: u64 = 5;

const CALL_NEW: &str = "(call $call_new (i32.const 0) (i32.const 10) (i32.const 16) (i32.const 3)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))";

const IMPORTS: &str = r#"
    (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $call_data_append (param i32 i32)))
    (import "ic0" "call_on_cleanup" (func $call_on_cleanup (param i32 i32)))
    (import "ic0" "call_cycles_add" (func $call_cycles_add (param i64)))
    (import "ic0" "call_cycles_add128" (func $call_cycles_add128 (param i64 i64)))
    (import "ic0" "call_with_best_effort_response"
        (func $call_with_best_effort_response (param i32)))
    (import "ic0" "call_perform" (func $call_perform (result i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "accept_message" (func $accept))"#;

/// A module with these functions and the imports.
fn module(functions: &str) -> String {
    format!(
        r#"(module {IMPORTS} (memory 1) (data (i32.const 0) "\ff\ff\ff\ff\ff\e0\00\01\01\01")
        {functions})"#
    )
}

/// A module that makes a call in the given function.
fn calling(export: &str, call: &str) -> String {
    let accept = if export == "canister_inspect_message" { "" } else { "(call $reply)" };
    module(&format!(
        r#"(func (export "{export}") {call} {accept})
        (func (export "canister_update u"))"#
    ))
}

const REFUSED: ErrorCode = ErrorCode::CanisterContractViolation;
const UNSUPPORTED: &str = "Canister encountered a Wasm engine error: ic0.call_new is not supported by \
    the embedded replica outside of a subnet: the canister runs by itself";

#[test]
fn modules_that_import_but_never_call_run() {
    let mut canister = install(&calling("canister_update go", ""));
    let execution = update(&mut canister, "go", &[]);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions.get(), 1 + 5 + 500);
}

#[test]
fn queries_refuse_calls_as_on_the_network() {
    for (name, call, instructions) in CALLS {
        let mut canister = install(&calling("canister_query go", call));
        let expected = |mode: &str| {
            format!("Canister violated contract: \"ic0_{name}\" cannot be executed in {mode} mode")
        };
        let execution = query(&canister, "go", &[]);
        rejected(&execution, REFUSED, &expected("non replicated query"));
        assert_eq!(execution.instructions.get(), instructions + REPLY, "{name}");
        let execution = update(&mut canister, "go", &[]);
        rejected(&execution, REFUSED, &expected("replicated query"));
        assert_eq!(execution.instructions.get(), instructions + REPLY, "{name}");
    }
}

/// Installs a module with the call in `canister_init` or `start`, which must fail.
#[track_caller]
fn refused_install(wat: &str, mode: &str, name: &str) {
    let mut canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
    let execution = canister.install(&compile(wat), CALLER, &[]).unwrap();
    let expected =
        format!("Canister violated contract: \"ic0_{name}\" cannot be executed in {mode} mode");
    rejected(&execution, REFUSED, &expected);
    assert!(canister.module().is_none());
}

#[test]
fn installing_refuses_calls_as_on_the_network() {
    for (name, call, _) in CALLS {
        let init = module(&format!(r#"(func (export "canister_init") {call})"#));
        refused_install(&init, "init", name);
        let start = module(&format!("(func $start {call}) (start $start)"));
        refused_install(&start, "start", name);

        let wat = module(&format!(
            r#"(func (export "canister_pre_upgrade") {call})
            (func (export "canister_query q") (call $reply))"#
        ));
        let mut canister = install(&wat);
        let execution = canister.upgrade(&compile("(module)"), CALLER, &[]).unwrap();
        let expected = format!(
            "Canister violated contract: \"ic0_{name}\" cannot be executed in pre upgrade mode"
        );
        rejected(&execution, REFUSED, &expected);
        assert_eq!(query(&canister, "q", &[]).outcome, Ok(vec![]), "the old module stays");

        let post = module(&format!(r#"(func (export "canister_post_upgrade") {call})"#));
        let execution = install("(module)").upgrade(&compile(&post), CALLER, &[]).unwrap();
        let expected =
            format!("Canister violated contract: \"ic0_{name}\" cannot be executed in init mode");
        rejected(&execution, REFUSED, &expected);
    }
}

#[test]
fn inspecting_a_message_refuses_calls_as_on_the_network() {
    for (name, call, _) in CALLS {
        let mut canister = install(&calling("canister_inspect_message", call));
        let expected = format!(
            "Canister violated contract: \"ic0_{name}\" cannot be executed in inspect message mode"
        );
        let execution = update(&mut canister, "u", &[]);
        rejected(&execution, REFUSED, &expected);
        assert!(!execution.admitted);
    }
}

#[test]
fn a_supported_call_on_the_network_fails_here_by_name() {
    let wat = module(&format!(
        r#"(func (export "canister_update go")
            (i32.store (i32.const 100) (i32.const 7)) {CALL_NEW} (call $reply))
        (func (export "canister_composite_query go_too") {CALL_NEW} (call $reply))
        (func (export "canister_update again")
            (if (i32.load (i32.const 100)) (then (unreachable)))
            (call $reply))"#
    ));
    let mut canister = install(&wat);
    let execution = update(&mut canister, "go", &[]);
    rejected(&execution, ErrorCode::CanisterWasmEngineError, UNSUPPORTED);
    assert_eq!(execution.instructions.get(), CALLS[0].2 + 3 + REPLY);
    let execution = query(&canister, "go_too", &[]);
    rejected(&execution, ErrorCode::CanisterWasmEngineError, UNSUPPORTED);
    let execution = update(&mut canister, "again", &[]);
    assert_eq!(execution.outcome, Ok(vec![]), "what the message wrote is undone");
}

#[test]
fn the_other_calls_need_call_new() {
    for (name, call, instructions) in CALLS.into_iter().skip(1) {
        let dot = if name.starts_with("call_cycles") { '_' } else { '.' };
        let expected = format!(
            "Canister violated contract: ic0{dot}{name} called when no call is under construction"
        );
        let mut canister = install(&calling("canister_update go", call));
        let execution = update(&mut canister, "go", &[]);
        rejected(&execution, REFUSED, &expected);
        assert_eq!(execution.instructions.get(), instructions + REPLY, "{name}");

        let canister = install(&calling("canister_composite_query go", call));
        let expected = match dot {
            '.' => expected,
            _ => format!(
                "Canister violated contract: \"ic0_{name}\" cannot be executed in composite query \
                 mode"
            ),
        };
        rejected(&query(&canister, "go", &[]), REFUSED, &expected);
    }
}

#[test]
fn a_call_with_wrong_arguments_is_refused_as_on_the_network() {
    let going = |callee: &str, size: u64, name: u64, length: u64| {
        let call = format!(
            "(call $call_new (i32.const {callee}) (i32.const {size}) (i32.const {name}) \
             (i32.const {length}) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))"
        );
        let mut canister = install(&calling("canister_update go", &call));
        let reject = update(&mut canister, "go", &[]).outcome.unwrap_err();
        (reject.code, words(&reject.message).to_owned())
    };
    let violated = |words: &str| (REFUSED, format!("Canister violated contract: {words}"));
    let unsupported = (ErrorCode::CanisterWasmEngineError, UNSUPPORTED.to_owned());
    assert_eq!(going("0", 10, 0, 20_000), unsupported);
    assert_eq!(
        going("0", 10, 0, 20_001),
        violated("Size of method_name 20001 exceeds the allowed limit of 20000")
    );
    assert_eq!(
        going("0", 10, 65_535, 2),
        violated("ic0.call_new method_name: src=65535 + length=2 exceeds the slice size=65536")
    );
    assert_eq!(
        going("65530", 10, 0, 2),
        violated("ic0.call_new callee_src: src=65530 + length=10 exceeds the slice size=65536")
    );
    assert_eq!(going("0", 29, 0, 2), unsupported);
    let invalid = (REFUSED, "Canister provided invalid principal id".to_owned());
    assert_eq!(going("0", 30, 0, 2), invalid);
}

#[test]
fn the_cost_of_an_outcall_by_its_parameters_is_unsupported() {
    let wat = r#"(module
        (import "ic0" "cost_http_request_v2" (func $cost (param i32 i32 i32)))
        (memory 1)
        (func (export "canister_query go")
            (call $cost (i32.const 0) (i32.const 0) (i32.const 0))))"#;
    let replica = Replica::new(Rules::of_2026_08(), None).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let module = replica.compile(&wat::parse_str(wat).unwrap()).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    let execution = query(&canister, "go", &[]);
    rejected(
        &execution,
        ErrorCode::CanisterWasmEngineError,
        "Canister encountered a Wasm engine error: ic0.cost_http_request_v2 is not supported by \
         the embedded replica",
    );
    assert_eq!(execution.instructions.get(), 1 + 5 + 3 + 10_000);
}

#[test]
fn heartbeats_and_timers_are_only_allowed_for_queries() {
    let wat = r#"(module
        (import "ic0" "global_timer_set" (func $set (param i64) (result i64)))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (memory 1)
        (func $count (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1))))
        (func (export "canister_init")
            (drop (call $set (i64.const 1)))
            (i64.store (i32.const 8) (call $set (i64.const 2))))
        (func (export "canister_heartbeat") (call $count))
        (func (export "canister_global_timer") (call $count))
        (func $report (call $append (i32.const 0) (i32.const 16)) (call $reply))
        (export "canister_query report" (func $report))
        (export "canister_update report_too" (func $report)))"#;
    let wasm = wat::parse_str(wat).unwrap();
    let replica = Replica::new(Rules::today(), None).unwrap();
    let refused = replica.compile(&wasm).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterInvalidWasm);
    let module = replica.compile_for_queries(&wasm).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    // The timer was set, but neither it nor the heartbeat runs.
    let expected = [[0; 8], 1_u64.to_le_bytes()].concat();
    for _ in 0..3 {
        canister.set_time(canister.time() + 1_000_000_000_000);
        assert_eq!(update(&mut canister, "report_too", &[]).outcome, Ok(expected.clone()));
        assert_eq!(query(&canister, "report", &[]).outcome, Ok(expected.clone()));
    }
    // Profiles and traps compile the module in other forms, for the same purpose.
    let (execution, profile) =
        canister.profile_query(CALLER, "report", &[], Span::Message).unwrap();
    assert_eq!(profile.instructions, execution.instructions);
    assert_eq!(execution.outcome, Ok(expected));
    assert!(replica.compile_for_queries(b"no module").is_err());
}

/// Recorded replies of a module that imports every call and makes none, under both rule sets.
#[test]
fn recorded_messages_without_a_call() {
    let echoes: [&[u8]; 2] = [
        b"\x07\x01\0\0\0\0\0\0\x5e\x05\0\0\0\0\0\0x",
        b"\x07\x01\0\0\0\0\0\0\x5e\x76\x02\0\0\0\0\0x",
    ];
    let wasm = wat::parse_str(RECORDED).unwrap();
    for (rules, echo) in [Rules::of_2025_10(), Rules::of_2026_08()].into_iter().zip(echoes) {
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile_for_queries(&wasm).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        // The counter twice, then the argument.
        assert_eq!(update(&mut canister, "echo", b"x").outcome.unwrap(), echo);
        let execution = update(&mut canister, "cforward", b"x");
        rejected(
            &execution,
            ErrorCode::CompositeQueryCalledInReplicatedMode,
            "Composite query cannot be called in replicated mode",
        );
        rejected(
            &query(&canister, "forward", b"x"),
            ErrorCode::CanisterMethodNotFound,
            "Canister has no query method 'forward'",
        );
    }
}

const REMOTE: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 2, 1, 1]);
const OTHER: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 3, 1, 1]);
const SENT: u64 = 1_000_000_000_000;

/// A subnet with a canister that relays calls.
fn relaying() -> (Subnet, Principal) {
    let replica = Replica::new(Rules::today(), None).unwrap();
    let wasm = wat::parse_str(include_str!("../relay.wat")).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let module = replica.compile_for_subnet(&canister.id(), &wasm).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    let (mut subnet, id) = (Subnet::new(&replica), canister.id());
    subnet.add(canister).unwrap();
    (subnet, id)
}

/// Calls a method with cycles. Returns the response, and what the caller has paid.
fn relay(
    subnet: &mut Subnet,
    id: Principal,
    callee: Principal,
    method: &str,
) -> (Result<Vec<u8>, String>, Cycles) {
    let balance = |subnet: &Subnet| subnet.canister(&id).map(Canister::balance).unwrap();
    let before = balance(subnet);
    let cycles = SENT.to_le_bytes();
    let argument = [&cycles, [10].as_slice(), callee.as_slice(), method.as_bytes(), b" argument"];
    let call = subnet.update(CALLER, id, "relay", &argument.concat()).unwrap();
    (call.response.map_err(|reject| reject.message), before - balance(subnet))
}

fn answer(call: &RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> {
    (call.callee == REMOTE).then(|| match call.method {
        "accept" => Ok([call.caller.as_slice(), call.argument].concat()),
        method => Err(format!("no method {method} for {} cycles", call.cycles.get())),
    })
}

#[test]
fn a_reply_accepts_the_cycles_and_a_reject_refunds_them() {
    let (mut subnet, id) = relaying();
    subnet.answer_remote_calls(answer);
    let (reply, accepted) = relay(&mut subnet, id, REMOTE, "accept");
    assert_eq!(reply.unwrap(), [id.as_slice(), b"argument"].concat());
    let (reject, refunded) = relay(&mut subnet, id, REMOTE, "refuse");
    let reject = reject.unwrap_err();
    assert!(reject.contains("no method refuse for 1000000000000 cycles"), "{reject}");
    let fees = Cycles(SENT.into());
    assert!(accepted > fees && refunded < fees, "{accepted:?}, {refunded:?}");
}

#[test]
fn other_canisters_do_not_exist() {
    let (mut subnet, id) = relaying();
    let (none, paid) = relay(&mut subnet, id, REMOTE, "accept");
    assert_eq!(none.unwrap_err(), format!("No route to canister {REMOTE}"));
    assert!(paid < Cycles(SENT.into()));
    subnet.answer_remote_calls(answer);
    let (none, paid) = relay(&mut subnet, id, OTHER, "accept");
    assert_eq!(none.unwrap_err(), format!("No route to canister {OTHER}"));
    assert!(paid < Cycles(SENT.into()));
}

#[test]
fn the_reject_code_is_that_of_a_canister() {
    let (mut subnet, id) = relaying();
    subnet.answer_remote_calls(answer);
    let argument = [[0; 8].as_slice(), &[10], REMOTE.as_slice(), b"refuse argument"].concat();
    let call = subnet.update(CALLER, id, "relay", &argument).unwrap();
    assert_eq!(call.response.unwrap_err().code.reject_code(), RejectCode::CanisterReject);
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
