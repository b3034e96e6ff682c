//! Flame graphs.

use anyhow::{Context, Result};
use inferno::flamegraph::color::{BackgroundColor, BasicPalette};
use inferno::flamegraph::{Options, Palette, from_lines};

use super::folded::{difference, folded};
use super::{Flame, Heading};
use crate::report::number::{Factor, Grouped};

/// Letters that a line above a picture has room for.
const LINE: usize = 165;

/// The flame graph.
pub fn svg(flame: &Flame, heading: &Heading) -> Result<String> {
    let mut counted = format!("{} instructions", Grouped(flame.instructions));
    if flame.messages != 1 {
        counted += &format!(" in {} messages", Grouped(flame.messages));
    }
    if flame.heap_pages > 0 {
        counted += &format!(" and {} for heap pages", Grouped(flame.heap_pages));
    }
    draw(&folded(flame), heading, &counted)
}

/// The flame graph of the second with its differences from the first: red where it took more,
/// blue where less. What only the first did is not in it.
pub fn svg_of_difference(before: &Flame, after: &Flame, heading: &Heading) -> Result<String> {
    let (one, other) = (before.all(), after.all());
    let factor = Factor(other as f64 / one as f64);
    let counted =
        format!("{} instructions before, {} after: {factor}", Grouped(one), Grouped(other));
    draw(&difference(before, after), heading, &counted)
}

fn draw(lines: &str, heading: &Heading, counted: &str) -> Result<String> {
    let mut options = Options::default();
    options.title = heading.title.clone();
    options.subtitle = Some(short(format!("{counted} · {}", heading.command)));
    options.count_name = "instructions".to_owned();
    // A function has one colour, in each picture.
    options.colors = Palette::Basic(BasicPalette::Hot);
    options.bgcolors = Some(BackgroundColor::Grey);
    options.deterministic = true;
    let mut picture = Vec::new();
    from_lines(&mut options, lines.lines(), &mut picture)
        .context("the flame graph cannot be drawn")?;
    String::from_utf8(picture).context("the flame graph is no text")
}

/// The line, cut where it would be wider than the picture.
fn short(line: String) -> String {
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
