//! A table that fits: short numbers, and as many columns and rows as there is room for.

use crate::report::grid::{BEST, Cell, Grid};
use crate::report::number::{Grouped, Short};
use crate::report::style::Style;

/// The lines of a table without rows and notes, with a heading of two lines.
const FRAME: usize = 7;
/// The lines of a table with a few rows.
pub const LEAST: usize = FRAME + 3;
/// The width of a heading that has one line.
const HEADING: usize = 14;
/// The width of the space around a cell and of the line to the next one.
const PADDING: usize = 3;

/// Returns a table of at most this number of lines that is not wider than the terminal. What is left
/// out is named below it; a row with the best figure of a column is left out last.
pub fn fit(grid: Grid, style: Style, lines: usize) -> Grid {
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
    let rows = lines.saturating_sub(FRAME + 2).max(3);
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
    use crate::terminal::Terminal;

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
