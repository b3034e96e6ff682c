//! Refusals in the words of the real replica, and the properties of valid modules.

mod limits;
mod rules;

use std::borrow::Cow;
use std::io::Write;

use flate2::{Compression, GzBuilder, write::GzEncoder};

use super::*;
use crate::fault::ErrorCode;

/// The rules under which the refusals were recorded.
const RULES: Rules = Rules::of_2025_10();

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

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fn decoding_refusal(upload: &[u8]) -> String {
    let refusal = decode(upload).expect_err("broken");
    assert_eq!(refusal.code, ErrorCode::CanisterInvalidWasm);
    let place = "Canister's Wasm module is not valid: ";
    refusal.message.strip_prefix(place).expect("the usual beginning").to_owned()
}

#[test]
fn plain_modules_are_not_copied() {
    let module = wasm("(module (func))");
    assert!(matches!(decode(&module), Ok(Cow::Borrowed(plain)) if plain == module));
}

#[test]
fn gzip_is_inflated() {
    let module = wasm("(module (func))");
    assert_eq!(decode(&gzip(&module)).expect("good gzip"), module);
    let mut named = GzBuilder::new()
        .filename("a.wasm")
        .comment("c")
        .extra(*b"ab\x01\x00x")
        .write(Vec::new(), Compression::best());
    named.write_all(&module).expect("writing to memory");
    assert_eq!(decode(&named.finish().expect("in memory")).expect("good gzip"), module);
}

#[test]
fn other_formats() {
    for upload in [&b""[..], b"\0as", b"asm\0 and more", b"\x1f\x8b", b"\x1f\x8b\x07aaaaaaaaaaaa"] {
        assert_eq!(
            decoding_refusal(upload),
            "Failed to decode wasm module: unsupported canister module format"
        );
    }
    assert_eq!(
        decoding_refusal(&gzip(b"")[..15]),
        "Failed to decode wasm module: invalid Wasm module: gzip stream is too short"
    );
}

#[test]
fn size_of_a_plain_module() {
    let mut module = vec![0; 100 << 20];
    module[..8].copy_from_slice(b"\0asm\x01\0\0\0");
    decode(&module).expect("at the limit");
    module.push(0);
    assert_eq!(
        decoding_refusal(&module),
        "Wasm module size of 104857601 exceeds the maximum allowed size of 104857600."
    );
}

#[test]
fn size_of_an_inflated_module() {
    let upload = gzip(&vec![0; 100 << 20]);
    assert_eq!(decode(&upload).expect("at the limit").len(), 100 << 20);
    assert_eq!(
        decoding_refusal(&gzip(&vec![0; (100 << 20) + 1])),
        "Wasm module size of 104857601 exceeds the maximum allowed size of 104857600."
    );
}

#[test]
fn a_wrong_size_claim() {
    let plain = [7; 1_000];
    let claiming = |size: u32| {
        let mut upload = gzip(&plain);
        let claim = upload.len() - 4;
        upload[claim..].copy_from_slice(&size.to_le_bytes());
        upload
    };
    assert_eq!(decode(&claiming(1_000)).expect("good gzip"), &plain[..]);
    let words = "Failed to decode wasm module: specified uncompressed size";
    // At most one byte more than the claim is inflated.
    let refused = decoding_refusal(&claiming(10));
    assert_eq!(refused, format!("{words} 10 does not match extracted size 11"));
    let refused = decoding_refusal(&claiming(1_001));
    assert_eq!(refused, format!("{words} 1001 does not match extracted size 1000"));
}

#[test]
fn a_wrong_checksum() {
    let mut upload = gzip(b"abc");
    let crc = upload.len() - 8;
    upload[crc..crc + 4].copy_from_slice(&7_u32.to_le_bytes());
    // 0x352441c2 is the CRC-32 of "abc".
    assert_eq!(
        decoding_refusal(&upload),
        "Failed to decode wasm module: failed to decode compressed Wasm module: \
         CRC32 mismatched: value=891568578, expected=7"
    );
}

#[test]
fn cut_off_streams() {
    let noise: Vec<u8> =
        (0..2_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let whole = gzip(&noise);
    for len in 0..whole.len() {
        decode(&whole[..len]).expect_err("cut off");
    }
    // If the size claim is right, the truncation itself is reported.
    let mut upload = whole[..whole.len() / 2].to_vec();
    upload.extend(2_000_u32.to_le_bytes());
    let refused = decoding_refusal(&upload);
    assert!(refused.contains("failed to decode compressed Wasm module: "), "{refused}");
}

/// A small random number generator (xorshift), seeded so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

fn validate_upload(upload: &[u8]) {
    if let Ok(plain) = decode(upload) {
        let _ = validate(&plain, RULES);
    }
}

#[test]
fn garbage() {
    let mut random = Random(0x5eed);
    for _ in 0..5_000 {
        let mut bytes: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        validate_upload(&bytes);
        let _ = validate(&bytes, RULES);
        bytes.splice(0..0, *b"\0asm\x01\0\0\0");
        validate_upload(&bytes);
        bytes.splice(0..8, *b"\x1f\x8b\x08\0\0\0\0\0\0\0");
        validate_upload(&bytes);
    }
}

#[test]
fn garbage_behind_the_header_is_a_decoding_error() {
    let (code, message) = refusal(b"\0asm\x01\0\0\0\xff\xff");
    assert_eq!(code, ErrorCode::CanisterInvalidWasm);
    let place = "Canister's Wasm module is not valid: Failed to decode wasm module";
    assert!(message.starts_with(&format!("{place}: Error finding code section: ")), "{message}");
}

#[test]
fn modules_with_a_few_bytes_changed() {
    let mut module = wasm(
        r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "stable64_read" (func (param i64 i64 i64)))
            (memory (export "memory") 1) (table (export "table") 4 funcref)
            (elem (i32.const 1) func $f) (elem declare func $f)
            (global $g (mut i64) (i64.const 7)) (global f64 (f64.const 1))
            (func $f (local f32)
                (block (br_table 0 0 0 (i32.const 1)))
                (call_indirect (i32.const 1))
                (if (i64.eqz (global.get $g)) (then (memory.copy
                    (i32.const 0) (i32.const 0) (i32.const 9)))))
            (start $f)
            (export "canister_init" (func $f))
            (export "canister_update a" (func $f))
            (export "canister_query b" (func $reply))
            (data (i32.const 16) "abc") (data "passive"))"#,
    );
    push_custom(&mut module, "icp:public metadata", b"content");
    validate(&module, RULES).expect("good before it is changed");

    let mut random = Random(0xc0ffee);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..50_000 {
        let mut changed = module.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len());
            match random.below(4) {
                0 => changed[at] = random.next() as u8,
                1 => changed[at] ^= 1 << random.below(8),
                2 => drop(changed.remove(at)),
                _ => changed.truncate(at.max(8)),
            }
        }
        match validate(&changed, RULES) {
            Ok(_) => accepted += 1,
            Err(_) => refused += 1,
        }
    }
    // Both outcomes occur.
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
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
