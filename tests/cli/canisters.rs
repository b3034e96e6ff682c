//! The search for the canisters' sources.

use std::path::Path;

use super::{building, command, stderr, stdout};

#[test]
fn a_checkout_is_found_above_the_current_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [root, &root.join("src/canisters")] {
        let output = command(&["call", "bench", "describe"], folder)
            .env_remove("CARGO_MANIFEST_DIR")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains("\ninstructions "), "{}", stdout(&output));
    }
}

#[test]
fn outside_of_a_checkout_the_error_names_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    for manifest in [None, Some(directory.path())] {
        for args in [&["build", "bench"][..], &["call", "bench", "describe"], &["run", "users"]] {
            let mut command = command(args, directory.path());
            command.env_remove("CARGO_MANIFEST_DIR");
            let output = command.envs(manifest.map(|it| ("CARGO_MANIFEST_DIR", it))).output();
            let output = output.unwrap();
            assert_eq!(output.status.code(), Some(2), "{args:?}");
            let error = stderr(&output);
            assert!(error.contains("is in no checkout of stablebench"), "{error}");
            assert!(error.contains("`just install`"), "{error}");
        }
        // No program contains all of its builds.
        let mut command = command(&["run", "builds"], directory.path());
        let output = command.env_remove("CARGO_MANIFEST_DIR").output().unwrap();
        let error = stderr(&output);
        assert!(error.contains("the suite builds compiles its canister; run this in"), "{error}");
    }
}

/// It would change the names of symbols, and so the module.
#[test]
fn no_wrapper_of_the_compiler_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = building(&["build", "bench_calls"], directory.path());
    let output = command.env("RUSTC_WORKSPACE_WRAPPER", "/nowhere/wrapper").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
