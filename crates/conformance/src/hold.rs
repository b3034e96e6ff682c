//! Files of recorded cases held against a target.

use std::path::Path;

use crate::compare::Outcome;
use crate::file::directory;
use crate::record::answers;
use crate::target::Target;
use crate::{Case, Error, read};

/// Runs the cases of a file and adds what became of them. `begin` is told each case as
/// it begins.
///
/// # Errors
///
/// If the file cannot be used or the target failed. What became of the cases before is
/// in `outcome`.
pub fn hold(
    target: &mut dyn Target,
    path: &Path,
    outcome: &mut Outcome,
    mut begin: impl FnMut(&Case),
) -> Result<(), Error> {
    for case in read(path)? {
        begin(&case);
        outcome.compare(&case, &answers(target, &case, directory(path))?);
    }
    Ok(())
}
