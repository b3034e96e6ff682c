//! Uploads that are broken or too large, and each limit: a module at the limit is accepted, and one
//! beyond it is refused.

use std::borrow::Cow;
use std::io::Write;

use flate2::{Compression, GzBuilder, write::GzEncoder};

use super::*;

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

/// A module with the text repeated; `#` is replaced by the number of the repetition.
fn repeated(count: usize, text: &str) -> String {
    let fields: String = (0..count).map(|i| text.replace('#', &i.to_string())).collect();
    format!("(module (func $f) {fields})")
}

#[test]
fn globals() {
    let globals = |count| repeated(count, "(global i32 (i32.const 0))");
    accept(&globals(1_000));
    refuse(
        &globals(1_001),
        "Wasm module defined 1001 globals which exceeds the maximum number allowed 1000",
    );
}

#[test]
fn functions() {
    // The module already has one function.
    let functions = |count: usize| repeated(count - 1, "(func)");
    assert_eq!(accept(&functions(50_000)).operators, 50_000);
    refuse(
        &functions(50_001),
        "Wasm module defined 50001 functions which exceeds the maximum number allowed 50000",
    );
}

#[test]
fn imports_do_not_count_as_functions() {
    let import = r#"(module (import "ic0" "msg_reply" (func))"#;
    accept(&repeated(49_999, "(func)").replace("(module", import));
}

#[test]
fn methods() {
    let methods = |count| repeated(count, r#"(export "canister_query q#" (func $f))"#);
    assert_eq!(accept(&methods(1_000)).methods.len(), 1_000);
    refuse(
        &methods(1_001),
        "The number of exported functions called `canister_update <name>`, \
         `canister_query <name>`, or `canister_composite_query <name>` is 1001 which exceeds \
         1000",
    );
    accept(&repeated(2_000, r#"(export "helper #" (func $f))"#));
}

#[test]
fn names_of_methods() {
    let named = |len: usize| {
        let name = "m".repeat(len - 10_000);
        let other = "q".repeat(10_000);
        format!(
            r#"(module (func $f) (export "canister_update {name}" (func $f))
                (export "canister_composite_query {other}" (func $f)))"#
        )
    };
    accept(&named(20_000));
    refuse(
        &named(20_001),
        "The sum of `<name>` lengths in exported functions called `canister_update <name>`, \
         `canister_query <name>`, or `canister_composite_query <name>` is 20001 which exceeds \
         the allowed limit of 20000",
    );
}

#[test]
fn complexity() {
    // A block weighs 50, its end 1, the function's end 1: 19 607 blocks weigh 999 958 with it, and
    // each `nop` adds 1.
    let function = |nops| {
        let blocks = "(block)".repeat(19_607);
        let nops = "(nop)".repeat(nops);
        format!("(module (func) (func {blocks} {nops}))")
    };
    assert_eq!(accept(&function(42)).operators, 1 + 2 * 19_607 + 42 + 1);
    refuse(
        &function(43),
        "Wasm module contains a function at index 1 with complexity 1000001 which exceeds the \
         maximum complexity allowed 1000000",
    );
}

#[test]
fn the_complexity_case_of_the_replica() {
    let loops = "(loop)".repeat(20_001);
    refuse(
        &format!("(module (func) (func {loops}))"),
        "Wasm module contains a function at index 1 with complexity 1020052 which exceeds the \
         maximum complexity allowed 1000000",
    );
}

/// A module whose code section has `len` bytes after the number of its functions.
fn code_section(len: usize) -> Vec<u8> {
    const FUNCTIONS: usize = 12;
    let mut types = vec![FUNCTIONS as u8];
    types.extend([0; FUNCTIONS]);
    let mut code = vec![FUNCTIONS as u8];
    let mut rest = len;
    for functions in (1..=FUNCTIONS).rev() {
        // A body has its size in four bytes, one byte for no locals, constants that are dropped
        // (many bytes for few operators), and `end`.
        let body = rest / functions - 4;
        let mut size = leb(body);
        assert_eq!(size.len(), 3);
        size[2] |= 0x80;
        size.push(0);
        code.extend(size);
        code.push(0);
        let operators = body - 2;
        for _ in 0..operators / 19 {
            code.extend(b"\xfd\x0c________________\x1a");
        }
        // nop
        code.extend([0x01].repeat(operators % 19));
        code.push(0x0b);
        rest -= body + 4;
    }
    assert_eq!(code.len(), 1 + len);

    let mut module = b"\0asm\x01\0\0\0".to_vec();
    push_section(&mut module, 1, b"\x01\x60\x00\x00");
    push_section(&mut module, 3, &types);
    push_section(&mut module, 10, &code);
    module
}

#[test]
fn code() {
    // The size of the section excludes the number of functions.
    let limit = RULES.set().module.code.get() as usize;
    let info = validate(&code_section(limit), RULES).expect("at the limit");
    assert!(info.operators > 1_000_000);
    assert_eq!(
        refusal(&code_section(limit + 1)).1,
        "Canister's Wasm module is not valid: Wasm module code section size of 11534337 exceeds \
         the maximum allowed size of 11534336"
    );
    let today = Rules::of_2026_08();
    let limit = 12 << 20;
    validate(&code_section(limit), today).expect("at the limit");
    validate(&code_section(limit + 1), today).expect_err("one past it");
}

#[test]
fn names_of_functions() {
    let named = |length: usize| {
        let mut module = wasm("(module (func))");
        // Function names: one, of function 0.
        let name = [leb(1), leb(0), leb(length), vec![b'n'; length]].concat();
        push_custom(&mut module, "name", &[vec![1], leb(name.len()), name].concat());
        module
    };
    let (limit, today) = (1 << 20, Rules::of_2026_08());
    validate(&named(limit), today).expect("at the limit");
    validate(&named(limit + 1), RULES).expect("there was no limit");
    let refusal = validate(&named(limit + 1), today).expect_err("one past it");
    let words = format!(
        "Canister's Wasm module is not valid: Wasm module contains a function at index 0 with name \
         '{}...' of size 1048577 bytes that exceeds the maximum allowed size of 1048576 bytes.",
        "n".repeat(100)
    );
    assert_eq!(refusal.message, words);
}

#[test]
fn tables_of_references() {
    let of = |ty: &str| wasm(&format!("(module (table 1 {ty}))"));
    validate(&of("externref"), RULES).expect("tables of any type were allowed");
    validate(&of("funcref"), Rules::of_2026_08()).expect("a table of functions");
    let refusal = validate(&of("externref"), Rules::of_2026_08()).expect_err("of references");
    let words = "Canister's Wasm module is not valid: Wasm module has an invalid table section. \
                 Table element type must be funcref, got externref";
    assert_eq!(refusal.message, words);
}

#[test]
fn custom_sections() {
    let custom = |count: usize| {
        let mut module = wasm("(module)");
        for i in 0..count {
            push_custom(&mut module, &format!("icp:public {i}"), b"");
            push_custom(&mut module, "ignored by the replica", b"");
        }
        module
    };
    assert_eq!(validate(&custom(16), RULES).expect("at the limit").custom_sections.len(), 16);
    assert_eq!(
        refusal(&custom(17)).1,
        "Canister's Wasm module is not valid: Wasm module defined 17 custom sections which \
         exceeds the maximum number allowed 16"
    );
}

#[test]
fn content_of_custom_sections() {
    // Names count without their scopes: three bytes and two.
    let custom = |len: usize| {
        let mut module = wasm("(module)");
        push_custom(&mut module, "icp:public one", &[0; 1_000]);
        push_custom(&mut module, "icp:private no", &vec![0; len - 1_005]);
        module
    };
    validate(&custom(1 << 20), RULES).expect("at the limit");
    assert_eq!(
        refusal(&custom((1 << 20) + 1)).1,
        "Canister's Wasm module is not valid: Wasm module has an invalid custom section. \
         Invalid custom sections: total size of the custom sections exceeds the maximum \
         allowed: size 1048577 bytes, allowed 1048576 bytes"
    );
}

#[test]
fn first_size_of_the_heap() {
    let pages = 6 * (1 << 30) / 65_536;
    assert_eq!(accept(&format!("(module (memory i64 {pages}))")).initial_pages, WasmPages(pages));
    refuse(
        &format!("(module (memory i64 {}))", pages + 1),
        "Wasm module declares an initial Wasm64 heap memory size of 98305 pages which exceeds \
         the maximum allowed size of 98304 pages",
    );
    accept("(module (memory 65536))");
    let (_, words) = refusal(&wasm("(module (memory 65537))"));
    assert!(words.contains("memory size must be at most 0x10000 65536-byte pages"), "{words}");
}

#[test]
fn data_segments() {
    let data = |memory: &str, offset: &str, bytes: &str| {
        format!(r#"(module (memory {memory}) (data ({offset}) "{bytes}"))"#)
    };
    let outside = |wat: &str, words: &str| {
        let place = "Could not instrument wasm module of canister: Wasm module has";
        let expected = format!("{place} invalid data segment of {words}");
        assert_eq!(refusal(&wasm(wat)), (ErrorCode::CanisterInvalidWasm, expected), "{wat}");
    };
    accept(&data("1", "i32.const 65533", "abc"));
    outside(&data("1", "i32.const 65534", "abc"), "3 bytes at 65534");
    accept(&data("1", "i32.const 65536", ""));
    outside(&data("1", "i32.const 65537", ""), "0 bytes at 65537");
    accept(&data("i64 1", "i64.const 65533", "abc"));
    outside(&data("i64 1", "i64.const 65534", "abc"), "3 bytes at 65534");
    outside(&data("i64 1", "i64.const -1", "abc"), "3 bytes at 18446744073709551615");
    // The upper half of the heap is unreachable, because offsets are sign-extended.
    accept(&data("65536", "i32.const 0x7fffffff", "a"));
    outside(&data("65536", "i32.const 0x80000000", "a"), "1 bytes at 18446744071562067968");
    // The replica does not know an imported memory at this point.
    outside(
        r#"(module (import "env" "memory" (memory 1)) (data (i32.const 0) "a"))"#,
        "1 bytes at 0",
    );
    accept(r#"(module (memory 0) (data "passive"))"#);
}

#[test]
fn tables() {
    accept("(module (table 1000000 funcref))");
    refuse_in_engine(
        "(module (table 1000001 funcref))",
        "table minimum size of 1000001 elements exceeds table limits",
    );
    let elements = |offset: i64| {
        format!("(module (func) (table 8 funcref) (elem (i32.const {offset}) func 0 0 0))")
    };
    let outside = "wasm trap: undefined element: out of bounds table access";
    accept(&elements(5));
    refuse_in_engine(&elements(6), outside);
    refuse_in_engine(&elements(-1), outside);
}

/// A limit of this replica only, for a function and for a module.
#[test]
fn locals() {
    // The parameter counts, and so does the block that every function is.
    let function = |locals: usize, blocks: usize| {
        let locals = " i64".repeat(locals - 1);
        format!("(func (param i32) (local{locals}) {})", "(block)".repeat(blocks - 1))
    };
    let module = |functions: &str| format!("(module {functions})");
    accept(&module(&function(10_000, 5_000)));
    refuse(
        &module(&function(10_000, 5_001)),
        "Function 0 has 10000 locals in 5001 blocks. The embedded replica compiles functions in \
         which the product of both is at most 50000000; reduce the locals, or split the function",
    );
    let most = function(50_000, 1_000).repeat(10);
    accept(&module(&most));
    refuse(
        &module(&(most + "(func (param i32))")),
        "The functions have too many locals: the sum of locals times blocks over all functions is \
         500000001. The embedded replica compiles modules of at most 500000000; reduce the locals \
         of the functions",
    );
}

/// Operators that start a block, and some that do not.
#[test]
fn blocks_that_multiply_locals() {
    let locals = " i64".repeat(49_999);
    for (operators, blocks) in [
        ("(loop (br_if 0 (i32.const 1)))", 2),
        ("(if (i32.const 1) (then) (else (return)))", 3),
        ("(block (br_table 0 0 0 (i32.const 1)))", 4),
        ("(block (br 0))", 2),
        ("(drop (i32.const 1)) (nop)", 0),
    ] {
        let function = |blocks: usize| {
            let more = "(block)".repeat(blocks);
            format!("(module (func (local i32{locals}) {operators} {more}))")
        };
        accept(&function(999 - blocks));
        let refused = refusal(&wasm(&function(1_000 - blocks))).1;
        assert!(refused.contains("50000 locals in 1001 blocks"), "{operators}: {refused}");
    }
}
