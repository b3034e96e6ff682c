//! Tables of the suite vfs alone: one library against the other, the published figures, where
//! instructions go, calls of stable memory, and its pages.

use std::fmt::Display;

use anyhow::Result;
use stablebench_protocol::Phase;

use super::grid::{Cell, Grid, Style};
use crate::report::heading;
use crate::report::number::{Grouped, Ratio};
use crate::results::{Measured, Results};
use crate::suites::users::Setting;
use crate::suites::vfs::published::{Published, published};
use crate::suites::vfs::{
    AS_PUBLISHED, EQUAL, READS, TRANSACTIONS, equal_columns, published_columns,
};

/// Sections whose cases are the same work on both sides.
const SAME: [&str; 3] = [EQUAL, TRANSACTIONS, READS];

/// All tables, for whichever cases there are.
///
/// # Errors
///
/// Where the published figures cannot be read.
pub fn grids(results: &Results, style: Style) -> Result<Vec<Grid>> {
    let published = published()?;
    let grids = [
        beside(results, &published),
        against(results),
        phases(results, style),
        calls(results, style),
        pages(results, &published),
    ];
    Ok(grids.into_iter().filter(|grid| !grid.rows.is_empty()).collect())
}

/// A library and the other, with settings of a kind.
struct Pair {
    vfs: String,
    rusqlite: String,
}

impl Pair {
    fn new(settings: [Setting; 2]) -> Self {
        let [vfs, rusqlite] = settings.map(|setting| setting.key());
        Self { vfs, rusqlite }
    }

    fn keys(&self) -> [&str; 2] {
        [&self.vfs, &self.rusqlite]
    }

    /// What both have measured.
    fn measured<'a>(
        &self,
        results: &'a Results,
        section: &str,
        name: &str,
    ) -> Option<[&'a Measured; 2]> {
        let of = |key| results.case(section, name, key)?.measured();
        Some([of(&self.vfs)?, of(&self.rusqlite)?])
    }

    /// How many times the other library's instructions the one takes.
    fn ratio(&self, results: &Results, section: &str, name: &str) -> Cell {
        self.measured(results, section, name).map_or(Cell::Absent, |[vfs, rusqlite]| {
            Cell::text(Ratio(vfs.instructions, rusqlite.instructions))
        })
    }
}

/// Names of a section's cases, in their order.
fn names<'a>(results: &'a Results, section: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for case in results.section(section) {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    names
}

/// The published figures, the same work repeated, and the same work with equal transactions.
fn beside(results: &Results, published: &Published) -> Grid {
    let (shipped, large, small) = (
        Pair::new(published_columns()),
        Pair::new(equal_columns(16_384)),
        Pair::new(equal_columns(4_096)),
    );
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
        title: "Beside the published figures: instructions, and sqlite-vfs / ic-rusqlite"
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
            "There, keys and values are made inside of what is measured, by format! for \
             ic-rusqlite and in buffers on the stack for sqlite-vfs, and so is the statement of \
             IN; here before it."
                .to_owned(),
        ],
        lines: false,
    }
}

/// The one library against the other, in everything that is the same work.
fn against(results: &Results) -> Grid {
    let pairs = [
        Pair::new(equal_columns(16_384)),
        Pair::new(equal_columns(4_096)),
        Pair::new(published_columns()),
    ];
    let mut rows = Vec::new();
    for section in SAME {
        for name in names(results, section) {
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
    let pair = Pair::new(equal_columns(16_384));
    let mut rows = Vec::new();
    for section in [TRANSACTIONS, READS] {
        for name in names(results, section) {
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
        title: "Where the instructions go: sqlite-vfs above, ic-rusqlite below".to_owned(),
        header: header.map(str::to_owned).collect(),
        rows,
        notes: vec![
            "Pages of 16384 bytes, 32 MiB of cache, journal_mode=memory on both sides. Measured in \
             a fork of its own; each time that a phase comes, a reading of the counter is in it. \
             That message reads its argument too: pages that it touches so are in no phase. \
             sqlite-vfs opens its connection where a transaction begins, and writes to stable \
             memory where it ends; ic-rusqlite does where SQLite's cache is full, and where a \
             transaction ends."
                .to_owned(),
        ],
        lines: true,
    }
}

fn both(style: Style, above: &dyn Display, below: &dyn Display) -> Cell {
    Cell::Text(style.stacked(above, below))
}

/// What the messages of the work called of stable memory.
fn calls(results: &Results, style: Style) -> Grid {
    let pair = Pair::new(equal_columns(16_384));
    let mut rows = Vec::new();
    for section in [TRANSACTIONS, READS] {
        for name in names(results, section) {
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
            "Of the message that is measured, with pages of 16384 bytes. Pages accessed and \
             written are those that the replica counts, of 4096 bytes."
                .to_owned(),
        ],
        lines: true,
    }
}

/// Pages of 64 KiB: raw beside raw, and virtual beside virtual.
fn pages(results: &Results, published: &Published) -> Grid {
    let mut rows = Vec::new();
    for store in results.stores.iter().filter(|store| store.rows == published.pages.rows) {
        let Some(held) = store.outcome.measured() else { continue };
        let of = published_columns().map(|setting| setting.key());
        let published = match &store.column {
            key if *key == of[0] => Cell::Text(format!("{}, virtual", published.pages.vfs)),
            key if *key == of[1] => {
                Cell::Text(format!("{}, raw", Grouped(published.pages.rusqlite)))
            }
            _ => Cell::Absent,
        };
        rows.push(vec![
            Cell::Text(heading(&store.column)),
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
            "Pages of 64 KiB. The published figures set the virtual memory of the one library \
             beside all stable memory of the other, in which each virtual memory takes 128 pages \
             at once."
                .to_owned(),
        ],
        lines: false,
    }
}
