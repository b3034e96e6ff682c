//! What the open rule decides on: each figure by today's rules, and if that rule is the other way.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// How far the two values of a figure must be apart for both to be shown.
const APART: f64 = 0.05;

/// Figures of a run with the open rule the other way: total instructions of a case, by section,
/// name and column.
pub struct OpenRule(HashMap<(String, String, String), Both>);

/// Instructions of a case, either way.
#[derive(Clone, Copy)]
struct Both {
    today: u64,
    other: u64,
}

/// A line of a comparison as CSV.
#[derive(Deserialize)]
struct Line {
    kind: String,
    section: String,
    name: String,
    column: String,
    unit: String,
    base: String,
    new: String,
}

impl OpenRule {
    /// Reads the comparison of the two runs.
    pub fn read(path: &Path) -> Result<Self> {
        let mut lines = csv::Reader::from_path(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut figures = HashMap::new();
        for line in lines.deserialize() {
            let line: Line = line.with_context(|| path.display().to_string())?;
            if line.kind != "case" || line.unit != "instructions" {
                continue;
            }
            if let (Ok(today), Ok(other)) = (line.base.parse(), line.new.parse()) {
                figures.insert((line.section, line.name, line.column), Both { today, other });
            }
        }
        Ok(Self(figures))
    }

    /// Returns a case's instructions with the rule the other way.
    pub fn instructions(&self, section: &str, name: &str, column: &str) -> Option<u64> {
        self.get(section, name, column).map(|both| both.other)
    }

    /// Returns the other value of a case of so many operations, where it is far from today's.
    pub fn other(&self, section: &str, name: &str, column: &str, operations: u64) -> Option<u64> {
        let Both { today, other } = self.get(section, name, column)?;
        apart(today as f64, other as f64).then(|| other / operations.max(1))
    }

    fn get(&self, section: &str, name: &str, column: &str) -> Option<Both> {
        self.0.get(&(section.to_owned(), name.to_owned(), column.to_owned())).copied()
    }
}

/// Whether two values of a figure are so far apart that both are shown.
pub fn apart(today: f64, other: f64) -> bool {
    (other / today - 1.0).abs() > APART
}
