//! Bytes as an upload.

use std::io::Write;
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use stablebench_replica::{ErrorCode, Module};

use super::damage::damaged;
use super::{met, properties, replica};

const NAME: &str = "arbitrary_module";

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
                properties::exercise(NAME, &module, &bytes[..bytes.len().min(40)], 6);
            }
        }
        Err(reject) => {
            met(NAME, "refused");
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
