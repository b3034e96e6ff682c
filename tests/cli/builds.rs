//! The suite builds, and the command for a user's own crate.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::{CACHE, command, in_cache, output_of, stderr, stdout};

const MANIFEST: &str = r#"
[package]
name = "small"
version = "0.1.0"
edition = "2021"

[lib]
crate-type = ["cdylib"]

[features]
talc = []

[workspace]
"#;

/// Two methods: one adds numbers, and one replies whether the crate was built with vectors.
const SOURCE: &str = r#"
use std::hint::black_box;

#[link(wasm_import_module = "ic0")]
extern "C" {
    fn msg_reply();
    fn msg_reply_data_append(from: usize, bytes: usize);
}

const INTERFACE: &str = "service : { add : () -> (nat64); vectors : () -> (nat64) query }";

#[used]
#[link_section = "icp:public candid:service"]
static CANDID: [u8; INTERFACE.len()] = {
    let mut bytes = [0; INTERFACE.len()];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = INTERFACE.as_bytes()[at];
        at += 1;
    }
    bytes
};

fn reply(number: u64) {
    let mut bytes = b"DIDL\x00\x01\x78".to_vec();
    bytes.extend(number.to_le_bytes());
    unsafe {
        msg_reply_data_append(bytes.as_ptr() as usize, bytes.len());
        msg_reply();
    }
}

#[export_name = "canister_update add"]
pub extern "C" fn add() {
    reply((0..black_box(1000)).map(|number| black_box(number) / 3).sum());
}

#[export_name = "canister_query vectors"]
pub extern "C" fn vectors() {
    reply(cfg!(target_feature = "simd128").into());
}
"#;

/// Writes the crate `small` to a folder.
fn small(folder: &Path) {
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(folder.join("src/lib.rs"), SOURCE).unwrap();
}

/// A command for the crate in a folder, whose target folder is there too.
fn builds(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = in_cache(&CACHE, &["builds"], folder);
    command.args(arguments).env_remove("CARGO_TARGET_DIR").env_remove("CARGO_MANIFEST_DIR");
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    builds(folder, arguments).output().unwrap()
}

fn results(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the outcome of a case.
fn outcome<'a>(results: &'a Value, name: &str, build: &str) -> &'a Value {
    let cases = results["cases"].as_array().unwrap();
    let found = cases.iter().find(|case| case["name"] == name && case["configuration"] == build);
    &found.unwrap_or_else(|| panic!("{name}, {build} is missing"))["outcome"]
}

fn instructions(results: &Value, name: &str, build: &str) -> u64 {
    let outcome = outcome(results, name, build);
    outcome["measured"]["instructions"].as_u64().unwrap_or_else(|| panic!("{build}: {outcome}"))
}

#[test]
fn a_crate_is_compared_over_builds() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let keys = ["default", "opt-level=1", "allocator=talc", "overflow-checks=on", "panic=unwind"];
    let mut arguments = vec!["--call", "add", "()", "--call", "vectors", "()"];
    arguments.extend(["--call", "add", "()"]);
    arguments.extend(keys.iter().flat_map(|key| ["--build", key]));
    let output = output_of(&mut builds(folder.path(), &arguments));
    let results = results(&folder.path().join("builds.json"));
    let measured = |build| instructions(&results, "add ()", build);
    // Calls that are repeated have cases of their own.
    assert!(instructions(&results, "add (), 2", "default") > 1_000);
    // The feature changes nothing here; an overflow check costs at least a branch for each number.
    assert_eq!(measured("allocator=talc"), measured("default"));
    assert!(measured("overflow-checks=on") >= measured("default") + 1_000);
    assert!(instructions(&results, "compile, estimated", "opt-level=1") > 100 * 6_000);
    let reason = outcome(&results, "add ()", "panic=unwind")["not_applicable"]["reason"].as_str();
    assert!(reason.unwrap().contains("panic"), "{reason:?}");
    let table = stdout(&output);
    assert!(table.contains("panic=unwind: "), "{table}");
    assert!(table.contains("Instructions are those of whole messages."), "{table}");
    // The command repeats the run, and other commands understand the file.
    let command = results["command"].as_str().unwrap();
    assert!(
        command.contains("--call add '()' --call vectors '()' --call add '()' --rules"),
        "{command}"
    );
    for arguments in [
        &["report", "builds.json", "--format", "markdown"][..],
        &["compare", "builds.json", "--configurations", "default", "opt-level=1"],
    ] {
        output_of(&mut in_cache(&CACHE, arguments, folder.path()));
    }
}

#[test]
fn another_reply_than_that_of_the_first_build_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let calls = ["--call", "vectors", "()", "--call", "add", "()"];
    let output = run(
        folder.path(),
        &[&calls[..], &["--build", "default", "--build", "simd128=on"]].concat(),
    );
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("call: vectors (), simd128=on: the reply is not that"), "{error}");
    let results = results(&folder.path().join("builds.json"));
    assert!(outcome(&results, "vectors ()", "simd128=on")["failed"].is_object());
    assert!(instructions(&results, "add ()", "simd128=on") > 0);
}

/// Writes a program that copies modules and counts its runs.
fn stand_in(folder: &Path, version: &str) {
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'wasm-opt version {version}'; exit; fi\n\
         echo run >>'{}/runs'\ncp \"$1\" \"$3\"\n",
        folder.display()
    );
    executable(&folder.join("wasm-opt"), &text);
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_module_is_optimised_again_only_if_it_or_the_program_changed() {
    let folder = tempfile::tempdir().unwrap();
    let programs = tempfile::tempdir().unwrap();
    small(folder.path());
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.path().display());
    let optimised = || {
        let arguments = ["--call", "add", "()", "--build", "wasm-opt=O2"];
        output_of(builds(folder.path(), &arguments).env("PATH", &path));
        fs::read_to_string(programs.path().join("runs")).unwrap().lines().count()
    };
    stand_in(programs.path(), "7");
    assert_eq!(optimised(), 1);
    assert_eq!(optimised(), 1);
    stand_in(programs.path(), "8");
    assert_eq!(optimised(), 2);
    fs::write(folder.path().join("src/lib.rs"), SOURCE.replace("1000", "999")).unwrap();
    assert_eq!(optimised(), 3);
    let results = results(&folder.path().join("builds.json"));
    let programs = &results["canisters"][0]["crates"];
    assert_eq!(programs[1]["name"], "wasm-opt");
    assert_eq!(programs[1]["version"], "8");
}

#[test]
fn a_missing_program_is_a_row_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let programs = tempfile::tempdir().unwrap();
    small(folder.path());
    for program in ["cargo", "rustc"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        let found = stdout(&found.unwrap());
        symlink(found.trim(), programs.path().join(program)).unwrap();
    }
    let keys = ["default", "wasm-opt=O3", "ic-wasm=shrink"];
    let mut arguments = vec!["--call", "add", "()"];
    arguments.extend(keys.iter().flat_map(|key| ["--build", key]));
    let output = output_of(builds(folder.path(), &arguments).env("PATH", programs.path()));
    let table = stdout(&output);
    for reason in [
        "wasm-opt=O3: wasm-opt is missing; install it: apt-get install binaryen",
        "ic-wasm=shrink: ic-wasm is missing; install it: cargo install ic-wasm",
    ] {
        assert!(table.contains(reason), "{table}");
    }
}

#[test]
fn an_ic_wasm_without_the_command_is_a_row_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let programs = tempfile::tempdir().unwrap();
    small(folder.path());
    let script = "#!/bin/sh\n\
                  case $* in *optimize*) echo \"error: unexpected argument 'optimize' found\" >&2; exit 2 ;; esac\n\
                  if [ \"$1\" = --version ]; then echo 'ic-wasm 0.11.1'; else cp \"$1\" \"$3\"; fi\n";
    executable(&programs.path().join("ic-wasm"), script);
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    let arguments = ["--call", "add", "()", "--build", "ic-wasm=shrink", "--build", "ic-wasm=O3"];
    output_of(builds(folder.path(), &arguments).env("PATH", path));
    let results = results(&folder.path().join("builds.json"));
    assert!(outcome(&results, "add ()", "ic-wasm=shrink")["measured"].is_object());
    let optimised = outcome(&results, "add ()", "ic-wasm=O3");
    let reason = optimised["not_applicable"]["reason"].as_str().unwrap();
    assert!(reason.ends_with("install an earlier one: cargo install ic-wasm@0.10.0"), "{reason}");
}

/// Binaryen is optional.
#[test]
fn wasm_opt_makes_a_module_that_replies_the_same() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let arguments =
        ["--call", "add", "()", "--build", "opt-level=1", "--build", "opt-level=1,wasm-opt=O3"];
    output_of(&mut builds(folder.path(), &arguments));
    let results = results(&folder.path().join("builds.json"));
    let optimised = outcome(&results, "add ()", "opt-level=1,wasm-opt=O3");
    match Command::new("wasm-opt").arg("--version").output() {
        Ok(_) => {
            let bytes = |at: usize| results["canisters"][at]["bytes"].as_u64().unwrap();
            assert!(bytes(1) < bytes(0));
            assert!(optimised["measured"].is_object(), "{optimised}");
        }
        Err(_) => assert!(optimised["not_applicable"].is_object(), "{optimised}"),
    }
}

#[test]
fn mistakes_name_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let call = ["--call", "add", "()"];
    let fails = |arguments: &[&str], expected: &str| {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = stderr(&output);
        assert!(error.contains(expected), "{error}");
    };
    fails(&call, "name the crate's Cargo.toml with --manifest-path");
    small(folder.path());
    let build = |key| [&call[..], &["--build", key]].concat();
    fails(&build("lto=slim"), "slim is not a value of lto: it is one of off, thin, fat");
    fails(&[], "--call <METHOD> <ARGUMENTS>");
    fails(&build("panic=unwind"), " cannot be built: the crate `panic_unwind`");
    let default = |method| ["--call", method, "()", "--build", "default"];
    fails(&default("subtract"), "the canister has no method subtract; it has add, vectors");
    fs::write(folder.path().join("src/lib.rs"), SOURCE.replace("candid:service", "other")).unwrap();
    fails(&default("add"), "and there is no small.did next to its Cargo.toml; name a file with");
    fails(&[&call[..], &["--package=other"]].concat(), "has no package other; it has small");
    // Nothing is compiled for mistakes that the file of the interface shows.
    fs::write(folder.path().join("src/lib.rs"), "no Rust").unwrap();
    fs::write(folder.path().join("small.did"), "service : { add : (nat64) -> () }").unwrap();
    fails(&default("subtract"), "the canister has no method subtract; it has add");
    fails(&default("add"), "the arguments () do not fit add, which takes (nat64)");
    fails(&[&call[..], &["--candid=none.did"]].concat(), "cannot read none.did");
}

/// The folder has another name than the package, and the workspace has two.
#[test]
fn the_interface_is_in_the_file_of_the_package() {
    let folder = tempfile::tempdir().unwrap();
    let member = folder.path().join("backend");
    fs::create_dir(&member).unwrap();
    small(&member);
    let manifest = MANIFEST.replace("\n[workspace]\n", "");
    fs::write(member.join("Cargo.toml"), &manifest).unwrap();
    fs::write(member.join("src/lib.rs"), SOURCE.replace("candid:service", "other")).unwrap();
    fs::write(member.join("small.did"), "service : { add : () -> (nat64) }").unwrap();
    let other = folder.path().join("other");
    fs::create_dir_all(other.join("src")).unwrap();
    fs::write(other.join("Cargo.toml"), manifest.replace("small", "other")).unwrap();
    fs::write(other.join("src/lib.rs"), "").unwrap();
    let workspace = "[workspace]\nmembers = [\"backend\", \"other\"]\nresolver = \"2\"\n";
    fs::write(folder.path().join("Cargo.toml"), workspace).unwrap();
    let call = ["--call", "add", "()", "--build", "default"];
    let output = run(folder.path(), &call);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("one of its packages with --package: small, other"), "{error}");
    for more in [&["--package=small"][..], &["--manifest-path=backend/Cargo.toml"]] {
        output_of(&mut builds(folder.path(), &[&call[..], more].concat()));
    }
    let results = results(&folder.path().join("builds.json"));
    assert_eq!(results["canisters"][0]["name"], "small/default");
    assert_eq!(results.get("planned"), None);
}

/// The canister of the suite, in one build, with all kinds of work. Everything that it reads is
/// compared with the model.
#[test]
fn the_suite_measures_every_kind_of_work() {
    // The fastest build: with this `lto`, cargo reuses macros and build scripts of the program.
    const BUILD: &str = "opt-level=1,lto=off";
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["run", "builds", "--build", BUILD, "--rows=2000", "--batch=100", "--no-wall-time"];
    // A wrapper of the compiler would change the names of symbols, and so the module: it is not used.
    let mut command = command(&arguments, folder.path());
    let output = output_of(command.env("RUSTC_WORKSPACE_WRAPPER", "/nowhere/wrapper"));
    let results = results(&folder.path().join("builds.json"));
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 11);
    let measured = |name| instructions(&results, name, BUILD);
    assert!(measured("BTreeMap on the heap") < measured("StableBTreeMap"));
    assert!(measured("SHA-256 of 1 000 000 bytes") > 10_000_000);
    assert_eq!(results["canisters"][0]["name"], format!("bench_builds/{BUILD}"));
    let table = stdout(&output);
    // A single build has nothing to be compared with.
    assert!(!table.contains("For both"), "{table}");
    // A single row has no settings of SQLite and no amplification of writes to compare.
    assert!(!table.contains("The settings of SQLite"), "{table}");
}
