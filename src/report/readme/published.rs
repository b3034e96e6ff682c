//! The forum post's table, corrected, with our figures.

use anyhow::{Context, Result};

use super::{Reference, again};
use crate::report::style::Style;
use crate::report::table::published;

pub fn part(reference: &Reference) -> Result<String> {
    let results = &reference.users_as_published;
    let name = results.published.as_deref().context("the run is not as published")?;
    let mut grid = published::grid(results, name, Style::MARKDOWN)?;
    grid.title.clear();
    Ok(format!("{}\n{}", grid.render(Style::MARKDOWN), again(results)))
}
