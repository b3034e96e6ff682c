//! Invalid and unusual modules and saved canisters. They are refused with a message, quickly and
//! without much memory, or they run.

#[path = "../replica/fuzzing/content.rs"]
#[allow(dead_code, reason = "the replica's tests use the rest")]
mod content;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use stablebench_replica::{Canister, ErrorCode, LoadError, Module, Replica, Rules, saved_note};

use super::{alone, peak_memory};
use crate::support::CALLER;
use content::{Rest, parts, sealed};

/// Longest time for one of them, on a machine that is busy otherwise.
const LONGEST: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "this test limits wall time")]
fn now() -> Instant {
    Instant::now()
}

/// Checks the peak resident memory of a test.
#[track_caller]
fn bounded_memory(what: &str) {
    const MOST: u64 = 1 << 30;
    // Only Linux reports it.
    let Some(peak) = peak_memory() else { return };
    assert!(peak < MOST, "{what}: {} MiB at some time", peak >> 20);
}

/// The magic number and the version of a module.
const BEGINNING: &[u8] = b"\0asm\x01\0\0\0";

/// The expected result of an upload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Refused,
    /// It can be compiled.
    Taken,
    /// Refused or not, depending on the rules of the network or on the machine.
    Either,
}
use Expected::{Either, Refused, Taken};

type Tried = (String, Vec<u8>, Expected);

/// A module with every section that canisters use.
fn whole() -> Vec<u8> {
    wat::parse_str(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (memory (export "memory") 1 4) (table 4 8 funcref)
        (elem (i32.const 1) func $f)
        (global $g (mut i64) (i64.const 7))
        (func $f (local i64) (local.set 0 (global.get $g)) (global.set $g (local.get 0)))
        (start $f)
        (func (export "canister_update a") (call_indirect (i32.const 1)) (call $reply))
        (data (i32.const 16) "abc"))"#,
    )
    .unwrap()
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &leb128(content.len())[..], content].concat()
}

fn custom(name: &str, content: usize) -> Vec<u8> {
    let content = vec![0; content];
    section(0, &[&leb128(name.len())[..], name.as_bytes(), &content].concat())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The sections of a module, each with its header.
fn sections(module: &[u8]) -> Vec<Vec<u8>> {
    let mut sections = Vec::new();
    let mut at = BEGINNING.len();
    while at < module.len() {
        // None is longer than 127 bytes.
        let end = at + 2 + usize::from(module[at + 1]);
        sections.push(module[at..end].to_vec());
        at = end;
    }
    sections
}

/// Uploads that are not modules.
fn not_modules() -> Vec<Tried> {
    let whole = whole();
    let compressed = gzip(&whole);
    let mut claims = gzip(&whole);
    let end = claims.len();
    claims[end - 4..].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut tried: Vec<Tried> = [
        ("nothing", Vec::new()),
        ("text", b"hello".to_vec()),
        ("WebAssembly text", b"(module)".to_vec()),
        ("a program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec()),
        ("zeros", vec![0; 1 << 20]),
        ("0xff", vec![0xff; 1 << 20]),
        ("a part of the magic number", b"\0as".to_vec()),
        ("the magic number", b"\0asm".to_vec()),
        ("version 0", b"\0asm\0\0\0\0".to_vec()),
        ("version 2", b"\0asm\x02\0\0\0".to_vec()),
        ("a component", b"\0asm\x0d\0\x01\0".to_vec()),
        ("two modules", [&whole[..], &whole].concat()),
        ("a byte after it", [&whole[..], b"\0"].concat()),
        ("a module in gzip in gzip", gzip(&compressed)),
        ("gzip of nothing", gzip(b"")),
        ("gzip of text", gzip(b"hello")),
        ("gzip of 200 MiB", gzip(&vec![0; 200 << 20])),
        ("gzip that claims 4 GiB", claims),
        ("the header of gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec()),
        ("gzip with a byte after it", [&compressed[..], b"\0"].concat()),
        ("gzip without its end", compressed[..compressed.len() - 5].to_vec()),
    ]
    .map(|(what, bytes)| (what.to_owned(), bytes, Refused))
    .into();
    tried.push(("gzip".to_owned(), compressed, Taken));
    for end in (9..whole.len()).step_by(7) {
        tried.push((format!("cut at {end}"), whole[..end].to_vec(), Either));
    }
    tried
}

/// Sections that are empty, unusual, duplicated, or in the wrong place.
fn unusual_sections() -> Vec<Tried> {
    let mut tried = Vec::new();
    let mut add = |what: String, sections: &[&[u8]], expected| {
        tried.push((what, [BEGINNING, &sections.concat()].concat(), expected));
    };
    for id in 0..=14 {
        add(format!("section {id} without a byte"), &[&section(id, b"")], Refused);
        add(format!("section {id} of 4 GiB"), &[&[id], b"\xff\xff\xff\xff\x0f"], Refused);
        add(format!("section {id} of a length without end"), &[&[id], &[0x80; 12]], Refused);
        let many = section(id, b"\xff\xff\xff\xff\x0f");
        add(format!("section {id} of 2^32 - 1 things"), &[&many], Refused);
    }
    for id in [15, 0x7f, 0xff] {
        add(format!("section {id}"), &[&section(id, b"\0")], Refused);
    }
    let whole = sections(&whole());
    for (at, again) in whole.iter().enumerate() {
        let mut twice: Vec<&[u8]> = whole.iter().map(Vec::as_slice).collect();
        twice.insert(at, again);
        add(
            format!("section {} twice", again[0]),
            &twice,
            if again[0] == 0 { Taken } else { Refused },
        );
        let mut last: Vec<&[u8]> = whole.iter().map(Vec::as_slice).collect();
        let moved = last.remove(at);
        add(format!("without section {}", again[0]), &last, Either);
        last.push(moved);
        // Data, followed by names.
        let expected = if at + 2 >= whole.len() { Taken } else { Refused };
        add(format!("section {} at the end", again[0]), &last, expected);
    }
    for (what, name, bytes, expected) in [
        ("a custom section without a name", "", 0, Taken),
        ("a custom section of a long name", &*"a".repeat(100_000), 0, Taken),
        ("a large custom section", "a", 1 << 20, Taken),
        ("the replica's custom section of another kind", "icp:secret a", 0, Refused),
        ("metadata of 2 MiB", "icp:public a", 2 << 20, Refused),
    ] {
        add(what.to_owned(), &[&custom(name, bytes)], expected);
    }
    let metadata: Vec<Vec<u8>> =
        (0..17).map(|number| custom(&format!("icp:public {number}"), 1)).collect();
    add("17 custom sections".to_owned(), &[&metadata.concat()], Refused);
    add("metadata twice".to_owned(), &[&custom("icp:public a", 1).repeat(2)], Refused);
    add("10 000 custom sections".to_owned(), &[&custom("a", 1).repeat(10_000)], Either);
    tried
}

/// Modules with large sizes, and modules that use unsupported features.
fn unusual_contents() -> Vec<Tried> {
    let repeated = |count: usize, text: &str| text.repeat(count);
    [
        ("two memories", "(module (memory 1) (memory 1))".to_owned(), Refused),
        ("a memory of 65 537 pages", "(module (memory 65537))".to_owned(), Refused),
        ("a shared memory", "(module (memory 1 2 shared))".to_owned(), Refused),
        ("64-bit memory of 2^48 pages", "(module (memory i64 0x1000000000000))".to_owned(), Refused),
        ("a memory that is smaller than it is", "(module (memory 2 1))".to_owned(), Refused),
        ("a table of 2^32 - 1 elements", "(module (table 0xffffffff funcref))".to_owned(), Refused),
        ("two tables", "(module (table 1 funcref) (table 1 funcref))".to_owned(), Either),
        ("a table of host references", "(module (table 1 externref))".to_owned(), Either),
        ("data after the memory", r#"(module (memory 1) (data (i32.const 65536) "a"))"#.to_owned(), Refused),
        ("data at -1", r#"(module (memory 1) (data (i32.const -1) "a"))"#.to_owned(), Refused),
        ("data without a memory", r#"(module (data (i32.const 0) "a"))"#.to_owned(), Refused),
        ("elements after the table", "(module (table 1 funcref) (func $f) (elem (i32.const 1) func $f))".to_owned(), Either),
        ("an imported memory", r#"(module (import "a" "b" (memory 1)))"#.to_owned(), Refused),
        ("a function of another module", r#"(module (import "env" "f" (func)))"#.to_owned(), Refused),
        ("a function that there is not", r#"(module (import "ic0" "f" (func)))"#.to_owned(), Refused),
        ("a function of other types", r#"(module (import "ic0" "msg_reply" (func (param i32))))"#.to_owned(), Refused),
        ("an imported global", r#"(module (import "ic0" "g" (global i32)))"#.to_owned(), Refused),
        ("a tag", "(module (tag))".to_owned(), Refused),
        ("a struct", "(module (type (struct)))".to_owned(), Refused),
        ("atomics", "(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))".to_owned(), Refused),
        ("an exception", "(module (tag $e) (func (throw $e)))".to_owned(), Refused),
        ("the start takes something", "(module (func $f (param i32)) (start $f))".to_owned(), Refused),
        ("the start traps", "(module (func $f unreachable) (start $f))".to_owned(), Taken),
        ("a method takes something", r#"(module (func (export "canister_update a") (param i32)))"#.to_owned(), Refused),
        ("a method twice", r#"(module (func $f) (export "canister_update a" (func $f)) (export "canister_query a" (func $f)))"#.to_owned(), Refused),
        ("canister_init is a memory", r#"(module (memory (export "canister_init") 1))"#.to_owned(), Either),
        ("a method named by control characters", r#"(module (func $f) (export "canister_update \1b[2J\00" (func $f)))"#.to_owned(), Either),
        ("types that do not match", "(module (func (result i32) (i64.const 1)))".to_owned(), Refused),
        ("a value too few", "(module (func i32.add drop))".to_owned(), Refused),
        ("a call of an unknown function", "(module (func (call 7)))".to_owned(), Refused),
        ("a branch to nowhere", "(module (func (br 7)))".to_owned(), Refused),
        ("a local that there is not", "(module (func (drop (local.get 7))))".to_owned(), Refused),
        ("1 001 parameters", format!("(module (func (param {})))", repeated(1_001, "i32 ")), Refused),
        ("1 001 results", format!("(module (func (result {}) unreachable))", repeated(1_001, "i32 ")), Refused),
        ("50 001 locals", format!("(module (func (local {})))", repeated(50_001, "i64 ")), Refused),
        ("5 000 locals", format!("(module (func (local {})))", repeated(5_000, "i64 ")), Either),
        ("100 000 types", format!("(module {})", repeated(100_000, "(type (func (param i32)))")), Either),
        ("1 001 globals", format!("(module {})", repeated(1_001, "(global i32 (i32.const 0))")), Refused),
        ("50 001 functions", format!("(module {})", repeated(50_001, "(func)")), Refused),
        ("100 001 segments of data", format!("(module (memory 1) {})", repeated(100_001, "(data \"\")")), Either),
        ("a function of a million and more", format!("(module (func {}))", repeated(1_000_001, "nop ")), Refused),
    ]
    .into_iter()
    .map(|(what, text, expected)| {
        let module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
        (what.to_owned(), module, expected)
    })
    .collect()
}

/// Function bodies that the text format cannot express.
fn unusual_bodies() -> Vec<Tried> {
    let module = |body: &[u8]| {
        let body = [&leb128(body.len())[..], body].concat();
        let code = section(10, &[b"\x01", &body[..]].concat());
        [BEGINNING, &section(1, b"\x01\x60\0\0"), &section(3, b"\x01\0"), &code].concat()
    };
    let nested = |depth| [&b"\0"[..], &b"\x02\x40".repeat(depth), &vec![0x0b; depth + 1]].concat();
    [
        ("a body without an end", b"\0\x01".to_vec(), Refused),
        ("a body with operators after its end", b"\0\x0b\x01".to_vec(), Refused),
        ("an else without an if", b"\0\x05\x0b".to_vec(), Refused),
        ("an unknown operator", b"\0\xff\x0b".to_vec(), Refused),
        ("an unknown operator of SIMD", b"\0\xfd\xff\xff\x03\x0b".to_vec(), Refused),
        ("2^32 - 1 locals", b"\x01\xff\xff\xff\xff\x0f\x7f\x0b".to_vec(), Refused),
        (
            "2^32 - 1 locals twice",
            b"\x02\xff\xff\xff\xff\x0f\x7f\xff\xff\xff\xff\x0f\x7e\x0b".to_vec(),
            Refused,
        ),
        ("2^32 - 1 groups of locals", b"\xff\xff\xff\xff\x0f\x0b".to_vec(), Refused),
        ("locals of no type", b"\x01\x01\x55\x0b".to_vec(), Refused),
        ("a jump table of 2^32 - 1", b"\0\x41\0\x0e\xff\xff\xff\xff\x0f\0\0\x0b".to_vec(), Refused),
        ("blocks 1 000 deep", nested(1_000), Taken),
        ("blocks 15 000 deep", nested(15_000), Either),
        ("blocks 1 000 000 deep", nested(1_000_000), Refused),
        (
            "a constant of too many bytes",
            b"\0\x41\x80\x80\x80\x80\x80\x80\0\x1a\x0b".to_vec(),
            Refused,
        ),
    ]
    .map(|(what, body, expected)| (what.to_owned(), module(&body), expected))
    .into()
}

#[test]
fn unusual_modules_are_refused_or_run() {
    let _alone = alone();
    let mut tried = not_modules();
    tried.extend(unusual_sections());
    tried.extend(unusual_contents());
    tried.extend(unusual_bodies());
    assert!(tried.len() >= 95, "{}", tried.len());
    println!("{} modules", tried.len());
    let replica = Replica::new(Rules::today(), None).unwrap();
    let mut wrong = Vec::new();
    for (what, upload, expected) in tried {
        let began = now();
        match replica.compile(&upload) {
            Ok(module) => {
                if expected == Refused {
                    wrong.push(format!("{what}: taken"));
                }
                let mut canister = replica.create_canister().unwrap();
                if canister.install(&module, CALLER, &[]).unwrap().outcome.is_ok() {
                    for method in &module.info().methods {
                        let _ = canister.update(CALLER, &method.name, &[]).unwrap();
                    }
                }
            }
            Err(reject) => {
                if expected == Taken {
                    wrong.push(format!("{what}: {reject}"));
                }
                let codes = [ErrorCode::CanisterInvalidWasm, ErrorCode::CanisterWasmEngineError];
                assert!(codes.contains(&reject.code), "{what}: {reject}");
                assert!(reject.message.starts_with("Error from Canister "), "{what}: {reject}");
                let length = reject.message.len();
                assert!(length < 10_000, "{what}: {length} bytes");
            }
        }
        assert!(began.elapsed() < LONGEST, "{what}: {:?}", began.elapsed());
        bounded_memory(&what);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 2 4)
    (global $n (mut i64) (i64.const 7))
    (data (i32.const 70000) "some data")
    (func (export "canister_update bump")
        (global.set $n (i64.add (global.get $n) (i64.const 1)))
        (i64.store (i32.const 8) (global.get $n))
        (drop (call $grow (i64.const 1)))
        (call $write (i64.const 65528) (i64.const 8) (i64.const 8))
        (call $reply))
    (func (export "canister_query show")
        (call $append (i32.const 8) (i32.const 8)) (call $reply)))"#;

struct Saved {
    replica: Replica,
    module: Module,
    /// With its module.
    whole: Vec<u8>,
    /// Without its module.
    bare: Vec<u8>,
}

fn saved(folder: &Path) -> Saved {
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister.update(CALLER, "bump", &[]).unwrap().outcome.unwrap();
    let path = folder.join("saved");
    canister.save(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    canister.save_with_note(&path, "a note").unwrap();
    Saved { replica, module, whole, bare: fs::read(&path).unwrap() }
}

/// Damaged files: a description and the bytes.
fn damaged(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (header, rest) = parts(whole);
    let length = serde_json::to_vec(&header).unwrap().len();
    let module = 48 + length + 8;
    let memories = whole.len() - rest.memories.len();
    let mut files = vec![
        ("nothing".to_owned(), Vec::new()),
        ("text".to_owned(), b"this is no saved canister\n".repeat(9_000)),
        ("zeros".to_owned(), vec![0; whole.len()]),
        ("reversed".to_owned(), whole.iter().rev().copied().collect()),
        ("without the first byte".to_owned(), whole[1..].to_vec()),
        ("a byte before it".to_owned(), [b"\0", whole].concat()),
    ];
    // Cut off, in each of its parts.
    let ends = [
        1,
        7,
        8,
        15,
        16,
        47,
        48,
        49,
        60,
        48 + length / 2,
        47 + length,
        48 + length,
        module - 1,
        module,
        module + 1,
        module + rest.module.len() / 2,
        memories - 1,
        memories,
        memories + 1,
        memories + 4_096,
        whole.len() / 2,
        whole.len() - 4_096,
        whole.len() - 1,
    ];
    let end = module + rest.module.len();
    // Zeros up to the next page may be missing without harm.
    files.extend(ends.map(|end| (format!("cut at {end}"), whole[..end].to_vec())));
    // A bit of the preamble, the header, the checksums, and the module.
    for at in (0..48).step_by(3).chain((48..end).step_by(37)).chain(48 + length..module) {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1 << (at % 8);
        files.push((format!("a bit at {at}"), bytes));
    }
    for claimed in [0, 1, length as u64 - 1, length as u64 + 1, 200 << 20, 1 << 40, u64::MAX] {
        let mut bytes = whole.to_vec();
        bytes[8..16].copy_from_slice(&claimed.to_le_bytes());
        files.push((format!("a header of {claimed} bytes"), bytes));
    }
    files
}

/// Intact files with an impossible state.
fn invented(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (header, rest) = parts(whole);
    let mut files = Vec::new();
    let mut add = |what: String, text: &[u8]| files.push((what, sealed(text, &rest)));
    for field in header.keys() {
        let mut without = header.clone();
        without.remove(field);
        add(format!("no {field}"), &serde_json::to_vec(&without).unwrap());
        for value in [json!(null), json!(-1), json!(0.5), json!({}), json!([[]]), json!([{}])] {
            let mut other = header.clone();
            let what = format!("{field} {value}");
            other.insert(field.clone(), value);
            add(what, &serde_json::to_vec(&other).unwrap());
        }
    }
    for (field, value) in [
        ("format", json!(0)),
        ("format", json!(2)),
        ("format", json!(u32::MAX)),
        ("rules", json!("")),
        ("rules", json!("2024-01")),
        ("rules", json!("\u{1b}[2J".repeat(1_000))),
        ("id", json!("not a principal")),
        ("id", json!(vec![1; 30])),
        ("controllers", json!(["x"])),
        ("balance", json!("")),
        ("balance", json!("-1")),
        ("balance", json!("340282366920938463463374607431768211456")),
        ("balance", json!("9".repeat(100_000))),
        ("version", json!(1e300)),
        ("version", json!(u64::MAX)),
        ("time", json!(u64::MAX)),
        ("certified_data", json!([256])),
        ("module_hash", json!("00".repeat(32))),
        ("module_hash", json!("é".repeat(32))),
        ("heap", json!(0)),
        ("heap", json!(4_096)),
        ("heap", json!(65_536)),
        ("heap", json!(5_u64 << 30)),
        ("heap", json!(u64::MAX)),
        ("heap", json!(u64::MAX - 65_535)),
        ("stable", json!(1)),
        ("stable", json!((500_u64 << 30) + 65_536)),
        ("stable", json!(u64::MAX)),
        ("stable", json!(u64::MAX - 65_535)),
        ("globals", json!([{ "I32": 7 }])),
        ("globals", json!([{ "I64": 7 }, { "I64": 7 }])),
        ("globals", json!([{ "I64": "7" }])),
        ("more", json!(1)),
    ] {
        let mut other = header.clone();
        let what = format!("{field} {}", value.to_string().chars().take(40).collect::<String>());
        other.insert(field.to_owned(), value);
        add(what, &serde_json::to_vec(&other).unwrap());
    }
    let text = serde_json::to_string(&header).unwrap();
    for (what, text) in [
        ("no JSON", "header".to_owned()),
        ("two headers", text.repeat(2)),
        ("a list", format!("[{text}]")),
        ("a field twice", text.replacen('{', "{\"version\":1,", 1)),
        ("deep", format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))),
    ] {
        add(what.to_owned(), text.as_bytes());
    }
    files
}

fn is_refused(loaded: Result<Canister, LoadError>) -> bool {
    match loaded {
        Ok(_) => false,
        // The file exists and can be read.
        Err(LoadError::Io(error)) => panic!("{error}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            true
        }
    }
}

#[test]
fn invalid_files_are_not_loaded() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Saved { replica, module, whole, bare } = saved(folder.path());
    let path = folder.path().join("tried");
    let mut files = Vec::new();
    for (whole, has_module) in [(&whole, true), (&bare, false)] {
        let tried = [damaged(whole), invented(whole)].concat().into_iter();
        files.extend(tried.map(|(what, bytes)| (what, bytes, has_module)));
    }
    assert!(files.len() >= 120, "{}", files.len());
    println!("{} states", files.len());
    for (what, bytes, has_module) in files {
        fs::write(&path, &bytes).unwrap();
        for long in [false, true] {
            if long {
                // The file has the claimed length, but holes.
                File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
            }
            let began = now();
            let loaded = if has_module {
                replica.load(&path)
            } else {
                replica.load_with_note(&path, &module).map(|(canister, _)| canister)
            };
            let _ = saved_note(&path);
            assert!(began.elapsed() < LONGEST, "{what}: {:?}", began.elapsed());
            // Truncated zeros are present again.
            let whole = long && what.starts_with("cut at");
            assert!(is_refused(loaded) || whole, "{what}");
        }
        bounded_memory(&what);
    }
}

/// Possible states are loaded, and the canister continues.
#[test]
fn possible_states_are_loaded() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Saved { replica, whole, .. } = saved(folder.path());
    let path = folder.path().join("tried");
    let (header, rest): (serde_json::Map<String, Value>, Rest) = parts(&whole);
    for (field, value) in [
        ("version", json!(0)),
        ("version", json!(1_u64 << 60)),
        ("time", json!(0)),
        ("time", json!(1_u64 << 60)),
        ("timer", json!(u64::MAX)),
        ("balance", json!("0")),
        ("balance", json!(u128::MAX.to_string())),
        ("heap_limit", json!(0)),
        ("heap_limit", json!(u64::MAX)),
        ("controllers", json!([])),
        ("certified_data", json!([])),
        ("globals", json!([])),
    ] {
        let mut other = header.clone();
        let what = format!("{field} {value}");
        other.insert(field.to_owned(), value);
        fs::write(&path, sealed(&serde_json::to_vec(&other).unwrap(), &rest)).unwrap();
        let mut canister = replica.load(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
        let _ = canister.query(CALLER, "show", &[]).unwrap();
        let _ = canister.update(CALLER, "bump", &[]).unwrap();
        canister.save(&path).unwrap();
        replica.load(&path).unwrap();
    }
}
