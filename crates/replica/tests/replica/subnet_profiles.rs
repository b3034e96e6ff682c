//! Profiles of the executions of a subnet: they add up, and profiling changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use stablebench_replica::subnet::{Executed, Function, Subnet};
use stablebench_replica::{
    Bytes, Canister, Execution, Instructions, Principal, Profile, Replica, Rules, Settings,
};

use crate::support::CALLER;

fn id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

fn subnet(rules: Rules, wat: &str, canisters: u8) -> Subnet {
    let replica = Replica::new(rules, None).unwrap();
    let wasm = wat::parse_str(wat).unwrap();
    let mut subnet = Subnet::new(&replica);
    for number in 0..canisters {
        let module = replica.compile_for_subnet(&id(number), &wasm).unwrap();
        let usual = replica.create_canister().unwrap();
        let settings = Settings { id: id(number), ..usual.settings().clone() };
        let mut canister = Canister::new(settings).unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        subnet.add(canister).unwrap();
    }
    subnet
}

/// Two canisters with heartbeats, timers, and a hook for low memory.
fn callers(rules: Rules) -> Subnet {
    let functions = r#"
        (func (export "canister_update grow") (drop (memory.grow (i32.const 1))) (call $reply))
        (func (export "canister_on_low_wasm_memory") (call $bump))"#;
    let wat = include_str!("../calls.wat");
    let end = wat.rfind(')').unwrap();
    let mut subnet = subnet(rules, &format!("{}{functions})", &wat[..end]), 2);
    let all = subnet.canister(&id(0)).unwrap().settings().heap_limit.get();
    subnet.set_low_memory_threshold(&id(0), Bytes(all - 8 * 65_536));
    subnet
}

/// The argument with which `calls.wat` calls a method of the canister number 1.
fn call(flags: u8, method: &str) -> Vec<u8> {
    let mut argument = vec![flags];
    argument.extend(id(1).as_slice());
    // No timeout, and no cycles.
    argument.extend([0; 9]);
    argument.push(method.len() as u8);
    argument.extend(method.bytes());
    argument.extend(b"payload");
    argument
}

const TRAP_ON_REPLY: u8 = 4;
const CLEANUP: u8 = 16;

/// Calls of every kind, with their executions.
fn run(subnet: &mut Subnet) -> Vec<Executed> {
    let mut executions = Vec::new();
    for (method, argument) in [
        ("echo", b"ingress".to_vec()),
        ("qecho", b"ingress".to_vec()),
        ("forward", call(0, "echo")),
        ("forward", call(0, "refuse")),
        ("forward", call(0, "fail")),
        ("forward", call(0, "missing")),
        ("forward", call(TRAP_ON_REPLY | CLEANUP, "echo")),
        ("twice", call(0, "echo")),
        ("grow", Vec::new()),
        ("arm", 1_u64.to_le_bytes().to_vec()),
    ] {
        let called = subnet.update(CALLER, id(0), method, &argument).unwrap();
        executions.extend(called.executions);
    }
    subnet.set_time(subnet.time() + 1_000_000_000);
    for _ in 0..3 {
        subnet.tick().unwrap();
    }
    executions.extend(subnet.take_executions());
    for (method, argument) in [
        ("qecho", b"query".to_vec()),
        ("cforward", call(0, "qecho")),
        ("cforward", call(0, "missing")),
        ("cforward", call(TRAP_ON_REPLY | CLEANUP, "qecho")),
    ] {
        executions.extend(subnet.query(CALLER, id(0), method, &argument).unwrap().executions);
    }
    executions
}

/// Everything about an execution except its profile and its duration.
fn observed(executed: &Executed) -> String {
    let execution = executed.execution.clone();
    let execution = Execution { profile: None, wall: Duration::ZERO, ..execution };
    format!("{:?}", Executed { execution, ..executed.clone() })
}

fn sum(profile: &Profile) -> u64 {
    profile.nodes.iter().map(|node| node.instructions.get()).sum()
}

#[test]
fn every_execution_has_a_profile_that_adds_up() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let (mut normal, mut profiled) = (callers(rules), callers(rules));
        profiled.set_profiling(true);
        let (expected, executions) = (run(&mut normal), run(&mut profiled));
        let all = |executions: &[Executed]| executions.iter().map(observed).collect::<Vec<_>>();
        assert_eq!(all(&executions), all(&expected));
        for number in [0, 1] {
            let balance = |subnet: &Subnet| subnet.canister(&id(number)).unwrap().balance();
            assert_eq!(balance(&profiled), balance(&normal));
        }
        assert_eq!((profiled.time(), profiled.executed()), (normal.time(), normal.executed()));
        assert!(expected.iter().all(|executed| executed.execution.profile.is_none()));
        let mut functions: BTreeMap<&str, usize> = BTreeMap::new();
        for executed in &executions {
            let Execution { instructions, charge, profile, .. } = &executed.execution;
            // A method that does not exist runs nothing.
            let Some(profile) = profile else {
                assert_eq!(*charge, Instructions(0), "{executed}");
                continue;
            };
            assert_eq!((sum(profile), profile.instructions), (instructions.get(), *instructions));
            assert_eq!(profile.instructions + profile.heap_pages, *charge, "{executed}");
            *functions.entry(profile.frames[0].name.as_str()).or_default() += 1;
        }
        let expected = [
            "canister_composite_query cforward",
            "canister_global_timer",
            "canister_heartbeat",
            "canister_on_low_wasm_memory",
            "canister_query qecho",
            "canister_update arm",
            "canister_update echo",
            "canister_update fail",
            "canister_update forward",
            "canister_update grow",
            "canister_update refuse",
            "canister_update twice",
            "on_clean",
            "on_reject",
            "on_reply",
            "on_reply_trap",
        ];
        assert_eq!(functions.keys().copied().collect::<Vec<_>>(), expected);
        assert_eq!(functions["on_clean"], 2, "of the update and the composite query");
    }
}

#[test]
fn callbacks_of_composite_queries_name_their_causes() {
    let subnet = callers(Rules::today());
    let queries = |argument: &[u8]| {
        let call = subnet.query(CALLER, id(0), "cforward", argument).unwrap();
        let seen = call.executions.iter().map(|it| (it.cause, it.function.clone()));
        seen.collect::<Vec<_>>()
    };
    let first = (None, Function::CompositeQuery("cforward".to_owned()));
    let asked = (Some(0), Function::Query("qecho".to_owned()));
    let expected = [first.clone(), asked.clone(), (Some(1), Function::ReplyCallback)];
    assert_eq!(queries(&call(0, "qecho")), expected);
    let expected =
        [first.clone(), asked, (Some(1), Function::ReplyCallback), (Some(2), Function::Cleanup)];
    assert_eq!(queries(&call(TRAP_ON_REPLY | CLEANUP, "qecho")), expected);
    // Nothing runs between the call and its failure.
    let expected = [first, (Some(0), Function::RejectCallback)];
    assert_eq!(queries(&call(0, "missing")), expected);
}

/// 2 ^ 18 stacks in each message.
const STACKS: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (func $a (param i32) (if (local.get 0) (then
        (call $a (i32.sub (local.get 0) (i32.const 1)))
        (call $b (i32.sub (local.get 0) (i32.const 1))))))
    (func $b (param i32) (if (local.get 0) (then
        (call $a (i32.sub (local.get 0) (i32.const 1)))
        (call $b (i32.sub (local.get 0) (i32.const 1))))))
    (func (export "canister_update run") (call $a (i32.const 18)) (call $reply)))"#;

#[test]
fn profiles_are_kept_up_to_a_limit() {
    let mut subnet = subnet(Rules::today(), STACKS, 1);
    let is_profiled = |subnet: &mut Subnet| {
        let call = subnet.update(CALLER, id(0), "run", &[]).unwrap();
        call.response.unwrap();
        call.executions[0].execution.profile.is_some()
    };
    assert!(!is_profiled(&mut subnet));
    subnet.set_profiling(true);
    let kept: Vec<bool> = (0..6).map(|_| is_profiled(&mut subnet)).collect();
    assert_eq!(kept, [true, true, true, true, false, false]);
    subnet.set_profiling(true);
    assert!(is_profiled(&mut subnet));
    subnet.set_profiling(false);
    assert!(!is_profiled(&mut subnet));
}
