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
fn outside_of_a_checkout_it_is_the_one_that_the_program_was_built_in() {
    let directory = tempfile::tempdir().unwrap();
    for manifest in [None, Some(directory.path())] {
        let mut command = command(&["call", "bench", "describe"], directory.path());
        command.env_remove("CARGO_MANIFEST_DIR");
        let output = command.envs(manifest.map(|it| ("CARGO_MANIFEST_DIR", it))).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains("\ninstructions "), "{}", stdout(&output));
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left there");
}

/// It would change the names of symbols, and so the module.
#[test]
fn no_wrapper_of_the_compiler_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = building(&["build", "bench_calls"], directory.path());
    let output = command.env("RUSTC_WORKSPACE_WRAPPER", "/nowhere/wrapper").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
