//! Modules of any content: bytes as an upload, and valid modules that call the System API.
//!
//! Of each module's messages, only those that succeed change the state, a fork does the same at the
//! same price, and charges are within limits.

use std::io::Write;
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use stablebench_replica::{Canister, ErrorCode, Execution, MethodKind, Module, Reject};

use super::bounded::{damaged, met};
use super::content::{CALLER, Content, replica};

const UPDATE: u64 = 40_000_000_000;
const QUERY: u64 = 5_000_000_000;
const INSTALL: u64 = 300_000_000_000;

/// Compares executions except for their duration and the number of pages written without a change.
#[track_caller]
pub fn same(one: &Execution, other: &Execution) {
    assert_eq!(one.outcome, other.outcome);
    assert_eq!(one.instructions, other.instructions);
    assert_eq!((one.charge, one.cycles), (other.charge, other.cycles));
    assert_eq!(one.stable_calls, other.stable_calls);
    let pages = |execution: &Execution| {
        let memory = execution.memory;
        (memory.heap_changed, memory.stable_written, memory.stable_accessed)
    };
    assert_eq!(pages(one), pages(other));
    let sizes = |execution: &Execution| (execution.memory.heap, execution.memory.stable);
    assert_eq!(sizes(one), sizes(other));
    assert_eq!(one.printed, other.printed);
}

#[track_caller]
fn within(execution: &Execution, limit: u64) {
    assert!(execution.charge.get() <= limit, "{} of {limit}", execution.charge);
    assert!(execution.charge.get() >= execution.instructions.get().min(limit));
    let memory = &execution.memory;
    assert!(memory.stable_written <= memory.stable_accessed);
    match &execution.outcome {
        Ok(reply) => {
            assert!(reply.len() <= 3 << 20);
            // The counter is not checked at the end of a function.
            assert!(execution.instructions.get() <= limit + 1_000_000);
        }
        Err(reject) => assert!(reject.message.len() <= 3 << 20),
    }
    let printed = execution.printed.iter().map(|text| text.len() + 40);
    assert!(printed.sum::<usize>() <= 2 << 20);
}

/// Installs a module into an empty canister and calls its methods in turn.
pub fn exercise(target: &'static str, module: &Module, argument: &[u8], messages: usize) {
    let mut canister = replica().create_canister().unwrap();
    let before = canister.balance();
    let installed = canister.install(module, CALLER, argument).unwrap();
    within(&installed, INSTALL);
    assert_eq!(canister.balance(), before - installed.cycles);
    met(target, if installed.outcome.is_ok() { "installed" } else { "not installed" });
    if installed.outcome.is_err() {
        assert!(canister.module().is_none());
        assert_eq!((canister.heap_size().get(), canister.stable_size().get()), (0, 0));
        assert!(canister.certified_data().is_empty());
        return;
    }
    for method in module.info().methods.iter().cycle().take(messages) {
        match method.kind {
            MethodKind::Update => update(target, &mut canister, &method.name, argument),
            MethodKind::Query => {
                query(target, &canister, &method.name, argument);
                update(target, &mut canister, &method.name, argument);
            }
            MethodKind::CompositeQuery => {
                query(target, &canister, &method.name, argument);
                let refused = canister.update(CALLER, &method.name, argument).unwrap();
                assert!(refused.outcome.is_err());
            }
        }
    }
    upgrade(target, &mut canister, module, argument);
}

fn update(target: &'static str, canister: &mut Canister, method: &str, argument: &[u8]) {
    let before = Content::of(canister);
    let mut fork = canister.fork();
    let execution = canister.update(CALLER, method, argument).unwrap();
    let again = fork.update(CALLER, method, argument).unwrap();
    same(&execution, &again);
    within(&execution, UPDATE);

    let after = Content::of(canister);
    assert_eq!(after, Content::of(&fork));
    assert_eq!(before.balance - after.balance, execution.cycles.get());
    // A message that is not inducted costs nothing and does not advance the time.
    let inducted = after.time > before.time;
    assert_eq!(inducted, execution.cycles.get() > 0);
    let kept = match &execution.outcome {
        Ok(_) => true,
        Err(reject) => {
            inducted
                && matches!(
                    reject.code,
                    ErrorCode::CanisterDidNotReply | ErrorCode::CanisterRejectedMessage
                )
        }
    };
    met(target, if kept { "kept" } else { "undone" });
    assert_eq!(after.version, before.version + u64::from(kept));
    let is_query = canister.module().is_some_and(|module| {
        let mut methods = module.info().methods.iter();
        methods.any(|found| found.name == method && found.kind == MethodKind::Query)
    });
    if !kept || is_query {
        assert_eq!(after.kept(), before.kept());
    } else if after.kept() != before.kept() {
        met(target, "changed");
    }
}

fn query(target: &'static str, canister: &Canister, method: &str, argument: &[u8]) {
    let before = Content::of(canister);
    let execution = canister.query(CALLER, method, argument).unwrap();
    within(&execution, QUERY);
    met(target, if execution.outcome.is_ok() { "answered" } else { "not answered" });
    assert_eq!(execution.cycles.get(), 0);
    assert_eq!(Content::of(canister), before);
    same(&execution, &canister.fork().query(CALLER, method, argument).unwrap());
    same(&execution, &canister.query_all(CALLER, method, argument).unwrap());
}

fn upgrade(target: &'static str, canister: &mut Canister, module: &Module, argument: &[u8]) {
    let before = Content::of(canister);
    let mut fork = canister.fork();
    let execution = canister.upgrade(module, CALLER, argument).unwrap();
    within(&execution, INSTALL);
    same(&execution, &fork.upgrade(module, CALLER, argument).unwrap());
    let after = Content::of(canister);
    assert_eq!(after, Content::of(&fork));
    assert_eq!(before.balance - after.balance, execution.cycles.get());
    met(target, if execution.outcome.is_ok() { "upgraded" } else { "not upgraded" });
    if execution.outcome.is_err() {
        assert_eq!(after.kept(), before.kept());
        assert_eq!(after.version, before.version);
    }
}

const ARBITRARY: &str = "arbitrary_module";

/// Small modules with every section, to be damaged.
const WHOLE: &[&str] = &[
    r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "stable_read" (func $read (param i32 i32 i32)))
        (import "ic0" "debug_print" (func $print (param i32 i32)))
        (memory (export "memory") 1 4) (table (export "table") 4 8 funcref)
        (elem (i32.const 1) func $f) (elem declare func $f)
        (global $g (mut i64) (i64.const 7)) (global f64 (f64.const 1))
        (func $f (local f32)
            (block (br_table 0 0 0 (i32.const 1)))
            (if (i64.eqz (global.get $g)) (then (memory.copy
                (i32.const 0) (i32.const 0) (i32.const 9))))
            (global.set $g (i64.add (global.get $g) (i64.const 1))))
        (start $f)
        (func (export "canister_init") (drop (call $grow (i64.const 1))))
        (func (export "canister_update a")
            (call_indirect (i32.const 1))
            (call $write (i64.const 65528) (i64.const 16) (i64.const 8))
            (call $print (i32.const 16) (i32.const 3))
            (call $append (i32.const 0) (i32.const 64)) (call $reply))
        (func (export "canister_query b")
            (call $read (i32.const 0) (i32.const 65528) (i32.const 8))
            (drop (memory.grow (i32.const 1)))
            (call $append (i32.const 0) (i32.const 64)) (call $reply))
        (data (i32.const 16) "abc") (data "passive"))"#,
    r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (memory i64 1 4)
        (global (mut v128) (v128.const i64x2 1 2))
        (func $g (param i32 f64) (result i64) (i64.trunc_sat_f64_u (local.get 1)))
        (func (export "canister_update a")
            (i64.store (i64.const 8) (call $g (i32.const 1) (f64.const 1e10)))
            (global.set 0 (i8x16.swizzle (global.get 0) (v128.load (i64.const 0))))
            (memory.fill (i64.const 100) (i32.const 1) (i64.const 100))
            (call $reply))
        (func (export "canister_composite_query c")
            (call $read (i64.const 0) (i64.const 0) (i64.const 0)) (call $reply))
        (func (export "canister_pre_upgrade") (drop (memory.grow (i64.const 1))))
        (func (export "canister_post_upgrade") unreachable)
        (func (export "canister_inspect_message") nop))"#,
];

fn whole() -> &'static [Vec<u8>] {
    static WASM: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    WASM.get_or_init(|| WHOLE.iter().map(|wat| wat::parse_str(wat).expect("a module")).collect())
}

/// Uses the bytes as an upload, after a header, gzipped, or as changes to a module.
pub fn arbitrary_module(bytes: &[u8]) {
    // Modules from a corpus are used unchanged.
    if bytes.starts_with(b"\0asm") || bytes.starts_with(b"\x1f\x8b") {
        return upload(bytes);
    }
    // Bytes that are too short for an input are ignored.
    let _ = shaped(&mut Unstructured::new(bytes));
}

fn shaped(input: &mut Unstructured<'_>) -> Result<()> {
    match input.int_in_range(0..=5)? {
        0 => upload(input.bytes(input.len())?),
        1 => upload(&[b"\0asm\x01\0\0\0", input.bytes(input.len())?].concat()),
        2 => upload(&gzip(input.bytes(input.len())?)),
        3 => {
            let damaged = damaged(&gzip(input.choose(whole())?), 8, input)?;
            upload(&damaged);
        }
        _ => {
            let damaged = damaged(input.choose(whole())?, 8, input)?;
            upload(&damaged);
        }
    }
    Ok(())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fn upload(bytes: &[u8]) {
    match replica().compile(bytes) {
        Ok(module) => {
            assert_eq!(module.uploaded(), bytes);
            if ends_soon(&module) {
                exercise(ARBITRARY, &module, &bytes[..bytes.len().min(40)], 6);
            }
        }
        Err(reject) => {
            met(ARBITRARY, "refused");
            let expected = [ErrorCode::CanisterInvalidWasm, ErrorCode::CanisterWasmEngineError];
            assert!(expected.contains(&reject.code), "{reject}");
            assert!(reject.message.starts_with("Error from Canister "), "{reject}");
        }
    }
}

/// Returns true if the module has neither loops nor tail calls. Those may use up the instructions of
/// a message, which takes long; other tests cover that.
fn ends_soon(module: &Module) -> bool {
    use wasmparser::{Operator, Parser, Payload};
    let repeats = |operator: &Operator<'_>| {
        matches!(
            operator,
            Operator::Loop { .. }
                | Operator::ReturnCall { .. }
                | Operator::ReturnCallIndirect { .. }
        )
    };
    let mut operators = 0;
    let loops = Parser::new(0).parse_all(&module.wasm()).any(|payload| match payload {
        Ok(Payload::CodeSectionEntry(body)) => {
            let mut reader = body.get_operators_reader().expect("a valid body");
            operators += body.range().len();
            std::iter::from_fn(|| reader.read().ok()).any(|operator| repeats(&operator))
        }
        _ => false,
    });
    !loops && operators < 100_000 && module.info().initial_pages.get() <= 256
}

const GENERATED: &str = "generated_module";

/// Function calls and loop iterations of a canister, after which every message traps.
const FUEL: u32 = 2_000;
const MAX_HEAP: u64 = 8 << 16;

/// Imports; `P` is replaced by the type of addresses.
const CALLS: &str = r#"(module
    (import "ic0" "accept_message" (func))
    (import "ic0" "canister_cycle_balance" (func (result i64)))
    (import "ic0" "canister_self_copy" (func (param P P P)))
    (import "ic0" "canister_version" (func (result i64)))
    (import "ic0" "certified_data_set" (func (param P P)))
    (import "ic0" "cycles_burn128" (func (param i64 i64 P)))
    (import "ic0" "debug_print" (func (param P P)))
    (import "ic0" "env_var_name_exists" (func (param P P) (result i32)))
    (import "ic0" "global_timer_set" (func (param i64) (result i64)))
    (import "ic0" "in_replicated_execution" (func (result i32)))
    (import "ic0" "is_controller" (func (param P P) (result i32)))
    (import "ic0" "msg_arg_data_copy" (func (param P P P)))
    (import "ic0" "msg_arg_data_size" (func (result P)))
    (import "ic0" "msg_caller_copy" (func (param P P P)))
    (import "ic0" "msg_reject" (func (param P P)))
    (import "ic0" "msg_reply" (func))
    (import "ic0" "msg_reply_data_append" (func (param P P)))
    (import "ic0" "performance_counter" (func (param i32) (result i64)))
    (import "ic0" "stable64_grow" (func (param i64) (result i64)))
    (import "ic0" "stable64_read" (func (param i64 i64 i64)))
    (import "ic0" "stable64_size" (func (result i64)))
    (import "ic0" "stable64_write" (func (param i64 i64 i64)))
    (import "ic0" "time" (func (result i64)))
    (import "ic0" "trap" (func (param P P)))
    ONLY_32_BIT)"#;
const ONLY_32_BIT: &str = r#"
    (import "ic0" "stable_grow" (func (param i32) (result i32)))
    (import "ic0" "stable_read" (func (param i32 i32 i32)))
    (import "ic0" "stable_size" (func (result i32)))
    (import "ic0" "stable_write" (func (param i32 i32 i32)))"#;

const METHODS: &str = r#"(func (export "canister_update a")) (func (export "canister_update b"))
    (func (export "canister_query c")) (func (export "canister_composite_query d"))"#;
const HOOKS: &[&str] = &[
    "",
    r#"(func (export "canister_init"))"#,
    r#"(func (export "canister_pre_upgrade")) (func (export "canister_post_upgrade"))"#,
    r#"(func (export "canister_inspect_message"))"#,
];

/// A module that describes imports or exports, parsed once.
struct Shapes {
    imports: [Vec<u8>; 2],
    exports: Vec<Vec<u8>>,
}

fn shapes() -> &'static Shapes {
    static SHAPES: OnceLock<Shapes> = OnceLock::new();
    let parse = |wat: &str| wat::parse_str(wat).expect("a module");
    SHAPES.get_or_init(|| Shapes {
        imports: [("i32", ONLY_32_BIT), ("i64", "")].map(|(address, only)| {
            parse(&CALLS.replace('P', address).replace("ONLY_32_BIT", only))
        }),
        exports: HOOKS.iter().map(|hooks| parse(&format!("(module {METHODS} {hooks})"))).collect(),
    })
}

/// Generates a terminating module with System API imports and exports.
pub fn generated_module(bytes: &[u8]) {
    // Bytes that are too short for an input are ignored.
    let _ = generate(&mut Unstructured::new(bytes));
}

fn generate(input: &mut Unstructured<'_>) -> Result<()> {
    let wide = input.ratio(1, 4)?;
    let config = wasm_smith::Config {
        available_imports: Some(shapes().imports[usize::from(wide)].clone()),
        exports: Some(input.choose(&shapes().exports)?.clone()),
        allow_start_export: input.ratio(1, 4)?,
        min_imports: 4,
        max_imports: 30,
        max_tags: 0,
        min_memories: 1,
        max_memory32_bytes: MAX_HEAP,
        max_memory64_bytes: u128::from(MAX_HEAP),
        memory_max_size_required: true,
        max_instructions: 400,
        max_table_elements: 1_000,
        // Globals of references are refused, and operators that change tables.
        reference_types_enabled: input.ratio(1, 8)?,
        memory64_enabled: wide,
        exceptions_enabled: false,
        gc_enabled: false,
        relaxed_simd_enabled: false,
        threads_enabled: false,
        extended_const_enabled: false,
        ..wasm_smith::Config::default()
    };
    let argument = input.bytes(8)?;
    let mut module = wasm_smith::Module::new(config, input)?;
    if module.ensure_termination(FUEL).is_err() {
        return Ok(());
    }
    let wasm = module.to_bytes();
    match replica().compile(&wasm) {
        Ok(module) => {
            exercise(GENERATED, &module, argument, 5);
        }
        Err(reject) => {
            met(GENERATED, "refused");
            refused_by_a_rule(&reject);
        }
    }
    Ok(())
}

/// A module that passes validation must be instrumented and compiled, unless it uses `externref`:
/// the engine is built without garbage collection.
fn refused_by_a_rule(reject: &Reject) {
    const RULES: &[&str] = &[
        "Wasm module is not valid: ",
        "Wasm module has invalid data segment",
        "undefined element: out of bounds table access",
        "gc types are disallowed",
    ];
    let rule = RULES.iter().any(|rule| reject.message.contains(rule));
    assert!(rule, "{reject}");
}
