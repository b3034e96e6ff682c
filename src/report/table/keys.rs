//! Tables of the suite keys alone.

use anyhow::Result;

use super::grid::{Grid, Style};
use crate::results::Results;

pub fn grids(_results: &Results, _style: Style) -> Result<Vec<Grid>> {
    Ok(Vec::new())
}
