use std::path::PathBuf;

use ic_principal::Principal;

use super::*;
use crate::Replica;
use crate::memory::PAGE;

const MODULE: &str = r#"(module
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 2)
    (global $n (mut i64) (i64.const 7))
    (func (export "canister_update bump")
        (global.set $n (i64.add (global.get $n) (i64.const 1)))
        (i64.store (i32.const 70000) (global.get $n))
        (drop (call $grow (i64.const 1)))
        (call $write (i64.const 65528) (i64.const 70000) (i64.const 8))
        (call $reply))
    (func (export "canister_query show")
        (call $read (i64.const 8) (i64.const 65528) (i64.const 8))
        (i64.store (i32.const 16) (i64.load (i32.const 70000)))
        (i64.store (i32.const 24) (global.get $n))
        (call $append (i32.const 8) (i32.const 24))
        (call $reply)))"#;

#[test]
fn a_loaded_canister_continues_from_its_saved_state() {
    let anyone = Principal::anonymous();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    assert!(canister.save(&path).is_err(), "nothing is installed");
    canister.install(&module, anyone, &[]).unwrap().outcome.unwrap();
    canister.update(anyone, "bump", &[]).unwrap().outcome.unwrap();
    canister.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();

    let mut loaded = replica.load(&path).unwrap();
    let show = |canister: &Canister| canister.query(anyone, "show", &[]).unwrap().outcome.unwrap();
    assert_eq!(show(&loaded), show(&canister));
    assert_eq!(show(&loaded), [8_u64.to_le_bytes(); 3].concat());
    let again = |canister: &mut Canister| {
        let execution = canister.update(anyone, "bump", &[]).unwrap();
        (execution.instructions, execution.charge, execution.cycles, execution.memory)
    };
    assert_eq!(again(&mut loaded), again(&mut canister));
    assert_eq!(loaded.balance(), canister.balance());
    assert_eq!(show(&loaded), [9_u64.to_le_bytes(); 3].concat());
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file is unchanged");
}

#[test]
fn damaged_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
    canister.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for end in [0, 7, 47, 60, 300, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).unwrap();
        assert!(matches!(replica.load(&path), Err(LoadError::Damaged(_))), "cut at {end}");
    }
    for at in [0, 9, 20, 50, 400] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&path, &bytes).unwrap();
        assert!(replica.load(&path).is_err(), "changed at {at}");
    }
    assert!(matches!(replica.load(&directory.path().join("none")), Err(LoadError::Io(_))));
}

/// A canister with data in both memories, saved with a note.
fn noted() -> (tempfile::TempDir, PathBuf, Replica, Module, Vec<u8>) {
    let anyone = Principal::anonymous();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.state");
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, anyone, &[]).unwrap().outcome.unwrap();
    for _ in 0..3 {
        canister.update(anyone, "bump", &[]).unwrap().outcome.unwrap();
    }
    canister.save_with_note(&path, "a note").unwrap();
    let shown = canister.query(anyone, "show", &[]).unwrap().outcome.unwrap();
    (directory, path, replica, module, shown)
}

#[test]
fn a_canister_is_loaded_with_its_note() {
    let (_directory, path, replica, module, shown) = noted();
    let anyone = Principal::anonymous();
    assert_eq!(saved_note(&path).unwrap(), "a note");
    let (loaded, note) = replica.load_with_note(&path, &module).unwrap();
    assert_eq!(note, "a note");
    // A loaded canister does not need the file's name.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded.query(anyone, "show", &[]).unwrap().outcome.unwrap(), shown);
    // Without its module, it cannot be loaded like a file that a user saved.
    loaded.save_with_note(&path, "").unwrap();
    assert!(matches!(replica.load(&path), Err(LoadError::Damaged("its module"))));
    let other = replica.compile(&wat::parse_str("(module)").unwrap()).unwrap();
    assert!(matches!(replica.load_with_note(&path, &other), Err(LoadError::Damaged(_))));
}

/// Every byte of the memories and before them is checked.
#[test]
fn a_damaged_file_with_a_note_is_refused() {
    let (_directory, path, replica, module, _) = noted();
    let whole = std::fs::read(&path).unwrap();
    let (header, offsets, _) = read_header(&File::open(&path).unwrap(), 0).unwrap();
    let ends = [offsets.heap + header.heap, offsets.stable + header.stable].map(|end| end - 1);
    let middles = [offsets.heap + 70_000, offsets.stable + 65_528];
    let before = [0, 8, 16, 47, 48, 60, offsets.checksums, offsets.checksums + 7];
    for at in [&before[..], &middles, &ends].concat() {
        let mut bytes = whole.clone();
        bytes[at as usize] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(replica.load_with_note(&path, &module).is_err(), "changed at {at}");
    }
    for end in [0, 40, 100, offsets.heap as usize + 5, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).unwrap();
        assert!(replica.load_with_note(&path, &module).is_err(), "cut at {end}");
    }
    // The checksum depends on the position of pages.
    let mut bytes = whole.clone();
    let page = offsets.heap as usize + 70_000 / PAGE * PAGE;
    bytes.copy_within(page..page + PAGE, page + PAGE);
    bytes[page..page + PAGE].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    assert!(replica.load_with_note(&path, &module).is_err());
    std::fs::write(&path, &whole).unwrap();
    assert!(replica.load_with_note(&path, &module).is_ok());
}

/// Holes and zeros are equivalent.
#[test]
fn a_copy_without_holes_is_loaded() {
    let (_directory, path, replica, module, shown) = noted();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let (loaded, _) = replica.load_with_note(&path, &module).unwrap();
    let reply = loaded.query(Principal::anonymous(), "show", &[]).unwrap().outcome.unwrap();
    assert_eq!(reply, shown);
}

/// Intact files with impossible headers.
#[test]
fn sizes_and_globals_that_do_not_fit_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
    canister.update(Principal::anonymous(), "bump", &[]).unwrap().outcome.unwrap();
    canister.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(whole[8..16].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&whole[48..48 + length]).unwrap();

    let load = |field: &str, value: serde_json::Value| {
        let mut header = header.clone();
        header[field] = value;
        let text = serde_json::to_vec(&header).unwrap();
        let checksums = [0; 8];
        let mut bytes = preamble(&MAGIC, &text, &checksums);
        bytes.extend(&text);
        bytes.extend(checksums);
        bytes.extend(module.uploaded());
        std::fs::write(&path, &bytes).unwrap();
        // The file has the claimed length, but holes.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        replica.load(&path)
    };
    let same = load("version", 7.into()).unwrap();
    assert_eq!(same.heap_size().get(), 2);
    let most = serde_json::json!({ "n".repeat(128): "v".repeat(128) });
    assert_eq!(load("environment", most).unwrap().environment().len(), 1);
    for (field, value) in [
        ("heap", 4_096.into()),
        ("heap", 65_536.into()),
        ("heap", (5_u64 << 30).into()),
        ("heap", u64::MAX.into()),
        ("heap", (u64::MAX - 65_535).into()),
        ("stable", 4_096.into()),
        ("stable", ((500_u64 << 30) + 65_536).into()),
        ("globals", serde_json::json!([{ "I32": 7 }])),
        ("globals", serde_json::json!([{ "I64": 7 }, { "I64": 7 }])),
        ("environment", (0..33).map(|at| (at.to_string(), "")).collect()),
        ("environment", serde_json::json!({ "n".repeat(129): "" })),
        ("environment", serde_json::json!({ "n": "v".repeat(129) })),
        ("environment", serde_json::json!({ "n": 1 })),
        ("environment", serde_json::Value::Null),
    ] {
        let shown = format!("{field}: {value}");
        assert!(matches!(load(field, value), Err(LoadError::Damaged(_))), "{shown}");
    }
}

/// Files without environment variables have the format from before they were introduced.
#[test]
fn environment_variables_are_saved_only_if_there_are_some() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let (_directory, _, replica, module, _) = noted();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
    canister.save(&path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(before[8..16].try_into().unwrap()) as usize;
    let text = std::str::from_utf8(&before[48..48 + length]).unwrap();
    let fields = [
        "format",
        "note",
        "rules",
        "id",
        "controllers",
        "heap_limit",
        "balance",
        "version",
        "time",
        "timer",
        "certified_data",
        "module_hash",
        "module",
        "heap",
        "stable",
        "globals",
    ];
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
    assert_eq!(header.len(), fields.len());
    let places = fields.map(|field| text.find(&format!("\"{field}\":")).expect(field));
    assert!(places.is_sorted(), "{text}");

    let variables = [("name".to_owned(), "value".to_owned())].into();
    canister.set_environment(variables).unwrap();
    canister.save(&path).unwrap();
    let loaded = replica.load(&path).unwrap();
    assert_eq!(loaded.environment()["name"], "value");
    let (header, ..) = read_header(&File::open(&path).unwrap(), 0).unwrap();
    assert_eq!((header.format, header.environment.len()), (FORMAT, 1));
}

/// Every byte of the memories is checked in files that users save, too.
#[test]
fn damaged_memories_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let (_directory, _, replica, module, _) = noted();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
    for _ in 0..3 {
        canister.update(Principal::anonymous(), "bump", &[]).unwrap().outcome.unwrap();
    }
    canister.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let (header, offsets, _) = read_header(&File::open(&path).unwrap(), 0).unwrap();
    for (memory, size) in [(offsets.heap, header.heap), (offsets.stable, header.stable)] {
        for step in 0..16 {
            let mut bytes = whole.clone();
            bytes[(memory + step * (size - 1) / 15) as usize] ^= 1 << (step % 8);
            std::fs::write(&path, &bytes).unwrap();
            let loaded = replica.load(&path);
            assert!(matches!(loaded, Err(LoadError::Damaged("its memories"))), "step {step}");
        }
    }
    std::fs::write(&path, &whole).unwrap();
    assert!(replica.load(&path).is_ok());
}
