//! The effect of the open rule: each figure by today's rules, and by their other variant.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use comfy_table::Cell;
use serde::Deserialize;
use stablebench_replica::files;

use super::grid::Sheet;
use super::number::{Factor, Grouped};
use super::style::Style;
use crate::terminal;

/// The relative difference of a figure's two values above which both are shown.
const APART: f64 = 0.05;

/// The figures of a run by both variants of the open rule, in the order of the run.
pub struct OpenRule {
    figures: Vec<Figure>,
    /// The indices of the instructions of cases, by section, name and configuration.
    places: HashMap<(String, String, String), usize>,
}

/// A figure of a case by both variants.
struct Figure {
    section: String,
    /// The case and its configuration.
    label: String,
    today: u64,
    other: u64,
}

/// A line of a comparison as CSV.
#[derive(Deserialize)]
struct Line {
    kind: String,
    section: String,
    name: String,
    configuration: String,
    unit: String,
    base: String,
    new: String,
}

/// The maximum size of a comparison, in bytes.
const MAX_FILE: u64 = 64 << 20;

impl OpenRule {
    /// Reads the comparison of the two runs, `compare --format csv`.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read(path, MAX_FILE)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut lines = csv::Reader::from_reader(text.as_slice());
        let (mut figures, mut places) = (Vec::new(), HashMap::new());
        for line in lines.deserialize() {
            let line: Line = line.with_context(|| no_comparison(path))?;
            let (true, Ok(today), Ok(other)) =
                (line.kind == "case", line.base.parse(), line.new.parse())
            else {
                continue;
            };
            let Line { section, name, configuration, unit, .. } = line;
            let mut label = format!("{name}, {configuration}");
            if unit == "instructions" {
                places.insert((section.clone(), name, configuration), figures.len());
            } else {
                label += " (how many fit)";
            }
            figures.push(Figure { section, label, today, other });
        }
        if figures.is_empty() {
            bail!(no_comparison(path));
        }
        Ok(Self { figures, places })
    }

    /// Returns a case's instructions by the other variant.
    pub fn instructions(&self, section: &str, name: &str, configuration: &str) -> Option<u64> {
        self.get(section, name, configuration).map(|figure| figure.other)
    }

    /// Returns the instructions of one of a case's operations by the other variant, if they differ
    /// enough to be shown.
    pub fn other(
        &self,
        section: &str,
        name: &str,
        configuration: &str,
        operations: u64,
    ) -> Option<u64> {
        let Figure { today, other, .. } = self.get(section, name, configuration)?;
        apart(*today as f64, *other as f64).then(|| other / operations.max(1))
    }

    fn get(&self, section: &str, name: &str, configuration: &str) -> Option<&Figure> {
        let place =
            self.places.get(&(section.to_owned(), name.to_owned(), configuration.to_owned()))?;
        self.figures.get(*place)
    }

    /// Returns a table of the figures whose two values differ enough, of these sections or of all.
    pub fn table(&self, sections: &[String], style: Style) -> String {
        let far = |figure: &&Figure| {
            (sections.is_empty() || sections.contains(&figure.section))
                && apart(figure.today as f64, figure.other as f64)
        };
        let rows: Vec<Vec<Cell>> = self
            .figures
            .iter()
            .filter(far)
            .map(|Figure { section, label, today, other }| {
                let ratio = Factor(*other as f64 / *today as f64).to_string();
                let label = terminal::safe(&format!("{section}: {label}")).into_owned();
                [label, Grouped(*today).to_string(), Grouped(*other).to_string(), ratio]
                    .map(Cell::new)
                    .to_vec()
            })
            .collect();
        let percent = APART * 100.0;
        let title = style.heading(&format!(
            "Figures that the open rule changes by more than {percent} %: instructions"
        ));
        let open = style.item(
            "No released server has confirmed whether the first read of a stable page is charged. In \
             the figures above it is free; by the rules 2026-08-first-reads it is charged.",
        );
        if rows.is_empty() {
            return format!("{title}\n\n{}\n{open}\n", style.item("None."));
        }
        let header = ["", "first reads free", "first reads charged", "ratio"];
        let sheet = Sheet { header: header.map(str::to_owned).to_vec(), rows, lines: false };
        format!("{title}\n\n{}\n\n{open}\n", sheet.render(style))
    }
}

fn no_comparison(path: &Path) -> String {
    format!("{} is not a comparison written by `compare --format csv`", path.display())
}

/// Returns `true` if two values of a figure differ enough for both to be shown.
pub fn apart(today: f64, other: f64) -> bool {
    (other / today - 1.0).abs() > APART
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const COMPARED: &str =
        "kind,section,name,configuration,new_configuration,unit,base,new,ratio,percent
case,work,read 1,array,array,instructions,1020,81020,79.4,
case,work,read 2,array,array,instructions,1000000,1049999,1.049999,
case,work,read 3,array,array,instructions,1000000,1050001,1.050001,
case,capacity,insert,array,array,operations_that_fit,100,90,0.9,
average,work,,,,arithmetic,,,2,
";

    fn read(text: &str) -> Result<OpenRule> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("compared.csv");
        fs::write(&path, text).unwrap();
        OpenRule::read(&path)
    }

    #[test]
    fn both_values_are_shown_if_they_differ_enough() {
        let rule = read(COMPARED).unwrap();
        let table = rule.table(&[], Style::MARKDOWN);
        let shown = ["read 1, array ", "read 3, array ", "insert, array (how many fit) "];
        assert!(shown.iter().all(|label| table.contains(label)), "{table}");
        assert!(table.contains("81 020") && !table.contains("read 2"), "{table}");
        let work = rule.table(&["work".to_owned()], Style::MARKDOWN);
        assert!(work.contains("read 1") && !work.contains("capacity"), "{work}");
        assert_eq!(rule.other("work", "read 1", "array", 1), Some(81_020));
        assert_eq!(rule.other("work", "read 2", "array", 1), None);
        assert_eq!(rule.instructions("capacity", "insert", "array"), None);
    }

    #[test]
    fn files_without_a_comparison_are_refused() {
        let error = read("kind,section\ncase,work\n").err().map(|error| format!("{error:#}"));
        assert!(error.unwrap().contains("compare --format csv"));
        let steers = COMPARED.replace("read 1", "\u{1b}[2J");
        assert!(!read(&steers).unwrap().table(&[], Style::MARKDOWN).contains('\u{1b}'));
    }
}
