//! The published multipliers: the time of DoltLite divided by that of SQLite.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

const TEXT: &str = include_str!("../published.json");

/// The known part of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The author and the date.
    pub source: String,
    /// The divisor.
    pub base: String,
    /// The dividend.
    pub other: String,
    /// The number of rows of the main table.
    pub rows: u64,
    /// The number of runs of each workload, whose median is its time.
    pub runs: u64,
    pub ceilings: Ceilings,
    /// In the order of our sections.
    pub sections: Vec<Average>,
    /// Single workloads that are known.
    pub workloads: Vec<Multiplier>,
}

/// The ceilings above which the report fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// The maximum multiplier of a workload.
    pub ratio: f64,
    /// The maximum average of a section.
    pub average: f64,
}

/// The arithmetic mean of a section's multipliers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Average {
    pub section: String,
    pub average: f64,
}

/// The multiplier of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multiplier {
    pub section: String,
    pub name: String,
    pub ratio: f64,
}

impl Published {
    /// Returns the report.
    ///
    /// # Errors
    ///
    /// If the embedded text is invalid; a test reads it.
    pub fn read() -> Result<Self> {
        serde_json::from_str(TEXT).context("the published figures of sysbench")
    }

    /// Returns the average of a section by its name.
    pub fn average(&self, section: &str) -> Option<f64> {
        self.sections.iter().find(|of| of.section == section).map(|of| of.average)
    }

    /// Returns the multiplier of a workload.
    pub fn ratio(&self, section: &str, name: &str) -> Option<f64> {
        let of = self.workloads.iter().find(|of| of.section == section && of.name == name);
        of.map(|of| of.ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;
    use crate::work::{PUBLISHED_ROWS, WORKLOADS};

    /// The averages of the report: reads and writes in memory, in a file, and with each statement a
    /// transaction.
    const AVERAGES: [[f64; 6]; 4] = [
        [1.46, 1.86, 1.79, 1.73, 2.12, 4.09],
        [1.31, 1.76, 1.80, 1.82, 2.18, 4.13],
        [1.42, 1.87, 2.09, 1.84, 2.54, 4.64],
        [1.48, 1.89, 2.10, 1.64, 2.54, 3.84],
    ];

    #[test]
    fn every_section_has_its_published_average() {
        let published = Published::read().unwrap();
        let sections: Vec<String> = Section::all().map(Section::name).collect();
        let averages: Vec<Option<f64>> =
            sections.iter().map(|section| published.average(section)).collect();
        assert_eq!(
            averages,
            AVERAGES.as_flattened().iter().map(|one| Some(*one)).collect::<Vec<_>>()
        );
        assert_eq!(published.sections.len(), sections.len());
        assert_eq!(published.average("integer reads"), None);
        assert_eq!((published.rows, published.runs), (PUBLISHED_ROWS, 5));
        assert_eq!((published.ceilings.ratio, published.ceilings.average), (6.0, 5.0));
    }

    #[test]
    fn the_most_expensive_workload_is_known() {
        let published = Published::read().unwrap();
        let of = |name| published.ratio("integer autocommit writes", name);
        assert_eq!((of("update_index"), of("insert")), (Some(4.51), None));
        for one in &published.workloads {
            assert!(WORKLOADS.iter().any(|(_, name, _)| *name == one.name));
        }
    }

    #[test]
    fn the_text_is_formatted_like_saved_results() {
        let published = Published::read().unwrap();
        assert_eq!(stablebench_suite::terminal::json_lines(&published).unwrap(), TEXT);
    }
}
