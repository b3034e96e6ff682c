//! The own tables of the suite vfs: one library against the other, the figures that the authors of
//! `ic-sqlite-vfs` publish, instructions by phase, calls of stable memory, and its pages.

use std::fmt::Display;

use anyhow::{Context, Result};
use serde::Deserialize;
use stablebench_protocol::Phase;

use crate::plan::{AS_PUBLISHED, EQUAL, READS, TRANSACTIONS, VfsSuite, equal_keys, published_keys};
use stablebench_suite::engines::heading;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::{Grouped, Ratio};
use stablebench_suite::report::{Figure, Presentation, PublishedFigures};
use stablebench_suite::results::{Measured, Results};

const TEXT: &str = include_str!("../published.json");

/// The published comparison of the two libraries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// The author and the date.
    source: String,
    url: String,
    cases: Vec<Figures>,
    pages: Pages,
}

/// Instructions of a case, rounded as they were published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    /// The name of our case.
    name: String,
    vfs: u64,
    rusqlite: u64,
}

/// "Stable pages" of a database: those of a virtual memory for the one library, of all
/// stable memory for the other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    rows: u64,
    vfs: u64,
    rusqlite: u64,
}

/// Returns all figures.
///
/// # Errors
///
/// If the text is invalid; a test reads it.
fn published() -> Result<Published> {
    serde_json::from_str(TEXT).context("suites/vfs/published.json")
}

/// Sections whose cases are the same work on both sides.
const SAME: [&str; 3] = [EQUAL, TRANSACTIONS, READS];

impl Presentation for VfsSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What does the file layer below SQLite cost, in one library and the other?")
    }

    fn headlines(&self) -> &'static [&'static str] {
        &["sqlite-vfs / ic-rusqlite"]
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            AS_PUBLISHED => {
                "The published benchmark as it was measured: one transaction, and one a statement"
            }
            EQUAL => "The published benchmark with one transaction on both sides",
            TRANSACTIONS => "Writes, by the rows of a transaction",
            READS => "Reads",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let published = published()?;
        let grids = [
            published_and_ours(results, &published),
            against(results),
            phases(results, style),
            calls(results, style),
            pages(results, &published),
        ];
        Ok(grids.into_iter().filter(|grid| !grid.rows.is_empty()).collect())
    }

    fn published(&self, results: &Results) -> Result<Option<PublishedFigures>> {
        let theirs = published()?;
        let [vfs, rusqlite] = published_keys();
        let mut figures = Vec::new();
        for case in &theirs.cases {
            for (configuration, instructions) in [(vfs, case.vfs), (rusqlite, case.rusqlite)] {
                let ours = results.case(AS_PUBLISHED, &case.name, configuration);
                if let Some(measured) = ours.and_then(|ours| ours.measured()) {
                    figures.push(Figure {
                        section: AS_PUBLISHED.to_owned(),
                        name: case.name.clone(),
                        configuration: configuration.to_owned(),
                        instructions,
                        operations: measured.operations,
                    });
                }
            }
        }
        Ok(Some(PublishedFigures { source: theirs.source, figures, ratios: Vec::new() }))
    }
}

/// Two configurations, one of each library.
struct Pair {
    vfs: String,
    rusqlite: String,
}

impl Pair {
    fn published() -> Self {
        let [vfs, rusqlite] = published_keys().map(str::to_owned);
        Self { vfs, rusqlite }
    }

    fn equal(page_size: u32) -> Self {
        let [vfs, rusqlite] = equal_keys(page_size).map(str::to_owned);
        Self { vfs, rusqlite }
    }

    fn keys(&self) -> [&str; 2] {
        [&self.vfs, &self.rusqlite]
    }

    /// Returns the measurements of both, if there are two.
    fn measured<'a>(
        &self,
        results: &'a Results,
        section: &str,
        name: &str,
    ) -> Option<[&'a Measured; 2]> {
        let of = |key| results.case(section, name, key)?.measured();
        Some([of(&self.vfs)?, of(&self.rusqlite)?])
    }

    /// Returns the ratio of the instructions of both.
    fn ratio(&self, results: &Results, section: &str, name: &str) -> Cell {
        self.measured(results, section, name).map_or(Cell::Absent, |[vfs, rusqlite]| {
            Cell::text(Ratio(vfs.instructions, rusqlite.instructions))
        })
    }
}

/// Returns a table of the published figures, the same work repeated, and the same work with equal
/// transactions.
fn published_and_ours(results: &Results, published: &Published) -> Grid {
    let (shipped, large, small) = (Pair::published(), Pair::equal(16_384), Pair::equal(4_096));
    let mut rows = Vec::new();
    for figures in &published.cases {
        let Some([vfs, rusqlite]) = shipped.measured(results, AS_PUBLISHED, &figures.name) else {
            continue;
        };
        let equal = large.measured(results, EQUAL, &figures.name);
        let value = |at: usize| {
            equal.map_or(Cell::Absent, |equal| Cell::text(Grouped(equal[at].instructions)))
        };
        rows.push(vec![
            Cell::text(&figures.name),
            Cell::text(Grouped(figures.vfs)),
            Cell::text(Grouped(figures.rusqlite)),
            Cell::text(Ratio(figures.vfs, figures.rusqlite)),
            Cell::text(Grouped(vfs.instructions)),
            Cell::text(Grouped(rusqlite.instructions)),
            Cell::text(Ratio(vfs.instructions, rusqlite.instructions)),
            value(0),
            value(1),
            large.ratio(results, EQUAL, &figures.name),
            small.ratio(results, EQUAL, &figures.name),
        ]);
    }
    let header = [
        "",
        "published vfs",
        "published rusqlite",
        "×",
        "repeated vfs",
        "repeated rusqlite",
        "×",
        "equal vfs",
        "equal rusqlite",
        "×",
        "pages of 4096 ×",
    ];
    Grid {
        title: "Compared with the published figures: instructions, and sqlite-vfs / ic-rusqlite"
            .to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            format!("Published: {}, {}.", published.source, published.url),
            "Repeated: as it was measured, each library with its own settings, sqlite-vfs with one \
             transaction and ic-rusqlite with a transaction a row. Equal: one transaction on both \
             sides, pages of 16384 bytes, 32 MiB of cache, journal_mode=memory; and the same with \
             pages of 4096 bytes."
                .to_owned(),
            "The published measurements include making keys and values, by format! for ic-rusqlite \
             and in buffers on the stack for sqlite-vfs, and the statement of IN. Ours do not."
                .to_owned(),
        ],
        lines: false,
    }
}

/// Returns a table of the ratios of the libraries for the same work.
fn against(results: &Results) -> Grid {
    let pairs = [Pair::equal(16_384), Pair::equal(4_096), Pair::published()];
    let mut rows = Vec::new();
    for section in SAME {
        for name in results.names(section) {
            let mut row = vec![Cell::Text(format!("{section}: {name}"))];
            row.extend(pairs.iter().map(|pair| pair.ratio(results, section, name)));
            rows.push(row);
        }
    }
    let header = ["", "pages of 16384", "pages of 4096", "as they come"];
    let as_they_come = pairs[2].keys().map(heading).join(" / ");
    Grid {
        title: "sqlite-vfs / ic-rusqlite, the same work in the same transactions".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![format!(
            "With equal pages, 32 MiB of cache and journal_mode=memory on both sides; and each \
             with its own settings: {as_they_come}."
        )],
        lines: false,
    }
}

/// Phases in the order of the table.
const PHASES: [(Phase, &str); 8] = [
    (Phase::Open, "open"),
    (Phase::Prepare, "prepare"),
    (Phase::Begin, "begin"),
    (Phase::Bind, "bind"),
    (Phase::Step, "step"),
    (Phase::Copy, "copy"),
    (Phase::Commit, "commit"),
    (Phase::Rest, "rest"),
];

fn phases(results: &Results, style: Style) -> Grid {
    let pair = Pair::equal(16_384);
    let mut rows = Vec::new();
    for section in [TRANSACTIONS, READS] {
        for name in results.names(section) {
            let Some(measured) = pair.measured(results, section, name) else { continue };
            let [Some(vfs), Some(rusqlite)] = measured.map(|measured| measured.phases.as_ref())
            else {
                continue;
            };
            let mut row = vec![Cell::text(name)];
            for (phase, _) in PHASES {
                let cost = |of: &Vec<stablebench_protocol::PhaseCost>| {
                    let cost = of.iter().find(|cost| cost.phase == phase);
                    cost.map_or(0, |cost| cost.instructions)
                };
                row.push(both(style, &Grouped(cost(vfs)), &Grouped(cost(rusqlite))));
            }
            rows.push(row);
        }
    }
    let header = [""].into_iter().chain(PHASES.map(|(_, name)| name));
    Grid {
        title: "Instructions by phase: sqlite-vfs above, ic-rusqlite below".to_owned(),
        header: header.map(str::to_owned).collect(),
        rows,
        notes: vec![
            "Pages of 16384 bytes, 32 MiB of cache, journal_mode=memory on both sides. Measured in \
             a fork of its own. Each phase includes a reading of the counter, each time that it \
             begins. Pages that the message touches while it reads its argument do not belong to any \
             phase. sqlite-vfs opens its connection when a transaction begins, and writes to stable \
             memory when it ends. ic-rusqlite writes when SQLite's cache is full, and when a \
             transaction ends."
                .to_owned(),
        ],
        lines: true,
    }
}

fn both(style: Style, above: &dyn Display, below: &dyn Display) -> Cell {
    Cell::Text(style.stacked(above, below))
}

/// Returns a table of the calls of stable memory by the messages of the work.
fn calls(results: &Results, style: Style) -> Grid {
    let pair = Pair::equal(16_384);
    let mut rows = Vec::new();
    for section in [TRANSACTIONS, READS] {
        for name in results.names(section) {
            let Some(measured) = pair.measured(results, section, name) else { continue };
            let calls = measured.map(|measured| {
                let inside = measured.detail.as_ref()?.cost.inside.as_ref()?;
                Some((
                    inside.stable_calls?,
                    inside.stable_pages_accessed,
                    inside.stable_pages_written,
                ))
            });
            let [Some(vfs), Some(rusqlite)] = calls else { continue };
            let cell = |one: u64, other: u64| both(style, &Grouped(one), &Grouped(other));
            rows.push(vec![
                Cell::text(name),
                cell(vfs.0.reads, rusqlite.0.reads),
                cell(vfs.0.bytes_read, rusqlite.0.bytes_read),
                cell(vfs.0.writes, rusqlite.0.writes),
                cell(vfs.0.bytes_written, rusqlite.0.bytes_written),
                cell(vfs.1, rusqlite.1),
                cell(vfs.2, rusqlite.2),
            ]);
        }
    }
    let header =
        ["", "reads", "bytes read", "writes", "bytes written", "pages accessed", "pages written"];
    Grid {
        title: "Calls of stable memory: sqlite-vfs above, ic-rusqlite below".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "Calls of the measured message, with pages of 16384 bytes. Pages accessed and written \
             are those that the replica counts, of 4096 bytes."
                .to_owned(),
        ],
        lines: true,
    }
}

/// Returns a table of pages of 64 KiB, virtual and raw.
fn pages(results: &Results, published: &Published) -> Grid {
    let mut rows = Vec::new();
    for fixture in results.fixtures.iter().filter(|fixture| fixture.rows == published.pages.rows) {
        let Some(held) = fixture.outcome.measured() else { continue };
        let of = published_keys();
        let published = match &fixture.configuration {
            key if *key == of[0] => Cell::Text(format!("{}, virtual", published.pages.vfs)),
            key if *key == of[1] => {
                Cell::Text(format!("{}, raw", Grouped(published.pages.rusqlite)))
            }
            _ => Cell::Absent,
        };
        rows.push(vec![
            Cell::Text(heading(&fixture.configuration)),
            Cell::text(Grouped(held.stored_bytes)),
            held.virtual_bytes.map_or(Cell::Absent, |bytes| Cell::text(Grouped(bytes / 65_536))),
            Cell::text(Grouped(held.stable_pages)),
            published,
        ]);
    }
    let header = ["", "database, bytes", "virtual pages", "raw pages", "published pages"];
    Grid {
        title: format!("Stable memory with {} rows", Grouped(published.pages.rows)),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "Pages of 64 KiB. The published figures compare the virtual memory of one library with \
             all stable memory of the other, in which virtual memories are allocated in steps of \
             128 pages."
                .to_owned(),
        ],
        lines: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan::Fixture;
    use stablebench_suite::plan_of;

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

    /// Every published case is measured as published, and equally in all configurations.
    #[test]
    fn the_published_cases_are_measured_twice() {
        let plan = plan_of(&VfsSuite, "").unwrap();
        let published = published().unwrap();
        let configurations = |section: &str, name: &str| -> Vec<String> {
            let has = |fixture: &&Fixture| fixture.cases().any(|other| other == (section, name));
            plan.fixtures
                .iter()
                .filter(has)
                .map(|fixture| fixture.configuration.key.clone())
                .collect()
        };
        for figures in &published.cases {
            let as_published = configurations(AS_PUBLISHED, &figures.name);
            assert_eq!(as_published, ["sqlite-vfs", "sqlite/persist"], "{}", figures.name);
            assert_eq!(configurations(EQUAL, &figures.name).len(), 5, "{}", figures.name);
        }
        assert!(plan.fixtures.iter().any(|fixture| fixture.rows == published.pages.rows));
    }
}
