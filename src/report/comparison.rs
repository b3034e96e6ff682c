//! What differs between two runs, as a table, and how much was compared.

use std::fmt::Write;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, TableComponent};

use super::number::Grouped;
use crate::compare::Comparison;

/// The table, if anything differs, and a last line in any case.
pub fn render(found: &Comparison, threshold: f64) -> String {
    let mut text = String::new();
    if !found.differences.is_empty() {
        let mut table = comfy_table::Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(["what", "base", "new", "difference"]);
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        for difference in &found.differences {
            let by = difference.percent.map_or_else(String::new, |percent| {
                if percent.is_finite() { format!("{percent:+.3} %") } else { "from 0".to_owned() }
            });
            table.add_row([&difference.name, &difference.base, &difference.new, &by]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(text, "{table}\n");
    }
    for note in &found.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let mut last = format!(
        "{} values compared, {} differ by more than {threshold} %",
        Grouped(found.compared as u64),
        Grouped(found.differences.len() as u64),
    );
    if found.told_once > 0 {
        let _ = write!(last, "; {} are told by one replica only", Grouped(found.told_once as u64));
    }
    text + &last + "\n"
}
