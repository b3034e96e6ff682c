//! The figures that RocksDB published for its CuckooTable.

use anyhow::{Context, Result};
use serde::Deserialize;

const TEXT: &str = include_str!("../published.json");

/// Lookups per second, on another machine and in another kind of memory. Only their ratios can be
/// compared with ours.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The author and the subject.
    pub source: String,
    pub buckets: u64,
    /// The numbers of keys that are looked up together; 0 is one by one.
    pub batches: Vec<u32>,
    pub rows: Vec<Row>,
}

/// The figures of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub items: u64,
    /// The first of the table's two hashes.
    pub hash: String,
    /// For each batch size.
    pub million_lookups_a_second: Vec<f64>,
}

/// Returns all figures.
///
/// # Errors
///
/// If the text is invalid; a test parses it.
pub fn published() -> Result<Published> {
    serde_json::from_str(TEXT).context("suites/cuckoo/published.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BATCHES, UTILISATIONS, utilisation};

    #[test]
    fn the_figures_have_the_suites_utilisations_and_batches() {
        let published = published().unwrap();
        assert_eq!(published.batches, BATCHES);
        assert_eq!(published.buckets, 128 << 20);
        let rows: Vec<(u64, &str)> =
            published.rows.iter().map(|row| (row.items, &*row.hash)).collect();
        let expected = UTILISATIONS
            .into_iter()
            .flat_map(|of_128| ["murmur", "identity"].map(|hash| (of_128 << 20, hash)));
        assert_eq!(rows, expected.collect::<Vec<_>>());
        for row in &published.rows {
            assert_eq!(row.million_lookups_a_second.len(), BATCHES.len());
        }
    }

    /// The source prints the items and the utilisation of each table.
    #[test]
    fn utilisations_have_their_published_names() {
        assert_eq!(
            UTILISATIONS.map(utilisation),
            ["93.75 %", "78.12 %", "62.50 %", "54.69 %"].map(str::to_owned)
        );
        assert_eq!(120 << 20, 125_829_120);
    }

    /// Three figures of the published text, at the corners.
    #[test]
    fn the_figures_are_the_published_ones() {
        let rows = published().unwrap().rows;
        assert_eq!(rows[0].million_lookups_a_second, [3.7, 7.2, 7.1, 7.0, 6.9]);
        assert_eq!(rows[1].million_lookups_a_second[0], 4.3);
        assert_eq!(rows[7].million_lookups_a_second, [4.6, 12.0, 11.7, 11.6, 12.8]);
    }
}
