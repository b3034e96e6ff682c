//! Refusals in the words of the real replica, and the properties of valid modules.

mod limits;

use super::*;
use crate::fault::ErrorCode;

/// The rules under which the refusals were recorded.
const RULES: Rules = Rules::of_2025_10();

const IMPORT: &str = "Wasm module has an invalid import section.";
const SIGNATURE: &str = "Wasm module has an invalid function signature.";
const EXPORT: &str = "Wasm module has an invalid export section.";
const WASM: &str =
    "Wasmtime failed to validate wasm module wasmtime::Module::validate() failed with";

fn wasm(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"))
}

fn validate(wasm: &[u8], rules: Rules) -> Result<ModuleInfo, Refusal> {
    validate_for(Purpose::Everything, wasm, rules)
}

fn validate_for(purpose: Purpose, wasm: &[u8], rules: Rules) -> Result<ModuleInfo, Refusal> {
    super::validate(wasm, rules, purpose)
}

fn accept(wat: &str) -> ModuleInfo {
    validate(&wasm(wat), RULES).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The code and the message without full stops at the end.
fn refusal(wasm: &[u8]) -> (ErrorCode, String) {
    let refusal = validate(wasm, RULES).expect_err("the module breaks a rule");
    (refusal.code, refusal.message.trim_end_matches('.').to_owned())
}

/// Asserts that a module breaks a rule of the Internet Computer, with this message.
fn refuse(wat: &str, words: &str) {
    let expected = format!("Canister's Wasm module is not valid: {words}");
    assert_eq!(refusal(&wasm(wat)), (ErrorCode::CanisterInvalidWasm, expected), "{wat}");
}

/// Asserts that the engine refuses a module, with this message.
fn refuse_in_engine(wat: &str, words: &str) {
    let place = "Canister encountered a Wasm engine error: Failed to instantiate module";
    let expected = (ErrorCode::CanisterWasmEngineError, format!("{place}: {words}"));
    assert_eq!(refusal(&wasm(wat)), expected, "{wat}");
}

/// Appends a section to a module; `content` must be shorter than 2^28 bytes.
fn push_section(module: &mut Vec<u8>, id: u8, content: &[u8]) {
    module.push(id);
    module.extend(leb(content.len()));
    module.extend(content);
}

fn push_custom(module: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut section = leb(name.len());
    section.extend(name.as_bytes());
    section.extend(content);
    push_section(module, 0, &section);
}

/// An unsigned number in LEB128.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

// Refusals recorded on a PocketIC server 10.

#[test]
fn unsupported_table_operators() {
    let operators = [
        ("table.set", "(table.set 0 (i32.const 0) (ref.null func))"),
        ("table.grow", "(drop (table.grow 0 (ref.null func) (i32.const 1)))"),
        ("table.fill", "(table.fill 0 (i32.const 0) (ref.null func) (i32.const 1))"),
        ("table.copy", "(table.copy 0 0 (i32.const 0) (i32.const 0) (i32.const 1))"),
        ("table.init", "(table.init 0 0 (i32.const 0) (i32.const 0) (i32.const 1))"),
    ];
    for (name, code) in operators {
        let wat = format!(
            r#"(module
                (import "ic0" "performance_counter" (func (param i32) (result i64)))
                (import "ic0" "msg_reply_data_append" (func (param i32 i32)))
                (import "ic0" "msg_reply" (func))
                (table 8 funcref) (elem func 3)
                (func) (func) (func)
                (func (export "canister_update m") {code}))"#
        );
        let words = "Wasm module contains a function at index 6 with unsupported instruction";
        refuse(&wat, &format!("{words} {name}"));
    }
}

#[test]
fn two_tables() {
    refuse_in_engine(
        "(module (table 1 funcref) (table 1 funcref))",
        "resource limit exceeded: table count too high at 2",
    );
}

#[test]
fn imported_memory() {
    refuse_in_engine(
        r#"(module (import "env" "memory" (memory 1)))"#,
        "unknown import: `env::memory` has not been defined",
    );
}

#[test]
fn unknown_import() {
    refuse(
        r#"(module (import "ic0" "teleport" (func)))"#,
        "Wasm module has an invalid import section. Module imports function 'teleport' from \
         'ic0' that is not exported by the runtime",
    );
}

#[test]
fn import_from_another_module() {
    refuse(
        r#"(module (import "wasi_snapshot_preview1" "fd_write"
            (func (param i32 i32 i32 i32) (result i32))))"#,
        "Wasm module has an invalid import section. Module imports function 'fd_write' from \
         'wasi_snapshot_preview1' that is not exported by the runtime",
    );
}

#[test]
fn two_memories() {
    refuse(
        "(module (memory 1) (memory 1))",
        "Wasmtime failed to validate wasm module wasmtime::Module::validate() failed with \
         multiple memories (at offset 0xa)",
    );
}

#[test]
fn reserved_export() {
    refuse(
        r#"(module (func) (export "canister_start" (func 0)))"#,
        "Wasm module has an invalid export section. Exporting reserved symbol canister_start \
         not allowed",
    );
}

#[test]
fn unknown_export_with_the_reserved_prefix() {
    refuse(
        r#"(module (func) (export "canister_foo x" (func 0)))"#,
        "Wasm module has an invalid export section. Exporting reserved function \
         'canister_foo x' with \"canister_\" prefix",
    );
}

#[test]
fn one_name_for_two_methods() {
    refuse(
        r#"(module (func) (export "canister_update a" (func 0))
            (export "canister_query a" (func 0)))"#,
        "Duplicate function 'a' exported multiple times with different call types: update, \
         query, or composite_query",
    );
}

#[test]
fn functions_that_trap_at_install_are_valid() {
    assert_eq!(accept("(module (func unreachable) (start 0))").start, Some(0));
    let info = accept(r#"(module (func unreachable) (export "canister_init" (func 0)))"#);
    assert!(info.has(EntryPoint::Init));
}

// Rules without a limit, worded after the replica's source.

#[test]
fn exports_and_imports_of_a_valid_module() {
    let info = accept(
        r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "stable64_grow" (func (param i64) (result i64)))
            (memory (export "memory") 3)
            (func $f (drop (i32.add (i32.const 1) (i32.const 2))))
            (start $f)
            (export "canister_init" (func $f))
            (export "canister_post_upgrade" (func $f))
            (export "canister_query q" (func $f))
            (export "canister_update  two words" (func $f))
            (export "canister_composite_query " (func $reply))
            (export "helper" (func $f))
            (export "canister_anything" (global 0))
            (global i32 (i32.const 0)))"#,
    );
    let method = |kind, name: &str, function| Method { kind, name: name.into(), function };
    assert_eq!(
        info,
        ModuleInfo {
            methods: vec![
                method(MethodKind::Query, "q", 2),
                method(MethodKind::Update, " two words", 2),
                method(MethodKind::CompositeQuery, "", 0),
            ],
            entry_points: vec![EntryPoint::Init, EntryPoint::PostUpgrade],
            start: Some(2),
            imports: vec![SystemCall::MsgReply, SystemCall::Stable64Grow],
            address_width: AddressWidth::Bits32,
            initial_pages: WasmPages(3),
            custom_sections: BTreeMap::new(),
            // Two constants, add, drop, end.
            operators: 5,
        }
    );
    assert!(!info.has(EntryPoint::PreUpgrade));
}

#[test]
fn the_empty_module_is_valid() {
    let info = accept("(module)");
    assert_eq!((info.initial_pages, info.operators), (WasmPages(0), 0));
}

#[test]
fn every_system_call_can_be_imported_with_its_signature() {
    for &call in SystemCall::ALL {
        for width in [AddressWidth::Bits32, AddressWidth::Bits64] {
            let wat = import_of(call, width, "");
            match validate(&wasm(&wat), Rules::today()) {
                Ok(info) => {
                    assert_eq!(info.imports, [call]);
                    assert_eq!(info.address_width, width);
                }
                Err(Refusal { message, .. }) => {
                    assert!(width == AddressWidth::Bits64 && call.signature().only_32_bit);
                    assert!(message.contains("that is not exported by the runtime"), "{message}");
                }
            }
        }
    }
}

#[test]
fn no_system_call_can_be_imported_with_one_parameter_more() {
    for &call in SystemCall::ALL {
        let wasm = wasm(&import_of(call, AddressWidth::Bits32, "(param f32)"));
        let Refusal { code, message: words } =
            validate(&wasm, Rules::today()).expect_err("one parameter more");
        let words = words.trim_end_matches('.');
        assert_eq!(code, ErrorCode::CanisterInvalidWasm);
        let named = format!("for '{}', got [", call.name());
        assert!(words.contains("Expected input params [") && words.contains(&named), "{words}");
        assert!(words.ends_with("F32]"), "{words}");
    }
}

fn import_of(call: SystemCall, width: AddressWidth, more: &str) -> String {
    let types = |types: &[crate::system_api::functions::Type]| -> String {
        types.iter().map(|ty| format!("{} ", ty.val_type(width))).collect()
    };
    let memory = if width == AddressWidth::Bits64 { "(memory i64 1)" } else { "" };
    let signature = call.signature();
    format!(
        r#"(module (import "ic0" "{}" (func (param {}) {more} (result {}))) {memory})"#,
        signature.name,
        types(signature.params),
        types(signature.results),
    )
}

#[test]
fn imports_of_the_wrong_shape() {
    let refuse_import = |import: &str, words: &str| {
        refuse(&format!("(module (import {import}))"), words);
    };
    refuse_import(
        r#""ic0" "msg_reply" (func (result i32))"#,
        &format!("{SIGNATURE} Expected return type [] for 'msg_reply', got [I32]"),
    );
    refuse_import(
        r#""ic0" "stable64_read" (func (param i64 i32 i64))"#,
        &format!(
            "{SIGNATURE} Expected input params [I64, I64, I64] for 'stable64_read', \
             got [I64, I32, I64]"
        ),
    );
    refuse_import(
        r#""ic0" "msg_reply" (func (param f32 f64 v128 funcref externref))"#,
        &format!(
            "{SIGNATURE} Expected input params [] for 'msg_reply', \
             got [F32, F64, V128, FuncRefNull, ExternRefNull]"
        ),
    );
    refuse_import(
        r#""env" "msg_reply" (func)"#,
        &format!(
            "{IMPORT} Module imports function \"msg_reply\" from \"env\", expected to be \
             imported from one of [\"ic0\"] instead"
        ),
    );
    refuse_import(
        r#""ic0" "g" (global i32)"#,
        &format!("{IMPORT} Importing globals is not allowed"),
    );
    refuse_import(
        r#""ic0" "memory" (memory 1)"#,
        &format!("{IMPORT} Only memory imported from env.memory is allowed"),
    );
    refuse_import(
        r#""ic0" "table" (table 1 funcref)"#,
        &format!("{IMPORT} Only tables imported from env.table are allowed"),
    );
}

#[test]
fn exports_with_arguments_or_results() {
    let names = EntryPoint::ALL.iter().map(|entry_point| entry_point.name());
    let methods = ["canister_update f", "canister_query f", "canister_composite_query f"];
    for name in names.chain(methods) {
        refuse(
            &format!(r#"(module (func (export "{name}") (param i32 i64)))"#),
            &format!("{SIGNATURE} Expected input params [] for '{name}', got [I32, I64]"),
        );
        refuse(
            &format!(r#"(module (func (export "{name}") (result i64) unreachable))"#),
            &format!("{SIGNATURE} Expected return type [] for '{name}', got [I64]"),
        );
    }
}

#[test]
fn an_imported_function_is_exported_by_its_signature() {
    refuse(
        r#"(module (import "ic0" "time" (func (result i64)))
            (export "canister_query t" (func 0)))"#,
        &format!("{SIGNATURE} Expected return type [] for 'canister_query t', got [I64]"),
    );
}

#[test]
fn reserved_names_of_any_kind() {
    for name in interface::RESERVED {
        refuse(
            &format!(r#"(module (memory 1) (export "{name}" (memory 0)))"#),
            &format!("{EXPORT} Exporting reserved symbol {name} not allowed"),
        );
    }
    for name in ["canister_", "canister_update", "canister_query", "canister_init "] {
        refuse(
            &format!(r#"(module (func (export "{name}")))"#),
            &format!("{EXPORT} Exporting reserved function '{name}' with \"canister_\" prefix"),
        );
    }
}

#[test]
fn proposals_that_are_off() {
    let refused = [
        ("(module (tag))", "exceptions proposal not enabled (at offset 0x10)"),
        (
            "(module (memory 1 1 shared))",
            "threads must be enabled for shared memories (at offset 0xb)",
        ),
        (
            "(module (memory 1) (data (i32.add (i32.const 1) (i32.const 2)) \"\"))",
            "constant expression required: non-constant operator: i32.add (at offset 0x15)",
        ),
        (
            "(module (func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i64x2 0 0)))))",
            "relaxed SIMD support is not enabled (at offset 0x29)",
        ),
        (
            "(module (type (struct)))",
            "struct indexed types not supported without the gc feature (at offset 0xb)",
        ),
        (
            "(module (func (result i32) (i32.load align=8 (i32.const 0))) (memory 1))",
            "malformed memop alignment: alignment must not be larger than natural \
             (at offset 0x1f)",
        ),
    ];
    for (wat, words) in refused {
        let (code, message) = refusal(&wasm(wat));
        assert_eq!(code, ErrorCode::CanisterInvalidWasm);
        assert_eq!(message, format!("Canister's Wasm module is not valid: {WASM} {words}"));
    }
}

#[test]
fn exact_imports() {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    push_section(&mut module, 1, b"\x01\x60\x00\x00");
    push_section(&mut module, 2, b"\x01\x03ic0\x09msg_reply\x20\x00");
    let words = "invalid leading byte (0x20) for external kind (at offset 0x1f)";
    let expected = format!("Canister's Wasm module is not valid: {WASM} {words}");
    assert_eq!(refusal(&module), (ErrorCode::CanisterInvalidWasm, expected));
}

#[test]
fn proposals_that_are_on() {
    let info = accept(
        r#"(module
            (memory i64 1) (table i64 1 funcref) (global (mut v128) (v128.const i64x2 0 0))
            (func (param i32) (result i32 i64)
                (memory.fill (i64.const 0) (i32.const 0) (i64.const 1))
                (drop (i32.extend8_s (i32.trunc_sat_f32_s (f32.const 1))))
                (drop (i32x4.splat (i32.const 1)))
                (drop (ref.null extern))
                (return_call 0 (i32.const 1))))"#,
    );
    assert_eq!(info.address_width, AddressWidth::Bits64);
}

#[test]
fn the_earlier_rule_wins() {
    // An invalid section later in the module hides an error in a function body.
    let mut module = wasm("(module (func (i32.add)))");
    push_section(&mut module, 11, b"\x01\x00\x41\x00\x0b\x00");
    let (_, message) = refusal(&module);
    assert!(message.contains("unknown memory 0"), "{message}");

    // Imports are checked before exports, regardless of later errors.
    let wat = r#"(module (import "ic0" "teleport" (func)) (func (export "canister_x"))
        (table 1 funcref) (table 1 funcref) (global funcref (ref.null func))
        (func (table.set 0 (i32.const 0) (ref.null func))))"#;
    assert!(refusal(&wasm(wat)).1.contains("'teleport'"));
    let wat = wat.replace("teleport", "msg_reply");
    assert!(refusal(&wasm(&wat)).1.contains("'canister_x'"));
    let wat = wat.replace("canister_x", "x");
    assert!(refusal(&wasm(&wat)).1.contains("Unsupported global type: Ref(funcref)"));
    let wat = wat.replace("(global funcref (ref.null func))", "");
    assert!(refusal(&wasm(&wat)).1.contains("table.set"));
    let wat = wat.replace("(table.set 0 (i32.const 0) (ref.null func))", "");
    assert!(refusal(&wasm(&wat)).1.contains("table count too high"));
}

#[test]
fn features_the_embedded_replica_lacks_are_checked_last() {
    let wat = r#"(module (func (export "canister_heartbeat"))
        (table 1 funcref) (table 1 funcref))"#;
    assert!(refusal(&wasm(wat)).1.contains("table count too high"));
    refuse(
        r#"(module (func (export "canister_heartbeat")))"#,
        "Module uses 'canister_heartbeat', which the embedded replica does not support: it runs \
         one canister, without calls to others, timers or heartbeats",
    );
}

#[test]
fn timers_and_heartbeats_are_refused_unless_only_queries_run() {
    const SET: &str = r#"(import "ic0" "global_timer_set" (func (param i64) (result i64)))"#;
    let message = |words: &str| {
        format!(
            "Module uses '{words}', which the embedded replica does not support: it runs one \
             canister, without calls to others, timers or heartbeats"
        )
    };
    let heartbeat = r#"(module (func (export "canister_heartbeat")))"#;
    refuse(heartbeat, &message("canister_heartbeat"));
    let due = r#"(func (export "canister_global_timer"))"#;
    refuse(&format!("(module {SET} {due})"), &message("global_timer_set"));
    accept(&format!("(module {SET})"));
    accept(&format!("(module {due})"));
    for wat in [format!("(module {SET} {due})"), heartbeat.to_owned()] {
        let info = validate_for(Purpose::Queries, &wasm(&wat), RULES).expect("never run");
        let words = Purpose::Everything.check(&info).expect_err("found without the module");
        assert_eq!(Err(words), validate(&wasm(&wat), RULES));
    }
}

#[test]
fn exports_that_collide_with_those_of_the_replica() {
    let colliding = [
        r#"(memory 1) (export "memory" (memory 0)) (export "heap" (memory 0))"#,
        r#"(table 1 funcref) (export "a" (table 0)) (export "b" (table 0))"#,
        r#"(memory 1) (func (export "memory"))"#,
        r#"(table 1 funcref) (func (export "table"))"#,
        r#"(global (mut i32) (i32.const 0)) (func (export "__persistent_mutable_global_0"))"#,
    ];
    for fields in colliding {
        refuse_in_engine(&format!("(module {fields})"), "failed to parse WebAssembly module");
    }
    accept(r#"(module (memory 1) (export "heap" (memory 0)))"#);
    accept(r#"(module (func (export "memory")) (func (export "table")))"#);
    accept(
        r#"(module (global i32 (i32.const 0)) (func (export "__persistent_mutable_global_0")))"#,
    );
    accept(r#"(module (global (export "__persistent_mutable_global_0") (mut i32) (i32.const 0)))"#);
}

#[test]
fn the_engine_links_functions_only() {
    refuse_in_engine(
        r#"(module (import "env" "table" (table 1 funcref)) (import "env" "memory" (memory 1)))"#,
        "unknown import: `env::table` has not been defined",
    );
    refuse_in_engine(
        r#"(module (import "other" "heap" (memory 1)))"#,
        "unknown import: `other::heap` has not been defined",
    );
}

#[test]
fn offsets_in_an_imported_64_bit_memory() {
    refuse(
        r#"(module (import "env" "memory" (memory i64 1)) (data (i64.const 8) ""))"#,
        "Wasm module has an invalid data section. Invalid offset expression in data segment \
         for 32bit memory: [Value(I64(8))]",
    );
}

#[test]
fn custom_sections_need_a_scope_and_their_own_name() {
    let custom = |names: &[&str]| {
        let mut module = wasm("(module)");
        for name in names {
            push_custom(&mut module, name, b"xy");
        }
        module
    };
    let info =
        validate(&custom(&["icp:public a", "icp:private ", "eth:a", " icp:", "name2"]), RULES)
            .expect("good scopes");
    let section = |visibility| CustomSection { visibility, content: b"xy".to_vec() };
    assert_eq!(
        info.custom_sections.into_iter().collect::<Vec<_>>(),
        [
            (String::new(), section(Visibility::Private)),
            ("a".to_owned(), section(Visibility::Public)),
        ]
    );

    let refused: [(&[&str], &str); 4] = [
        (&["icp:public a", "icp:private a"], "Invalid custom section: name a already exists"),
        (
            &["icp:dummy a"],
            "Invalid custom section: Custom section 'icp:dummy a' has no public/private scope \
             defined",
        ),
        (&["icp:public"], "'icp:' section names must have a space after the public/private scope"),
        (&["icp:private"], "'icp:' section names must have a space after the public/private scope"),
    ];
    for (names, words) in refused {
        let place = "Canister's Wasm module is not valid: Wasm module has an invalid custom";
        let expected = format!("{place} section. {words}");
        assert_eq!(refusal(&custom(names)), (ErrorCode::CanisterInvalidWasm, expected));
    }
}

#[test]
fn function_names_that_cannot_be_read() {
    let mut module = wasm("(module)");
    // Subsection 1, functions: one byte announces a name that does not follow.
    push_custom(&mut module, "name", b"\x01\x01\x01");
    let (code, message) = refusal(&module);
    assert_eq!(code, ErrorCode::CanisterInvalidWasm);
    let place = "Canister's Wasm module is not valid: Failed to decode wasm module";
    assert!(message.starts_with(&format!("{place}: Error from wasmparser: ")), "{message}");
}
