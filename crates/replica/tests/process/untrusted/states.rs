//! Files of saved canisters.

use std::fs::{self, File};
use std::path::Path;

use serde_json::{Value, json};
use stablebench_replica::{Canister, LoadError, Module, Replica, Rules, saved_note};

use super::sealed::{Rest, parts, sealed};
use super::{LONGEST, alone, bounded_memory, now};
use crate::support::CALLER;

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
