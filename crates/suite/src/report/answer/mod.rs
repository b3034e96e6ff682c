//! The answer of a run, on one screen.
//!
//! ```text
//!   users: 1 000 000 rows of 100 bytes, rules 2026-10, 132 cases
//!
//!   a table or two, with short numbers, and with the columns and rows that fit
//!
//!   What to do
//!     sentences that are computed from the figures
//!
//!   two lines on the origin of the figures
//! ```
//!
//! Everything else is in `stablebench report` and in the page.

mod fit;
mod to_do;

use std::fmt::Write;

use anyhow::Result;

use super::Presentation;
use super::grid::Grid;
use super::number::{Grouped, Rows};
use super::style::Style;
use super::tables;
use crate::results::{CanisterInfo, Results};
use crate::terminal::Terminal;
pub use fit::fit;
pub use to_do::{Winner, cache_sizes, cheapest_rows, growth, is_without_journal, shares, winner};

/// The most lines of an answer on a terminal of at least [`WIDTH`] columns.
pub const LINES: usize = 40;
/// The most columns of an answer.
pub const WIDTH: u16 = 100;
/// The lines that are left for sentences, whatever the tables need.
const SENTENCES: usize = 9;
/// The modules that are named.
const MODULES: usize = 2;
/// The lines before the tables and after the sentences.
const FRAME: usize = 6;
/// The lines that follow an answer: the command for all tables, notes, and the prompt of a shell.
const AFTER: usize = 5;
/// The lines before the tables and the sentences of an answer on a short screen, and the lines for
/// its first sentence.
const SHORT_FRAME: usize = 4;
const SENTENCE: usize = 3;

/// Returns the answer of a run as text. `height` is that of the screen; a short one shows the beginning of
/// the first table and the first sentences.
///
/// # Errors
///
/// If published figures cannot be read.
pub fn answer(
    suite: &dyn Presentation,
    results: &Results,
    terminal: Terminal,
    height: Option<usize>,
) -> Result<String> {
    let width = terminal.width.unwrap_or(WIDTH).min(WIDTH);
    let style = Style::of(Terminal { width: Some(width), ..terminal });
    let mut text = String::new();
    if let Some(incomplete) = tables::incomplete(results) {
        writeln!(text, "{}", style.sentence(&incomplete))?;
    }
    writeln!(text, "{}", style.sentence(&heading(results)))?;
    if results.command.contains(" --shard ") {
        let part = "This is a part of a run, and no answer: join the parts with stablebench merge.";
        writeln!(text, "{part}\n\n{}", origin(results, style))?;
        return Ok(text);
    }
    let short = height.filter(|height| *height < LINES).map(|height| height.saturating_sub(AFTER));
    let mut left = match short {
        Some(lines) => lines.saturating_sub(SHORT_FRAME + SENTENCE).max(fit::LEAST),
        None => LINES - FRAME - SENTENCES,
    };
    for grid in chosen(suite, results, style)? {
        if left < fit::LEAST {
            break;
        }
        let mut shown = fit(grid.clone(), style, left).render(style);
        if short.is_some() && shown.lines().count() > left {
            let mut fitted = fit(Grid { notes: Vec::new(), ..grid }, style, left);
            if fitted.notes.iter().any(|note| style.sentence(note).contains('\n')) {
                fitted.notes = vec!["All tables have more.".to_owned()];
            }
            shown = fitted.render(style);
        }
        left = left.saturating_sub(shown.lines().count() + 1);
        write!(text, "\n{shown}")?;
    }
    let mut sentences = suite.to_do(results).unwrap_or_else(|| to_do::sentences(suite, results));
    sentences.truncate(5);
    let bullets = sentences.iter().map(|sentence| bullet(sentence, style));
    let mut bullets: Vec<String> = bullets.collect();
    let lines = |bullets: &[String]| bullets.iter().map(|text| text.lines().count()).sum::<usize>();
    let origin = match short {
        // The tables have it.
        Some(_) => String::new(),
        None => format!("\n{}\n", origin(results, style)),
    };
    // A terminal wraps the command.
    let columns = usize::from(width).max(1);
    let of_origin = origin.lines().map(|line| line.chars().count().max(1).div_ceil(columns));
    // The heading with an empty line, and the line that names the command for all tables.
    let used = text.lines().count() + of_origin.sum::<usize>() + 3;
    let screen = match short {
        Some(lines) => lines + 1,
        // A narrow terminal shows an answer on two screens.
        None if width < WIDTH => 2 * LINES,
        None => LINES,
    };
    while lines(&bullets) > screen.saturating_sub(used) && bullets.len() > 1 {
        bullets.pop();
    }
    if !bullets.is_empty() {
        writeln!(text, "\n{}\n{}", style.heading("What to do"), bullets.join("\n"))?;
    }
    text += &origin;
    Ok(text)
}

/// Returns the first line: suite, rows, rules, cases.
fn heading(results: &Results) -> String {
    let mut sizes: Vec<(u64, u32)> =
        results.cases.iter().map(|case| (case.rows, case.payload)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let rows = match sizes[..] {
        [] | [(0, 0)] => String::new(),
        [(rows, payload)] => format!("{}, ", Rows { rows, payload }),
        [(least, _), .., (most, _)] if least != most => {
            format!("{} to {} rows, ", Grouped(least), Grouped(most))
        }
        [(rows, _), ..] => format!("{} rows, ", Grouped(rows)),
    };
    format!(
        "{}: {rows}rules {}, {} cases",
        results.suite,
        results.replica.rules,
        Grouped(results.cases.len() as u64)
    )
}

/// Returns the tables of the answer: the suite's own, or those that its headlines name, or the first.
///
/// # Errors
///
/// If published figures cannot be read.
pub fn chosen(suite: &dyn Presentation, results: &Results, style: Style) -> Result<Vec<Grid>> {
    let own = suite.answer_tables(results, style)?;
    if !own.is_empty() {
        return Ok(own);
    }
    let all = tables::grids(suite, results, style)?;
    let headlines = suite.headlines();
    let is_headline = |grid: &&Grid| headlines.iter().any(|title| grid.title.starts_with(title));
    let found: Vec<Grid> = all.iter().filter(is_headline).cloned().collect();
    Ok(if found.is_empty() { all.into_iter().take(1).collect() } else { found })
}

/// Formats a sentence of a list, whose further lines are indented.
fn bullet(sentence: &str, style: Style) -> String {
    let width = style.terminal.width.map(|width| width.saturating_sub(2));
    let terminal = Terminal { width, ..style.terminal };
    format!("* {}", terminal.wrapped(sentence).replace('\n', "\n  "))
}

/// Returns the origin of the figures, and the command that repeats them.
fn origin(results: &Results, style: Style) -> String {
    let module = |canister: &CanisterInfo| {
        format!("{} {}", canister.name, canister.sha256.get(..8).unwrap_or(&canister.sha256))
    };
    let mut modules: Vec<String> = results.canisters.iter().take(MODULES).map(module).collect();
    if let Some(more) = results.canisters.len().checked_sub(MODULES).filter(|more| *more > 0) {
        modules.push(format!("{} more", Grouped(more as u64)));
    }
    let measured = format!(
        "Replica {} {}, stablebench {}{}, modules {}",
        results.replica.kind,
        results.replica.version,
        results.stablebench,
        results.revision.as_ref().map(|revision| format!(" {revision}")).unwrap_or_default(),
        modules.join(", ")
    );
    // A command is one line, so that it can be copied.
    format!("{}\nRepeat with: {}", style.sentence(&measured), results.command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PLAIN;
    use crate::results::sample::full;

    #[test]
    fn an_answer_fits_one_screen() {
        for width in [None, Some(140), Some(100), Some(60)] {
            let terminal = Terminal { colour: false, width };
            let text = answer(&PLAIN, &full(), terminal, None).unwrap();
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(
                longest <= usize::from(width.unwrap_or(WIDTH).min(WIDTH)),
                "{longest}:\n{text}"
            );
            assert!(width == Some(60) || text.lines().count() <= LINES, "{text}");
        }
        let text = answer(&PLAIN, &full(), Terminal::default(), None).unwrap();
        insta::assert_snapshot!(text);
    }
}
