//! The suite keys.

use anyhow::Result;

use super::lane::Plan;
use super::outline::Outline;
use crate::cli::KeysArgs;

/// The name in results.
pub const NAME: &str = "keys";

/// What a section is about, from its name in results.
pub fn describe(_section: &str) -> Option<String> {
    None
}

/// What the arguments mean.
///
/// # Errors
///
/// Where they ask for the impossible.
pub fn plan(args: &KeysArgs) -> Result<Plan> {
    let outline = Outline::new(NAME, format!("stablebench run {NAME}"), &args.run);
    Ok(Plan { outline, lanes: Vec::new() })
}
