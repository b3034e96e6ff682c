use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use ic_principal::Principal;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::rules::Rules;
use crate::{Effort, Replica, Span};

const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (global $n (mut i64) (i64.const 7))
    (global $f (mut f64) (f64.const 0.5))
    (data (i32.const 100) "some data")
    (data (i32.const 70) "more")
    (func (export "canister_query show")
        (call $append (i32.const 64) (i32.const 50))
        (call $reply))
    (func (export "canister_query trap")
        (drop (i32.div_u (i32.const 1) (i32.const 0))))
    (@custom "icp:public what" "ever"))"#;

/// A replica with a cache, and the notes about it.
fn replica(folder: &TempDir) -> (Replica, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let handler = Arc::clone(&notes);
    let tell = move |note: Note| lock(&handler).push(note.to_string());
    (
        Replica::with_notes(Rules::of_2025_10(), Some(folder.path().join("below")), tell).unwrap(),
        notes,
    )
}

fn entries(folder: &TempDir) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder.path().join("below"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

/// The observable behaviour and properties of a module.
fn seen(replica: &Replica) -> String {
    let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let anyone = Principal::anonymous();
    let installed = canister.install(&module, anyone, &[]).unwrap();
    let shown = canister.query(anyone, "show", &[]).unwrap();
    let rewritten = module.rewritten();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        module.info(),
        module.hash(),
        (rewritten.has_heap, rewritten.heap_pages, rewritten.has_start, rewritten.address_width),
        (&rewritten.globals, &rewritten.data),
        (installed.instructions, installed.charge, installed.memory),
        shown.outcome,
        shown.instructions,
    )
}

#[test]
fn a_module_from_the_cache_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (fresh, _) = replica(&folder);
    let expected = seen(&fresh);
    let entries = entries(&folder);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let (again, notes) = replica(&folder);
    // An invalid upload shows that nothing is validated again.
    let key = Sha256::digest(wat::parse_str(MODULE).unwrap()).into();
    let slot = again.compile_as(key, b"nothing", Purpose::Everything).ok().unwrap();
    assert_eq!(slot.info().methods.len(), 2);
    let (again, _) = replica(&folder);
    assert_eq!(seen(&again), expected);
    assert_eq!(lock(&notes).len(), 0);
}

#[test]
fn other_forms_of_a_module_are_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    let wasm = wat::parse_str(MODULE).unwrap();
    let anyone = Principal::anonymous();
    let both = |module: &Module, replica: &Replica| {
        let mut canister = replica.create_canister().unwrap();
        canister.install(module, anyone, &[]).unwrap();
        let trapped = canister.query(anyone, "trap", &[]).unwrap();
        let (shown, profile) = canister.profile_query(anyone, "show", &[], Span::Message).unwrap();
        let nodes: Vec<_> = profile.nodes.iter().map(|node| node.instructions).collect();
        let [trapped, shown] = [trapped, shown].map(|of| (of.outcome, of.instructions, of.charge));
        (trapped, shown, nodes)
    };
    let (fresh, _) = replica(&folder);
    let expected = both(&fresh.compile(&wasm).unwrap(), &fresh);
    assert_eq!(entries(&folder).len(), 3, "normal, exact after a trap, and for profiles");
    // An invalid upload cannot be compiled.
    let (again, notes) = replica(&folder);
    let key = Sha256::digest(&wasm).into();
    let module = again.compile_as(key, b"nothing", Purpose::Everything).ok().unwrap();
    assert_eq!(both(&module, &again), expected);
    assert_eq!(lock(&notes).len(), 0, "{notes:?}");
}

/// A module is compiled with the least effort if it is not there in optimised form. Each form has an
/// entry, and a trap of an operator adds those with exact counts.
#[test]
fn a_module_that_is_not_optimised_has_an_entry_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("below");
    let wasm = wat::parse_str(MODULE).unwrap();
    let anyone = Principal::anonymous();
    let used = |effort, method| {
        let rules = Rules::of_2025_10();
        let replica = Replica::with_effort(effort, rules, Some(path.clone()), |_| {}).unwrap();
        let module = replica.compile(&wasm).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, anyone, &[]).unwrap();
        let of = canister.query(anyone, method, &[]).unwrap();
        (of.outcome, of.instructions, entries(&folder).len())
    };
    let with = |entries, (outcome, instructions, _)| (outcome, instructions, entries);
    let shown = used(Effort::Least, "show");
    assert_eq!(shown.2, 1);
    assert_eq!(used(Effort::Least, "show"), shown, "it is used again");
    // Optimised, and with exact counts.
    let trapped = used(Effort::Least, "trap");
    assert_eq!(trapped.2, 3);
    assert_eq!(used(Effort::Full, "trap"), trapped);
    assert_eq!(used(Effort::Full, "show"), with(3, shown.clone()));
    // The optimised form is preferred.
    let hash = crate::text::hex::encode(&Sha256::digest(&wasm));
    let is_optimised = |path: &PathBuf| path.to_string_lossy().contains(&hash);
    for other in entries(&folder).iter().filter(|path| !is_optimised(path)) {
        fs::remove_file(other).unwrap();
    }
    assert_eq!(used(Effort::Least, "show"), with(1, shown));
}

#[test]
fn a_damaged_entry_is_rebuilt_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let expected = seen(&replica(&folder).0);
    let path = entries(&folder).remove(0);
    let whole = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cut = |end: usize| whole[..end].to_vec();
    let damaged = [
        flipped(0),
        flipped(8),
        flipped(20),
        flipped(60),
        flipped(whole.len() / 2),
        flipped(whole.len() - 1),
        cut(0),
        cut(47),
        cut(whole.len() / 2),
        b"something else".repeat(10),
    ];
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        let (replica, notes) = replica(&folder);
        assert_eq!(seen(&replica), expected);
        let notes = lock(&notes);
        assert!(matches!(&notes[..], [note] if note.contains("is rebuilt")), "{notes:?}");
        assert_eq!(entries(&folder).len(), 1, "no temporary is left");
        assert_eq!(fs::read(&path).unwrap().len(), whole.len(), "it is written again");
    }
}

#[test]
fn an_entry_of_another_module_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = replica(&folder);
    let expected = seen(&first);
    let ours = entries(&folder).remove(0);
    first.compile(&wat::parse_str("(module (memory 3))").unwrap()).unwrap();
    let other = entries(&folder).into_iter().find(|path| *path != ours).unwrap();
    fs::copy(&other, &ours).unwrap();
    let (again, notes) = replica(&folder);
    assert_eq!(seen(&again), expected);
    assert!(lock(&notes)[0].contains("another module"), "{notes:?}");
}

#[test]
fn refused_modules_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (replica, _) = replica(&folder);
    let module = wat::parse_str(r#"(module (import "env" "f" (func)))"#).unwrap();
    let first = replica.compile(&module).unwrap_err();
    assert_eq!(replica.compile(&module).unwrap_err(), first);
    assert!(!folder.path().join("below").exists());
}

/// A file is in the place of the folder.
#[test]
fn a_cache_that_cannot_be_written_only_costs_time() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("below"), "in the way").unwrap();
    let (replica, notes) = replica(&folder);
    seen(&replica);
    assert!(lock(&notes).iter().any(|note| note.contains("could not be written")), "{notes:?}");
    assert_eq!(fs::read(folder.path().join("below")).unwrap(), b"in the way");
}

#[test]
fn threads_that_need_the_same_module_compile_it_once() {
    let rules = Rules::of_2025_10();
    let engine = crate::engine::new(rules, Effort::Full).unwrap();
    let modules = Modules::new(Entries::new(&engine, rules, None, Box::new(|_| {})));
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let wasm = wat::parse_str(MODULE).unwrap();
    let linked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let module = modules.get([1; 32], Purpose::Everything, |_| {
                    linked.fetch_add(1, Ordering::Relaxed);
                    Ok(replica.compile(&wasm).unwrap())
                });
                assert_eq!(module.unwrap().info().methods.len(), 2);
            });
        }
    });
    assert_eq!(linked.into_inner(), 1);
    assert_eq!(lock(&modules.recent).len(), 1);
    for key in 2..20 {
        let link = |_: &Arc<Entries>| Ok(replica.compile(&wasm).unwrap());
        modules.get([key; 32], Purpose::Everything, link).unwrap();
    }
    assert_eq!(lock(&modules.recent).len(), RECENT, "memory is not filled with modules");
}

/// A module that is kept for queries is still refused for other purposes.
#[test]
fn the_purpose_is_checked_for_cached_modules_too() {
    let wasm = wat::parse_str(
        r#"(module (func (export "canister_heartbeat"))
            (func (export "canister_query q")))"#,
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (fresh, _) = replica(&folder);
    let refused = fresh.compile(&wasm).unwrap_err();
    assert!(refused.message.contains("'canister_heartbeat', which the embedded"), "{refused}");
    fresh.compile_for_queries(&wasm).unwrap();
    assert_eq!(entries(&folder).len(), 1);
    // In memory, in the folder, and without a folder.
    assert_eq!(fresh.compile(&wasm).unwrap_err(), refused);
    fresh.compile_for_queries(&wasm).unwrap();
    let (again, notes) = replica(&folder);
    assert_eq!(again.compile(&wasm).unwrap_err(), refused);
    again.compile_for_queries(&wasm).unwrap();
    assert_eq!(again.compile(&wasm).unwrap_err(), refused);
    assert_eq!(lock(&notes).len(), 0, "{notes:?}");
    let without = Replica::new(Rules::of_2025_10(), None).unwrap();
    without.compile_for_queries(&wasm).unwrap();
    assert_eq!(without.compile(&wasm).unwrap_err(), refused);
}
