//! The suite cuckoo.

use anyhow::Result;

use super::lane::Plan;
use super::outline::Outline;
use crate::cli::CuckooArgs;

/// The name in results.
pub const NAME: &str = "cuckoo";

/// What a section is about, from its name in results.
pub fn describe(_section: &str) -> Option<String> {
    None
}

/// What the arguments mean.
///
/// # Errors
///
/// Where they ask for the impossible.
pub fn plan(args: &CuckooArgs) -> Result<Plan> {
    let outline = Outline::new(NAME, format!("stablebench run {NAME}"), &args.run);
    Ok(Plan { outline, lanes: Vec::new() })
}
