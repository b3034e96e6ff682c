//! The own tables of the suite db-bench: values derived from the costs, stored bytes, histograms as
//! db_bench prints them, and the figures that came with the option `--use_rowids` of
//! `db_bench_sqlite3`.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::plan::{BATCH, DbBenchSuite, SECTION, WITH_ROWID, WITHOUT_ROWID};
use stablebench_suite::engines::heading;
use stablebench_suite::report::Presentation;
use stablebench_suite::report::advice::times;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::{Factor, Grouped, Ratio, Short};
use stablebench_suite::report::price::written;
use stablebench_suite::results::{Case, Detail, Measured, Results, Spread};

/// The maximum number of instructions of an update message.
const UPDATE_LIMIT: u64 = 40_000_000_000;
/// The difference from 1 below which a ratio is noise: two published runs of the same table differ
/// as much.
const NOISE: f64 = 0.05;

/// The published figures, in microseconds per operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// The place of publication.
    source: String,
    /// The number of keys.
    num: u64,
    /// The benchmarks in order.
    rows: Vec<PublishedBenchmark>,
}

/// A benchmark.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedBenchmark {
    name: String,
    /// A table with rowid, before the option existed.
    with_rowid: f64,
    without_rowid: f64,
    /// A table with rowid in a second run, which shows the noise.
    with_rowid_again: f64,
}

/// Returns the figures.
///
/// # Errors
///
/// If the file is invalid; a test reads it.
fn published() -> Result<Published> {
    serde_json::from_str(include_str!("../published.json"))
        .context("suites/db-bench/published.json")
}

impl Presentation for DbBenchSuite {
    fn question(&self) -> Option<&'static str> {
        Some("Is a table without rowid cheaper, and what does a map cost?")
    }

    fn section(&self, name: &str) -> Option<String> {
        (name == SECTION).then(|| "The benchmarks of db_bench, in its order".to_owned())
    }

    fn lists_fixtures(&self) -> bool {
        // Benchmarks empty the fixtures.
        false
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let mut grids = tables(results, style)?;
        let cases = results.cases.iter();
        grids.extend(cases.filter_map(|case| histogram(case, case.measured()?.each.as_ref()?)));
        Ok(grids)
    }

    /// Returns all tables except the histograms.
    fn summaries(&self, results: &Results) -> Result<Vec<Grid>> {
        tables(results, Style::default())
    }
}

fn tables(results: &Results, style: Style) -> Result<Vec<Grid>> {
    let mut grids = vec![fitting(results, style), stored(results, style)];
    grids.extend(amplification(results, style));
    grids.extend(most_expensive(results, style));
    grids.extend(published_and_ours(results, &published()?, style));
    Ok(grids)
}

fn measured<'a>(results: &'a Results, name: &str, configuration: &str) -> Option<&'a Measured> {
    results.case(SECTION, name, configuration)?.measured()
}

/// Returns a table of the numbers of operations that fit into one update message.
fn fitting(results: &Results, style: Style) -> Grid {
    let keys = results.configurations_of(SECTION);
    let fitting = |name: &str, key: &&str| {
        let measured = measured(results, name, key)?;
        let operations = u128::from(UPDATE_LIMIT) * u128::from(measured.operations)
            / u128::from(measured.instructions.max(1));
        // A transaction is not split between messages.
        let together = if name.contains("batch") { BATCH.min(measured.operations) } else { 1 };
        Some(operations as u64 / together * together)
    };
    let rows = results.names(SECTION).into_iter().map(|name| {
        let number = |key| fitting(name, key).map_or(Cell::Absent, |of| Cell::text(Grouped(of)));
        [Cell::text(name)].into_iter().chain(keys.iter().map(number)).collect()
    });
    Grid {
        title: "Operations per update message, computed".to_owned(),
        header: header(&keys, style),
        rows: rows.collect(),
        notes: vec![format!(
            "Computed from the instructions of an operation and the limit of 40 000 000 000 for a \
             message{}.",
            if has(results, "batch") { "; …batch in whole transactions" } else { "" }
        )],
        lines: false,
    }
}

fn header(keys: &[&str], style: Style) -> Vec<String> {
    let headings = keys.iter().map(|key| style.narrow(&heading(key)));
    [String::new()].into_iter().chain(headings).collect()
}

/// Returns a table of the stored bytes after each benchmark that writes.
fn stored(results: &Results, style: Style) -> Grid {
    let keys = results.configurations_of(SECTION);
    let detail = |name: &str, key: &str| -> Option<&Detail> {
        measured(results, name, key)?.detail.as_ref().filter(|detail| detail.stored.is_some())
    };
    let bytes = |name: &str, key: &str| Some(detail(name, key)?.stored.as_ref()?.bytes);
    let mut rows = Vec::new();
    for name in results.names(SECTION) {
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
            "Pages of the database, nodes of the map, slots up to the last one in use. Random keys \
             repeat, so there are fewer keys than writes."
                .to_owned(),
        ],
        lines: false,
    }
}

/// Returns a table of the published figures and ours, with verdicts on the ratios.
fn published_and_ours(results: &Results, published: &Published, style: Style) -> Option<Grid> {
    let mut rows = Vec::new();
    for row in &published.rows {
        let here = |key: &str| measured(results, &row.name, key);
        let (with, without) = (here(WITH_ROWID), here(WITHOUT_ROWID));
        if with.or(without).is_none() {
            continue;
        }
        let theirs = row.without_rowid / row.with_rowid;
        let ours = with.zip(without).and_then(|(with, without)| Some(times(without, with)?.0));
        let number = |of: Option<&Measured>| {
            of.map_or(Cell::Absent, |of| Cell::text(Grouped(of.each_operation())))
        };
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
        "Published: {}, {} keys, microseconds an operation. Here: instructions an operation. Again: \
         a second run of the table with rowid. ×: WITHOUT ROWID / with rowid. Ratios within {:.0} % \
         of 1 are called the same, since the two runs of one table differ as much.",
        published.source,
        Grouped(published.num),
        NOISE * 100.0,
    )];
    if results.cases.iter().any(|case| case.rows != published.num) {
        notes.push(format!("--num {} runs the published number of keys.", published.num));
    }
    if has(results, "sync") {
        notes.push(
            "…sync: a message is durable when it ends, and does not wait for a disk. So the cost of \
             synchronous=FULL is that of SQLite's calls to sync."
                .to_owned(),
        );
    }
    (!rows.is_empty()).then(|| Grid {
        title: "Compared with the published figures".to_owned(),
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

/// Returns `cheaper, as published`, or `more expensive; published: cheaper`.
fn verdict(theirs: f64, ours: f64) -> String {
    let word = |ratio: f64| match ratio {
        ratio if ratio < 1.0 - NOISE => "cheaper",
        ratio if ratio > 1.0 + NOISE => "more expensive",
        _ => "the same",
    };
    match (word(ours), word(theirs)) {
        (ours, theirs) if ours == theirs => format!("{ours}, as published"),
        (ours, theirs) => format!("{ours}; published: {theirs}"),
    }
}

/// Returns a table with a row for each benchmark that has a text for any configuration.
fn grid(
    results: &Results,
    style: Style,
    text: impl Fn(&str, &Measured) -> Option<String>,
) -> Option<Grid> {
    let keys = results.configurations_of(SECTION);
    let mut rows = Vec::new();
    for name in results.names(SECTION) {
        let cell = |key: &&str| measured(results, name, key).and_then(|of| text(name, of));
        let cells: Vec<Option<String>> = keys.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.map_or(Cell::Absent, Cell::Text));
            rows.push([Cell::text(name)].into_iter().chain(cells).collect());
        }
    }
    (!rows.is_empty()).then(|| Grid {
        title: String::new(),
        header: header(&keys, style),
        rows,
        notes: Vec::new(),
        lines: false,
    })
}

fn amplification(results: &Results, style: Style) -> Option<Grid> {
    let text = |_: &str, measured: &Measured| {
        let (bytes, _, rows) = written(measured)?;
        Some(format!("{:.2}", bytes as f64 / rows as f64))
    };
    let mut notes = vec![
        "Bytes passed to stable_write for each byte of keys and values, over all messages of the \
         benchmark."
            .to_owned(),
    ];
    if has_leveldb(results) {
        notes.push(
            "leveldb: a row is written to the log, to a table when the write buffer is full, and \
             again by each compaction of that table."
                .to_owned(),
        );
    }
    Some(Grid { title: "Write amplification".to_owned(), notes, ..grid(results, style, text)? })
}

/// True if a benchmark of this kind ran.
fn has(results: &Results, kind: &str) -> bool {
    results.names(SECTION).iter().any(|name| name.contains(kind))
}

fn has_leveldb(results: &Results) -> bool {
    results
        .configurations
        .iter()
        .any(|configuration| configuration.engine == stablebench_protocol::Engine::LEVELDB)
}

fn most_expensive(results: &Results, style: Style) -> Option<Grid> {
    let text = |name: &str, measured: &Measured| {
        // Engines do part of the work of a batch when it ends.
        let each: &Spread = measured.each.as_ref().filter(|_| !name.contains("batch"))?;
        let mean = each.sum / measured.operations.max(1);
        Some(format!("{} / {} / {}", Short(mean), Short(each.p99), Short(each.max)))
    };
    let mut notes = vec![
        "Instructions of a single operation: the mean, the 99th percentile, and the maximum."
            .to_owned(),
    ];
    if has(results, "batch") {
        notes[0] +=
            " …batch is not listed, because part of its work is done when a transaction ends.";
    }
    if has_leveldb(results) {
        notes.push(
            "leveldb: a maximum far above the 99th percentile is a compaction. It is part of the \
             call that starts it: a write that fills the write buffer, or a read after many reads \
             that searched a file in vain. Such a call has to fit into a message, and not only the \
             mean."
                .to_owned(),
        );
    }
    Some(Grid {
        title: "Single operations: mean / p99 / maximum".to_owned(),
        notes,
        ..grid(results, style, text)?
    })
}

/// Per cent that a mark stands for.
const MARK: u64 = 5;

/// The costs of single operations as db_bench's `--histogram` shows them: a line a bucket, with
/// its share, the share so far, and a mark for every 5 %.
fn histogram(case: &Case, spread: &Spread) -> Option<Grid> {
    let count: u64 = spread.buckets.iter().map(|bucket| bucket.count).sum();
    if count == 0 {
        return None;
    }
    let percent = |of: u64| format!("{:.1} %", of as f64 / count as f64 * 100.0);
    let mut so_far = 0;
    let rows = spread.buckets.iter().map(|bucket| {
        so_far += bucket.count;
        let marks = (bucket.count * 100 + count * MARK / 2) / (count * MARK);
        vec![
            Cell::Text(format!("{} …", Grouped(bucket.from))),
            Cell::text(Grouped(bucket.below)),
            Cell::text(Grouped(bucket.count)),
            Cell::Text(percent(bucket.count)),
            Cell::Text(percent(so_far)),
            Cell::Text("#".repeat(marks as usize)),
        ]
    });
    let header = ["from", "below", "operations", "", "so far", ""];
    Some(Grid {
        title: format!(
            "Instructions of each operation: {}, {}. Count {}, average {}, min {}, median {}, \
             max {}",
            case.name,
            heading(&case.configuration),
            Grouped(count),
            Grouped(spread.sum / count),
            Grouped(spread.min),
            Grouped(spread.p50),
            Grouped(spread.max),
        ),
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: Vec::new(),
        lines: false,
    })
}

#[cfg(test)]
mod tests {
    use stablebench_protocol::Digest;

    use super::*;
    use crate::plan::Benchmark;
    use stablebench_suite::plan_of;
    use stablebench_suite::results::{Bucket, Outcome, Stored, sample};

    fn two_benchmarks() -> Results {
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
    fn notes_are_on_benchmarks_that_were_run() {
        let notes = |names: &[&str]| -> String {
            let cases = names.iter().map(|name| sample::case(SECTION, name, WITH_ROWID, 200_000));
            let results = Results { suite: "db-bench".to_owned(), ..sample::of(cases.collect()) };
            let grids = tables(&results, Style::default()).unwrap();
            grids.into_iter().flat_map(|grid| grid.notes).collect()
        };
        let [sync, batch] = ["…sync: a message", "…batch in whole"];
        let text = notes(&["readseq"]);
        assert!(!text.contains(sync) && !text.contains(batch), "{text}");
        let text = notes(&["fillseqbatch", "fillseqsync"]);
        assert!(text.contains(sync) && text.contains(batch), "{text}");
    }

    /// Twenty instructions less than the floor of a conclusion.
    #[test]
    fn few_instructions_are_no_verdict() {
        let mut results = two_benchmarks();
        if let Outcome::Measured(measured) = &mut results.cases[2].outcome {
            measured.instructions = 19_980;
        }
        let grid = published_and_ours(&results, &published().unwrap(), Style::default());
        let row = cells(&grid.unwrap()).swap_remove(1);
        assert_eq!(row[5..], ["10", "100", "Absent", "Absent"]);
    }

    #[test]
    fn tables_contain_values_derived_from_the_cases() {
        let results = two_benchmarks();
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
        let published = published().unwrap();
        assert_eq!(
            cells(&published_and_ours(&results, &published, style).unwrap()),
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
                    "cheaper; published: more expensive"
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
    fn verdicts_compare_ratios_with_1() {
        assert_eq!(verdict(0.9, 0.5), "cheaper, as published");
        assert_eq!(verdict(1.04, 0.96), "the same, as published");
        assert_eq!(verdict(0.9, 1.06), "more expensive; published: cheaper");
    }

    /// Returns the sample's cases with the names of benchmarks.
    fn of_sample(names: [&str; 2]) -> Results {
        let full = sample::full();
        let case = full.cases.iter().find(|case| {
            case.measured().is_some_and(|of| of.each.is_some() && written(of).is_some())
        });
        let mut cases = Vec::new();
        for name in names {
            let mut case = case.cloned().unwrap();
            (case.section, case.name) = (SECTION.to_owned(), name.to_owned());
            cases.push(case);
        }
        Results { suite: "db-bench".to_owned(), ..sample::of(cases) }
    }

    #[test]
    fn single_operations_of_batches_are_not_shown() {
        let mut results = of_sample(["fillseq", "fillseqbatch"]);
        let measured = results.cases[0].measured().unwrap().clone();
        let (bytes, _, rows) = written(&measured).unwrap();
        let style = Style::MARKDOWN;
        let grids = [amplification(&results, style), most_expensive(&results, style)];
        let grids: Vec<Grid> = grids.into_iter().flatten().collect();
        assert_eq!(grids[0].rows.len(), 2);
        assert_eq!(grids[0].rows[0][1], Cell::Text(format!("{:.2}", bytes as f64 / rows as f64)));
        assert_eq!(grids[1].rows.len(), 1);
        let max = Short(measured.each.unwrap().max).to_string();
        assert!(matches!(&grids[1].rows[0][1], Cell::Text(text) if text.ends_with(&max)));

        for case in &mut results.cases {
            case.outcome = Outcome::Failed { reason: String::new() };
        }
        assert!(amplification(&results, style).is_none());
        assert!(most_expensive(&results, style).is_none());
    }

    #[test]
    fn a_bucket_is_a_line_with_its_marks() {
        let mut case = sample::full().cases.remove(0);
        if let Outcome::Measured(measured) = &mut case.outcome
            && let Some(each) = &mut measured.each
        {
            let bucket = |from, count| Bucket { from, below: from + 5, count };
            each.buckets = vec![bucket(25, 30), bucket(50, 68), bucket(5_000, 2)];
        }
        let spread = case.measured().unwrap().each.clone().unwrap();
        let grid = histogram(&case, &spread).unwrap();
        let rows = grid.rows.iter().map(|row| [row[4].clone(), row[5].clone()]);
        let expected = [("30.0 %", 6), ("98.0 %", 14), ("100.0 %", 0)]
            .map(|(share, marks)| [Cell::text(share), Cell::Text("#".repeat(marks))]);
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

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
        let published = published().unwrap();
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

    #[test]
    fn all_fourteen_run_in_the_published_order_with_their_counts() {
        let published = published().unwrap();
        let plan = plan_of(&DbBenchSuite, "--num=100000").unwrap();
        let planned = plan.fixtures[0].steps.iter();
        let planned = planned.filter_map(|step| Some((step.row()?.1, step.operations)));
        let (names, counts): (Vec<&str>, Vec<u64>) = planned.unzip();
        assert_eq!(names, published.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
        let num = 100_000;
        assert_eq!(counts[..9], [num, num / 100, num, num, num / 100, num, num, num, num]);
        // Three times as many draws as keys leave 1/e³ of them out.
        assert!((94_800..95_300).contains(&counts[9]), "{}", counts[9]);
        assert_eq!(counts[10..], [num / 1_000; 4]);
    }
}
