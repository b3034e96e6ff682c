//! Tables of the suite db-bench alone: what follows from the costs, what is stored, the
//! published figures, and histograms as db_bench prints them.

use anyhow::Result;

use super::grid::{Cell, Grid, Style};
use super::section::columns;
use super::{db_bench_writes, histogram};
use crate::report::heading;
use crate::report::number::{Factor, Grouped, Ratio};
use crate::results::{Detail, Measured, Results};
use crate::suites::db_bench::published::{self, Published};
use crate::suites::db_bench::{BATCH, SECTION, WITH_ROWID, WITHOUT_ROWID};

/// Instructions that an update message may use.
const UPDATE_LIMIT: u64 = 40_000_000_000;
/// Ratios this near to 1 are the same: two published runs of one thing are as far apart.
const NOISE: f64 = 0.05;

/// All of them.
///
/// # Errors
///
/// Where the published figures cannot be read.
pub fn grids(results: &Results, style: Style) -> Result<Vec<Grid>> {
    let mut grids = beside_cases(results, style)?;
    grids.extend(histogram::grids(results));
    Ok(grids)
}

/// All of them but the histograms.
///
/// # Errors
///
/// Where the published figures cannot be read.
pub fn beside_cases(results: &Results, style: Style) -> Result<Vec<Grid>> {
    let mut grids = vec![fitting(results, style), stored(results, style)];
    grids.extend(db_bench_writes::grids(results, style));
    grids.extend(beside(results, &published::get()?, style));
    Ok(grids)
}

/// Names of the benchmarks in their order.
pub(super) fn names(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for case in results.section(SECTION) {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    names
}

pub(super) fn measured<'a>(results: &'a Results, name: &str, column: &str) -> Option<&'a Measured> {
    results.case(SECTION, name, column)?.measured()
}

/// How many operations fit into one update message.
fn fitting(results: &Results, style: Style) -> Grid {
    let keys = columns(results, SECTION);
    let fitting = |name: &str, key: &&str| {
        let measured = measured(results, name, key)?;
        let operations = u128::from(UPDATE_LIMIT) * u128::from(measured.operations)
            / u128::from(measured.instructions.max(1));
        // A transaction is in one message as a whole.
        let together = if name.contains("batch") { BATCH.min(measured.operations) } else { 1 };
        Some(operations as u64 / together * together)
    };
    let rows = names(results).into_iter().map(|name| {
        let number = |key| fitting(name, key).map_or(Cell::Absent, |of| Cell::text(Grouped(of)));
        [Cell::text(name)].into_iter().chain(keys.iter().map(number)).collect()
    });
    Grid {
        title: "Operations per update message, computed".to_owned(),
        header: header(&keys, style),
        rows: rows.collect(),
        notes: vec![
            "Computed from the instructions an operation and the limit of 40 000 000 000 a \
             message; …batch in whole transactions."
                .to_owned(),
        ],
        lines: false,
    }
}

pub(super) fn header(keys: &[&str], style: Style) -> Vec<String> {
    let headings = keys.iter().map(|key| style.narrow(&heading(key)));
    [String::new()].into_iter().chain(headings).collect()
}

/// What the store takes after each benchmark that writes.
fn stored(results: &Results, style: Style) -> Grid {
    let keys = columns(results, SECTION);
    let detail = |name: &str, key: &str| -> Option<&Detail> {
        measured(results, name, key)?.detail.as_ref().filter(|detail| detail.stored.is_some())
    };
    let bytes = |name: &str, key: &str| Some(detail(name, key)?.stored.as_ref()?.bytes);
    let mut rows = Vec::new();
    for name in names(results) {
        let Some(values) = keys.iter().find_map(|key| detail(name, key)?.digest) else { continue };
        let cell = |key: &&str| bytes(name, key).map_or(Cell::Absent, |of| Cell::text(Grouped(of)));
        let ratio = match (bytes(name, WITHOUT_ROWID), bytes(name, WITH_ROWID)) {
            (Some(without), Some(with)) => Cell::text(Ratio(without, with)),
            _ => Cell::Absent,
        };
        let labels = [Cell::text(name), Cell::text(Grouped(values.rows))];
        rows.push(labels.into_iter().chain(keys.iter().map(cell)).chain([ratio]).collect());
    }
    let mut header = header(&keys, style);
    header.insert(1, "keys".to_owned());
    header.push(style.stacked(&"WITHOUT ROWID", &"/ with rowid"));
    Grid {
        title: "Bytes stored afterwards".to_owned(),
        header,
        rows,
        notes: vec![
            "Pages of the database, nodes of the map, slots up to the last that is used. Random \
             keys come more than once, so that there are fewer of them than writes."
                .to_owned(),
        ],
        lines: false,
    }
}

/// The published figures beside ours, and on which side of 1 the ratios are.
fn beside(results: &Results, published: &Published, style: Style) -> Option<Grid> {
    let here = |name: &str, key: &str| measured(results, name, key).map(Measured::each_operation);
    let mut rows = Vec::new();
    for row in &published.rows {
        let (with, without) = (here(&row.name, WITH_ROWID), here(&row.name, WITHOUT_ROWID));
        if with.or(without).is_none() {
            continue;
        }
        let theirs = row.without_rowid / row.with_rowid;
        let ours = with.zip(without).map(|(with, without)| without as f64 / with.max(1) as f64);
        let number = |of: Option<u64>| of.map_or(Cell::Absent, |of| Cell::text(Grouped(of)));
        rows.push(vec![
            Cell::text(&row.name),
            Cell::Text(format!("{:.3}", row.with_rowid)),
            Cell::Text(format!("{:.3}", row.with_rowid_again)),
            Cell::Text(format!("{:.3}", row.without_rowid)),
            Cell::text(Factor(theirs)),
            number(with),
            number(without),
            ours.map_or(Cell::Absent, |ours| Cell::text(Factor(ours))),
            ours.map_or(Cell::Absent, |ours| Cell::Text(verdict(theirs, ours))),
        ]);
    }
    let unit = |above: &str, below: &str| style.stacked(&above, &below);
    let mut notes = vec![format!(
        "Published: {}, of {} keys, microseconds an operation. Here: instructions an operation. \
         Again: the table with rowid once more. ×: WITHOUT ROWID / with rowid. Ratios within {:.0} % \
         of 1 are called the same: the two runs of one table are as far apart.",
        published.source,
        Grouped(published.num),
        NOISE * 100.0,
    )];
    if results.cases.iter().any(|case| case.rows != published.num) {
        notes.push(format!("--num {} runs here what was published.", published.num));
    }
    notes.push(
        "…sync: a message is durable where it ends, whatever SQLite does, and no disk is waited \
         for: what synchronous=FULL costs here is SQLite's calls to sync, not a wait."
            .to_owned(),
    );
    (!rows.is_empty()).then(|| Grid {
        title: "Beside the published figures".to_owned(),
        header: vec![
            String::new(),
            unit("published", "rowid"),
            unit("published", "again"),
            unit("published", "WITHOUT"),
            unit("", "×"),
            unit("here", "rowid"),
            unit("here", "WITHOUT"),
            unit("", "×"),
            "WITHOUT ROWID is".to_owned(),
        ],
        rows,
        notes,
        lines: false,
    })
}

/// `cheaper, as published`, or `dearer, published: cheaper`.
fn verdict(theirs: f64, ours: f64) -> String {
    let word = |ratio: f64| match ratio {
        ratio if ratio < 1.0 - NOISE => "cheaper",
        ratio if ratio > 1.0 + NOISE => "dearer",
        _ => "the same",
    };
    match (word(ours), word(theirs)) {
        (ours, theirs) if ours == theirs => format!("{ours}, as published"),
        (ours, theirs) => format!("{ours}; published: {theirs}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Outcome, Stored, sample};
    use stablebench_protocol::Digest;

    fn results() -> Results {
        let mut cases = Vec::new();
        for (name, with, without) in
            [("fillseqbatch", 3_000_000_000, 1_000_000_000), ("readseq", 200_000, 200_001)]
        {
            for (key, instructions) in [(WITH_ROWID, with), (WITHOUT_ROWID, without)] {
                let mut case = sample::case(SECTION, name, key, instructions);
                if let Outcome::Measured(measured) = &mut case.outcome {
                    measured.operations = 2_000;
                    if name != "readseq" {
                        let stored = Stored {
                            bytes: instructions / 1_000,
                            virtual_bytes: 0,
                            cache_bytes: 0,
                            objects: Vec::new(),
                        };
                        let digest = Digest { rows: 1_500, low: 0, high: 0 };
                        measured.detail =
                            Some(Detail { stored: Some(stored), ..sample::detail(digest) });
                    }
                }
                cases.push(case);
            }
        }
        Results { suite: "db-bench".to_owned(), ..sample::of(cases) }
    }

    fn cells(grid: &Grid) -> Vec<Vec<String>> {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        grid.rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    #[test]
    fn tables_hold_what_follows_from_the_cases() {
        let results = results();
        let style = Style::MARKDOWN;
        // 40 G / 1.5 M = 26 666 and 40 G / 0.5 M = 80 000, in transactions of 1 000; a
        // message reads 40 G / 100.
        assert_eq!(
            cells(&fitting(&results, style)),
            [["fillseqbatch", "26 000", "80 000"], ["readseq", "400 000 000", "399 998 000"]]
        );
        assert_eq!(
            cells(&stored(&results, style)),
            [["fillseqbatch", "1 500", "3 000 000", "1 000 000", "0.33×"]]
        );
        let published = published::get().unwrap();
        assert_eq!(
            cells(&beside(&results, &published, style).unwrap()),
            [
                [
                    "fillseqbatch",
                    "2.065",
                    "2.045",
                    "2.294",
                    "1.111×",
                    "1 500 000",
                    "500 000",
                    "0.333×",
                    "cheaper; published: dearer"
                ],
                [
                    "readseq",
                    "2.602",
                    "2.483",
                    "0.155",
                    "0.060×",
                    "100",
                    "100",
                    "1.000×",
                    "the same; published: cheaper"
                ]
            ]
        );
    }

    #[test]
    fn ratios_are_on_a_side() {
        assert_eq!(verdict(0.9, 0.5), "cheaper, as published");
        assert_eq!(verdict(1.04, 0.96), "the same, as published");
        assert_eq!(verdict(0.9, 1.06), "dearer; published: cheaper");
    }
}
