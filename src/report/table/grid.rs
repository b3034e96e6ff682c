//! One table, for a terminal or as Markdown.

use std::fmt::{Display, Write};

use comfy_table::Attribute;

use crate::report::number::{Grouped, Ratio};
use crate::report::sheet::Sheet;
pub use crate::report::style::Style;
use crate::results::Outcome;

/// Marks the cheapest engine of a row.
pub const BEST: &str = "*";

/// A table with a title and what has to be said below it.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// None where it is empty.
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

    fn shown(&self, style: Style) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(self.render(style));
        let best = matches!(self, Self::Number { best: true, .. });
        if best && !style.markdown { cell.add_attribute(Attribute::Bold) } else { cell }
    }

    /// The cell as text.
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

    /// The table as text, with its title and notes.
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
