//! The life of a canister: state after messages, forks and upgrades.

use std::io::Write;

use stablebench_replica::{Canister, ErrorCode, Execution, Replica, Rules, WasmPages};

use crate::support::{CALLER, code, compile, install, numbers, query, rejected, update};

/// Keeps its 64-bit argument in a global, on the heap and in stable memory, and replies with all
/// three. The methods end in different ways.
const KEEPER: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
    (memory 2)
    (global $kept (mut i64) (i64.const 0))
    (func (export "canister_init") (drop (call $stable_grow (i64.const 1))))

    ;; The heap: 0 argument, 8 kept value, 64 reply.
    (func $keep
        (call $argument (i32.const 0) (i32.const 0) (i32.const 8))
        (global.set $kept (i64.load (i32.const 0)))
        (i64.store (i32.const 8) (i64.load (i32.const 0)))
        (call $stable_write (i64.const 8) (i64.const 0) (i64.const 8))
        (call $certify (i32.const 0) (i32.const 8)))
    (func $keep_and_grow
        (call $keep)
        (drop (memory.grow (i32.const 3)))
        (drop (call $stable_grow (i64.const 4)))
        (i32.store (i32.const 0x40000) (i32.const 1))
        (call $stable_write (i64.const 0x40000) (i64.const 0) (i64.const 8)))
    (func $show
        (i64.store (i32.const 64) (global.get $kept))
        (i64.store (i32.const 72) (i64.load (i32.const 8)))
        (call $stable_read (i64.const 80) (i64.const 8) (i64.const 8))
        (call $append (i32.const 64) (i32.const 24))
        (call $reply))

    (func (export "canister_update keep") (call $keep) (call $show))
    (func (export "canister_update keep silently") (call $keep))
    (func (export "canister_update keep and trap") (call $keep) (unreachable))
    (func (export "canister_update keep, reply and trap") (call $keep) (call $show) (unreachable))
    (func (export "canister_update grow") (call $keep_and_grow) (call $show))
    (func (export "canister_update grow and trap") (call $keep_and_grow) (unreachable))
    (func $change_and_show
        (call $argument (i32.const 0) (i32.const 0) (i32.const 8))
        (global.set $kept (i64.load (i32.const 0)))
        (i64.store (i32.const 8) (i64.load (i32.const 0)))
        (call $stable_write (i64.const 8) (i64.const 0) (i64.const 8))
        (drop (memory.grow (i32.const 3)))
        (drop (call $stable_grow (i64.const 4)))
        (call $show))
    (func (export "canister_query third page")
        (call $append (i32.const 0x20000) (i32.const 0x10000)) (call $reply))
    (export "canister_query change" (func $change_and_show))
    (export "canister_composite_query change compositely" (func $change_and_show))
    (export "canister_query show" (func $show)))"#;

fn keep(canister: &mut Canister, method: &str, value: u64) -> Execution {
    update(canister, method, &value.to_le_bytes())
}

/// Asserts that the canister keeps `value`, and its sizes.
#[track_caller]
fn keeps(canister: &Canister, value: u64, heap: u64, stable: u64) {
    assert_eq!(numbers(query(canister, "show", &[])), [value; 3]);
    let certified: &[u8] = if value == 0 { &[] } else { &value.to_le_bytes() };
    assert_eq!(canister.certified_data(), certified);
    assert_eq!(canister.heap_size(), WasmPages(heap));
    assert_eq!(canister.stable_size(), WasmPages(stable));
}

#[test]
fn an_update_commits_its_changes() {
    let mut canister = install(KEEPER);
    keeps(&canister, 0, 2, 1);
    assert_eq!(numbers(keep(&mut canister, "keep", 7)), [7; 3]);
    keeps(&canister, 7, 2, 1);
    assert_eq!(numbers(keep(&mut canister, "grow", 8)), [8; 3]);
    keeps(&canister, 8, 5, 5);
}

#[test]
fn a_trap_undoes_everything() {
    let mut canister = install(KEEPER);
    keep(&mut canister, "keep", 7).outcome.unwrap();
    for method in ["keep and trap", "keep, reply and trap", "grow and trap"] {
        let (before, fork) = (canister.balance(), canister.fork());
        let execution = keep(&mut canister, method, 9);
        assert_eq!(code(&execution), ErrorCode::CanisterTrapped, "{method}");
        assert_eq!(canister.balance(), before - execution.cycles, "{method} is charged");
        keeps(&canister, 7, 2, 1);
        keeps(&fork, 7, 2, 1);
    }
    // Growing again does not show the undone content.
    keep(&mut canister, "grow", 8).outcome.unwrap();
    keeps(&canister, 8, 5, 5);
}

#[test]
fn a_message_without_a_reply_commits_its_changes() {
    let mut canister = install(KEEPER);
    let execution = keep(&mut canister, "keep silently", 7);
    assert_eq!(code(&execution), ErrorCode::CanisterDidNotReply);
    keeps(&canister, 7, 2, 1);
}

#[test]
fn a_query_leaves_no_trace() {
    let mut canister = install(KEEPER);
    keep(&mut canister, "keep", 7).outcome.unwrap();
    let balance = canister.balance();
    for method in ["change", "change compositely"] {
        let reply = query(&canister, method, &9_u64.to_le_bytes());
        assert_eq!(numbers(reply), [9; 3], "{method}");
        keeps(&canister, 7, 2, 1);
    }
    assert_eq!(canister.balance(), balance);
    // As an update, a query has no effect either, but is charged.
    let execution = keep(&mut canister, "change", 9);
    assert_eq!(canister.balance(), balance - execution.cycles);
    assert_eq!(numbers(execution), [9; 3]);
    keeps(&canister, 7, 2, 1);
}

#[test]
fn a_query_of_all_is_a_query() {
    let mut canister = install(KEEPER);
    keep(&mut canister, "keep", 7).outcome.unwrap();
    for canister in [&canister, &canister.fork()] {
        let argument = 9_u64.to_le_bytes();
        let one = query(canister, "change", &argument);
        let all = canister.query_all(CALLER, "change", &argument).unwrap();
        assert_eq!((one.instructions, one.outcome), (all.instructions, all.outcome));
        keeps(canister, 7, 2, 1);
    }
}

#[test]
fn forks_do_not_see_each_other() {
    let mut one = install(KEEPER);
    keep(&mut one, "keep", 1).outcome.unwrap();
    let mut two = one.fork();
    keep(&mut one, "keep", 10).outcome.unwrap();
    keeps(&two, 1, 2, 1);
    keep(&mut two, "grow", 20).outcome.unwrap();
    keeps(&one, 10, 2, 1);
    keeps(&two, 20, 5, 5);

    let mut three = two.fork();
    drop(two);
    assert_eq!(code(&keep(&mut three, "grow and trap", 30)), ErrorCode::CanisterTrapped);
    keeps(&three, 20, 5, 5);
    keep(&mut three, "keep", 30).outcome.unwrap();
    keeps(&three, 30, 5, 5);
    keeps(&one, 10, 2, 1);
}

#[test]
fn a_long_chain_of_forks() {
    const GENERATIONS: u64 = 30;
    let mut line = vec![install(KEEPER)];
    for generation in 1..=GENERATIONS {
        let mut child = line.last().unwrap().fork();
        keep(&mut child, "keep", generation).outcome.unwrap();
        line.push(child);
    }
    // Ancestors change too, without effect on their descendants.
    for (generation, canister) in (0..).zip(&mut line) {
        keeps(canister, generation, 2, 1);
        keep(canister, "grow", 1_000 + generation).outcome.unwrap();
    }
    for (generation, canister) in (0..).zip(&line) {
        keeps(canister, 1_000 + generation, 5, 5);
    }
}

/// An idle instance reserves half a terabyte of addresses.
#[test]
fn many_canisters_at_once() {
    let canister = install(KEEPER);
    let mut forks: Vec<Canister> = (0..400).map(|_| canister.fork()).collect();
    for round in 0..2 {
        for (number, fork) in (round..).zip(&mut forks) {
            keep(fork, "keep", number).outcome.unwrap();
        }
    }
    for (number, fork) in (1..).zip(&forks) {
        keeps(fork, number, 2, 1);
    }
}

#[test]
fn forks_are_charged_separately() {
    let mut one = install(KEEPER);
    let mut two = one.fork();
    let first = keep(&mut one, "keep", 7);
    let second = keep(&mut two, "keep", 7);
    assert_eq!(first.instructions, second.instructions);
    assert_eq!((first.charge, first.cycles), (second.charge, second.cycles));
    assert_eq!(one.balance(), two.balance());
}

/// The predicted cost of a query as an update equals the cost of that update.
#[test]
fn the_cost_of_a_query_as_an_update_is_predicted() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile(&wat::parse_str(KEEPER).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        for (method, argument) in
            [("show", &[][..]), ("change", &[7; 8]), ("change", &[]), ("third page", &[1; 300])]
        {
            let query = query(&canister, method, argument);
            let predicted = canister.cycles_as_update(method, argument, &query);
            let update = update(&mut canister.fork(), method, argument);
            assert_eq!((predicted, query.cycles.get()), (update.cycles, 0), "{method}, {rules}");
        }
    }
}

/// In the file stable memory follows the heap, but a grown heap does not show it.
#[test]
fn a_heap_that_grows_after_loading_has_zeros() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let mut canister = install(KEEPER);
    keep(&mut canister, "keep", 7).outcome.unwrap();
    canister.save(&path).unwrap();
    let mut loaded = Replica::new(Rules::of_2025_10(), None).unwrap().load(&path).unwrap();
    for canister in [&mut canister, &mut loaded] {
        keep(canister, "grow", 8).outcome.unwrap();
        assert_eq!(numbers(query(canister, "third page", &[])), [0; 8192]);
    }
}

/// Eight gigabytes of stable memory that are mostly not written take little memory, even with many
/// forks.
#[cfg(target_os = "linux")]
/// A canister that appends a letter to a list in stable memory in each function that the replica
/// calls, and then executes `start`, `init`, `pre` and `post`.
fn diary(version: char, start: &str, init: &str, pre: &str, post: &str) -> String {
    let note = |letter: char| format!("(call $note (i32.const {}))", u32::from(letter));
    format!(
        r#"(module
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "stable64_size" (func $size (result i64)))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (memory 1)
        (global $count (mut i64) (i64.const 0))
        ;; Stable memory: 0 length of the list, 8 the list.
        (func $note (param $letter i32)
            (if (i64.eqz (call $size)) (then (drop (call $grow (i64.const 1)))))
            (global.set $count (i64.add (global.get $count) (i64.const 1)))
            (call $read (i64.const 0) (i64.const 0) (i64.const 8))
            (i32.store (i32.const 8) (local.get $letter))
            (call $write (i64.add (i64.const 8) (i64.load (i32.const 0)))
                (i64.const 8) (i64.const 1))
            (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
            (call $write (i64.const 0) (i64.const 0) (i64.const 8)))
        (func $start {} {start})
        (start $start)
        (func (export "canister_init") {} {init})
        (func (export "canister_pre_upgrade") {} {pre})
        (func (export "canister_post_upgrade") {} {post})
        (func (export "canister_update note") {} (call $reply))
        ;; The number of notes that this module's heap knows of, then the list.
        (func (export "canister_query show")
            (call $read (i64.const 16) (i64.const 0) (i64.const 64))
            (i64.store (i32.const 8) (i64.add (global.get $count) (i64.const 48)))
            (call $append (i32.const 8) (i32.const 1))
            (call $append (i32.const 24) (i32.load (i32.const 16)))
            (call $reply)))"#,
        note('s'),
        note('i'),
        note('<'),
        note('>'),
        note(version.to_ascii_uppercase()),
    )
}

#[track_caller]
fn reads(canister: &Canister, expected: &str) {
    let reply = query(canister, "show", &[]).outcome.unwrap();
    assert_eq!(String::from_utf8(reply).unwrap(), expected);
}

#[test]
fn an_upgrade_keeps_stable_memory_and_drops_the_heap() {
    let mut canister = install(&diary('a', "", "", "", ""));
    reads(&canister, "2si");
    update(&mut canister, "note", &[]).outcome.unwrap();
    reads(&canister, "3siA");
    let module = compile(&diary('b', "", "", "", ""));
    canister.upgrade(&module, CALLER, &[]).unwrap().outcome.unwrap();
    reads(&canister, "2siA<s>");
    assert_eq!(canister.module().unwrap().hash(), module.hash());
    update(&mut canister, "note", &[]).outcome.unwrap();
    reads(&canister, "3siA<s>B");
}

#[test]
fn certified_data_after_upgrades() {
    let mut canister = install(KEEPER);
    keep(&mut canister, "keep", 7).outcome.unwrap();
    let module = compile(KEEPER);
    canister.upgrade(&module, CALLER, &[]).unwrap().outcome.unwrap();
    assert_eq!(canister.certified_data(), 7_u64.to_le_bytes());
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    assert_eq!(canister.certified_data(), b"");
}

#[test]
fn a_reinstall_empties_stable_memory() {
    let mut canister = install(&diary('a', "", "", "", ""));
    update(&mut canister, "note", &[]).outcome.unwrap();
    canister.install(&compile(&diary('b', "", "", "", "")), CALLER, &[]).unwrap().outcome.unwrap();
    reads(&canister, "2si");
    assert_eq!(canister.stable_size(), WasmPages(1));
}

#[test]
fn a_trap_while_installing_undoes_everything() {
    let trap = "(unreachable)";
    let mut canister = install(&diary('a', "", "", "", ""));
    update(&mut canister, "note", &[]).outcome.unwrap();
    let hash = canister.module().unwrap().hash();
    let (balance, mut paid) = (canister.balance().get(), 0);

    let in_start = compile(&diary('b', trap, "", "", ""));
    let in_init = compile(&diary('b', "", trap, "", ""));
    let in_post = compile(&diary('b', "", "", "", trap));
    for (name, failed) in [
        ("start", canister.install(&in_start, CALLER, &[]).unwrap()),
        ("canister_init", canister.install(&in_init, CALLER, &[]).unwrap()),
        ("start, upgrading", canister.upgrade(&in_start, CALLER, &[]).unwrap()),
        ("canister_post_upgrade", canister.upgrade(&in_post, CALLER, &[]).unwrap()),
    ] {
        assert_eq!(code(&failed), ErrorCode::CanisterTrapped, "{name}");
        // The executed instructions are paid for, with the fee of a message.
        let cycles = failed.cycles.get();
        assert_eq!(cycles, 5_000_000 + u128::from(failed.charge.get()), "{name}");
        paid += cycles;
        reads(&canister, "3siA");
        assert_eq!(canister.module().unwrap().hash(), hash, "{name}");
    }
    assert_eq!(balance - canister.balance().get(), paid);
    update(&mut canister, "note", &[]).outcome.unwrap();
    reads(&canister, "4siAA");
}

#[test]
fn a_trap_before_an_upgrade_leaves_the_old_module() {
    let mut canister = install(&diary('a', "", "", "(unreachable)", ""));
    let failed = canister.upgrade(&compile(&diary('b', "", "", "", "")), CALLER, &[]).unwrap();
    assert_eq!(code(&failed), ErrorCode::CanisterTrapped);
    reads(&canister, "2si");
    update(&mut canister, "note", &[]).outcome.unwrap();
    reads(&canister, "3siA");
    // Reinstalling does not run the old module.
    canister.install(&compile(&diary('b', "", "", "", "")), CALLER, &[]).unwrap().outcome.unwrap();
    reads(&canister, "2si");
}

/// Modules that cannot be installed, with the messages of the real replica.
#[test]
fn refused_modules() {
    let refused = [
        (
            r#"(module (import "ic0" "teleport" (func)))"#,
            ErrorCode::CanisterInvalidWasm,
            "Canister's Wasm module is not valid: Wasm module has an invalid import section. \
             Module imports function 'teleport' from 'ic0' that is not exported by the runtime.",
        ),
        (
            r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#,
            ErrorCode::CanisterInvalidWasm,
            "Canister's Wasm module is not valid: Wasm module has an invalid import section. \
             Module imports function 'fd_write' from 'wasi_snapshot_preview1' that is not \
             exported by the runtime.",
        ),
        (
            "(module (table 1 funcref) (table 1 funcref))",
            ErrorCode::CanisterWasmEngineError,
            "Canister encountered a Wasm engine error: Failed to instantiate module: resource \
             limit exceeded: table count too high at 2",
        ),
        (
            r#"(module (func (export "canister_start")))"#,
            ErrorCode::CanisterInvalidWasm,
            "Canister's Wasm module is not valid: Wasm module has an invalid export section. \
             Exporting reserved symbol canister_start not allowed.",
        ),
        (
            "(module (memory 1) (memory 1))",
            ErrorCode::CanisterInvalidWasm,
            "Canister's Wasm module is not valid: Wasmtime failed to validate wasm module \
             wasmtime::Module::validate() failed with multiple memories (at offset 0xa)",
        ),
        (
            "(module (func (result i32)))",
            ErrorCode::CanisterInvalidWasm,
            "Canister's Wasm module is not valid: Wasmtime failed to validate wasm module \
             wasmtime::Module::validate() failed with type mismatch: expected i32 but nothing \
             on stack",
        ),
    ];
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let id = replica.create_canister().unwrap().id();
    for (wat, code, words) in refused {
        let reject = replica.compile(&wat::parse_str(wat).unwrap()).unwrap_err();
        assert_eq!(reject.code, code, "{wat}");
        let expected = format!("Error from Canister {id}: {words}");
        assert!(reject.message.starts_with(&expected), "{}\n{expected}", reject.message);
    }
}

#[test]
fn a_trap_at_install_leaves_no_module() {
    for wat in [
        "(module (func unreachable) (start 0))",
        r#"(module (func (export "canister_init") unreachable))"#,
    ] {
        let mut canister =
            Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
        let failed = canister.install(&compile(wat), CALLER, &[]).unwrap();
        assert_eq!(code(&failed), ErrorCode::CanisterTrapped);
        let message = failed.outcome.unwrap_err().message;
        assert!(message.contains("Canister trapped: unreachable"), "{message}");
        assert!(canister.module().is_none());
    }
}

#[test]
fn replying_at_install_is_a_violation() {
    let wat = r#"(module (import "ic0" "msg_reply" (func $reply))
        (func (export "canister_init") (call $reply)))"#;
    let mut canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
    let failed = canister.install(&compile(wat), CALLER, &[]).unwrap();
    assert_eq!(code(&failed), ErrorCode::CanisterContractViolation);
}

#[test]
fn a_canister_without_a_module_rejects_messages() {
    let mut canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
    let expected = ErrorCode::CanisterWasmModuleNotFound;
    assert_eq!(code(&update(&mut canister, "any", &[])), expected);
    assert_eq!(code(&query(&canister, "any", &[])), expected);
    let module = compile("(module)");
    assert_eq!(code(&canister.upgrade(&module, CALLER, &[]).unwrap()), expected);
}

#[test]
fn methods_are_called_by_their_kind() {
    let mut canister = install(KEEPER);
    let expected = ErrorCode::CanisterMethodNotFound;
    assert_eq!(code(&query(&canister, "keep", &[])), expected);
    assert_eq!(code(&query(&canister, "keeps", &[])), expected);
    assert_eq!(code(&update(&mut canister, "keeps", &[])), expected);
    let composite = update(&mut canister, "change compositely", &[0; 8]);
    assert_eq!(code(&composite), ErrorCode::CompositeQueryCalledInReplicatedMode);
}

#[test]
fn a_gzipped_module_installs() {
    let plain = wat::parse_str(KEEPER).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&plain).unwrap();
    let gzipped = gzip.finish().unwrap();
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let (plain, gzipped) = (replica.compile(&plain).unwrap(), replica.compile(&gzipped).unwrap());
    assert_ne!(plain.hash(), gzipped.hash(), "the hash is that of the upload");
    assert_eq!(plain.info(), gzipped.info());
    let mut canister = replica.create_canister().unwrap();
    canister.install(&gzipped, CALLER, &[]).unwrap().outcome.unwrap();
    keep(&mut canister, "keep", 7).outcome.unwrap();
    keeps(&canister, 7, 2, 1);
}

/// `start`, `canister_init` and each message start with a new counter; `start` runs first.
#[test]
fn each_function_starts_with_a_new_counter() {
    let mut canister = install(
        r#"(module
        (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (global $at (mut i32) (i32.const 0))
        (func $keep (param i64)
            (i64.store (global.get $at) (local.get 0))
            (global.set $at (i32.add (global.get $at) (i32.const 8))))
        (func $start (call $keep (call $counter (i32.const 0))) (nop))
        (start $start)
        (func (export "canister_init") (call $keep (call $counter (i32.const 0))))
        (func (export "canister_update go")
            (call $keep (call $counter (i32.const 1)))
            (call $append (i32.const 0) (global.get $at)) (call $reply)))"#,
    );
    // The function, a constant, two calls, and the price of the counter.
    let read = 1 + 1 + 5 + 5 + 200;
    let (start, init) = (read + 1, read);
    // The message's run also contains a constant, `global.get` and two calls.
    let message = read + 1 + 2 + 5 + 5;
    assert_eq!(numbers(update(&mut canister, "go", &[])), [start, init, message]);
    assert_eq!(numbers(update(&mut canister, "go", &[])), [start, init, message, message]);
}

/// System API calls that the network has had since 2026. Ingress messages carry no caller
/// information.
#[test]
fn system_calls_of_2026() {
    let wat = r#"(module
        (import "ic0" "msg_caller_info_data_size" (func $data (result i32)))
        (import "ic0" "msg_caller_info_signer_size" (func $signer (result i32)))
        (import "ic0" "msg_caller_info_data_copy" (func $copy (param i32 i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func (export "canister_update sizes")
            (if (i32.or (call $data) (call $signer)) (then unreachable))
            (call $copy (i32.const 0) (i32.const 0) (i32.const 0)) (call $reply))
        (func (export "canister_update copy")
            (call $copy (i32.const 0) (i32.const 0) (i32.const 1)) (call $reply)))"#;
    let wasm = wat::parse_str(wat).unwrap();
    let rules = Rules::of_2026_08();
    let replica = Replica::new(rules, None).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let module = replica.compile(&wasm).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    update(&mut canister, "sizes", &[]).outcome.unwrap();
    let words = "Canister violated contract: ic0.msg_caller_info_data_copy info: src=0 + length=1 \
                 exceeds the slice size=0";
    rejected(&update(&mut canister, "copy", &[]), ErrorCode::CanisterContractViolation, words);
    let older = Replica::new(Rules::of_2025_10(), None).unwrap();
    let refusal = older.compile(&wasm).unwrap_err().message;
    assert!(refusal.contains("'msg_caller_info_data_size' from 'ic0' that is not exported"));
    let outcall = r#"(module (import "ic0" "cost_http_request_v2" (func (param i32 i32 i32))))"#;
    let outcall = wat::parse_str(outcall).unwrap();
    // The import exists, but a message that calls it fails.
    replica.compile(&outcall).unwrap();
    let refusal = older.compile(&outcall).unwrap_err().message;
    assert!(
        refusal.contains("'cost_http_request_v2' from 'ic0' that is not exported"),
        "{refusal}"
    );
}

/// A module without the section cannot keep its heap, and one with it must say whether it stays.
#[test]
fn an_upgrade_keeps_the_heap_of_modules_with_enhanced_persistence() {
    let name = "icp:private enhanced-orthogonal-persistence";
    let section = [&[0, name.len() as u8 + 1, name.len() as u8], name.as_bytes()].concat();
    let plain = wat::parse_str(KEEPER).unwrap();
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    for (wasm, persists) in [(plain.clone(), false), ([plain, section].concat(), true)] {
        let module = replica.compile(&wasm).unwrap();
        assert_eq!(module.has_enhanced_persistence(), persists);
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        keep(&mut canister, "keep", 7).outcome.unwrap();
        let kept = canister.upgrade_keeping_heap(&module, CALLER, &[]).unwrap();
        let emptied = canister.upgrade(&module, CALLER, &[]).unwrap();
        assert_eq!((kept.outcome.is_ok(), emptied.outcome.is_ok()), (persists, !persists));
        // A global starts again in either case.
        let heap = if persists { 7 } else { 0 };
        assert_eq!(numbers(query(&canister, "show", &[])), [0, heap, 7]);
    }
}

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
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        let update = canister.update(CALLER, "count", &[]).unwrap().outcome.unwrap();
        let query = canister.query(CALLER, "ask", &[]).unwrap().outcome.unwrap();
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
    let reject = canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap_err();
    let words = "\"ic0_subnet_self_node_count\" cannot be executed in start mode";
    assert!(reject.message.contains(words), "{reject}");
}
