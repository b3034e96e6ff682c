//! Cells in rows and columns. What is wider than the terminal stands in several tables, one below
//! the other, each with the labels:
//!
//! ```text
//!   label  a  b  c  d        label  a  b
//!                      →
//!                            label  c  d
//! ```

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
};

use super::style::Style;

/// Around the content of a cell, and between it and the next.
const PADDING: u16 = 3;
/// Labels are as long as they are, or are wrapped where they are longer than that.
const LABELS: [u16; 2] = [u16::MAX, 24];

/// A table without a title.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Headings, the first one of the labels.
    pub header: Vec<String>,
    /// Rows, the first cell a label; the others are aligned to the right.
    pub rows: Vec<Vec<Cell>>,
    /// Whether there is a line between rows.
    pub lines: bool,
}

impl Sheet {
    /// The table as text, without a line's end.
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

    /// Labels and those columns.
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

/// The columns of each table: as few tables as can be, and about as many columns in each.
fn parts(widths: &[u16], width: u16) -> Vec<Vec<usize>> {
    let Some((label, others)) = widths.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return vec![Vec::new()];
    };
    let columns: Vec<usize> = (1..=others.len()).collect();
    let total = |columns: &[usize]| -> u32 {
        columns.iter().map(|column| u32::from(widths[*column] + PADDING)).sum()
    };
    // Labels are wrapped where that saves a table.
    for (tables, most) in (1..=columns.len()).flat_map(|tables| LABELS.map(|most| (tables, most))) {
        let left = u32::from(width.saturating_sub((*label).min(most) + PADDING));
        let parts = || columns.chunks(columns.len().div_ceil(tables));
        if parts().all(|part| total(part) <= left) {
            return parts().map(<[usize]>::to_vec).collect();
        }
    }
    columns.chunks(1).map(<[usize]>::to_vec).collect()
}

/// Wraps labels, and what is wider than a table can be by itself.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Terminal;

    fn sheet() -> Sheet {
        let header = ["", "StableBTreeMap", "SQLite\nDELETE", "SQLite\nWAL", "floor:\nappend"];
        let row = |label: &str| {
            let cells = [label, "54 003", "151 234\n2.80×", "189 012", "7 890"];
            cells.map(Cell::new).to_vec()
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
    fn every_cell_is_shown_once_whatever_the_width() {
        for width in [40, 80, 200] {
            let text = rendered(Some(width));
            assert_eq!(text.matches("189 012").count(), 2, "{width}");
            assert_eq!(text.matches("7 890").count(), 2, "{width}:\n{text}");
        }
    }

    #[test]
    fn tables_have_about_as_many_columns_each() {
        let widths = [10, 8, 8, 8, 8, 8, 8, 8];
        assert_eq!(parts(&widths, 100).len(), 1);
        let sizes: Vec<usize> = parts(&widths, 80).iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 3]);
        assert_eq!(parts(&widths, 5).len(), 7);
        assert_eq!(parts(&[4], 80), [Vec::<usize>::new()], "labels alone are a table");
    }
}
