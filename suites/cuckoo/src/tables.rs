//! The own tables of the suite cuckoo: reads of stable memory by lookups, and the figures that
//! RocksDB published for its CuckooTable.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::plan::{
    BATCHED, BUILD, CuckooSuite, HIT, MISS, SCATTERED, UPGRADED, UTILISATIONS, batch_name,
    table_key, utilisation,
};
use stablebench_suite::engines::{has_sql, heading};
use stablebench_suite::report::Presentation;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::{Case, Results};

const TEXT: &str = include_str!("../published.json");

/// Lookups per second, on another machine and in another kind of memory. Only their ratios can be
/// compared with ours.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// The author and the subject.
    source: String,
    buckets: u64,
    /// The numbers of keys that are looked up together; 0 is one by one.
    batches: Vec<u32>,
    rows: Vec<PublishedTable>,
}

/// The figures of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedTable {
    items: u64,
    /// The first of the table's two hashes.
    hash: String,
    /// For each batch size.
    million_lookups_a_second: Vec<f64>,
}

/// Returns all figures.
///
/// # Errors
///
/// If the text is invalid; a test parses it.
fn published() -> Result<Published> {
    serde_json::from_str(TEXT).context("suites/cuckoo/published.json")
}

impl Presentation for CuckooSuite {
    fn question(&self) -> Option<&'static str> {
        Some("How cheap can a point read be if rows never change?")
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            HIT => "Lookups of existing keys, sequential keys",
            MISS => "Lookups of missing keys, sequential keys",
            SCATTERED => "The same with scattered keys",
            BATCHED => "Lookups in batches, sequential keys",
            UPGRADED => "Lookups after an upgrade, sequential keys",
            BUILD => "Adding the items, in the order of keys",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let mut grids = Vec::new();
        grids.extend(reads(results, style));
        grids.push(published_and_ours(results, style)?);
        Ok(grids)
    }
}

/// Returns a table of the reads and bytes per lookup; `None` if the replica did not report them.
fn reads(results: &Results, style: Style) -> Option<Grid> {
    let keys: Vec<&str> =
        results.configurations.iter().map(|configuration| configuration.key.as_str()).collect();
    // Messages that are not staged repeat all lookups for the digest.
    let twice = results.harness.is_empty();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for case in &results.cases {
        let name = (case.section.as_str(), case.name.as_str());
        if !matches!(name.0, HIT | MISS | SCATTERED) || seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let cells = keys.iter().map(|key| match results.case(name.0, name.1, key) {
            Some(case) => read(case, twice),
            None => Cell::Absent,
        });
        let label = match name.0 {
            SCATTERED => format!("scattered keys, {}", name.1),
            section => format!("{section}, {}", name.1),
        };
        rows.push([Cell::Text(label)].into_iter().chain(cells).collect());
    }
    let reported = rows.iter().flatten().any(|cell| *cell != Cell::Absent);
    let mut header = vec![String::new()];
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    (reported && !rows.is_empty()).then(|| Grid {
        title: "Read from stable memory by a lookup: calls / bytes".to_owned(),
        header,
        rows,
        notes: if keys.iter().any(|key| has_sql(key)) {
            vec!["SQLite reads nothing if all its pages are in the cache.".to_owned()]
        } else {
            Vec::new()
        },
        lines: false,
    })
}

/// Returns the reads and bytes per lookup. `twice` is `true` if a message repeats all lookups.
fn read(case: &Case, twice: bool) -> Cell {
    let measured = case.measured();
    let calls = measured.and_then(|measured| measured.detail.as_ref()?.cost.inside?.stable_calls);
    let (Some(measured), Some(calls)) = (measured, calls) else {
        return Cell::missing(&case.outcome);
    };
    let lookups = measured.operations.max(1) * if twice { 2 } else { 1 };
    let each = |sum: u64| sum as f64 / lookups as f64;
    Cell::Text(format!("{:.2} / {:.0}", each(calls.reads), each(calls.bytes_read)))
}

/// Returns a table of the published lookups per second and our instructions per lookup.
fn published_and_ours(results: &Results, style: Style) -> Result<Grid> {
    let published = published()?;
    let mut header = vec!["full".to_owned(), "first hash".to_owned()];
    header.extend(published.batches.iter().map(|batch| format!("batch {batch}")));
    let mut rows = Vec::new();
    for row in &published.rows {
        let of_128 = UTILISATIONS.into_iter().find(|of| published.buckets / 128 * of == row.items);
        let Some(of_128) = of_128 else { continue };
        let cells = published.batches.iter().zip(&row.million_lookups_a_second);
        let cells = cells.map(|(batch, mqps)| {
            let name = batch_name(of_128, *batch);
            let case = results.case(BATCHED, &name, &table_key(&row.hash));
            let here = case.and_then(|case| Some(case.measured()?.each_operation()));
            let here = here.map_or_else(|| "–".to_owned(), |here| Grouped(here).to_string());
            Cell::Text(style.stacked(&format!("{mqps:.1} M/s"), &here))
        });
        let labels = [Cell::Text(utilisation(of_128)), Cell::text(&row.hash)];
        rows.push(labels.into_iter().chain(cells).collect());
    }
    Ok(Grid {
        title:
            "Compared with the published figures: lookups a second there, instructions a lookup \
                here"
                .to_owned(),
        header,
        rows,
        notes: vec![format!(
            "Published: {}, {} buckets. Batch 0: one by one.",
            published.source,
            Grouped(published.buckets)
        )],
        lines: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::BATCHES;

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
