//! Profiles derived from prices, and checks that profiled messages behave as others do.

use super::*;
use crate::instrument::profiled::{DEPTH, NODES};
use crate::{Canister, ErrorCode, Execution, Principal, Replica};

const CALLER: Principal = Principal::anonymous();

/// A canister with that module.
fn install(wat: &str) -> Canister {
    install_under(crate::Rules::of_2025_10(), wat)
}

fn install_under(rules: crate::Rules, wat: &str) -> Canister {
    let replica = Replica::new(rules, None).unwrap();
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"));
    let module = replica.compile(&wasm).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister
}

/// Everything observable about a message except its duration.
fn observed(execution: &Execution) -> String {
    let Execution { outcome, instructions, charge, cycles, memory, stable_calls, printed, .. } =
        execution;
    format!(
        "{outcome:?} {instructions} {charge} {cycles} {memory:?} {stable_calls:?} {printed:?} {:?}",
        execution.system_calls
    )
}

/// Executes an update in both forms, which must agree, and returns the profile.
#[track_caller]
fn profile(canister: &mut Canister, method: &str) -> (Execution, Profile) {
    canister.report_calls(true);
    let normal = canister.fork().update(CALLER, method, b"argument").unwrap();
    let (execution, profile) =
        canister.profile_update(CALLER, method, b"argument", Span::Message).unwrap();
    assert_eq!(observed(&execution), observed(&normal));
    assert_eq!(sum(&profile), execution.instructions.get());
    assert_eq!(profile.instructions, execution.instructions);
    (execution, profile)
}

fn sum(profile: &Profile) -> u64 {
    profile.nodes.iter().map(|node| node.instructions.get()).sum()
}

/// One line for each stack: functions, calls, instructions.
fn lines(profile: &Profile) -> String {
    let name = |node: &Node| profile.frames[node.frame].name.clone();
    let mut lines: Vec<String> = Vec::new();
    for node in &profile.nodes {
        let mut stack = vec![name(node)];
        let mut above = node.parent;
        while let Some(parent) = above {
            stack.push(name(&profile.nodes[parent]));
            above = profile.nodes[parent].parent;
        }
        stack.reverse();
        lines.push(format!("{} {} {}\n", stack.join(";"), node.calls, node.instructions));
    }
    lines.sort();
    lines.concat()
}

/// The profile of the method `run`.
#[track_caller]
fn run(wat: &str) -> String {
    lines(&profile(&mut install(wat), "run").1)
}

const NAME: &str = "canister_update run";

#[test]
fn each_function_has_its_own_instructions() {
    let found = run(r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (func $leaf nop)
        (func $twice (call $leaf) (call $leaf))
        (func (export "canister_update run") (call $twice) (call $leaf) (call $reply)))"#);
    // A call is charged to the caller, entering a function to the function.
    let expected = format!(
        "{NAME} 1 {}\n{NAME};ic0.msg_reply 1 500\n{NAME};leaf 1 2\n{NAME};twice 1 {}\n\
         {NAME};twice;leaf 2 4\n",
        1 + 3 * 5,
        1 + 2 * 5
    );
    assert_eq!(found, expected);
}

/// The caller's frame is current again, however a function returns.
#[test]
fn every_way_of_leaving_a_function() {
    let found = run(r#"(module
        (table 2 funcref) (elem (i32.const 0) $falls $returns)
        (type $number (func (result i32)))
        (func $falls (type $number) (i32.const 7))
        (func $returns (type $number) (block (loop (return (i32.const 7)))) unreachable)
        (func $branches (type $number) (block (block (br 2 (i32.const 7)))) unreachable)
        (func $if (type $number)
            (block (drop (br_if 1 (i32.const 7) (i32.const 1)))) unreachable)
        (func $if_not (type $number) (br_if 0 (i32.const 7) (i32.const 0)))
        (func $table (type $number)
            (block (result i32) (br_table 0 1 (i32.const 7) (i32.const 1))) drop unreachable)
        (func $pair (result i32 i64)
            (block (br 1 (i32.const 7) (i64.const 8))) unreachable)
        (func $tail (type $number) (block (return_call $falls)) unreachable)
        (func $tail_indirect (type $number) (return_call_indirect (type $number) (i32.const 1)))
        (func $all
            (drop (call $falls)) (drop (call $returns)) (drop (call $branches))
            (drop (call $if)) (drop (call $if_not)) (drop (call $table))
            (drop (drop (call $pair)))
            (drop (call $tail)) (drop (call $tail_indirect))
            (drop (call_indirect (type $number) (i32.const 1))))
        (func (export "canister_update run") (call $all)))"#);
    let stacks: Vec<&str> = found.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    let all = format!("{NAME};all");
    let expected = [
        // A tail call replaces its caller.
        format!("{NAME} 1"),
        format!("{all} 1"),
        format!("{all};branches 1"),
        format!("{all};falls 2"),
        format!("{all};if 1"),
        format!("{all};if_not 1"),
        format!("{all};pair 1"),
        format!("{all};returns 3"),
        format!("{all};table 1"),
        format!("{all};tail 1"),
        format!("{all};tail_indirect 1"),
    ];
    assert_eq!(stacks, expected);
}

#[test]
fn recursion_is_a_stack() {
    let found = run(r#"(module
        (func $even (param i32) (if (local.get 0)
            (then (call $odd (i32.sub (local.get 0) (i32.const 1))))))
        (func $odd (param i32) (if (local.get 0)
            (then (call $even (i32.sub (local.get 0) (i32.const 1))))))
        (func (export "canister_update run") (call $even (i32.const 3))))"#);
    let (each, last) = (1 + 3 + 3 + 5, 1 + 3);
    let expected = format!(
        "{NAME} 1 7\n{NAME};even 1 {each}\n{NAME};even;odd 1 {each}\n\
         {NAME};even;odd;even 1 {each}\n{NAME};even;odd;even;odd 1 {last}\n"
    );
    assert_eq!(found, expected);
}

#[test]
fn stable_memory_has_frames() {
    let found = run(r#"(module
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (memory 1)
        (func (export "canister_update run")
            (drop (call $grow (i64.const 1)))
            (call $write (i64.const 0) (i64.const 0) (i64.const 8))
            (call $write (i64.const 0) (i64.const 0) (i64.const 8))
            (call $write (i64.const 4000) (i64.const 0) (i64.const 9000))
            (call $read (i64.const 0) (i64.const 0) (i64.const 16))))"#);
    let expected = format!(
        "{NAME} 1 40\n{NAME};ic0.stable64_grow 1 100\n{NAME};ic0.stable64_read 1 36\n\
         {NAME};ic0.stable64_write 3 {}\n\
         {NAME};ic0.stable64_write;[stable pages written] 2 4000\n",
        3 * 20 + 8 + 8 + 9_000
    );
    assert_eq!(found, expected);
}

/// Reads its counter three times and stores to the heap between the last two readings.
const READER: &str = r#"(module
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (func $work nop (i32.store (i32.const 8192) (i32.const 1)))
    (func $read (param i32) (i64.store (local.get 0) (call $counter (i32.const 0))))
    (func (export "canister_update run")
        (call $read (i32.const 0)) (call $read (i32.const 8))
        (call $work)
        (call $read (i32.const 16))
        (call $append (i32.const 0) (i32.const 24)) (call $reply))
    (func (export "canister_update trap")
        (call $read (i32.const 0)) (call $work) unreachable))"#;

/// The values that the canister read.
fn readings(canister: &mut Canister) -> Vec<Instructions> {
    let reply = canister.fork().update(CALLER, "run", &[]).unwrap().outcome.unwrap();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    reply.chunks_exact(8).map(number).map(Instructions).collect()
}

#[test]
fn a_span_covers_the_instructions_between_two_readings() {
    let mut canister = install(READER);
    let readings = readings(&mut canister);
    let span = Span::Between { from: readings[1], to: readings[2] };
    let (execution, profile) = canister.profile_update(CALLER, "run", &[], span).unwrap();
    assert!(execution.outcome.is_ok());
    assert_eq!(profile.instructions, readings[2] - readings[1]);
    assert_eq!(profile.heap_pages, Instructions(0), "not part of a span");
    // The caller's run was charged at its start, before the first reading.
    let (read, work) = (1 + 1 + 1 + 5 + 1, 1 + 1 + 3);
    let expected = format!(
        "{NAME} 0 0\n{NAME};read 1 {read}\n{NAME};read;ic0.performance_counter 1 200\n\
         {NAME};work 1 {work}\n"
    );
    assert_eq!(lines(&profile), expected);
}

#[test]
fn a_span_that_was_not_read_is_an_error() {
    let mut canister = install(READER);
    let readings = readings(&mut canister);
    let wrong = readings[2] + Instructions(1);
    for (from, to, missing) in
        [(readings[1], wrong, wrong), (wrong, readings[2], wrong), (wrong, wrong, wrong)]
    {
        let span = Span::Between { from, to };
        let error = canister.fork().profile_update(CALLER, "run", &[], span).unwrap_err();
        assert!(matches!(error, ProfileError::NotRead(number) if number == missing), "{error}");
    }
    // The cost of `trap` up to its first reading, and a reading that it does not reach.
    let first = Instructions(1 + 2 * 5 + 1 + 1 + (1 + 1 + 1 + 5 + 1) + 200);
    let span = Span::Between { from: first, to: wrong };
    let (execution, profile) = canister.profile_update(CALLER, "trap", &[], span).unwrap();
    assert!(execution.outcome.is_err());
    assert_eq!(profile.instructions, execution.instructions - first, "up to the trap");
}

#[test]
fn changed_heap_pages_are_not_part_of_the_tree() {
    let (execution, profile) = profile(&mut install(READER), "run");
    assert_eq!(profile.heap_pages, Instructions(2_000), "the page of readings and that of work");
    assert_eq!(sum(&profile) + 2_000, execution.charge.get());
}

#[test]
fn a_failed_message_has_a_profile_up_to_the_failure() {
    let mut canister = install(
        r#"(module
        (import "ic0" "trap" (func $trap (param i32 i32)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (memory 1) (table 2 funcref) (elem (i32.const 0) $deep)
        (func $deep (param i32)
            nop (drop (i32.load (i32.add (local.get 0) (i32.const -4)))))
        (func (export "canister_update load") (call $deep (i32.const 0)))
        (func (export "canister_update divide")
            (drop (i32.div_u (i32.const 1) (i32.const 0))))
        (func (export "canister_update unreachable") nop unreachable)
        (func (export "canister_update trap") (call $trap (i32.const 0) (i32.const 5)))
        (func (export "canister_update append")
            (call $append (i32.const 65535) (i32.const 5)))
        (func (export "canister_update stable")
            (call $write (i64.const 0) (i64.const 0) (i64.const 5)))
        (func (export "canister_update null") (call_indirect (i32.const 1)))
        (func (export "canister_update tail") (return_call_indirect (i32.const 0)))
        (func (export "canister_update fill")
            (loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) (br 0)))
        (func (export "canister_update slice")
            (memory.fill (i32.const 0) (i32.const 0) (i32.const -1))))"#,
    );
    for (method, code, last) in [
        ("load", ErrorCode::CanisterTrapped, "deep"),
        ("divide", ErrorCode::CanisterTrapped, "canister_update divide"),
        ("unreachable", ErrorCode::CanisterTrapped, "canister_update unreachable"),
        ("trap", ErrorCode::CanisterCalledTrap, "ic0.trap"),
        ("append", ErrorCode::CanisterContractViolation, "ic0.msg_reply_data_append"),
        ("stable", ErrorCode::CanisterTrapped, "ic0.stable64_write"),
        ("null", ErrorCode::CanisterTrapped, "canister_update null"),
        ("tail", ErrorCode::CanisterContractViolation, "canister_update tail"),
        ("slice", ErrorCode::CanisterInstructionLimitExceeded, "canister_update slice"),
    ] {
        let (execution, profile) = profile(&mut canister, method);
        assert_eq!(execution.outcome.unwrap_err().code, code, "{method}");
        let node = profile.nodes.last().unwrap();
        assert_eq!(profile.frames[node.frame].name, last, "{method}");
    }
}

/// Several slices, then the instruction limit.
#[test]
fn slices_change_nothing() {
    let mut canister = install(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (memory 16)
        (func $fill (memory.fill (i32.const 0) (i32.const 0) (i32.const 1000000)))
        (func (export "canister_update some") (local $left i32)
            (local.set $left (i32.const 4500))
            (loop
                (call $fill)
                (br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
            (call $reply))
        (func (export "canister_query all") (loop (call $fill) (br 0))))"#,
    );
    let (execution, found) = profile(&mut canister, "some");
    assert!(execution.instructions > Instructions(2 * 2_000_000_000));
    let fill = found.nodes.iter().find(|node| found.frames[node.frame].name == "fill");
    let each = 1 + 3 + 100 + 1_000_000;
    assert_eq!(fill.unwrap().instructions, Instructions(4_500 * each));
    let (execution, found) = canister.profile_query(CALLER, "all", &[], Span::Message).unwrap();
    let code = execution.outcome.unwrap_err().code;
    assert_eq!(code, ErrorCode::CanisterInstructionLimitExceeded);
    assert!(execution.instructions > execution.charge, "the last charge exceeded the limit");
    assert_eq!((sum(&found), found.heap_pages.get()), (execution.instructions.get(), 0));
}

#[test]
fn a_deep_stack_is_folded() {
    let mut canister = install(
        r#"(module
        (func $down (param i32) (if (local.get 0)
            (then (call $down (i32.sub (local.get 0) (i32.const 1))))))
        (func (export "canister_update run") (call $down (i32.const 2999)) (call $down (i32.const 1))))"#,
    );
    let (_, profile) = profile(&mut canister, "run");
    assert_eq!(profile.nodes.len(), DEPTH as usize);
    assert_eq!(profile.folded, 3_000 - (DEPTH as u64 - 1));
    // Calls after the deep ones have frames.
    let twice = profile.nodes.iter().filter(|node| node.calls == 2).count();
    assert_eq!(twice, 2);
}

#[test]
fn many_stacks_are_folded() {
    let mut canister = install(
        r#"(module
        (func $a (param i32) (if (local.get 0) (then
            (call $a (i32.sub (local.get 0) (i32.const 1)))
            (call $b (i32.sub (local.get 0) (i32.const 1))))))
        (func $b (param i32) (if (local.get 0) (then
            (call $a (i32.sub (local.get 0) (i32.const 1)))
            (call $b (i32.sub (local.get 0) (i32.const 1))))))
        (func (export "canister_update run") (call $a (i32.const 18)) (call $b (i32.const 18))))"#,
    );
    let (_, profile) = profile(&mut canister, "run");
    // The root node is the replica's.
    assert_eq!(profile.nodes.len() as u32, NODES - 1);
    let calls: u64 = profile.nodes.iter().map(|node| node.calls).sum();
    assert_eq!(calls + profile.folded, 1 + 2 * ((1 << 19) - 1));
}

/// Counts in the heap, in a global and in stable memory, and replies with all three.
const COUNTER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable_grow" (func $grow (param i32) (result i32)))
    (import "ic0" "stable_size" (func $size (result i32)))
    (import "ic0" "stable_read" (func $read (param i32 i32 i32)))
    (import "ic0" "stable_write" (func $write (param i32 i32 i32)))
    (memory 1 3) (global $count (mut i32) (i32.const 0)) (data $passive "data")
    (func $start (i32.store (i32.const 0) (i32.const 40)))
    (start $start)
    (func $more (param i32) (i32.store (local.get 0)
        (i32.add (i32.load (local.get 0)) (i32.const 1))))
    (func $count
        (if (i32.eqz (call $size)) (then (drop (call $grow (i32.const 1)))))
        (call $more (i32.const 0))
        (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (i32.store (i32.const 4) (global.get $count))
        (call $read (i32.const 8) (i32.const 0) (i32.const 4))
        (call $more (i32.const 8))
        (call $write (i32.const 0) (i32.const 8) (i32.const 4))
        (drop (memory.grow (i32.const 1)))
        (i32.store (i32.const 12) (memory.size))
        (call $append (i32.const 0) (i32.const 16)) (call $reply))
    (func (export "canister_update count") (call $count) (data.drop $passive))
    (func (export "canister_query count query") (call $count))
    (func (export "canister_inspect_message")))"#;

#[test]
fn profiled_messages_and_others_share_the_canister() {
    let accepting = COUNTER.replace(
        r#"(func (export "canister_inspect_message"))"#,
        r#"(func (export "canister_inspect_message") (call $accept))"#,
    );
    let accepting =
        accepting.replace("(module", r#"(module (import "ic0" "accept_message" (func $accept))"#);
    let mut mixed = install(&accepting);
    let mut normal = mixed.fork();
    for (number, is_profiled) in [true, false, false, true, true, false].into_iter().enumerate() {
        let expected = normal.update(CALLER, "count", &[]).unwrap();
        let found = match is_profiled {
            true => mixed.profile_update(CALLER, "count", &[], Span::Message).unwrap().0,
            false => mixed.update(CALLER, "count", &[]).unwrap(),
        };
        assert_eq!(observed(&found), observed(&expected), "message {number}");
        assert!(found.outcome.is_ok());
        let query = mixed.query(CALLER, "count query", &[]).unwrap();
        let (again, profile) =
            mixed.profile_query(CALLER, "count query", &[], Span::Message).unwrap();
        assert_eq!(observed(&again), observed(&query));
        assert_eq!(sum(&profile), query.instructions.get());
        assert_eq!((mixed.balance(), mixed.heap_size()), (normal.balance(), normal.heap_size()));
    }
    let difference = |canister: &Canister| canister.difference(&install(&accepting)).is_ok();
    assert!(difference(&mixed) && difference(&normal));
}

#[test]
fn a_message_that_is_not_executed_has_no_profile() {
    let mut canister = install(COUNTER);
    for method in ["count", "nothing"] {
        let (execution, profile) =
            canister.profile_update(CALLER, method, &[], Span::Message).unwrap();
        assert!(execution.outcome.is_err());
        assert_eq!(profile, Profile::default());
    }
}

#[test]
fn names_are_readable() {
    let long = "n".repeat(5_000);
    let wasm = wat::parse_str(format!(
        r#"(module (import "ic0" "msg_reply" (func $imported))
            (func $_ZN4core3fmt5Write9write_str17h0123456789abcdefE)
            (func $_RNvNtCs1234_7mycrate3foo3bar)
            (func $sqlite3VdbeExec)
            (func (export "canister_query get"))
            (func)
            (func (@name "two\nlines"))
            (func ${long}))"#
    ))
    .unwrap();
    let names = Names::of(&wasm);
    let found: Vec<String> = (0..7).map(|frame| names.frame(frame).name).collect();
    let expected = [
        "ic0.msg_reply",
        "core::fmt::Write::write_str",
        "mycrate::foo::bar",
        "sqlite3VdbeExec",
        "canister_query get",
        "func[5]",
        "two?lines",
    ];
    assert_eq!(found, expected);
    assert_eq!(names.frame(0).kind, FrameKind::SystemCall);
    assert_eq!(names.frame(1).kind, FrameKind::Function(1));
    let cut = names.frame(7).name;
    assert!(cut.len() < 1_010 && cut.ends_with('…'), "{cut}");
    assert_eq!(Names::of(b"\0asm\x01\0\0\0\0\x05\x04name").frame(3).name, "func[3]");
}

#[test]
fn charges_appear_below_the_function_that_caused_them() {
    let wat = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (memory 8)
        (func $init (export "canister_init") (drop (call $grow (i64.const 2))))
        (func $reads (drop (i32.load (i32.const 0))) (drop (i32.load (i32.const 65536))))
        (func $both (call $reads) (i32.store (i32.const 0) (i32.const 1)))
        (func (export "canister_update go")
            (call $both)
            (call $write (i64.const 0) (i64.const 131072) (i64.const 65537))
            (call $append (i32.const 262144) (i32.const 1))
            (call $reply))
        (func (export "canister_update trap")
            (drop (i32.load (i32.const 0))) (i32.store (i32.const 65536) (i32.const 1))
            (drop (i32.load (i32.const 524288)))))"#;
    let mut canister = install_under(crate::Rules::of_2026_08(), wat);
    let (_, found) = profile(&mut canister, "go");
    let found = lines(&found);
    for line in [
        "canister_update go;both;reads;[heap page] 2 160000\n",
        "canister_update go;both;[heap page] 1 80000\n",
        "canister_update go;ic0.stable64_write;[heap page] 2 160000\n",
        "canister_update go;ic0.stable64_write;[stable page] 1 320000\n",
        "canister_update go;ic0.msg_reply_data_append;[heap page] 1 80000\n",
    ] {
        assert!(found.contains(line), "{line} is not in\n{found}");
    }
    let (execution, found) = profile(&mut canister, "trap");
    assert_eq!(execution.outcome.unwrap_err().code, ErrorCode::CanisterTrapped);
    let found = lines(&found);
    assert!(found.contains("canister_update trap;[heap page] 3 240000\n"), "{found}");
}
