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
//! Each sentence names a configuration, what it saves, and the cases for which that was measured.
//! Everything else is in `stablebench report` and in the page.

use std::fmt::Write;

use anyhow::Result;

use super::advice::times;
use super::grid::{BEST, Cell, Grid, Style};
use super::number::{Fixed, Grouped, Ratio, Rows, Short};
use super::{Presentation, tables};
use crate::engines::{heading, is_floor};
use crate::results::{CanisterInfo, Case, Measured, Results};
use crate::terminal::Terminal;

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
    writeln!(text, "{}", style.sentence(&first_line(results)))?;
    if results.command.contains(" --shard ") {
        let part = "This is a part of a run, and no answer: join the parts with stablebench merge.";
        writeln!(text, "{part}\n\n{}", origin(results, style))?;
        return Ok(text);
    }
    let short = height.filter(|height| *height < LINES).map(|height| height.saturating_sub(AFTER));
    let mut left = match short {
        Some(lines) => lines.saturating_sub(SHORT_FRAME + SENTENCE).max(LEAST),
        None => LINES - FRAME - SENTENCES,
    };
    for grid in chosen(suite, results, style)? {
        if left < LEAST {
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
    let mut sentences = suite.to_do(results).unwrap_or_else(|| sentences(suite, results));
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
fn first_line(results: &Results) -> String {
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

/// The ratio to the default's cost up to which a setting is advised.
const LESS: f64 = 0.95;
/// The setting of SQLite that cannot undo a transaction.
const WITHOUT_JOURNAL: &str = "sqlite/off";
/// The most configurations that are recommended.
const RECOMMENDED: usize = 3;
/// The share of instructions from which pages are mentioned.
const MANY: f64 = 0.3;

/// Returns the sentences for any suite, the most important ones first.
fn sentences(suite: &dyn Presentation, results: &Results) -> Vec<String> {
    let mut found = winners(results);
    if suite.compares_engines() {
        found.extend(cache_sizes(results));
    }
    found.extend(shares(results));
    found
}

/// The configuration to take for a case.
#[derive(Debug)]
pub struct Winner<'r> {
    pub key: &'r str,
    pub case: &'r Case,
    pub measured: &'r Measured,
    /// The cheapest of the others.
    pub next: Option<(&'r str, &'r Measured)>,
}

/// Returns the configuration to take for a case: the cheapest, except for floors and for SQLite without a
/// journal.
pub fn winner<'r>(results: &'r Results, section: &str, name: &str) -> Option<Winner<'r>> {
    let measured = |case: &'r Case| {
        let measured = case.measured().filter(|measured| measured.capacity.is_none())?;
        let choice = !is_floor(&case.configuration) && !is_without_journal(&case.configuration);
        choice.then_some((case, measured))
    };
    let cases = results.section(section).filter(|case| case.name == name);
    let all: Vec<(&Case, &Measured)> = cases.filter_map(measured).collect();
    let cost = |of: &(&Case, &Measured)| of.1.each_operation();
    let (case, best) = *all.iter().min_by_key(|of| cost(of))?;
    let others = all.iter().filter(|(other, _)| other.configuration != case.configuration);
    let next =
        others.min_by_key(|of| cost(of)).map(|(case, of)| (case.configuration.as_str(), *of));
    Some(Winner { key: &case.configuration, case, measured: best, next })
}

/// Returns the configuration to take for each case.
fn every_winner(results: &Results) -> Vec<Winner<'_>> {
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for case in &results.cases {
        let of = (case.section.as_str(), case.name.as_str());
        if !cases.contains(&of) {
            cases.push(of);
        }
    }
    cases.iter().filter_map(|(section, name)| winner(results, section, name)).collect()
}

/// `true` if a configuration is SQLite without a journal, which cannot undo a transaction.
pub fn is_without_journal(key: &str) -> bool {
    key.split(',').next() == Some(WITHOUT_JOURNAL)
}

/// Returns sentences on the configurations that are the cheapest in most cases.
fn winners(results: &Results) -> Vec<String> {
    let winners = every_winner(results).into_iter();
    let all: Vec<Winner<'_>> = winners.filter(|winner| winner.next.is_some()).collect();
    if let [Winner { key, case, measured, next: Some((next, other)) }] = all[..] {
        return vec![format!(
            "{}: take {}, {} instructions. The next, {}, takes {}.",
            case.name,
            heading(key),
            Short(measured.each_operation()),
            heading(next),
            Ratio(other.each_operation(), measured.each_operation())
        )];
    }
    let several = all.iter().any(|one| one.case.section != all[0].case.section);
    let mut by_key: Vec<(&str, Vec<&Winner<'_>>)> = Vec::new();
    for one in &all {
        match by_key.iter_mut().find(|(key, _)| *key == one.key) {
            Some((_, won)) => won.push(one),
            None => by_key.push((one.key, vec![one])),
        }
    }
    by_key.sort_by_key(|(_, won)| std::cmp::Reverse(won.len()));
    let sentence = |(key, won): &(&str, Vec<&Winner<'_>>)| {
        let name = |winner: &&Winner<'_>| match several {
            true => format!("{}: {}", winner.case.section, winner.case.name),
            false => winner.case.name.clone(),
        };
        let names: Vec<String> = won.iter().map(name).collect();
        let some = names[..names.len().min(3)].join("; ");
        let ratios = won.iter().filter_map(|winner| times(winner.next?.1, winner.measured));
        let ratios: Vec<f64> = ratios.map(|(ratio, _)| ratio).collect();
        let most = ratios.iter().copied().max_by(f64::total_cmp).filter(|most| *most > 1.0);
        let gain = match most.and_then(|most| range(&[most])) {
            Some(most) => format!("; the next one takes up to {most}"),
            None => String::new(),
        };
        format!(
            "{}: the cheapest for {} of {} kinds of work ({some}{}){gain}.",
            heading(key),
            Grouped(won.len() as u64),
            Grouped(all.len() as u64),
            if names.len() > 3 { "; …" } else { "" }
        )
    };
    by_key.iter().take(RECOMMENDED).map(sentence).collect()
}

/// Returns sentences on the configurations of SQLite that were measured with and without a `cache_size`.
pub fn cache_sizes(results: &Results) -> Vec<String> {
    let keys = || results.configurations.iter().map(|configuration| configuration.key.as_str());
    let pair = |small: &'_ str| -> Option<String> {
        let (own, setting) = small.rsplit_once(',')?;
        let setting = setting.starts_with("cache_size=").then_some(setting)?;
        let default = keys().find(|key| *key == own)?;
        let mut found: Vec<(f64, &Case)> = Vec::new();
        for case in results.cases.iter().filter(|case| case.configuration == small) {
            let other = results.case(&case.section, &case.name, default);
            let both = case.measured().zip(other.and_then(Case::measured));
            let ratio = both.and_then(|(here, there)| times(here, there));
            found.extend(ratio.map(|(ratio, _)| (ratio, case)));
        }
        let ratios: Vec<f64> = found.iter().map(|(ratio, _)| *ratio).collect();
        let (least, most) = found.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
        let costs = range(&ratios)?;
        let cases = match found.len() {
            1 => String::new(),
            cases => format!(" in {} cases, least in {}", Grouped(cases as u64), most.name),
        };
        (*least < LESS).then(|| {
            format!(
                "{}: set {setting}, which costs {costs} of the default's{cases}.",
                heading(default)
            )
        })
    };
    keys().filter_map(pair).collect()
}

/// Returns a sentence on the share of pages in the instructions of the configurations to take.
pub fn shares(results: &Results) -> Option<String> {
    let (mut all, mut heap, mut stable) = (0, 0, 0);
    for Winner { measured, .. } in every_winner(results) {
        let Some(pages) = measured.detail.as_ref().and_then(|detail| detail.pages) else {
            continue;
        };
        all += measured.instructions;
        heap += pages.heap;
        stable += pages.stable;
    }
    let share = |part: u64| part as f64 / all.max(1) as f64;
    (share(heap + stable) >= MANY).then(|| {
        format!(
            "Where it is cheapest, heap pages are {} % and stable pages {} % of the instructions: a \
             message pays for each page once.",
            Fixed(100.0 * share(heap), 1),
            Fixed(100.0 * share(stable), 1)
        )
    })
}

/// Returns sentences on the rows of a table that are the cheapest of its columns of numbers.
pub fn cheapest_rows(grid: &Grid) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (column, heading) in grid.header.iter().enumerate() {
        let value = |row: &Vec<Cell>| match (row.first(), row.get(column)) {
            (Some(Cell::Text(label)), Some(Cell::Number { value, .. })) => {
                Some((*value, label.clone()))
            }
            _ => None,
        };
        let Some((_, label)) = grid.rows.iter().filter_map(value).min() else { continue };
        match found.iter_mut().find(|(known, _)| *known == label) {
            Some((_, columns)) => columns.push(heading.clone()),
            None => found.push((label, vec![heading.clone()])),
        }
    }
    let sentence = |(label, columns): (String, Vec<String>)| {
        format!("{label}: the cheapest for {}.", columns.join(", "))
    };
    found.into_iter().map(sentence).collect()
}

/// Returns a sentence on the growth of a configuration's cost from the first to the last case of a
/// section.
pub fn growth(results: &Results, section: &str, key: &str) -> Option<String> {
    let names = results.names(section);
    let of = |name: &&str| results.case(section, name, key)?.measured();
    let (first, last) = (names.first()?, names.last()?);
    let (_, ratio) = times(of(last)?, of(first)?)?;
    Some(format!(
        "{section}: {last} takes {ratio} the instructions of {first}, {}.",
        Short(of(first)?.each_operation())
    ))
}

/// Returns the least and the largest ratio: `1.10× to 2.30×`.
fn range(ratios: &[f64]) -> Option<String> {
    let least = ratios.iter().copied().min_by(f64::total_cmp)?;
    let most = ratios.iter().copied().max_by(f64::total_cmp)?;
    let ratio = |ratio: f64| Ratio((ratio * 1e6).round() as u64, 1_000_000).to_string();
    Some(match ratio(least) == ratio(most) {
        true => ratio(least),
        false => format!("{} to {}", ratio(least), ratio(most)),
    })
}

/// The lines of a table without rows and notes, with a heading of two lines.
const TABLE_FRAME: usize = 7;
/// The lines of a table with a few rows.
const LEAST: usize = TABLE_FRAME + 3;
/// The width of a heading that has one line.
const HEADING: usize = 14;
/// The width of the space around a cell and of the line to the next one.
const PADDING: usize = 3;

/// Returns a table of at most this number of lines that is not wider than the terminal. What is left
/// out is named below it; a row with the best figure of a column is left out last.
fn fit(grid: Grid, style: Style, lines: usize) -> Grid {
    let best: Vec<usize> = (0..grid.rows.len())
        .filter(|row| {
            grid.rows[*row].iter().any(|cell| matches!(cell, Cell::Number { best: true, .. }))
        })
        .collect();
    let mut grid = short(grid);
    for heading in &mut grid.header {
        if longest(heading) > HEADING {
            *heading = style.narrow(heading);
        }
    }
    let mut hidden = Vec::new();
    if let Some(width) = style.terminal.width {
        let shown = columns(&grid, usize::from(width));
        hidden.extend(without(&mut grid, &shown));
    }
    let rows = lines.saturating_sub(TABLE_FRAME + 2).max(3);
    if let Some(more) = grid.rows.len().checked_sub(rows).filter(|more| *more > 0) {
        let others = (0..grid.rows.len()).filter(|row| !best.contains(row));
        let shown: Vec<usize> = best.iter().copied().chain(others).take(rows).collect();
        let mut row = 0..grid.rows.len();
        grid.rows.retain(|_| row.next().is_some_and(|row| shown.contains(&row)));
        hidden.push(format!("{} more rows", Grouped(more as u64)));
    }
    grid.notes.truncate(1);
    if !hidden.is_empty() {
        grid.notes.insert(0, format!("All tables also have {}.", hidden.join(", ")));
    }
    grid
}

/// Returns the table with a line for each row, and numbers of three digits.
fn short(mut grid: Grid) -> Grid {
    let mut cut = false;
    for cell in grid.rows.iter_mut().flatten() {
        match cell {
            Cell::Number { value, best, base } => {
                cut |= base.is_some();
                let mark = if *best { BEST } else { "" };
                *cell = Cell::Text(format!("{mark}{:#}", Short(*value)));
            }
            Cell::Text(text) => {
                if let Some((first, _)) = text.split_once('\n') {
                    cut = true;
                    *cell = Cell::text(first);
                }
            }
            _ => {}
        }
    }
    if cut {
        grid.notes.retain(|note| !note.contains("Below") && !note.contains('×'));
    }
    grid.lines = false;
    grid
}

/// Returns the width of a text.
fn longest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Returns the columns that fit, from the first.
fn columns(grid: &Grid, width: usize) -> Vec<usize> {
    let texts = grid.texts();
    let wide = |column: usize| {
        let cells = texts.iter().filter_map(|row| row.get(column)).map(String::as_str);
        let heading = grid.header.get(column).map(String::as_str);
        cells.chain(heading).map(longest).max().unwrap_or(0) + PADDING
    };
    let mut left = width;
    let mut shown = Vec::new();
    for column in 0..grid.header.len() {
        match left.checked_sub(wide(column)) {
            Some(rest) => left = rest,
            // A table has a label and a figure.
            None if column > 1 => break,
            None => left = 0,
        }
        shown.push(column);
    }
    shown
}

/// Removes all other columns. Returns their headings.
fn without(grid: &mut Grid, shown: &[usize]) -> Vec<String> {
    let is_shown = |column: &usize| shown.contains(column);
    let headings = grid.header.iter().enumerate().filter(|(column, _)| !is_shown(column));
    let hidden = headings.map(|(_, heading)| heading.replace('\n', " ")).collect();
    let kept = |row: &mut Vec<Cell>| {
        let mut column = 0..row.len();
        row.retain(|_| column.next().is_some_and(|column| is_shown(&column)));
    };
    grid.rows.iter_mut().for_each(kept);
    let mut column = 0..grid.header.len();
    grid.header.retain(|_| column.next().is_some_and(|column| is_shown(&column)));
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PLAIN;
    use crate::results::sample::{case, full, of};

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
        let expected = [
            "users: 1 000 000 rows of 100 bytes, rules 2026-08, 1 cases",
            "",
            "insert: instructions of the message, middle, 1 000 000 rows of 100 bytes",
            "",
            "───────────────────",
            " new rows   SQLite ",
            "               WAL ",
            "═══════════════════",
            " 10 000       577M ",
            "───────────────────",
            "",
            "≥: the largest possible number fits. Otherwise, a number that is larger by at most a \
             thousandth does",
            "not fit.",
            "",
            "Replica embedded 0.1.0, stablebench 0.1.0 783b3fa, modules bench 3e1c",
            "Repeat with: stablebench run users",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_cheapest_that_can_undo_a_transaction_is_named() {
        let cases =
            [("sqlite/wal", 104_000), ("btree", 100_000), ("sqlite/off", 90_000), ("array", 1_000)];
        let cases = cases.map(|(key, cost)| case("work", "read", key, cost)).to_vec();
        let found = of(cases);
        let winner = winner(&found, "work", "read").unwrap();
        assert_eq!((winner.key, winner.next.unwrap().0), ("btree", "sqlite/wal"));
    }

    #[test]
    fn sentences_name_configuration_gain_and_range() {
        let cases = [
            case("work", "read", "btree", 300_000),
            case("work", "read", "sqlite/persist", 200_000),
            case("work", "read", "sqlite/persist,cache_size=1000", 100_000),
            case("work", "insert", "btree", 100_000),
            case("work", "insert", "sqlite/persist", 400_000),
            case("work", "insert", "sqlite/persist,cache_size=1000", 150_000),
        ];
        let expected = [
            "SQLite PERSIST cache_size=1000: the cheapest for 1 of 2 kinds of work (read); the \
             next one takes up to 2.00×.",
            "StableBTreeMap: the cheapest for 1 of 2 kinds of work (insert); the next one takes \
             up to 1.50×.",
            "SQLite PERSIST: set cache_size=1000, which costs 0.38× to 0.50× of the default's in \
             2 cases, least in insert.",
        ];
        assert_eq!(sentences(&PLAIN, &of(cases.to_vec())), expected);
    }

    fn grid(rows: usize) -> Grid {
        let number = |value| Cell::Number { value, base: Some(1), best: value == 1_234_567 };
        let row = |row| vec![Cell::Text(format!("row {row}")), number(1_234_567), number(9_000)];
        Grid {
            title: "title".to_owned(),
            header: ["", "one", "two"].map(str::to_owned).to_vec(),
            rows: (0..rows).map(row).collect(),
            notes: vec!["first".to_owned(), "second".to_owned()],
            lines: true,
        }
    }

    fn fitted(rows: usize, width: u16, lines: usize) -> Grid {
        let style = Style::of(Terminal { colour: false, width: Some(width) });
        let fitted = fit(grid(rows), style, lines);
        let text = fitted.render(style);
        // The note is wrapped on a narrow terminal.
        assert!(width < 60 || text.lines().count() <= lines, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        fitted
    }

    #[test]
    fn numbers_are_short_and_all_is_shown_if_there_is_room() {
        let fitted = fitted(2, 100, 20);
        assert_eq!(fitted.texts(), [["row 0", "*1.23M", "9.00k"], ["row 1", "*1.23M", "9.00k"]]);
        assert_eq!(fitted.notes, ["first"]);
    }

    #[test]
    fn what_is_left_out_is_named() {
        let fitted = fitted(20, 20, 14);
        assert_eq!(fitted.header, ["", "one"]);
        assert_eq!(fitted.rows.len(), 5);
        assert_eq!(fitted.notes, ["All tables also have two, 15 more rows.", "first"]);
    }

    #[test]
    fn rows_with_the_best_figures_are_left_out_last() {
        let mut grid = grid(20);
        for (number, row) in grid.rows.iter_mut().enumerate() {
            row[1] = Cell::Number { value: 5, base: None, best: number == 18 };
        }
        let style = Style::of(Terminal { colour: false, width: Some(100) });
        let labels: Vec<String> =
            fit(grid, style, 14).texts().iter().map(|row| row[0].clone()).collect();
        assert_eq!(labels, ["row 0", "row 1", "row 2", "row 3", "row 18"]);
    }
}
