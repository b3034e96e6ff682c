//! A table with a title and notes, for a terminal or as Markdown. A table that is wider than the
//! terminal is split into several tables, one below the other, each with the labels:
//!
//! ```text
//!   label  a  b  c  d        label  a  b
//!                      →
//!                            label  c  d
//! ```

use std::fmt::{Display, Write};

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{
    Attribute, CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
};

use super::number::{Grouped, Ratio};
pub use super::style::Style;
use crate::results::Outcome;

/// The mark of the cheapest configuration of a row.
pub const BEST: &str = "*";

/// Returns the smallest of the numbers that are compared; `None` if there are fewer than two, of
/// which none is the cheapest.
pub fn cheapest(compared: impl IntoIterator<Item = u64>) -> Option<u64> {
    let mut compared = compared.into_iter();
    let first = compared.next()?;
    let second = compared.next()?;
    Some(compared.fold(first.min(second), u64::min))
}

/// A table with a title above and notes below.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Empty if the table has none.
    pub title: String,
    /// The headings, starting with that of the labels.
    pub header: Vec<String>,
    /// The rows, each starting with a label.
    pub rows: Vec<Vec<Cell>>,
    pub notes: Vec<String>,
    /// `true` if rows are separated by lines.
    pub lines: bool,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Text(String),
    /// A number, the number that it is compared with, and a flag for the best of a row.
    Number {
        value: u64,
        base: Option<u64>,
        best: bool,
    },
    /// Not measured.
    Absent,
    /// Not supported by the engine.
    NotApplicable,
    Failed,
}

impl Cell {
    pub fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    /// Returns the cell for an outcome without a number.
    pub fn missing<T>(outcome: &Outcome<T>) -> Self {
        match outcome {
            Outcome::Measured(_) => Self::Absent,
            Outcome::NotApplicable { .. } => Self::NotApplicable,
            Outcome::Failed { .. } => Self::Failed,
        }
    }

    fn shown(&self, style: Style) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(self.render(style));
        let best = matches!(self, Self::Number { best: true, .. });
        if best && !style.markdown { cell.add_attribute(Attribute::Bold) } else { cell }
    }

    /// Returns the cell as text.
    pub fn render(&self, style: Style) -> String {
        let (value, base, best) = match self {
            Self::Text(text) => return text.clone(),
            Self::Absent => return "–".to_owned(),
            Self::NotApplicable => return "n/a".to_owned(),
            Self::Failed => return "failed".to_owned(),
            Self::Number { value, base, best } => (*value, *base, *best),
        };
        let number = match (best, style.markdown) {
            (true, true) => format!("**{}**", Grouped(value)),
            (true, false) => format!("{BEST}{}", Grouped(value)),
            (false, _) => Grouped(value).to_string(),
        };
        match base {
            Some(base) => style.stacked(&number, &Ratio(value, base)),
            None => number,
        }
    }
}

impl Grid {
    /// Returns the rows as texts. Lines in a cell are separated by newlines.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Absent => "–".to_owned(),
            Cell::NotApplicable => "n/a".to_owned(),
            Cell::Failed => "failed".to_owned(),
            Cell::Number { value, base: None, .. } => Grouped(*value).to_string(),
            Cell::Number { value, base: Some(base), .. } => {
                format!("{}\n{}", Grouped(*value), Ratio(*value, *base))
            }
        };
        self.rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    /// Returns `true` if a number is marked as the best.
    pub fn marks_best(&self) -> bool {
        self.rows.iter().flatten().any(|cell| matches!(cell, Cell::Number { best: true, .. }))
    }

    /// Returns the table as text, with its title and notes.
    pub fn render(&self, style: Style) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| cell.shown(style)).collect());
        let sheet = Sheet { header: self.header.clone(), rows: rows.collect(), lines: self.lines };
        let title = match self.title.as_str() {
            "" => String::new(),
            title => style.heading(title) + "\n\n",
        };
        let mut text = format!("{title}{}\n", sheet.render(style));
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", style.item(note));
        }
        text
    }
}

/// The width of the space around a cell's content and of the line to the next cell.
const PADDING: u16 = 3;
/// The maximum widths of labels that are tried in order: unlimited, then wrapped.
const LABELS: [u16; 2] = [u16::MAX, 24];

/// A table without a title.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The headings, starting with that of the labels.
    pub header: Vec<String>,
    /// The rows, each starting with a label. Other cells are aligned to the right.
    pub rows: Vec<Vec<comfy_table::Cell>>,
    /// `true` if rows are separated by lines.
    pub lines: bool,
}

impl Sheet {
    /// Returns the table as text, without a newline at the end.
    pub fn render(&self, style: Style) -> String {
        let all: Vec<usize> = (1..self.header.len()).collect();
        let whole = self.table(&all, style);
        let Some(width) = style.terminal.width.filter(|_| !style.markdown) else {
            return whole.to_string();
        };
        let widths = whole.column_max_content_widths();
        let parts = parts(&widths, width);
        let tables = parts.iter().map(|columns| {
            let mut table = self.table(columns, style);
            fit(&mut table, width);
            table.to_string()
        });
        tables.collect::<Vec<String>>().join("\n\n")
    }

    /// Returns a table of the labels and these columns.
    fn table(&self, columns: &[usize], style: Style) -> Table {
        let mut table = Table::new();
        table
            .load_preset(if style.markdown { ASCII_MARKDOWN } else { UTF8_HORIZONTAL_ONLY })
            .set_content_arrangement(ContentArrangement::Disabled)
            .force_no_tty();
        if style.terminal.colour && !style.markdown {
            table.enforce_styling();
        }
        if !self.lines && !style.markdown {
            for inner in [
                TableComponent::HorizontalLines,
                TableComponent::MiddleIntersections,
                TableComponent::LeftBorderIntersections,
                TableComponent::RightBorderIntersections,
            ] {
                table.remove_style(inner);
            }
        }
        let shown = || std::iter::once(0).chain(columns.iter().copied());
        table.set_header(shown().filter_map(|column| self.header.get(column)));
        for row in &self.rows {
            table.add_row(shown().filter_map(|column| row.get(column).cloned()));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// Splits columns into as few tables as possible, with about as many columns in each.
fn parts(widths: &[u16], width: u16) -> Vec<Vec<usize>> {
    let Some((label, others)) = widths.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return vec![Vec::new()];
    };
    let columns: Vec<usize> = (1..=others.len()).collect();
    let total = |columns: &[usize]| -> u32 {
        columns.iter().map(|column| u32::from(widths[*column] + PADDING)).sum()
    };
    // Labels are wrapped if that saves a table.
    for (tables, most) in (1..=columns.len()).flat_map(|tables| LABELS.map(|most| (tables, most))) {
        let left = u32::from(width.saturating_sub((*label).min(most) + PADDING));
        let parts = || columns.chunks(columns.len().div_ceil(tables));
        if parts().all(|part| total(part) <= left) {
            return parts().map(<[usize]>::to_vec).collect();
        }
    }
    columns.chunks(1).map(<[usize]>::to_vec).collect()
}

/// Wraps labels, and other cells if a single column is too wide.
fn fit(table: &mut Table, width: u16) {
    let widths = table.column_max_content_widths();
    let total: u32 = widths.iter().map(|content| u32::from(content + PADDING)).sum();
    if total <= u32::from(width) {
        return;
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    let others = total - u32::from(widths[0] + PADDING);
    let label = u32::from(width).saturating_sub(others + u32::from(PADDING));
    let label = u16::try_from(label).unwrap_or(u16::MAX);
    if label >= widths[0].min(LABELS[1]) {
        for (column, content) in table.column_iter_mut().zip(&widths).skip(1) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(content + 2)));
        }
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(label + 2)));
        }
    }
}

/// The heading over the names of rows.
pub fn row_heading(section: &str) -> &'static str {
    match section {
        "insert" => "new rows",
        "base" => "rows",
        "working-set" => "chosen from",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Terminal;

    fn sheet() -> Sheet {
        let header = ["", "StableBTreeMap", "SQLite\nDELETE", "SQLite\nWAL", "floor:\nappend"];
        let row = |label: &str| {
            let cells = [label, "54 003", "151 234\n2.80×", "189 012", "7 890"];
            cells.map(comfy_table::Cell::new).to_vec()
        };
        let long = "insert 1 000 uniform, upgraded, in transactions of 1 row";
        Sheet {
            header: header.map(str::to_owned).to_vec(),
            rows: vec![row("middle 1"), row(long)],
            lines: false,
        }
    }

    fn rendered(width: Option<u16>) -> String {
        sheet().render(Style::of(Terminal { colour: false, width }))
    }

    #[test]
    fn wide_tables_are_folded() {
        let all = [None, Some(120), Some(100), Some(60), Some(30)];
        let text = all.map(|width| format!("{width:?}\n{}\n", rendered(width)));
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for width in [40, 41, 57, 60, 79, 80, 99, 100, 101, 132] {
            let text = rendered(Some(width));
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= usize::from(width), "{longest} in {width}:\n{text}");
        }
    }

    #[test]
    fn every_cell_is_shown_once_at_any_width() {
        for width in [40, 80, 200] {
            let text = rendered(Some(width));
            assert_eq!(text.matches("189 012").count(), 2, "{width}");
            assert_eq!(text.matches("7 890").count(), 2, "{width}:\n{text}");
        }
    }

    #[test]
    fn columns_are_distributed_evenly() {
        let widths = [10, 8, 8, 8, 8, 8, 8, 8];
        assert_eq!(parts(&widths, 100).len(), 1);
        let sizes: Vec<usize> = parts(&widths, 80).iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 3]);
        assert_eq!(parts(&widths, 5).len(), 7);
        assert_eq!(parts(&[4], 80), [Vec::<usize>::new()], "labels alone are a table");
    }
}
