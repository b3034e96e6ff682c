//! Damage to files: of saved canisters, and of compiled modules.
//!
//! ```text
//!   saved_state   as bytes     without new checksums: the file is refused, or the state is unchanged
//!                 as fields    another header with matching checksums: it is refused, or the canister
//!                              continues
//!   cache_entry   the file is used only if it is unchanged, because it contains machine code;
//!                 otherwise it is rebuilt with a note
//! ```

use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use stablebench_replica::cache::Note;
use stablebench_replica::{Canister, Module, Replica, Rules, saved_note};

use super::bounded::{bounded_memory, damaged_file, folder, met};
use super::content::{CALLER, Content, parts, replica, sealed};

const SAVED_STATE: &str = "saved_state";
const NOTE: &str = "a note";

/// Has state in everything that is saved.
const CANISTER: &str = r#"(module
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
        let module = replica().compile(&wat::parse_str(CANISTER).expect("a module")).unwrap();
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
    let _ = damage_state(&mut Unstructured::new(bytes));
    bounded_memory();
}

fn damage_state(input: &mut Unstructured<'_>) -> Result<()> {
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
            met(SAVED_STATE, "loaded");
            goes_on(&canister);
        }
        Err(error) => {
            assert_ne!(bytes, saved().whole, "{error}");
            met(SAVED_STATE, "refused");
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
            met(SAVED_STATE, "loaded");
        }
        Err(error) => {
            assert_ne!(bytes, saved().noted, "{error}");
            met(SAVED_STATE, "refused");
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
    met(
        SAVED_STATE,
        if loaded.iter().any(Option::is_some) { "fields taken" } else { "fields refused" },
    );
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
        met(SAVED_STATE, "went on");
    }
    assert_eq!(Content::of(canister), content);
}

const CACHE_ENTRY: &str = "cache_entry";

const COMPILED: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (memory 1)
    (global $n (mut i64) (i64.const 7)) (global $f (mut f64) (f64.const 0.5))
    (data (i32.const 100) "some data")
    (func (export "canister_query show")
        (i64.store (i32.const 64) (i64.add (global.get $n) (call $grow (i64.const 1))))
        (call $append (i32.const 64) (i32.const 50)) (call $reply))
    (@custom "icp:public what" "ever"))"#;

/// An entry as it was written.
struct Kept {
    wasm: Vec<u8>,
    name: String,
    whole: Vec<u8>,
    /// That of another module.
    other: Vec<u8>,
    seen: String,
}

fn kept() -> &'static Kept {
    static KEPT: OnceLock<Kept> = OnceLock::new();
    KEPT.get_or_init(|| {
        let entry = |wasm: &[u8]| {
            let folder = folder();
            let (replica, _) = with_cache(folder.path());
            replica.compile(wasm).unwrap();
            let mut entries = fs::read_dir(folder.path()).unwrap();
            let path = entries.next().unwrap().unwrap().path();
            assert!(entries.next().is_none(), "one module, one entry");
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        };
        let wasm = wat::parse_str(COMPILED).expect("a module");
        let (name, whole) = entry(&wasm);
        let (_, other) = entry(&wat::parse_str("(module (memory 3))").expect("a module"));
        let fresh = folder();
        let seen = seen(&with_cache(fresh.path()).0, &wasm);
        Kept { wasm, name, whole, other, seen }
    })
}

/// A replica with that cache, and its notes.
fn with_cache(folder: &Path) -> (Replica, Arc<Mutex<Vec<Note>>>) {
    let told = Arc::<Mutex<Vec<Note>>>::default();
    let notes = Arc::clone(&told);
    let tell = move |note| notes.lock().unwrap().push(note);
    let replica = Replica::with_notes(Rules::of_2025_10(), Some(folder.to_owned()), tell).unwrap();
    (replica, told)
}

/// The observable behaviour and properties of a module.
fn seen(replica: &Replica, wasm: &[u8]) -> String {
    let module = replica.compile(wasm).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let installed = canister.install(&module, CALLER, &[]).unwrap();
    let shown = canister.query(CALLER, "show", &[]).unwrap();
    let counted = |of: &stablebench_replica::Execution| (of.instructions, of.charge, of.cycles);
    format!(
        "{:?} {:?} {:?} {:?}",
        module.info(),
        (counted(&installed), &installed.outcome),
        (counted(&shown), &shown.outcome),
        canister.heap_size(),
    )
}

/// Compiles the module with an entry that the bytes have damaged.
pub fn cache_entry(bytes: &[u8]) {
    // Bytes that are too short for an input are ignored.
    let _ = damage_entry(&mut Unstructured::new(bytes));
    bounded_memory();
}

fn damage_entry(input: &mut Unstructured<'_>) -> Result<()> {
    let Kept { wasm, name, whole, other, seen: expected } = kept();
    let entry = match input.int_in_range(0..=7)? {
        0 => input.bytes(input.len())?.to_vec(),
        1 => damaged_file(other, input)?,
        // The start of one entry and the end of another.
        2 => {
            let at = input.choose_index(whole.len().min(other.len()))?;
            [&whole[..at], &other[at..]].concat()
        }
        // Another length of the header, which the checksum does not cover.
        3 => {
            let mut entry = whole.clone();
            let length = *input.choose(&[0, 1, u64::MAX, 1 << 40, whole.len() as u64 - 48])?;
            let length = if input.arbitrary()? { length } else { input.arbitrary()? };
            entry[8..16].copy_from_slice(&length.to_le_bytes());
            entry
        }
        _ => damaged_file(whole, input)?,
    };
    let folder = folder();
    let path = folder.path().join(name);
    fs::write(&path, &entry).unwrap();
    let (found, told) = with_cache(folder.path());
    assert_eq!(&seen(&found, wasm), expected);
    let told = std::mem::take(&mut *told.lock().unwrap());
    if entry == *whole {
        assert!(told.is_empty(), "{told:?}");
        met(CACHE_ENTRY, "taken");
        return Ok(());
    }
    assert!(matches!(&told[..], [Note::Damaged { .. }]), "{told:?}");
    met(CACHE_ENTRY, "rebuilt");
    // The entry was written again.
    let (again, told) = with_cache(folder.path());
    assert_eq!(&seen(&again, wasm), expected);
    assert!(told.lock().unwrap().is_empty());
    Ok(())
}
