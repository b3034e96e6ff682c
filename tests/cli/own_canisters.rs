//! `call`, `profile` and `serve` with canisters as people deploy them: with arguments of the
//! installation, upgrades, interfaces in several places, certificates, logs, variables and memories.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::serve::{module, reply};
use crate::{Server, command, fails, output_of, refused, signal, stderr, stdout, succeeds};

/// Replies with the argument of its installation, counts, keeps both over an upgrade, prints, and
/// reads a certificate.
const SHELF: &str = r#"(module
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "data_certificate_size" (func $certificate (result i32)))
    (memory 5)
    (data (i32.const 1) "DIDL\00\01\78")
    (data (i32.const 100) "added")
    (data (i32.const 110) "about to fail\nreally")
    (func $keep (export "canister_init")
        (i32.store (i32.const 64) (call $size))
        (call $copy (i32.const 1024) (i32.const 0) (call $size)))
    (func (export "canister_pre_upgrade")
        (drop (call $grow (i64.const 1)))
        (call $write (i64.const 0) (i64.const 0) (i64.const 4096)))
    (func (export "canister_post_upgrade")
        (call $read (i64.const 0) (i64.const 0) (i64.const 4096)))
    (func (export "canister_query settings")
        (call $append (i32.const 1024) (i32.load (i32.const 64))) (call $reply))
    (func $count (export "canister_query count")
        (call $append (i32.const 1) (i32.const 15)) (call $reply))
    (func (export "canister_update add")
        (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
        (call $print (i32.const 100) (i32.const 5)) (call $count))
    (func (export "canister_query echo")
        (call $copy (i32.const 2048) (i32.const 0) (call $size))
        (call $append (i32.const 2048) (call $size)) (call $reply))
    (func (export "canister_update certify") (call $certify (i32.const 1024) (i32.const 32))
        (call $count))
    (func (export "canister_query certificate")
        (i64.store (i32.const 8) (i64.extend_i32_u (call $certificate))) (call $count))
    (func $fail (export "canister_update fail")
        (call $print (i32.const 110) (i32.const 20)) unreachable)
    INTERFACE)"#;

const INTERFACE: &str = r#"type Settings = record { owner : principal; start : nat64 };
service : (Settings) -> { settings : () -> (Settings) query; count : () -> (nat64) query;
  add : (nat64) -> (nat64); echo : (nat64) -> (nat64) query; certify : () -> (nat64);
  certificate : () -> (nat64) query; fail : () -> () }"#;

fn write(folder: &Path, name: &str, interface: &str) {
    let text = SHELF.replace("INTERFACE", interface);
    fs::write(folder.join(name), wat::parse_str(text).unwrap()).unwrap();
}

/// A folder with the canister as `shelf.wasm` and `bank.wasm`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let section = format!("(@custom \"icp:public candid:service\" {INTERFACE:?})");
    write(folder.path(), "shelf.wasm", &section);
    write(folder.path(), "bank.wasm", &section);
    folder
}

#[track_caller]
fn outputs(args: &[&str], folder: &Path) -> (String, String) {
    let output = succeeds(args, folder);
    (stdout(&output), stderr(&output))
}

#[track_caller]
fn failure(args: &[&str], folder: &Path) -> String {
    stderr(&fails(args, folder))
}

const INIT: &str = r#"(record { owner = principal "aaaaa-aa"; start = 5 })"#;

#[test]
fn canisters_are_installed_with_arguments_that_name_each_other() {
    let folder = folder();
    let folder = folder.path();
    let missing = failure(&["call", "shelf.wasm", "settings"], folder);
    let expected = "shelf is installed with arguments of the type (record { owner : principal; start \
                    : nat64 }); give them: --init '(…)'";
    assert!(missing.contains(expected), "{missing}");
    assert_eq!(missing.lines().count(), 1, "{missing}");
    let other = ["call", "shelf.wasm", "settings", "--init", INIT, "--with=bank.wasm"];
    let missing = failure(&other, folder);
    assert!(missing.contains("give them: --init-of bank '(…)'"), "{missing}");

    let (shelf, bank) = ("lxzze-o7777-77777-aaaaa-cai", "lqy7q-dh777-77777-aaaaq-cai");
    let of_shelf = r#"(record { owner = principal "{bank}"; start = 7 })"#;
    let of_bank = r#"(record { owner = principal "{shelf}"; start = 8 })"#;
    let others = ["--with=bank=shelf.wasm", "--init", of_shelf, "--init-of", "bank", of_bank];
    let call = [&["call", "shelf.wasm", "settings", "--save=s"][..], &others].concat();
    let (reply, notes) = outputs(&call, folder);
    assert!(notes.contains(&format!("bank is {bank}")), "{notes}");
    assert!(reply.starts_with(&format!("(record {{ owner = principal \"{bank}\"; ")), "{reply}");
    let (reply, _) = outputs(&["call", bank, "settings", "--state=s"], folder);
    assert!(reply.starts_with(&format!("(record {{ owner = principal \"{shelf}\"; ")), "{reply}");
    let profile = ["profile", "--wasm=shelf.wasm", "--call", "count", "--format=folded"];
    outputs(&[&profile[..], &others].concat(), folder);
    // From files, in which names are the same.
    fs::write(folder.join("shelf.args"), of_shelf).unwrap();
    fs::write(folder.join("bank.args"), of_bank).unwrap();
    let files = ["--init=@shelf.args", "--init-of", "bank", "@bank.args", "--with=bank=shelf.wasm"];
    let (of_files, _) = outputs(&[&call[..3], &files].concat(), folder);
    let (of_texts, _) = outputs(&[&call[..3], &others].concat(), folder);
    assert_eq!(of_files, of_texts);

    for (more, text) in [
        (&["--state=s", "--init", INIT][..], "--init: the canister is saved"),
        (&["--init", INIT, "--init-of", "bnak", INIT], "there is no canister bnak; there is shelf"),
        (&["--init", INIT, "--init-of", "shelf", INIT], "shelf has two arguments"),
        (&["--init", "(1)"], "do not fit the installation of shelf, which takes (record {"),
        (&["--init", "@missing"], "cannot read missing"),
        (&["--with=i=bank.wasm"], "i=bank.wasm: {i} is the number of a call with --repeat; choose"),
        (&["--init", r#"(record { owner = principal "{x}"; start = 1 })"#], "no canister x"),
    ] {
        let error = failure(&[&["call", "shelf.wasm", "settings"], more].concat(), folder);
        assert!(error.contains(text), "{more:?}: {error}");
    }
}

/// The canisters are saved at the start, and read from there.
#[test]
fn served_canisters_are_installed_with_arguments() {
    let folder = folder();
    let folder = folder.path();
    let error = failure(&["serve", "bank.wasm", "shelf.wasm", "--port=0", "--init", INIT], folder);
    assert!(error.contains("give them: --init-of shelf '(…)'"), "{error}");
    let of_shelf = r#"(record { owner = principal "{bank}"; start = 7 })"#;
    let arguments = ["bank=shelf.wasm", "shelf.wasm", "--init", INIT, "--init-of", "shelf"];
    let server = Server::start(&[&arguments[..], &[of_shelf, "--state=s"]].concat(), folder);
    let [bank, shelf] = &server.canisters[..] else { panic!("{}", server.printed) };
    let (bank, shelf) = (bank.clone(), shelf.clone());
    drop(server);
    let (reply, _) = outputs(&["call", &shelf, "settings", "--state=s"], folder);
    assert!(reply.starts_with(&format!("(record {{ owner = principal \"{bank}\"; ")), "{reply}");
}

#[test]
fn steps_are_taken_one_after_the_other_with_their_costs() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("calls"), "# more\nadd (1)\ncount\n").unwrap();
    let call = ["call", "shelf.wasm", "--init", INIT];
    let steps = ["add", "(1)", "--repeat=3", "--upgrade=bank.wasm", "--upgrade-args", INIT];
    let more = ["settings", "echo", "({i})", "--repeat=12", "--calls=calls", "--save=s"];
    let (printed, _) = outputs(&[&call[..], &steps, &more].concat(), folder);
    insta::assert_snapshot!(printed);
    // The same, one command after the other.
    let state = ["--state=s", "--save=s"];
    let (count, _) = outputs(&["call", "lxzze-o7777-77777-aaaaa-cai", "count", state[0]], folder);
    assert!(count.starts_with("(4 : nat64)"), "{count}");
    // Each function of an upgrade, and a failure with what happened before it.
    let upgrade = ["call", "shelf.wasm", "--init", INIT, "--upgrade=bank.wasm"];
    let error = failure(&upgrade, folder);
    assert!(error.contains("bank is installed with arguments of the type"), "{error}");
    let (printed, _) = outputs(&[&upgrade[..], &["--upgrade-args", INIT]].concat(), folder);
    for part in ["upgraded to bank\n", "\ncanister_pre_upgrade ", "\ncanister_post_upgrade "] {
        assert!(printed.contains(part), "{printed}");
    }
    let output = fails(&[&call[..], &["add", "(1)", "fail", "add", "(2)"]].concat(), folder);
    let (printed, error) = (stdout(&output), stderr(&output));
    assert!(printed.starts_with("add: (1 : nat64)\n"), "{printed}");
    assert!(error.contains("fail: "), "{error}");
    assert_eq!(printed.matches("\n fail ").count(), 1, "{printed}");
    let error = failure(&call, folder);
    assert!(error.contains("name a method of the canister; it has add, certificate"), "{error}");
}

/// Motoko's compiler writes the constructor's types to a section of their own.
#[test]
fn types_of_a_constructor_can_be_in_a_section_of_their_own() {
    let folder = folder();
    let service = INTERFACE.replace("(Settings) -> ", "");
    let section = format!(
        "(@custom \"icp:private candid:service\" {service:?})\
         (@custom \"icp:private candid:args\" \"(settings : Settings)\")"
    );
    write(folder.path(), "actor.wasm", &section);
    let call = ["call", "actor.wasm", "settings"];
    let error = failure(&call, folder.path());
    assert!(error.contains("arguments of the type (record { owner : principal; "), "{error}");
    let (reply, _) = outputs(&[&call[..], &["--init", INIT]].concat(), folder.path());
    assert!(reply.starts_with("(record { owner = principal \"aaaaa-aa\"; "), "{reply}");
    let upgrade = ["--init", INIT, "--upgrade=actor.wasm"];
    let error = failure(&[&call[..], &upgrade].concat(), folder.path());
    assert!(error.contains("give them: --upgrade-args '(…)'"), "{error}");
}

/// An interface that lies, a mistake in a file, standard input twice, and a file of someone else.
#[test]
fn nothing_is_lost_by_a_mistake() {
    let folder = folder();
    let folder = folder.path();
    let lies = INTERFACE.replace("echo : (nat64) -> (nat64)", "echo : (nat64) -> (text)");
    fs::write(folder.join("lies.did"), lies).unwrap();
    let call = ["call", "shelf.wasm", "--init", INIT, "--candid=lies.did"];
    let output = fails(&[&call[..], &["add", "(1)", "echo", "(5)"]].concat(), folder);
    let (printed, error) = (stdout(&output), stderr(&output));
    assert!(printed.starts_with("add: (1 : nat64)\n") && printed.contains("\n echo "), "{printed}");
    assert!(error.contains("echo: the reply is not of the method's type: "), "{error}");
    let error = failure(&[&call[..], &["echo", "(5)"]].concat(), folder);
    assert!(error.contains("not of the method's type") && error.contains("\ninstructions "));
    assert!(error.len() < 1_000, "{error}");

    let call = &call[..4];
    fs::write(folder.join("calls"), "add (1)\n\nnothing\n").unwrap();
    let error = failure(&[call, &["--calls=calls"]].concat(), folder);
    assert!(error.contains("line 3 of calls: the canister has no method nothing; "), "{error}");
    let error = failure(&[call, &["echo", "--args-file=-", "--calls=-"]].concat(), folder);
    assert!(error.contains("standard input is read once"), "{error}");

    let module = fs::read(folder.join("bank.wasm")).unwrap();
    let error = failure(&[call, &["add", "(1)", "--save=bank.wasm"]].concat(), folder);
    assert!(error.contains("bank.wasm is replaced by saved canisters only"), "{error}");
    assert!(fs::read(folder.join("bank.wasm")).unwrap() == module);
    fs::write(folder.join("s"), "").unwrap();
    for _ in 0..2 {
        outputs(&[call, &["add", "(1)", "--save=s"]].concat(), folder);
    }
}

#[test]
fn an_interface_is_found_where_it_is() {
    let folder = folder();
    let folder = folder.path();
    let data = format!("(data (i32.const 8192) {INTERFACE:?} \"\\00\")");
    let export =
        format!("(func (export \"get_candid_pointer\") (result i32) (i32.const 8192)) {data}");
    write(folder, "exported.wasm", &export);
    write(folder, "bare.wasm", "");
    let endless = "(func (export \"get_candid_pointer\") (result i32) (loop (br 0)) unreachable)";
    write(folder, "endless.wasm", endless);
    fs::write(folder.join("shelf.did"), INTERFACE).unwrap();
    fs::write(folder.join("wrong.did"), "service : {\n  get : () -> nat }").unwrap();

    for module in [&["exported.wasm"][..], &["bare.wasm", "--candid=shelf.did"]] {
        let call = [&["call"][..], module, &["settings"]].concat();
        assert!(failure(&call, folder).contains("give them: --init"), "{module:?}");
        let (reply, _) = outputs(&[&call[..], &["--init", INIT]].concat(), folder);
        assert!(reply.starts_with("(record { owner = principal \"aaaaa-aa\"; "), "{reply}");
    }
    // Without one, the reply shows its own types, and arguments have those of their text.
    for module in ["bare.wasm", "endless.wasm"] {
        let call = ["call", module, "echo", "(5 : nat8, \"a\")"];
        let (reply, _) = outputs(&call, folder);
        assert!(reply.starts_with("(5 : nat8, \"a\")"), "{reply}");
        let profile = ["profile", "--wasm", module, "--format=folded", "--call"];
        outputs(&[&profile[..], &["echo", "(5)"]].concat(), folder);
        let error = failure(&["call", module, "nothing"], folder);
        assert!(error.contains("has no method nothing; it has "), "{error}");
    }
    let (reply, _) = outputs(&["call", "bare.wasm", "echo", "--args-hex=4449444c00017d05"], folder);
    assert!(reply.starts_with("(5 : nat)"), "{reply}");
    let (reply, _) = outputs(&["call", "bare.wasm", "echo", "--args-hex=00 ff"], folder);
    assert!(reply.starts_with("0x00ff"), "{reply}");
    let long = "x".repeat(200_000);
    fs::write(folder.join("long"), format!("(\"{long}\")")).unwrap();
    let (reply, _) = outputs(&["call", "bare.wasm", "echo", "--args-file=long"], folder);
    assert!(reply.contains(&format!("\"{long}\"")), "{}", &reply[..100]);
    let mut child = command(&["call", "bare.wasm", "echo", "--args-file=-"], folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"DIDL\0\x01\x71\x02hi").unwrap();
    assert!(stdout(&child.wait_with_output().unwrap()).starts_with("(\"hi\")"));

    let error = failure(&["call", "bare.wasm", "echo", "--candid=wrong.did"], folder);
    assert!(error.contains("not valid Candid: unexpected token") && error.contains("in line 2"));
    assert_eq!(error.matches("unexpected token").count(), 1, "{error}");
    assert!(!error.contains('\u{1b}'), "{error}");
}

/// A module whose export is broken can be called, and a sentence says why it has no interface.
#[test]
fn a_broken_interface_is_noted() {
    let folder = folder();
    let folder = folder.path();
    let pointer = "(func (export \"get_candid_pointer\") (result i32)";
    for (body, reason) in [
        ("unreachable)", "it fails: Canister trapped: unreachable"),
        ("(i32.const -1))", "it returns the address 4294967295, which is not in the memory"),
        ("(i32.const 327679)) (data (i32.const 327679) \"a\")", "no zero byte ends the text at"),
        (
            "(i32.const 8192)) (data (i32.const 8192) \"\\ff\\00\")",
            "the text at the address 8192 that it returns is not UTF-8",
        ),
        ("(i32.const 8192)) (data (i32.const 8192) \"service : {}\\00\")", ""),
    ] {
        write(folder, "broken.wasm", &format!("{pointer} {body}"));
        for command in [&["call", "broken.wasm"][..], &["profile", "--wasm=broken.wasm", "--call"]]
        {
            let (_, notes) = outputs(&[command, &["echo", "(5)"]].concat(), folder);
            let note = "the interface is not taken from the export get_candid_pointer: ";
            let expected = if reason.is_empty() { 0 } else { 1 };
            assert_eq!(notes.matches(&format!("{note}{reason}")).count(), expected, "{notes}");
            assert_eq!(notes.contains("; give it with --candid FILE\n"), expected == 1, "{notes}");
        }
    }
}

/// More than a message can have, and more methods than a line has room for.
#[test]
fn what_is_too_large_is_refused_in_a_line() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "bare.wasm", "");
    fs::write(folder.join("large"), vec![b'D'; 3_000_000]).unwrap();
    for (args, target) in [
        (&["call", "bare.wasm", "echo", "--args-file=large"][..], "echo"),
        (&["call", "bare.wasm", "echo", "--init=@large"], "the installation of bare"),
        (&["call", "bare.wasm", "--upgrade=bare.wasm", "--args-file=large"], "the upgrade to bare"),
    ] {
        let error = failure(args, folder);
        let expected = format!(
            "stablebench: the argument of {target} has 3 000 000 bytes, and a message at most \
             2 097 152; send it in several messages\n"
        );
        assert!(error.contains(&expected), "{error}");
    }
    let method = |number: u32| format!("(export \"canister_query method_{number}\" (func $count))");
    write(folder, "many.wasm", &(0..100).map(method).collect::<String>());
    for error in [
        failure(&["call", "many.wasm", "method_999"], folder),
        failure(&["call", "many.wasm"], folder),
        failure(&["profile", "--wasm=many.wasm", "--call", "method_999"], folder),
    ] {
        assert!(error.contains(" more\n"), "{error}");
        assert!(error.lines().all(|line| line.chars().count() <= 130), "{error}");
    }
}

/// One message, with the place and a hint, and without colours.
#[test]
fn mistakes_in_arguments_are_marked_once() {
    let folder = folder();
    let call = ["call", "shelf.wasm", "--init", INIT, "echo"];
    for (arguments, marked) in [
        ("(hi)", "  (hi)\n   ^^"),
        ("(1, \"a\" \"b\")", "  (1, \"a\" \"b\")\n          ^^^"),
        ("(1", "  (1\n    ^"),
    ] {
        let error = failure(&[&call[..], &[arguments]].concat(), folder.path());
        assert!(error.contains(marked), "{error}");
        assert!(error.contains("text is in quotes, as in '(\"hi\", 1)'"), "{error}");
        assert_eq!(error.matches("not Candid").count(), 1, "{error}");
        assert!(!error.contains('\u{1b}'), "{error}");
    }
    let error = failure(&[&call[..], &["(\"a\")"]].concat(), folder.path());
    assert!(error.contains("(\"a\") do not fit echo, which takes (nat64): "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    let error = failure(&[&call[..4], &["settings", "5"]].concat(), folder.path());
    assert!(error.contains("in quotes: settings '(5)': the canister has no method 5; "), "{error}");
    let error = failure(&call, folder.path());
    assert!(error.contains("echo takes (nat64); write the values behind it"), "{error}");
}

#[test]
fn queries_read_certificates() {
    let folder = folder();
    let call = ["call", "shelf.wasm", "--init", INIT, "certify", "certificate"];
    let (printed, _) = outputs(&call, folder.path());
    let size = printed.lines().find_map(|line| line.strip_prefix("certificate: ("));
    let size = size.and_then(|rest| rest.split_once(" : nat64"));
    let size: u64 = size.unwrap().0.replace('_', "").parse().unwrap();
    // A signature of 48 bytes, a tree with the data of 32 bytes, and the names of their parts.
    assert!((150..400).contains(&size), "{printed}");
    let profile = ["profile", "--wasm=shelf.wasm", "--init", INIT, "--call", "certificate"];
    let (printed, _) = outputs(&profile, folder.path());
    assert!(printed.contains("ic0.data_certificate_size"), "{printed}");
}

#[test]
fn what_canisters_print_is_shown() {
    let folder = folder();
    let folder = folder.path();
    let call = ["call", "shelf.wasm", "--init", INIT];
    let (_, notes) = outputs(&[&call[..], &["add", "(1)"]].concat(), folder);
    assert!(!notes.contains("added"), "{notes}");
    let shown = ["add", "(1)", "--show-canister-output"];
    let (_, notes) = outputs(&[&call[..], &shown].concat(), folder);
    assert!(notes.contains("shelf: added\n"), "{notes}");
    let error = failure(&[&call[..], &["fail"]].concat(), folder);
    let (printed, reject) = error.split_once("shelf: about to fail\nshelf: really\n").unwrap();
    assert!(!printed.contains("unreachable") && reject.contains("unreachable"), "{error}");
    // The names of functions, as on the network for a caller that sees the log.
    assert!(reject.contains("fail"), "{error}");
    let profile = ["profile", "--wasm=shelf.wasm", "--init", INIT, "--call"];
    let notes = failure(&[&profile[..], &["fail"]].concat(), folder);
    assert!(notes.contains("shelf: about to fail\n"), "{notes}");
}

#[test]
fn an_installation_and_a_call_of_seconds_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let count = "(func $count (local $n i64)
        (loop $again
            (local.set $n (i64.add (local.get $n) (i64.const 1)))
            (br_if $again (i64.lt_u (local.get $n) (i64.const 4_000_000_000)))))";
    let exports =
        r#"(export "canister_init" (func $count)) (export "canister_update count" (func $count))"#;
    let module = wat::parse_str(format!("(module {count} {exports})")).unwrap();
    fs::write(folder.path().join("slow.wasm"), module).unwrap();
    let error = failure(&["call", "slow.wasm", "count"], folder.path());
    assert!(error.contains("installing slow") && error.contains("calling count"), "{error}");
    assert!(error.contains("did not reply"), "{error}");
}

/// Replies the variable `NAME`, its first byte in `canister_init`, and the first byte of stable
/// memory, or none and 0.
const TELLER: &str = r#"(module
    (import "ic0" "env_var_name_exists" (func $exists (param i32 i32) (result i32)))
    (import "ic0" "env_var_value_size" (func $size (param i32 i32) (result i32)))
    (import "ic0" "env_var_value_copy" (func $copy (param i32 i32 i32 i32 i32)))
    (import "ic0" "stable64_size" (func $pages (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (data (i32.const 0) "DIDL\00\03\71\7b\7b")
    (data (i32.const 16) "NAME")
    (func $value
        (if (call $exists (i32.const 16) (i32.const 4)) (then
            (i32.store8 (i32.const 32) (call $size (i32.const 16) (i32.const 4)))
            (call $copy (i32.const 16) (i32.const 4) (i32.const 33) (i32.const 0)
                (i32.load8_u (i32.const 32))))))
    (func (export "canister_init")
        (call $value)
        (i32.store8 (i32.const 200) (i32.load8_u (i32.const 33)))
        (memory.fill (i32.const 32) (i32.const 0) (i32.const 130)))
    (func $tell
        (call $append (i32.const 0) (i32.const 9))
        (call $value)
        (call $append (i32.const 32) (i32.add (i32.const 1) (i32.load8_u (i32.const 32))))
        (call $append (i32.const 200) (i32.const 1))
        (if (i64.ne (call $pages) (i64.const 0)) (then
            (call $read (i64.const 201) (i64.const 0) (i64.const 1))))
        (call $append (i32.const 201) (i32.const 1))
        (call $reply))
    (export "canister_query tell" (func $tell))
    (export "canister_update tell_too" (func $tell))
    (@custom "icp:public candid:service"
        "service : { tell : () -> (text, nat8, nat8) query; tell_too : () -> (text, nat8, nat8) }"))"#;

fn teller() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    module(directory.path(), "teller.wasm", TELLER);
    fs::write(directory.path().join("memory"), [7; 70_000]).unwrap();
    fs::write(directory.path().join("other"), [9]).unwrap();
    directory
}

/// Returns the reply that `call` prints.
#[track_caller]
fn called(method: &str, options: &[&str], directory: &Path) -> String {
    let arguments = [&["call", "teller.wasm", method], options].concat();
    let output = succeeds(&arguments, directory);
    stdout(&output).lines().next().unwrap().to_owned()
}

#[test]
fn a_called_canister_has_its_variables_and_memory() {
    let directory = teller();
    let directory = directory.path();
    assert_eq!(called("tell", &[], directory), r#"("", 0 : nat8, 0 : nat8)"#);
    let given = ["--env", "NAME=a=b", "--env=OTHER=", "--stable-memory=memory", "--save=state"];
    // 97 is the letter a, which was set before canister_init ran.
    let expected = r#"("a=b", 97 : nat8, 7 : nat8)"#;
    assert_eq!(called("tell_too", &given, directory), expected);
    assert_eq!(called("tell", &["--state=state"], directory), expected);
    // A saved canister gets them too, and keeps its other variables.
    let given = ["--state=state", "--env=OTHER=1", "--stable-memory=other", "--save=state"];
    assert_eq!(called("tell_too", &given, directory), r#"("a=b", 97 : nat8, 9 : nat8)"#);
    let given = ["--state=state", "--env=NAME="];
    assert_eq!(called("tell", &given, directory), r#"("", 97 : nat8, 9 : nat8)"#);
}

#[test]
fn a_served_canister_has_its_variables_and_memory() {
    let directory = teller();
    let directory = directory.path();
    let expected = |text: &str, first: u8, stable: u8| {
        let length = [text.len() as u8];
        [b"DIDL\0\x03\x71\x7b\x7b", &length[..], text.as_bytes(), &[first, stable]].concat()
    };
    let arguments = ["teller.wasm", "--state=state", "--env", "NAME=one"];
    let mut server =
        Server::start(&[&arguments[..], &["--stable-memory=memory"]].concat(), directory);
    assert_eq!(reply(&server, "tell"), expected("one", b'o', 7));
    signal(server.id(), "-INT");
    assert_eq!(server.wait(), Some(0));
    // The saved canister keeps its stable memory, and gets other variables.
    let mut server =
        Server::start(&["teller.wasm", "--state=state", "--env", "NAME=two"], directory);
    assert_eq!(reply(&server, "tell"), expected("two", b'o', 7));
    signal(server.id(), "-INT");
    assert_eq!(server.wait(), Some(0));
    let again = [&["serve", "--port=0"], &arguments[..], &["--stable-memory=other"]].concat();
    let words = refused(&again, directory);
    assert!(
        words.contains(
            "state contains canisters, whose stable memory other would replace at every start; \
             leave out --stable-memory, or choose another --state"
        ),
        "{words}"
    );
    let server = Server::start(&["teller.wasm", "--state=state"], directory);
    assert_eq!(reply(&server, "tell"), expected("two", b'o', 7));
}

#[test]
fn invalid_variables_and_memories_are_refused_first() {
    let directory = teller();
    let directory = directory.path();
    let long = format!("--env=NAME={}", "x".repeat(129));
    let long_name = format!("--env={}=1", "n".repeat(129));
    let many: Vec<String> = (0..33).map(|at| format!("--env=N{at}=")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (options, words) in [
        (&["--env=NAME"][..], "a variable is NAME=VALUE, where VALUE may be empty"),
        (&["--env", "=1"], "a variable has a name: NAME=VALUE"),
        (&["--env=A=1", "--env=B=1", "--env=A=2"], "--env A is given twice; leave one out"),
        (&[&long], "--env cannot be set: Environment variable value"),
        (&[&long_name], "--env cannot be set: Environment variable name"),
        (&many, "--env cannot be set: Too many environment variables: 33 (max: 32)"),
        (&["--stable-memory=missing"], "cannot read stable memory from missing: No such file"),
        (&["--stable-memory=."], "cannot read stable memory from .: it is not a regular file"),
    ] {
        for command in [&["call", "teller.wasm", "tell"][..], &["serve", "teller.wasm", "--port=0"]]
        {
            let expected = refused(&[command, options].concat(), directory);
            assert!(expected.contains(words), "{command:?} {words}: {expected}");
        }
    }
    assert!(!directory.join("state").exists());
}

#[test]
fn an_unknown_backend_for_memories_is_one_message() {
    let directory = teller();
    let call = ["call", "teller.wasm", "tell"];
    let mut unknown = command(&call, directory.path());
    let output = unknown.env("STABLEBENCH_MEMORY", "mmap").output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    let text = stderr(&output);
    let words = "the environment variable STABLEBENCH_MEMORY is \"mmap\"; here it can be ";
    assert!(text.contains(words) && text.trim_end().ends_with("portable"), "{text}");
    for backend in ["", "portable"] {
        output_of(command(&call, directory.path()).env("STABLEBENCH_MEMORY", backend));
    }
}
