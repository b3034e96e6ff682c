//! One table, for a terminal or as Markdown.

use std::fmt::{Display, Write};

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{Attribute, CellAlignment, ContentArrangement, TableComponent};

use crate::report::number::{Grouped, Ratio};
use crate::results::Outcome;

/// Marks the cheapest engine of a row.
pub const BEST: &str = "*";

/// How tables look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub markdown: bool,
}

/// A table with a title and what has to be said below it.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    pub title: String,
    /// Headings, the first one of the labels.
    pub header: Vec<String>,
    /// Rows, the first cell a label.
    pub rows: Vec<Vec<Cell>>,
    pub notes: Vec<String>,
    /// Whether there is a line between rows.
    pub lines: bool,
}

/// What stands in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Text(String),
    /// A number, how many times the base's it is, and whether it is the row's best.
    Number {
        value: u64,
        base: Option<u64>,
        best: bool,
    },
    /// Not measured.
    Absent,
    /// The engine cannot do it.
    NotApplicable,
    Failed,
}

impl Cell {
    pub fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    /// What stands for an outcome that has no number.
    pub fn missing<T>(outcome: &Outcome<T>) -> Self {
        match outcome {
            Outcome::Measured(_) => Self::Absent,
            Outcome::NotApplicable { .. } => Self::NotApplicable,
            Outcome::Failed { .. } => Self::Failed,
        }
    }
}

impl Grid {
    /// Its rows as texts; two lines in one cell are apart by a line's end.
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
}

impl Style {
    pub fn heading(self, title: &str) -> String {
        if self.markdown { format!("### {title}") } else { title.to_owned() }
    }

    /// A sentence in a list.
    pub fn item(self, sentence: &str) -> String {
        format!("{}{sentence}", if self.markdown { "- " } else { "" })
    }

    /// Two lines in one cell.
    pub fn stacked(self, above: &dyn Display, below: &dyn Display) -> String {
        format!("{above}{}{below}", if self.markdown { "<br>" } else { "\n" })
    }

    /// A heading as narrow as the numbers below it.
    pub fn narrow(self, heading: &str) -> String {
        match heading.split_once(' ') {
            Some((above, below)) => self.stacked(&above, &below),
            None => heading.to_owned(),
        }
    }

    /// The table as text, with its title and notes.
    pub fn render(self, grid: &Grid) -> String {
        let mut table = comfy_table::Table::new();
        table
            .load_preset(if self.markdown { ASCII_MARKDOWN } else { UTF8_HORIZONTAL_ONLY })
            .set_content_arrangement(ContentArrangement::Disabled);
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            table.force_no_tty();
        }
        if !grid.lines && !self.markdown {
            for inner in [
                TableComponent::HorizontalLines,
                TableComponent::MiddleIntersections,
                TableComponent::LeftBorderIntersections,
                TableComponent::RightBorderIntersections,
            ] {
                table.remove_style(inner);
            }
        }
        table.set_header(&grid.header);
        for row in &grid.rows {
            table.add_row(row.iter().map(|cell| self.cell(cell)));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = format!("{}\n\n{table}\n", self.heading(&grid.title));
        if !grid.notes.is_empty() {
            text.push('\n');
        }
        for note in &grid.notes {
            let _ = writeln!(text, "{}", self.item(note));
        }
        text
    }

    fn cell(self, cell: &Cell) -> comfy_table::Cell {
        let (value, base, best) = match cell {
            Cell::Text(text) => return comfy_table::Cell::new(text),
            Cell::Absent => return comfy_table::Cell::new("–"),
            Cell::NotApplicable => return comfy_table::Cell::new("n/a"),
            Cell::Failed => return comfy_table::Cell::new("failed"),
            Cell::Number { value, base, best } => (*value, *base, *best),
        };
        let number = match (best, self.markdown) {
            (true, true) => format!("**{}**", Grouped(value)),
            (true, false) => format!("{BEST}{}", Grouped(value)),
            (false, _) => Grouped(value).to_string(),
        };
        let text = match base {
            Some(base) => self.stacked(&number, &Ratio(value, base)),
            None => number,
        };
        let cell = comfy_table::Cell::new(text);
        if best && !self.markdown { cell.add_attribute(Attribute::Bold) } else { cell }
    }
}
