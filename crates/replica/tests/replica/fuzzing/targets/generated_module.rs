//! Valid modules that call the System API.

use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use stablebench_replica::Reject;

use super::{met, properties, replica};

const NAME: &str = "generated_module";

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
            properties::exercise(NAME, &module, argument, 5);
        }
        Err(reject) => {
            met(NAME, "refused");
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
