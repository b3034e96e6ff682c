//! The figures that the authors of `ic-sqlite-vfs` publish.

use anyhow::{Context, Result};
use serde::Deserialize;

const TEXT: &str = include_str!("../published.json");

/// The published comparison of the two libraries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The author and the date.
    pub source: String,
    pub url: String,
    pub cases: Vec<Figures>,
    pub pages: Pages,
}

/// Instructions of a case, rounded as they were published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// The name of our case.
    pub name: String,
    pub vfs: u64,
    pub rusqlite: u64,
}

/// "Stable pages" of a database: those of a virtual memory for the one library, of all
/// stable memory for the other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    pub rows: u64,
    pub vfs: u64,
    pub rusqlite: u64,
}

/// Returns all figures.
///
/// # Errors
///
/// If the text is invalid; a test reads it.
pub fn published() -> Result<Published> {
    serde_json::from_str(TEXT).context("suites/vfs/published.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Millions of instructions, as in the README.
    const README: [(&str, f64, f64); 8] = [
        ("insert 1 000", 10.29, 83.27),
        ("insert 5 000", 60.95, 426.93),
        ("upsert 1 000", 13.35, 86.53),
        ("update 1 000", 16.76, 81.20),
        ("point read 1", 0.048, 0.014),
        ("point read 1 000", 10.05, 10.69),
        ("ordered scan 5 000", 6.46, 7.99),
        ("IN 1 000", 14.35, 18.41),
    ];

    #[test]
    fn the_figures_are_those_of_the_readme() {
        let published = published().unwrap();
        let millions = |value: u64| value as f64 / 1e6;
        let figures: Vec<(&str, f64, f64)> = published
            .cases
            .iter()
            .map(|of| (&*of.name, millions(of.vfs), millions(of.rusqlite)))
            .collect();
        assert_eq!(figures, README);
        assert_eq!((published.pages.vfs, published.pages.rusqlite), (6, 1_281));
    }
}
