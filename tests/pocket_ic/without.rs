//! A build without the feature says how to get it.

use libtest_mimic::{Failed, Trial};

use crate::tool::{stablebench, stderr, stdout};

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("without::the_tool_says_how_to_get_it", the_tool_says_how_to_get_it)]
}

fn the_tool_says_how_to_get_it() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = stablebench(directory.path());
    let output =
        run.args(["run", "users", "--replica=pocket-ic", "--rows=10", "--batches=1"]).output()?;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(stdout(&output), "");
    assert!(said.contains("--features pocket-ic"), "{said}");
    assert!(std::fs::read_dir(directory.path())?.next().is_none(), "nothing was saved");
    Ok(())
}
