//! `stablebench readme`: the parts of README.md that are made from `results/`, made anew.

use anyhow::{Context, Result, bail};

use crate::canisters::root;
use crate::report::readme::{Reference, renewed};
use crate::results::save_text;

/// Renews the file, or fails where it would change.
pub fn readme(check: bool) -> Result<()> {
    let path = root().join("README.md");
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!("cannot read {}; this is for a clone of the repository", path.display())
    })?;
    let new = renewed(&text, &Reference::read(root())?).context("README.md")?;
    match check {
        _ if new == text => Ok(()),
        true => bail!("README.md is not what results/ say; renew it: stablebench readme"),
        false => save_text(&path, &new),
    }
}
