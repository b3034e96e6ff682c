//! Comparison of files, of cases of one canister and of several, as the programs print it.

use std::io::{self, Write};
use std::path::PathBuf;

use stablebench_replica::text::safe;

use crate::case::Case;
use crate::compare::{Outcome, check_file};
use crate::error::{Error, Failure};
use crate::subnet::{self, SubnetCase};
use crate::target::Target;

/// Runs files of cases on a target and prints the differences. Returns true if there are none. If the
/// target fails, the differences found so far are printed.
///
/// # Errors
///
/// If a file cannot be used, the target failed, or stdout cannot be written.
pub fn compared(
    target: &mut dyn Target,
    files: &[PathBuf],
    mut begin: impl FnMut(&str, usize),
) -> Result<bool, Failure> {
    let mut outcome = Outcome::default();
    let checked: Result<(), Error> = files.iter().try_for_each(|file| {
        if subnet::is_file_of_subnets(file)? {
            let begin = |case: &SubnetCase| begin(&case.name, case.steps.len());
            return subnet::check_file(target, file, &mut outcome, begin);
        }
        let begin = |case: &Case| begin(&case.name, case.calls.len());
        check_file(target, file, &mut outcome, begin)
    });
    let mut text = String::new();
    for difference in &outcome.differences {
        text += &format!("{}\n", safe(&difference.to_string()));
    }
    if checked.is_ok() {
        text += &format!("{} passed, {} failed\n", outcome.passed, outcome.differences.len());
    }
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    checked?;
    Ok(outcome.differences.is_empty())
}
