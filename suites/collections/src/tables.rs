//! The tables of the suite collections: a row for each map, and below it the figures that
//! canister-profiling published.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::plan::{
    CollectionsSuite, GENERATE, GET, GET_EXISTING, MAPS, OPERATIONS, PUT, REMOVE, UPGRADE, name,
};
use stablebench_suite::cost::PageCosts;
use stablebench_suite::report::Presentation;
use stablebench_suite::report::answer::cheapest_rows;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::{Binary, Grouped};
use stablebench_suite::results::{Case, Measured, Results};

const TEXT: &str = include_str!("../published.json");

/// Instructions of whole messages, in canisters that were instrumented to count them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// The author and the versions.
    source: String,
    rows: Vec<Row>,
}

/// The figures of a collection.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Its published name.
    name: String,
    /// The map here that is nearest to it.
    map: String,
    entries: u64,
    generate: u64,
    /// 50 of each.
    get: u64,
    put: u64,
    remove: u64,
    upgrade: u64,
}

/// Returns all figures.
///
/// # Errors
///
/// If the text is invalid; a test parses it.
fn published() -> Result<Published> {
    serde_json::from_str(TEXT).context("suites/collections/published.json")
}

impl Published {
    /// Returns the figures of a map.
    fn of(&self, map: &str, entries: u64) -> Option<&Row> {
        self.rows.iter().find(|row| row.map == map && row.entries == entries)
    }
}

impl Presentation for CollectionsSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What do maps cost in Motoko and in Rust?")
    }

    fn answer_tables(&self, results: &Results, _: Style) -> Result<Vec<Grid>> {
        Ok(largest(results).into_iter().collect())
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let mut grid = largest(results)?;
        grid.header.truncate(6);
        Some(cheapest_rows(&grid))
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            GENERATE => "Generate the entries",
            GET => "50 look-ups of other keys",
            GET_EXISTING => "50 look-ups of generated keys",
            PUT => "50 other entries",
            REMOVE => "50 generated entries are removed",
            UPGRADE => "Upgrade to the same module",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn has_section_tables(&self) -> bool {
        false
    }

    fn compares_engines(&self) -> bool {
        false
    }

    fn lists_fixtures(&self) -> bool {
        false
    }

    fn tables(&self, results: &Results, _: Style) -> Result<Vec<Grid>> {
        let published = published()?;
        let mut grids = Vec::new();
        let mut sizes: Vec<u64> = results.cases.iter().map(|case| case.rows).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for entries in sizes {
            grids.push(costs(results, entries));
            if has_details(results) {
                grids.push(computing(results, &published, entries));
            }
        }
        Ok(grids)
    }
}

/// Returns the table of the largest maps.
fn largest(results: &Results) -> Option<Grid> {
    let most = results.cases.iter().map(|case| case.rows).max()?;
    Some(costs(results, most))
}

/// Returns `true` if the replica reports whole messages, and what their pages cost.
fn has_details(results: &Results) -> bool {
    results.cases.iter().filter_map(Case::measured).any(|it| computing_message(it).is_some())
}

/// A column: its heading, its section, the value of a case, and the published one.
struct Column {
    heading: &'static str,
    section: &'static str,
    value: fn(&Measured) -> Option<u64>,
    published: Option<fn(&Row) -> u64>,
    /// `true` if values are shown with their ratio to the first map's.
    compared: bool,
}

/// Returns the table of all costs under the rules of the run, and of the memory.
fn costs(results: &Results, entries: u64) -> Grid {
    let column = |heading, section, value, compared| Column {
        heading,
        section,
        value,
        published: None,
        compared,
    };
    let columns = [
        column("get", GET, work, true),
        column("get existing", GET_EXISTING, work, true),
        column("put", PUT, work, true),
        column("remove", REMOVE, work, true),
        column("generate", GENERATE, message_or_work, true),
        column("after the work", GENERATE, rest_of_message, false),
        column("upgrade", UPGRADE, message, false),
    ];
    let title = format!(
        "Instructions on a map of {} entries; of get, put and remove, {OPERATIONS} operations together",
        Grouped(entries)
    );
    let mut grid = grid(title, results, None, entries, &columns);
    grid.header.extend(["heap", "stable memory"].map(str::to_owned));
    for (row, configuration) in grid.rows.iter_mut().zip(&results.configurations) {
        let generated = results.case(GENERATE, &name(entries), &configuration.key);
        let detail = generated.and_then(Case::measured).and_then(|it| it.detail.as_ref());
        row.extend(match detail {
            Some(detail) => [detail.heap_pages_after, detail.stable_pages_after]
                .map(|pages| Cell::text(Binary(pages << 16))),
            None => [Cell::Absent, Cell::Absent],
        });
    }
    grid.notes = vec![format!(
        "get, put and remove are {OPERATIONS} operations inside a message; generate and upgrade are whole \
         messages. The part after the work is the reply and, in Motoko, garbage collection. Memory is \
         that after generating."
    )];
    if !has_details(results) {
        let note = "The replica does not report whole messages, so generate is the work alone.";
        grid.notes.push(note.to_owned());
    }
    grid
}

/// Returns the table without the cost of touching pages, which did not exist when the figures
/// beside it were published.
fn computing(results: &Results, published: &Published, entries: u64) -> Grid {
    let column = |heading, section, value, published| Column {
        heading,
        section,
        value,
        published,
        compared: section != UPGRADE,
    };
    let columns = [
        column("get", GET, computing_work as _, Some((|row| row.get) as fn(&Row) -> u64)),
        column("get existing", GET_EXISTING, computing_work, None),
        column("put", PUT, computing_work, Some(|row| row.put)),
        column("remove", REMOVE, computing_work, Some(|row| row.remove)),
        column("generate", GENERATE, computing_message, Some(|row| row.generate)),
        column("upgrade", UPGRADE, computing_message, Some(|row| row.upgrade)),
    ];
    let title = format!(
        "The same without touching pages, {} entries; of get, put and remove, {OPERATIONS} together",
        Grouped(entries)
    );
    let notes = vec![format!("Published: {}; whole messages.", published.source)];
    Grid { notes, ..grid(title, results, Some(published), entries, &columns) }
}

fn work(measured: &Measured) -> Option<u64> {
    Some(measured.instructions)
}

fn computing_work(measured: &Measured) -> Option<u64> {
    measured.instructions.checked_sub(touching(measured.detail.as_ref()?.pages?))
}

fn message_or_work(measured: &Measured) -> Option<u64> {
    message(measured).or_else(|| work(measured))
}

/// Instructions of whole messages, if the replica reports them.
fn message(measured: &Measured) -> Option<u64> {
    Some(measured.detail.as_ref()?.cost.inside?.instructions)
}

fn computing_message(measured: &Measured) -> Option<u64> {
    let inside = measured.detail.as_ref()?.cost.inside?;
    inside.instructions.checked_sub(touching(inside.pages?))
}

fn touching(pages: PageCosts) -> u64 {
    pages.heap.saturating_add(pages.stable)
}

/// Instructions of a message after the canister has read its counter for the last time.
fn rest_of_message(measured: &Measured) -> Option<u64> {
    let detail = measured.detail.as_ref()?;
    detail.cost.inside?.instructions.checked_sub(detail.message_instructions)
}

fn grid(
    title: String,
    results: &Results,
    published: Option<&Published>,
    entries: u64,
    columns: &[Column],
) -> Grid {
    let of = |column: &Column, key: &str| results.case(column.section, &name(entries), key);
    let value = |column: &Column, key: &str| {
        of(column, key).and_then(Case::measured).and_then(column.value)
    };
    let first = results.configurations.first().map_or("", |first| first.key.as_str());
    let figures = |key: &str| published.and_then(|published| published.of(key, entries));
    let published_first = figures(first);
    let mut rows = Vec::new();
    for configuration in &results.configurations {
        let key = configuration.key.as_str();
        let heading = MAPS.iter().find(|map| map.key == key).map_or(key, |map| map.heading);
        let cells = columns.iter().map(|column| match value(column, key) {
            Some(found) => Cell::Number {
                value: found,
                base: value(column, first).filter(|_| column.compared),
                best: false,
            },
            None => of(column, key).map_or(Cell::Absent, |case| Cell::missing(&case.outcome)),
        });
        rows.push([Cell::text(heading)].into_iter().chain(cells).collect());
        let Some(row) = figures(key) else { continue };
        let cells = columns.iter().map(|column| match column.published {
            Some(figure) => Cell::Number {
                value: figure(row),
                base: published_first.map(figure).filter(|_| column.compared),
                best: false,
            },
            None => Cell::Absent,
        });
        let label = Cell::text(format!("  published: {}", row.name));
        rows.push([label].into_iter().chain(cells).collect());
    }
    let headings = columns.iter().map(|column| column.heading.to_owned());
    Grid {
        title,
        header: [String::new()].into_iter().chain(headings).collect(),
        rows,
        notes: Vec::new(),
        lines: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DEFAULT_ENTRIES;

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
