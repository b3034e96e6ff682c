//! Bytes as damage to the file of a saved canister.
//!
//! ```text
//!   as bytes     without new checksums: the file is refused, or the state is unchanged
//!   as fields    another header with matching checksums: it is refused, or the canister continues
//! ```

use std::fs::{self, File};
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use stablebench_replica::{Canister, Module, saved_note};

use super::content::Content;
use super::damage::damaged_file;
use super::sealed::{parts, sealed};
use super::{CALLER, bounded_memory, folder, met, replica};

const NAME: &str = "saved_state";
const NOTE: &str = "a note";

/// Has state in everything that is saved.
const MODULE: &str = r#"(module
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 1 4)
    (global $n (mut i64) (i64.const 7)) (global $f (mut f64) (f64.const 0.5))
    (func (export "canister_update bump")
        (global.set $n (i64.add (global.get $n) (i64.const 1)))
        (i64.store (i32.const 5000) (global.get $n))
        (drop (call $grow (i64.const 1)))
        (call $write (i64.const 65528) (i64.const 5000) (i64.const 8))
        (call $certify (i32.const 5000) (i32.const 8))
        (call $reply))
    (func (export "canister_query show")
        (call $read (i64.const 8) (i64.const 65528) (i64.const 8))
        (call $append (i32.const 0) (i32.const 6000))
        (call $reply)))"#;

/// A canister and its saved files.
struct Saved {
    module: Module,
    content: Content,
    /// With its module.
    whole: Vec<u8>,
    /// Without, with a note.
    noted: Vec<u8>,
}

fn saved() -> &'static Saved {
    static SAVED: OnceLock<Saved> = OnceLock::new();
    SAVED.get_or_init(|| {
        let module = replica().compile(&wat::parse_str(MODULE).expect("a module")).unwrap();
        let mut canister = replica().create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        canister.update(CALLER, "bump", &[]).unwrap().outcome.unwrap();
        let folder = folder();
        let path = folder.path().join("state");
        canister.save(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        canister.save_with_note(&path, NOTE).unwrap();
        let noted = fs::read(&path).unwrap();
        Saved { module, content: Content::of(&canister), whole, noted }
    })
}

/// Loads a file that the bytes have damaged, with all functions that load files.
pub fn saved_state(bytes: &[u8]) {
    // Bytes that are too short for an input are ignored.
    let _ = shaped(&mut Unstructured::new(bytes));
    bounded_memory();
}

fn shaped(input: &mut Unstructured<'_>) -> Result<()> {
    match input.int_in_range(0..=3)? {
        0 => with_module(&damaged_file(&saved().whole, input)?),
        1 => with_note(&damaged_file(&saved().noted, input)?),
        2 => with_fields(&saved().whole, input)?,
        _ => with_fields(&saved().noted, input)?,
    }
    Ok(())
}

/// Damage to a file with its module.
fn with_module(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("state");
    fs::write(&path, bytes).unwrap();
    match replica().load(&path) {
        Ok(canister) => {
            assert_eq!(Content::of(&canister), saved().content);
            met(NAME, "loaded");
            goes_on(&canister);
        }
        Err(error) => {
            assert_ne!(bytes, saved().whole, "{error}");
            met(NAME, "refused");
        }
    }
}

/// Damage to a file with a note.
fn with_note(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("kept.state");
    fs::write(&path, bytes).unwrap();
    let note = saved_note(&path);
    match replica().load_with_note(&path, &saved().module) {
        Ok((canister, loaded)) => {
            assert_eq!((loaded.as_str(), note.unwrap().as_str()), (NOTE, NOTE));
            assert_eq!(Content::of(&canister), saved().content);
            goes_on(&canister);
            met(NAME, "loaded");
        }
        Err(error) => {
            assert_ne!(bytes, saved().noted, "{error}");
            met(NAME, "refused");
        }
    }
}

/// An intact file with another header. It may have the length that the header claims.
fn with_fields(whole: &[u8], input: &mut Unstructured<'_>) -> Result<()> {
    let (mut header, rest) = parts(whole);
    for _ in 0..input.int_in_range(1..=2)? {
        change(&mut header, input)?;
    }
    let text = serde_json::to_vec(&header).unwrap();
    let folder = folder();
    let path = folder.path().join("state");
    fs::write(&path, sealed(&text, &rest)).unwrap();
    if input.arbitrary()? {
        let bytes = 1 << input.int_in_range(10..=40)?;
        File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    }
    let _ = saved_note(&path);
    let loaded = [
        replica().load(&path).ok(),
        replica().load_with_note(&path, &saved().module).ok().map(|(canister, _)| canister),
    ];
    met(NAME, if loaded.iter().any(Option::is_some) { "fields taken" } else { "fields refused" });
    loaded.iter().flatten().for_each(goes_on);
    Ok(())
}

fn change(header: &mut serde_json::Map<String, Value>, input: &mut Unstructured<'_>) -> Result<()> {
    // A possible value.
    if input.arbitrary()? {
        let key =
            *input.choose(&["version", "time", "timer", "heap_limit", "balance", "stable"])?;
        let value = match key {
            "balance" => json!(input.arbitrary::<u128>()?.to_string()),
            "stable" => json!(input.int_in_range(0_u64..=8_192_000)? << 16),
            _ => json!(input.arbitrary::<u64>()?),
        };
        header.insert(key.to_owned(), value);
        return Ok(());
    }
    // Usually an impossible value.
    let keys: Vec<String> = header.keys().cloned().collect();
    let key = input.choose(&keys)?.clone();
    match input.int_in_range(0..=9)? {
        0 => drop(header.remove(&key)),
        1 => drop(header.insert(input.arbitrary()?, json!(1))),
        2 => {
            let other = header[input.choose(&keys)?].clone();
            header.insert(key, other);
        }
        _ => drop(header.insert(key, value(input)?)),
    }
    Ok(())
}

fn value(input: &mut Unstructured<'_>) -> Result<Value> {
    let sizes = [0, 1, 7, 4_096, 65_536, 131_072, 5 << 30, 1 << 40, u64::MAX - 65_535, u64::MAX];
    Ok(match input.int_in_range(0..=11)? {
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(0.5),
        3..=5 => json!(input.choose(&sizes)?),
        6 => json!(input.arbitrary::<u64>()?),
        7 => json!(input.choose(&sizes)?.to_string()),
        8 => json!(u128::MAX.to_string()),
        9 => json!(input.arbitrary::<String>()?),
        10 => json!(input.arbitrary::<Vec<u8>>()?),
        _ => match input.int_in_range(0..=3)? {
            0 => json!([]),
            1 => json!({}),
            2 => json!([{ "I64": 7 }, { "I64": 7 }]),
            _ => {
                json!([{ "I64": input.arbitrary::<u64>()? }, { "F64": input.arbitrary::<u64>()? }])
            }
        },
    })
}

/// A loaded canister can be called and saved.
fn goes_on(canister: &Canister) {
    let content = Content::of(canister);
    let folder = folder();
    let path = folder.path().join("again");
    canister.save(&path).unwrap();
    let again = replica().load(&path).unwrap_or_else(|error| panic!("{error}: {content:?}"));
    assert_eq!(Content::of(&again), content);
    let mut fork = canister.fork();
    let shown = fork.query(CALLER, "show", &[]).unwrap();
    let bumped = fork.update(CALLER, "bump", &[]).unwrap();
    if shown.outcome.is_ok() && bumped.outcome.is_ok() {
        met(NAME, "went on");
    }
    assert_eq!(Content::of(canister), content);
}
