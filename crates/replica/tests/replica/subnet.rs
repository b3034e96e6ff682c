//! Canisters that call each other: what the recorded cases do not show, canisters that never end, and
//! profiles of executions, which add up and change nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use stablebench_replica::subnet::{Call, CallError, Executed, Function, Status, Subnet};
use stablebench_replica::{
    Bytes, Canister, ErrorCode, Execution, Instructions, Profile, Replica, Rules,
};

use crate::support::{CALLER, RECORDED, id, subnet_of};

const SECOND: u64 = 1_000_000_000;

/// A canister that calls the principal in its argument: the method `go` there, with its own id.
const CALLS: &str = r#"
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "canister_self_copy" (func $self (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
    (import "ic0" "time" (func $time (result i64)))
    (memory 1) (table 1 funcref) (elem (i32.const 0) $back)
    (data (i32.const 64) "gostop")
    (global $count (mut i64) (i64.const 0))
    (func $bump (global.set $count (i64.add (global.get $count) (i64.const 1))))
    (func $call (param $method i32) (param $length i32)
        (call $copy (i32.const 0) (i32.const 0) (i32.const 10))
        (call $new (i32.const 0) (i32.const 10) (local.get $method) (local.get $length)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (call $self (i32.const 16) (i32.const 0) (i32.const 10))
        (call $data (i32.const 16) (i32.const 10))
        (drop (call $perform)))
    (func $back (param i32) (call $bump) (call $reply))
    (func (export "canister_query count")
        (i64.store (i32.const 0) (global.get $count))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))"#;

/// Replies and calls the other canister, forever.
const FOREVER: &str = r#"(func (export "canister_update go")
    (call $bump) (call $call (i32.const 64) (i32.const 2)) (call $reply))"#;
/// Calls the other canister and leaves the answer to the callback, at any depth.
const NESTED: &str = r#"(func (export "canister_update go") (call $bump) (call $call (i32.const 64) (i32.const 2)))"#;
/// Calls the other canister once.
const ONCE: &str = r#"
    (func (export "canister_update go") (call $bump) (call $call (i32.const 66) (i32.const 4)))
    (func (export "canister_update stop") (call $bump) (call $reply))"#;

/// A subnet of canisters with the same module.
fn subnet(canisters: usize, functions: &str) -> Subnet {
    let module = format!("(module {CALLS} {functions})");
    let replica = Replica::new(Rules::today(), None).unwrap();
    subnet_of(&replica, &vec![module.as_str(); canisters])
}

fn count(subnet: &Subnet, canister: u8) -> u64 {
    let call = subnet.query(CALLER, id(canister), "count", &[]).unwrap();
    u64::from_le_bytes(call.response.unwrap().try_into().unwrap())
}

fn go(subnet: &mut Subnet, from: u8, to: u8) -> Result<Call, CallError> {
    subnet.update(CALLER, id(from), "go", id(to).as_slice())
}

#[test]
fn executions_name_their_causes() {
    let call = go(&mut subnet(2, ONCE), 0, 1).unwrap();
    assert_eq!(call.response, Ok(vec![]));
    let seen: Vec<_> = call
        .executions
        .iter()
        .map(|it| (it.number, it.cause, it.canister, it.function.clone()))
        .collect();
    let expected = [
        (0, None, id(0), Function::Update("go".to_owned())),
        (1, Some(0), id(1), Function::Update("stop".to_owned())),
        (2, Some(1), id(0), Function::ReplyCallback),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn cycles_of_executions_add_up_to_what_balances_fell_by() {
    let mut subnet = subnet(2, ONCE);
    let balance = |subnet: &Subnet, number| subnet.canister(&id(number)).unwrap().balance().get();
    for (from, to) in [(0, 1), (1, 1), (0, 7)] {
        let before = [0, 1].map(|number| balance(&subnet, number));
        let call = go(&mut subnet, from, to).unwrap();
        for (number, before) in (0..).zip(before) {
            let paid: u128 = call
                .executions
                .iter()
                .filter(|it| it.canister == id(number))
                .map(|it| it.execution.cycles.get())
                .sum();
            assert_eq!(before - balance(&subnet, number), paid, "{from} to {to}");
        }
    }
}

#[test]
fn equal_calls_have_equal_executions() {
    let run = || {
        let mut subnet = subnet(3, ONCE);
        let calls: Vec<Call> =
            [(0, 1), (1, 2), (2, 2)].map(|(from, to)| go(&mut subnet, from, to).unwrap()).into();
        let counts = |call: &Call| {
            let costs = call.executions.iter();
            costs.map(|it| (it.execution.charge, it.execution.cycles)).collect::<Vec<_>>()
        };
        let balances = [0, 1, 2].map(|number| subnet.canister(&id(number)).unwrap().balance());
        (calls.iter().map(counts).collect::<Vec<_>>(), balances, subnet.time())
    };
    assert_eq!(run(), run());
}

/// Executions, their costs, and the state that they leave.
fn history(subnet: &mut Subnet, from: u8, to: u8) -> String {
    let call = go(subnet, from, to).unwrap();
    let executions = call.executions.iter();
    let executions: Vec<_> = executions
        .map(|it| (it.number, it.cause, it.transmission, it.execution.charge, it.execution.cycles))
        .collect();
    let balances = [0, 1].map(|number| subnet.canister(&id(number)).unwrap().balance());
    format!("{:?} {executions:?} {balances:?} {}", call.response, subnet.time())
}

#[test]
fn a_fork_continues_as_its_origin_does() {
    let mut origin = subnet(2, ONCE);
    go(&mut origin, 0, 1).unwrap();
    let (mut first, mut second) = (origin.fork(), origin.fork());
    let forked = history(&mut first, 0, 1);
    assert_eq!(forked, history(&mut second, 0, 1));
    // What a fork does is not seen by its origin.
    assert_eq!((count(&first, 1), count(&origin, 1)), (2, 1));
    assert_eq!(forked, history(&mut origin, 0, 1));
    assert_eq!(origin.next_id(), first.next_id());
}

#[test]
fn a_fork_has_the_open_calls_of_its_origin() {
    let mut origin = subnet(2, ONCE);
    let message = origin.submit(CALLER, id(0), "go", id(1).as_slice()).unwrap().unwrap();
    assert!(!origin.is_idle());
    let mut fork = origin.fork();
    fork.tick().unwrap();
    assert_eq!(fork.take_answer(message), Some(Ok(vec![])));
    assert_eq!((count(&fork, 1), count(&origin, 1)), (1, 0));
    origin.tick().unwrap();
    assert_eq!(origin.take_answer(message), Some(Ok(vec![])));
}

/// The message of a user, a call and its response; the rest of the cycles is for executing them.
#[test]
fn transmission_is_a_part_of_the_cycles() {
    let mut subnet = subnet(2, ONCE);
    let call = go(&mut subnet, 0, 1).unwrap();
    let of = |at: usize| call.executions[at].transmission.get();
    // The envelope of a user's message, the names of methods and the arguments have bytes.
    let ingress = 1_200_000 + 2_000 * (121 + 2 + 10);
    assert_eq!(of(0), ingress + 260_000 + 1_000 * (4 + 10));
    assert_eq!(of(1), 0);
    // The response is empty.
    assert_eq!(of(2), 0);
    for executed in &call.executions {
        assert!(executed.execution.cycles.get() > executed.transmission.get());
    }
}

#[test]
fn canisters_that_call_forever_take_turns_in_every_round() {
    for (canisters, to) in [(1, 0), (2, 1)] {
        let mut subnet = subnet(canisters, FOREVER);
        assert_eq!(go(&mut subnet, 0, to).unwrap().response, Ok(vec![]));
        for _ in 0..3 {
            let before = count(&subnet, 0);
            subnet.tick().unwrap();
            // A round ends at its limit of instructions, although each message has only a few.
            let executed = count(&subnet, 0) - before;
            assert!((50..2_000).contains(&executed), "{executed}");
            assert!(!subnet.is_idle());
        }
    }
}

/// A canister has at most 500 calls to the same canister at a time.
#[test]
fn nested_calls_end_when_the_queue_is_full() {
    for (canisters, to, depth) in [(1, 0, 501), (2, 1, 501)] {
        let mut subnet = subnet(canisters, NESTED);
        let call = go(&mut subnet, 0, to).unwrap();
        // The last one makes no call and does not reply; the callbacks of the others do.
        assert_eq!(call.response, Ok(vec![]));
        let is_call = |it: &&Executed| matches!(it.function, Function::Update(_));
        let calls = call.executions.iter().filter(is_call);
        assert_eq!(calls.filter(|it| it.canister == id(0)).count(), depth);
        assert!(subnet.is_idle());
    }
}

#[test]
fn messages_of_users_wait_up_to_a_limit() {
    let mut subnet = subnet(1, ONCE);
    let mut submit = || subnet.submit(CALLER, id(0), "stop", &[]).unwrap();
    let messages: Vec<_> = (0..1_000).map(|_| submit().unwrap()).collect();
    assert_eq!(submit().unwrap_err().code, ErrorCode::CanisterQueueFull);
    subnet.tick().unwrap();
    let answered = messages.iter().filter(|id| subnet.take_answer(**id).is_some()).count();
    assert_eq!(count(&subnet, 0), answered as u64);
    assert!(answered > 100, "{answered}");
    assert!(subnet.submit(CALLER, id(0), "stop", &[]).unwrap().is_ok());
}

#[test]
fn the_executions_that_are_kept_are_bounded() {
    let mut subnet = subnet(1, FOREVER);
    go(&mut subnet, 0, 0).unwrap();
    for _ in 0..250 {
        subnet.tick().unwrap();
    }
    assert_eq!(subnet.take_executions().len(), 1 << 16);
}

#[test]
fn a_timer_runs_once_in_a_round() {
    let functions = r#"
        (func (export "canister_update arm") (drop (call $timer (i64.const 1))) (call $reply))
        (func (export "canister_global_timer") (call $bump) (drop (call $timer (i64.const 1))))"#;
    let mut subnet = subnet(1, functions);
    subnet.update(CALLER, id(0), "arm", &[]).unwrap().response.unwrap();
    for round in 1..=50 {
        subnet.tick().unwrap();
        assert_eq!(count(&subnet, 0), round);
    }
}

#[test]
fn time_never_goes_back() {
    let functions = r#"
        (func (export "canister_update now") (i64.store (i32.const 0) (call $time))
            (call $append (i32.const 0) (i32.const 8)) (call $reply))"#;
    let mut subnet = subnet(1, functions);
    let now = |subnet: &mut Subnet| {
        let call = subnet.update(CALLER, id(0), "now", &[]).unwrap();
        u64::from_le_bytes(call.response.unwrap().try_into().unwrap())
    };
    let first = now(&mut subnet);
    assert_eq!(now(&mut subnet), first + 1);
    subnet.set_time(first - SECOND);
    assert_eq!(now(&mut subnet), first + 2);
    subnet.set_time(first + SECOND);
    assert_eq!(now(&mut subnet), first + SECOND);
}

/// The behaviour of the Interface Specification; no recorded case stops a canister.
#[test]
fn a_canister_stops_when_its_calls_have_ended() {
    let mut subnet = subnet(2, ONCE);
    // A call to nobody is rejected at the end of a round, and its callback runs in the next.
    let message = subnet.submit(CALLER, id(0), "go", id(7).as_slice()).unwrap().unwrap();
    subnet.tick().unwrap();
    assert_eq!(subnet.set_running(&id(0), false), Some(Status::Stopping));
    let refused = subnet.update(CALLER, id(0), "stop", &[]).unwrap();
    assert_eq!(refused.response.unwrap_err().code, ErrorCode::CanisterStopping);
    let refused = go(&mut subnet, 1, 0).unwrap();
    assert_eq!(refused.executions.last().unwrap().function, Function::RejectCallback);
    assert_eq!(subnet.take_answer(message), Some(Ok(vec![])));
    assert_eq!(subnet.status(&id(0)), Some(Status::Stopped));
    let refused = subnet.query(CALLER, id(0), "count", &[]).unwrap();
    assert_eq!(refused.response.unwrap_err().code, ErrorCode::CanisterStopped);
    assert_eq!(subnet.set_running(&id(0), true), Some(Status::Running));
    assert_eq!(subnet.update(CALLER, id(0), "stop", &[]).unwrap().response, Ok(vec![]));
}

/// The behaviour of the Interface Specification; not recorded.
#[test]
fn the_hook_for_low_memory_runs_once_each_time() {
    let functions = r#"
        (func (export "canister_update grow") (drop (memory.grow (i32.const 1))) (call $reply))
        (func (export "canister_on_low_wasm_memory") (call $bump))"#;
    let mut subnet = subnet(1, functions);
    let most = subnet.canister(&id(0)).unwrap().settings().heap_limit.get();
    let two_pages_left = Bytes(most - 2 * 65_536);
    subnet.set_low_memory_threshold(&id(0), two_pages_left);
    for (grown, ran) in [(1, 0), (2, 1), (3, 1)] {
        subnet.update(CALLER, id(0), "grow", &[]).unwrap().response.unwrap();
        assert_eq!(count(&subnet, 0), ran, "{grown} pages");
    }
}

#[test]
fn a_cleanup_sees_the_reject_code_since_2026() {
    // The callback traps, and the cleanup adds the code to the count.
    let wat = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reject_code" (func $code (result i32)))
        (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_on_cleanup" (func $cleanup (param i32 i32)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (memory 1) (table 2 funcref) (elem (i32.const 0) $trap $clean)
        (data (i32.const 16) "\ff\ff\ff\ff\ff\e0\00\00\01\01missing")
        (global $count (mut i64) (i64.const 0))
        (func $trap (param i32) (unreachable))
        (func $clean (param i32)
            (global.set $count (i64.const 1))
            (global.set $count (i64.extend_i32_u (i32.mul (call $code) (i32.const 10)))))
        (func (export "canister_update go")
            (call $new (i32.const 16) (i32.const 10) (i32.const 26) (i32.const 7)
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (call $cleanup (i32.const 1) (i32.const 0))
            (drop (call $perform)))
        (func (export "canister_query count")
            (i64.store (i32.const 0) (global.get $count))
            (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#;
    for (rules, expected) in [(Rules::of_2025_10(), 0), (Rules::of_2026_08(), 50)] {
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile_for_subnet(&id(0), &wat::parse_str(wat).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        let mut subnet = Subnet::new(&replica);
        subnet.add(canister).unwrap();
        let call = subnet.update(CALLER, id(0), "go", &[]).unwrap();
        assert_eq!(call.response.unwrap_err().code, ErrorCode::CanisterTrapped);
        assert_eq!(count(&subnet, 0), expected, "{rules}");
    }
}

#[test]
fn an_id_is_taken_once() {
    let mut subnet = subnet(1, ONCE);
    let copy = subnet.canister(&id(0)).unwrap().fork();
    let error = subnet.add(copy).unwrap_err().to_string();
    assert_eq!(error, format!("the subnet has a canister {} already", id(0)));
}

#[test]
fn calls_to_nobody_are_rejected() {
    let mut subnet = subnet(1, ONCE);
    let call = subnet.update(CALLER, id(7), "go", &[]).unwrap();
    assert_eq!(call.response.unwrap_err().code, ErrorCode::CanisterNotFound);
    assert!(!call.admitted);
    let call = subnet.query(CALLER, id(7), "count", &[]).unwrap();
    assert_eq!(call.response.unwrap_err().code, ErrorCode::CanisterNotFound);
    // The callback of the reject replies.
    assert_eq!(go(&mut subnet, 0, 7).unwrap().response, Ok(vec![]));
}

/// A subnet without calls costs what the canister alone costs.
#[test]
fn a_single_canister_costs_the_same() {
    let replica = Replica::new(Rules::today(), None).unwrap();
    let wasm = wat::parse_str(format!("(module {CALLS} {ONCE})")).unwrap();
    let module = replica.compile_for_subnet(&id(0), &wasm).unwrap();
    let mut alone = replica.create_canister().unwrap();
    alone.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    let mut subnet = Subnet::new(&replica);
    subnet.add(alone.fork()).unwrap();
    for method in ["stop", "count", "missing"] {
        let one = alone.update(CALLER, method, &[]).unwrap();
        let call = subnet.update(CALLER, id(0), method, &[]).unwrap();
        assert_eq!(call.response.is_ok(), one.outcome.is_ok(), "{method}");
        let executed = &call.executions[0].execution;
        assert_eq!((executed.charge, executed.instructions), (one.charge, one.instructions));
        let balance = |canister: &Canister| canister.balance();
        assert_eq!(balance(subnet.canister(&id(0)).unwrap()), balance(&alone), "{method}");
    }
}

/// Two canisters with heartbeats, timers, and a hook for low memory.
fn callers(rules: Rules) -> Subnet {
    let functions = r#"
        (func (export "canister_update grow") (drop (memory.grow (i32.const 1))) (call $reply))
        (func (export "canister_on_low_wasm_memory") (call $bump))"#;
    let end = RECORDED.rfind(')').unwrap();
    let wat = format!("{}{functions})", &RECORDED[..end]);
    let mut subnet = subnet_of(&Replica::new(rules, None).unwrap(), &[wat.as_str(); 2]);
    let all = subnet.canister(&id(0)).unwrap().settings().heap_limit.get();
    subnet.set_low_memory_threshold(&id(0), Bytes(all - 8 * 65_536));
    subnet
}

/// The argument with which the module of recorded cases calls a method of the canister number 1.
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
    let mut subnet = subnet_of(&Replica::new(Rules::today(), None).unwrap(), &[STACKS]);
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
