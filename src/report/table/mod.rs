//! Tables for people: section by section, then what the settings hold, what follows
//! from it all, and where the figures come from.

mod cuckoo;
mod db_bench;
mod db_bench_writes;
pub mod grid;
mod harness;
mod histogram;
mod keep;
mod keys;
mod price;
pub mod published;
mod section;
mod spread;
mod sysbench;
mod vfs;

use std::fmt::Write;

use anyhow::Result;

use grid::{BEST, Grid, Style};

use super::number::Grouped;
use super::{Export, advice, heading, rules};
use crate::results::Results;
use crate::suites;

pub struct Table {
    pub style: Style,
}

impl Export for Table {
    fn export(&self, results: &Results) -> Result<String> {
        let style = self.style;
        let mut sections: Vec<&str> = Vec::new();
        for case in &results.cases {
            if !sections.contains(&case.section.as_str()) {
                sections.push(&case.section);
            }
        }
        let mut grids: Vec<Grid> = Vec::new();
        // Its sections have a layout of their own.
        sections.retain(|_| results.suite != suites::sysbench::NAME);
        for section in sections {
            grids.extend(section::grids(results, section, style));
            if section == "insert" {
                if let Some(name) = &results.published {
                    grids.push(published::grid(results, name, style)?);
                }
                grids.extend(price::grid(results, style));
            }
            if ["insert", "base", "locality", "working-set"].contains(&section) {
                grids.extend(price::parts(results, section, style));
            }
        }
        grids.extend(of_suite(results, style)?);
        grids.extend(spread::grid(results));
        grids.extend(harness::grid(results));
        grids.extend(keep::writes(results));
        if !results.stores.is_empty() {
            // Stores of db-bench are emptied again and again; it has a table of its own.
            if results.suite != suites::db_bench::NAME {
                grids.push(keep::stores(results));
            }
            grids.extend(settings(results));
        }
        let mut text = String::new();
        for grid in &grids {
            writeln!(text, "{}", grid.render(style))?;
        }
        for (title, sentences) in advice::advice(results) {
            writeln!(text, "{}\n", style.heading(title))?;
            for sentence in sentences {
                writeln!(text, "{}", style.item(&sentence))?;
            }
            writeln!(text)?;
        }
        text.push_str(&notes(results, style)?);
        Ok(text)
    }
}

/// The tables that hold more than the cases of a section: what follows from them, published
/// figures, what is kept.
///
/// # Errors
///
/// Where published figures cannot be read.
pub fn beside(results: &Results) -> Result<Vec<Grid>> {
    let style = Style::default();
    let mut grids = match results.suite.as_str() {
        suites::db_bench::NAME => db_bench::beside_cases(results, style)?,
        suites::sysbench::NAME => sysbench::beside_cases(results)?,
        _ => of_suite(results, style)?,
    };
    grids.extend(harness::grid(results));
    grids.extend(keep::writes(results));
    if results.suite != suites::db_bench::NAME {
        grids.push(keep::stores(results));
    }
    grids.retain(|grid| !grid.rows.is_empty());
    Ok(grids)
}

/// Tables that one suite alone has.
fn of_suite(results: &Results, style: Style) -> Result<Vec<Grid>> {
    match results.suite.as_str() {
        suites::db_bench::NAME => db_bench::grids(results, style),
        suites::keys::NAME => keys::grids(results, style),
        suites::sysbench::NAME => sysbench::grids(results, style),
        suites::cuckoo::NAME => cuckoo::grids(results, style),
        suites::vfs::NAME => vfs::grids(results, style),
        _ => Ok(Vec::new()),
    }
}

/// `1 000 000 rows of 100 bytes`; without the bytes where rows have no such text.
fn store_title(rows: u64, payload: u32) -> String {
    match payload {
        0 => format!("{} rows", Grouped(rows)),
        payload => format!("{} rows of {} bytes", Grouped(rows), Grouped(payload.into())),
    }
}

/// What SQLite runs with, as it was read back.
pub fn settings(results: &Results) -> Option<Grid> {
    let mut rows: Vec<Vec<grid::Cell>> = Vec::new();
    let mut seen: Vec<(&str, bool)> = Vec::new();
    for store in &results.stores {
        let Some(sqlite) = store.outcome.measured().and_then(|held| held.sqlite.as_ref()) else {
            continue;
        };
        // A database on the heap may run with others than one in stable memory.
        let held = store.outcome.measured();
        let memory = held.is_some_and(|held| held.virtual_bytes == Some(0));
        let known = (store.column.as_str(), memory);
        if seen.contains(&known) {
            continue;
        }
        seen.push(known);
        let word =
            |value: &dyn std::fmt::Debug| grid::Cell::text(format!("{value:?}").to_lowercase());
        rows.push(vec![
            grid::Cell::Text(heading(&store.column) + if memory { ", in memory" } else { "" }),
            word(&sqlite.journal_mode),
            word(&sqlite.synchronous),
            word(&sqlite.locking_mode),
            word(&sqlite.temp_store),
            grid::Cell::text(Grouped(sqlite.page_size.into())),
            grid::Cell::text(sqlite.cache_size),
        ]);
    }
    let header = [
        "setting",
        "journal_mode",
        "synchronous",
        "locking_mode",
        "temp_store",
        "page_size",
        "cache_size",
    ];
    (!rows.is_empty()).then(|| Grid {
        title: "What SQLite runs with, read back".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: Vec::new(),
        lines: false,
    })
}

fn notes(results: &Results, style: Style) -> Result<String> {
    let mut text = String::new();
    let detail = results.cases.iter().find_map(|case| case.measured()?.detail.as_ref());
    if let Some(detail) = detail {
        if results.suite == suites::users::NAME {
            let base = "× is against StableBTreeMap. The floors store the same bytes on bare \
                        stable memory.";
            writeln!(text, "{}", style.sentence(base))?;
        }
        if results.suite != suites::sysbench::NAME {
            let best = if style.markdown { "Bold" } else { BEST };
            writeln!(text, "{best} is the cheapest of a row.")?;
        }
        let mut counted = format!(
            "Instructions are read from performance_counter(0) inside of the canister; reading it \
             twice costs {}, not subtracted.",
            detail.counter_overhead
        );
        if let Some(seen) = rules::counter(&results.replica.rules) {
            counted = format!("{counted}\n{seen}");
        }
        writeln!(text, "{}", style.sentence(&counted))?;
    }
    let exclusive = |results: &Results| {
        let of_rusqlite = |key: &str| {
            let column = results.columns.iter().find(|column| column.key == key);
            column.is_none_or(|column| column.canister == "bench")
        };
        results.stores.iter().filter(|store| of_rusqlite(&store.column)).any(|store| {
            let sqlite = store.outcome.measured().and_then(|held| held.sqlite.as_ref());
            sqlite.is_some_and(|sqlite| {
                sqlite.locking_mode == stablebench_protocol::LockingMode::Exclusive
            })
        })
    };
    if exclusive(results) {
        let open = "In exclusive locking mode, ic-rusqlite's default, SQLite keeps the journal \
                    file open: DELETE then overwrites its header, as PERSIST does.";
        writeln!(text, "{}", style.sentence(open))?;
    }
    writeln!(text)?;
    for canister in &results.canisters {
        let versions: Vec<String> = canister
            .crates
            .iter()
            .map(|version| format!("{} {}", version.name, version.version))
            .chain(canister.sqlite.iter().map(|sqlite| format!("SQLite {}", sqlite.version)))
            .collect();
        let measured = format!(
            "Canister {} {}: {}",
            canister.name,
            &canister.sha256[..canister.sha256.len().min(16)],
            versions.join(", ")
        );
        writeln!(text, "{}", style.sentence(&measured))?;
    }
    let ran = format!(
        "Replica {} {}, rules {}, stablebench {}{}",
        results.replica.kind,
        results.replica.version,
        results.replica.rules,
        results.stablebench,
        results.revision.as_ref().map(|revision| format!(" {revision}")).unwrap_or_default()
    );
    writeln!(text, "{}", style.sentence(&ran))?;
    writeln!(text, "Again: {}", results.command)?;
    Ok(text)
}
