//! The figures that came with the option `--use_rowids` of `db_bench_sqlite3`.

use anyhow::{Context, Result};
use serde::Deserialize;

/// The published figures, in microseconds per operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The place of publication.
    pub source: String,
    /// The number of keys.
    pub num: u64,
    /// The benchmarks in order.
    pub rows: Vec<Row>,
}

/// A benchmark.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    /// A table with rowid, before the option existed.
    pub with_rowid: f64,
    pub without_rowid: f64,
    /// A table with rowid in a second run, which shows the noise.
    pub with_rowid_again: f64,
}

/// Returns the figures.
///
/// # Errors
///
/// If the file is invalid; a test reads it.
pub fn get() -> Result<Published> {
    serde_json::from_str(include_str!("../published.json"))
        .context("suites/db-bench/published.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::Benchmark;

    /// The table as the announcement has it.
    const FIGURES: [(&str, f64, f64); 14] = [
        ("fillseq", 21.310, 16.231),
        ("fillseqsync", 146.377, 147.460),
        ("fillseqbatch", 2.065, 2.294),
        ("fillrandom", 34.767, 27.871),
        ("fillrandsync", 159.943, 141.979),
        ("fillrandbatch", 15.055, 16.087),
        ("overwrite", 43.660, 26.829),
        ("overwritebatch", 27.691, 19.014),
        ("readrandom", 12.725, 11.657),
        ("readseq", 2.602, 0.155),
        ("fillrand100K", 606.333, 816.812),
        ("fillseq100K", 657.457, 754.689),
        ("readseq (100K)", 46.523, 47.112),
        ("readrand100K", 54.943, 287.679),
    ];

    #[test]
    fn the_figures_are_the_announced_ones_in_the_order_of_the_benchmarks() {
        let published = get().unwrap();
        let figures: Vec<(&str, f64, f64)> = published
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.with_rowid, row.without_rowid))
            .collect();
        assert_eq!(figures, FIGURES);
        for (row, benchmark) in published.rows.iter().zip(Benchmark::ALL) {
            assert!(row.name.starts_with(&benchmark.to_string()), "{}", row.name);
            // The same code again: the noise of the figures.
            let noise = row.with_rowid_again / row.with_rowid;
            assert!((0.95..1.05).contains(&noise), "{}: {noise}", row.name);
        }
        assert_eq!(published.num, 1_000_000);
    }
}
