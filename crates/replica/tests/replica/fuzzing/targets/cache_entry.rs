//! Bytes as damage to the file of a compiled module. The file is used only if it is unchanged, because
//! it contains machine code; otherwise it is rebuilt with a note.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use arbitrary::{Result, Unstructured};
use stablebench_replica::cache::Note;
use stablebench_replica::{Replica, Rules};

use super::damage::damaged_file;
use super::{CALLER, bounded_memory, folder, met};

const NAME: &str = "cache_entry";

const MODULE: &str = r#"(module
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
            let (replica, _) = replica(folder.path());
            replica.compile(wasm).unwrap();
            let mut entries = fs::read_dir(folder.path()).unwrap();
            let path = entries.next().unwrap().unwrap().path();
            assert!(entries.next().is_none(), "one module, one entry");
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        };
        let wasm = wat::parse_str(MODULE).expect("a module");
        let (name, whole) = entry(&wasm);
        let (_, other) = entry(&wat::parse_str("(module (memory 3))").expect("a module"));
        let fresh = folder();
        let seen = seen(&replica(fresh.path()).0, &wasm);
        Kept { wasm, name, whole, other, seen }
    })
}

/// A replica with that cache, and its notes.
fn replica(folder: &Path) -> (Replica, Arc<Mutex<Vec<Note>>>) {
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
    let _ = shaped(&mut Unstructured::new(bytes));
    bounded_memory();
}

fn shaped(input: &mut Unstructured<'_>) -> Result<()> {
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
    let (found, told) = replica(folder.path());
    assert_eq!(&seen(&found, wasm), expected);
    let told = std::mem::take(&mut *told.lock().unwrap());
    if entry == *whole {
        assert!(told.is_empty(), "{told:?}");
        met(NAME, "taken");
        return Ok(());
    }
    assert!(matches!(&told[..], [Note::Damaged { .. }]), "{told:?}");
    met(NAME, "rebuilt");
    // The entry was written again.
    let (again, told) = replica(folder.path());
    assert_eq!(&seen(&again, wasm), expected);
    assert!(told.lock().unwrap().is_empty());
    Ok(())
}
