//! `--env` and `--stable-memory` of `call` and `serve`, and variables of the process.

use std::fs;
use std::path::Path;

use crate::serve::{module, reply, signal};
use crate::server::Server;
use crate::{stablebench, stderr, stdout};

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

fn folder() -> tempfile::TempDir {
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
    let output = stablebench(&arguments, directory);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().next().unwrap().to_owned()
}

#[track_caller]
fn refused(arguments: &[&str], directory: &Path) -> String {
    let output = stablebench(arguments, directory);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{arguments:?}");
    stderr(&output)
}

#[test]
fn a_called_canister_has_its_variables_and_memory() {
    let directory = folder();
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
    let directory = folder();
    let directory = directory.path();
    let expected = |text: &str, first: u8, stable: u8| {
        let length = [text.len() as u8];
        [b"DIDL\0\x03\x71\x7b\x7b", &length[..], text.as_bytes(), &[first, stable]].concat()
    };
    let arguments = ["teller.wasm", "--state=state", "--env", "NAME=one"];
    let mut server =
        Server::start(&[&arguments[..], &["--stable-memory=memory"]].concat(), directory);
    assert_eq!(reply(&server, "tell"), expected("one", b'o', 7));
    signal(&server, "-INT");
    assert_eq!(server.wait(), Some(0));
    // The saved canister keeps its stable memory, and gets other variables.
    let mut server =
        Server::start(&["teller.wasm", "--state=state", "--env", "NAME=two"], directory);
    assert_eq!(reply(&server, "tell"), expected("two", b'o', 7));
    signal(&server, "-INT");
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
    let directory = folder();
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
    let directory = folder();
    let call = ["call", "teller.wasm", "tell"];
    let mut command = crate::command(&call, directory.path());
    let output = command.env("STABLEBENCH_MEMORY", "mmap").output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    let text = stderr(&output);
    let words = "the environment variable STABLEBENCH_MEMORY is \"mmap\"; here it can be ";
    assert!(text.contains(words) && text.trim_end().ends_with("portable"), "{text}");
    for backend in ["", "portable"] {
        let mut command = crate::command(&call, directory.path());
        let output = command.env("STABLEBENCH_MEMORY", backend).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}
