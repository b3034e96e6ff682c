//! The figures that canister-profiling published.

use anyhow::{Context, Result};
use serde::Deserialize;

const TEXT: &str = include_str!("../published.json");

/// Instructions of whole messages, in canisters that were instrumented to count them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The author and the versions.
    pub source: String,
    pub rows: Vec<Row>,
}

/// The figures of a collection.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its published name.
    pub name: String,
    /// The map here that is nearest to it.
    pub map: String,
    pub entries: u64,
    pub generate: u64,
    /// 50 of each.
    pub get: u64,
    pub put: u64,
    pub remove: u64,
    pub upgrade: u64,
}

/// Returns all figures.
///
/// # Errors
///
/// If the text is invalid; a test parses it.
pub fn published() -> Result<Published> {
    serde_json::from_str(TEXT).context("suites/collections/published.json")
}

impl Published {
    /// Returns the figures of a map.
    pub fn of(&self, map: &str, entries: u64) -> Option<&Row> {
        self.rows.iter().find(|row| row.map == map && row.entries == entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DEFAULT_ENTRIES, MAPS};

    #[test]
    fn the_figures_are_of_maps_and_sizes_of_the_suite() {
        let published = published().unwrap();
        for row in &published.rows {
            assert!(MAPS.iter().any(|map| map.key == row.map), "{}", row.map);
            assert!(DEFAULT_ENTRIES.contains(&row.entries), "{}", row.entries);
        }
        let stable = published.of("rust-stable-btree-map", 50_000).unwrap();
        assert_eq!((stable.name.as_str(), stable.remove), ("btreemap_stable_rs", 7_817_380));
        assert_eq!(published.of("rust-stable-btree-map", 1_000_000), None);
    }
}
