//! The own tables of the suite keys: the cost of a link, the size of each table and index from its
//! `dbstat`, and the published figures.
//!
//! The published figures are ratios between schemas or keys that a run also has, since seconds and
//! megabytes of another machine cannot be compared with ours.

use crate::job::{KeyKind, LinkSchema};
use crate::work::{LINKS, TABLES, USER_INDEX, WATCH_INDEX};
use anyhow::{Context, Result};
use serde::Deserialize;
use stablebench_protocol::StoredObject;

use crate::plan::{KeysSuite, LISTS, WANTS, WATCHERS, key_name, schema_name};
use stablebench_suite::report::Presentation;
use stablebench_suite::report::grid::{Cell, Grid, Style, cheapest};
use stablebench_suite::report::number::{Fixed, Grouped, Ratio};
use stablebench_suite::results::{Measured, Results};

impl Presentation for KeysSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What do integers, ULIDs and UUIDs cost as keys, and what does a rowid?")
    }

    fn headlines(&self) -> &'static [&'static str] {
        &["Adding a link"]
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let kinds = results.configurations.iter().skip(1);
        let found: Vec<String> = kinds.filter_map(|kind| compared(results, &kind.key)).collect();
        (!found.is_empty()).then_some(found)
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            LISTS => "A user's list, added in a transaction",
            WANTS => "What does this user want to watch?",
            WATCHERS => "Who wants to watch this movie?",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let schemas = results.names(LISTS);
        let mut grids = vec![links(results)];
        grids.extend(schemas.into_iter().filter_map(|schema| sizes(results, schema, style)));
        grids.extend(claims(results)?);
        Ok(grids)
    }
}

fn header(first: &str, results: &Results) -> Vec<String> {
    let keys = results.configurations.iter().map(|column| column.key.clone());
    [first.to_owned()].into_iter().chain(keys).collect()
}

/// Returns the instructions of a row of a list, rounded.
fn a_row(measured: &Measured) -> Option<u64> {
    let rows = measured.detail.as_ref().map_or(0, |detail| detail.rows);
    (rows > 0).then(|| (measured.instructions + rows / 2) / rows)
}

/// Returns a sentence on what links cost with a kind of key, against the first kind.
fn compared(results: &Results, key: &str) -> Option<String> {
    let first = &results.configurations.first()?.key;
    let measured = |schema: &str, key: &str| results.case(LISTS, schema, key)?.measured();
    let mut found: Vec<(Ratio, &str)> = Vec::new();
    for schema in results.names(LISTS) {
        let both =
            measured(schema, key).and_then(a_row).zip(measured(schema, first).and_then(a_row));
        found.extend(both.map(|(here, there)| (Ratio(here, there), schema)));
    }
    let of = |(Ratio(here, there), _): &(Ratio, &str)| *here as f64 / (*there).max(1) as f64;
    let order = |one: &&(Ratio, &str), other: &&(Ratio, &str)| of(one).total_cmp(&of(other));
    let (least, most) = (found.iter().min_by(order)?, found.iter().max_by(order)?);
    Some(match least.1 == most.1 {
        true => format!("{key}: a new link costs {} of one with {first}.", least.0),
        false => format!(
            "{key}: a new link costs {} to {} of one with {first}; least for {}, most for {}.",
            least.0, most.0, least.1, most.1
        ),
    })
}

/// Returns a table of the cost of adding a link, compared with integer keys.
fn links(results: &Results) -> Grid {
    let row = |schema: &str| {
        let values: Vec<Option<u64>> = results
            .configurations
            .iter()
            .map(|column| a_row(results.case(LISTS, schema, &column.key)?.measured()?))
            .collect();
        let first = values.first().copied().flatten();
        let best = cheapest(values.iter().flatten().copied());
        let cell = |value: &Option<u64>| match *value {
            Some(value) => Cell::Number { value, base: first, best: Some(value) == best },
            None => Cell::Absent,
        };
        [Cell::text(schema)].into_iter().chain(values.iter().map(cell)).collect()
    };
    let notes =
        results.configurations.first().map(|first| format!("×: compared with {}.", first.key));
    Grid {
        title: "Adding a link: instructions a row of a list".to_owned(),
        header: header("schema", results),
        rows: results.names(LISTS).into_iter().map(row).collect(),
        notes: notes.into_iter().collect(),
        lines: true,
    }
}

/// Sums over b-trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    /// The bytes of all tables and indexes.
    bytes: u64,
    /// The bytes of indexes.
    index_bytes: u64,
    index_internal_pages: u64,
    index_children: u64,
}

impl Size {
    /// Returns the size of the suite's tables, if the engine reports it. It does not include the
    /// database's own pages and tables of other suites.
    fn of(measured: &Measured) -> Option<Self> {
        let objects = objects(measured)?;
        let mut size = Self::default();
        for object in objects {
            size.bytes += object.bytes;
            if object.index {
                size.index_bytes += object.bytes;
                size.index_internal_pages += object.internal_pages;
                size.index_children += object.children;
            }
        }
        Some(size)
    }

    /// Returns the percentage of indexes.
    fn index_share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.index_bytes as f64 * 100.0 / self.bytes as f64)
    }

    /// Returns the mean number of children of an index's internal pages, if there are any.
    fn index_fan_out(&self) -> Option<f64> {
        quotient(self.index_children, self.index_internal_pages)
    }
}

/// Returns the mean number of children of internal pages, if there are any.
fn fan_out(object: &StoredObject) -> Option<f64> {
    quotient(object.children, object.internal_pages)
}

/// Returns the b-trees of the suite's tables.
fn objects(measured: &Measured) -> Option<Vec<&StoredObject>> {
    let stored = measured.detail.as_ref()?.stored.as_ref()?;
    let ours = |object: &&StoredObject| TABLES.contains(&object.table.as_str());
    let objects: Vec<&StoredObject> = stored.objects.iter().filter(ours).collect();
    // Without `dbstat` there are none.
    (!objects.is_empty()).then_some(objects)
}

/// Returns `true` for the link table and its indexes.
fn is_of_links(object: &StoredObject) -> bool {
    object.table == LINKS
}

fn quotient(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| of as f64 / to as f64)
}

/// Returns a table of the sizes of a schema's tables and indexes, if the engine reports them.
fn sizes(results: &Results, schema: &str, style: Style) -> Option<Grid> {
    let measured = |key: &str| results.case(LISTS, schema, key)?.measured();
    let links = results.section(LISTS).map(|case| case.rows).next()?;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut row = |label: &str, cell: &dyn Fn(&Measured) -> Option<Cell>| {
        let cells: Vec<Cell> = results
            .configurations
            .iter()
            .map(|column| measured(&column.key).and_then(cell).unwrap_or(Cell::Absent))
            .collect();
        if cells.iter().any(|cell| *cell != Cell::Absent) {
            rows.push([Cell::text(label)].into_iter().chain(cells).collect());
        }
    };
    for (label, is) in TREES {
        row(label, &|measured| {
            objects(measured)?
                .into_iter()
                .find(|object| is(object))
                .map(|tree| describe(tree, style))
        });
    }
    row("movies and users", &|measured| {
        let others = objects(measured)?.into_iter().filter(|object| !is_of_links(object));
        Some(Cell::text(Grouped(others.map(|object| object.bytes).sum())))
    });
    row("all", &|measured| Some(Cell::text(Grouped(Size::of(measured)?.bytes))));
    row("bytes a link", &|measured| {
        let bytes = Size::of(measured)?.bytes;
        (links > 0).then(|| Cell::text(Grouped((bytes + links / 2) / links)))
    });
    row("indexes", &|measured| {
        let size = Size::of(measured)?;
        Some(Cell::text(
            style.stacked(
                &Grouped(size.index_bytes),
                &format!("{} %", Fixed(size.index_share()?, 0)),
            ),
        ))
    });
    row("fan-out of indexes", &|measured| {
        Some(Cell::text(Fixed(Size::of(measured)?.index_fan_out()?, 0)))
    });
    (!rows.is_empty()).then(|| Grid {
        title: format!("{schema}: bytes, and of b-trees fan-out and depth"),
        header: header("", results),
        rows,
        notes: Vec::new(),
        lines: true,
    })
}

/// A predicate that selects a b-tree.
type Is = fn(&StoredObject) -> bool;

/// The b-trees of the link table, by their labels.
const TREES: [(&str, Is); 4] = [
    ("table", |tree| is_of_links(tree) && !tree.index),
    ("index of the key", |tree| {
        is_of_links(tree) && tree.index && ![USER_INDEX, WATCH_INDEX].contains(&tree.name.as_str())
    }),
    ("index of users", |tree| tree.name == USER_INDEX),
    ("index of movies", |tree| tree.name == WATCH_INDEX),
];

/// Returns a cell such as `2 736 128`, with `115, 3` below.
fn describe(tree: &StoredObject, style: Style) -> Cell {
    let shape = match fan_out(tree) {
        Some(fan_out) => format!("{}, {}", Fixed(fan_out, 0), tree.depth),
        None => format!("–, {}", tree.depth),
    };
    Cell::Text(style.stacked(&Grouped(tree.bytes), &shape))
}

const PUBLISHED: &str = include_str!("../published.json");

/// The claims of an article.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    /// The author and the title.
    source: String,
    /// The address of the article.
    url: String,
    /// The number of links in its measurements.
    rows: u64,
    claims: Vec<Claim>,
}

/// A figure, or the ratio of two figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    measure: Measure,
    of: Side,
    /// The side that it is compared with; `None` for a single figure.
    to: Option<Side>,
    /// The published text.
    said: String,
    /// The same as a number: a ratio, percent, or pages.
    value: f64,
}

/// A schema with a kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    schema: LinkSchema,
    key: KeyKind,
}

/// The measured property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Measure {
    /// The time of adding all lists; here, its instructions.
    Insert,
    /// The bytes of all tables and indexes.
    Bytes,
    /// The bytes of all indexes.
    IndexBytes,
    /// The same in percent of the bytes of all tables and indexes.
    IndexShare,
    /// The children of an internal page of an index.
    FanOut,
}

impl Claims {
    /// Returns the claims of the article.
    ///
    /// # Errors
    ///
    /// If the file is invalid; a test reads it.
    fn published() -> Result<Self> {
        serde_json::from_str(PUBLISHED).context("suites/keys/published.json")
    }
}

impl Claim {
    /// Returns our figure, if both sides were measured.
    fn here(&self, results: &Results) -> Option<f64> {
        let of = self.measure.of(results, self.of)?;
        match self.to {
            None => Some(of),
            Some(to) => {
                let to = self.measure.of(results, to)?;
                (to > 0.0).then(|| of / to)
            }
        }
    }

    /// Returns the title of the figure.
    fn title(&self) -> String {
        let of = self.of;
        let what = match self.measure {
            Measure::Insert => "adding lists",
            Measure::Bytes => "bytes",
            Measure::IndexBytes => "bytes of indexes",
            Measure::IndexShare => "share of indexes, %",
            Measure::FanOut => "fan-out of indexes",
        };
        let letter = |schema| schema_name(schema).split(' ').next().unwrap_or_default();
        match self.to {
            None => format!("{what}: {} {}", letter(of.schema), key_name(of.key)),
            Some(to) if to.schema == of.schema => {
                format!("{what}: {} {} / {}", letter(of.schema), key_name(of.key), key_name(to.key))
            }
            Some(to) => {
                format!(
                    "{what}: {} / {}, {}",
                    letter(of.schema),
                    letter(to.schema),
                    key_name(of.key)
                )
            }
        }
    }
}

impl Measure {
    fn of(self, results: &Results, side: Side) -> Option<f64> {
        let case = results.case(LISTS, schema_name(side.schema), key_name(side.key))?;
        let measured = case.measured()?;
        let size = || Size::of(measured);
        Some(match self {
            Self::Insert => measured.instructions as f64,
            Self::Bytes => size()?.bytes as f64,
            Self::IndexBytes => size()?.index_bytes as f64,
            Self::IndexShare => size()?.index_share()?,
            Self::FanOut => size()?.index_fan_out()?,
        })
    }
}

/// Returns a table of the article's claims and our figures.
fn claims(results: &Results) -> Result<Option<Grid>> {
    let published = Claims::published()?;
    let mut rows = Vec::new();
    for claim in &published.claims {
        let Some(here) = claim.here(results) else { continue };
        let decimals = if claim.value < 10.0 { 2 } else { 0 };
        rows.push(vec![
            Cell::text(claim.title()),
            Cell::text(&claim.said),
            Cell::text(Fixed(claim.value, decimals)),
            Cell::text(Fixed(here, decimals)),
        ]);
    }
    let header = ["", "published", "as a number", "here"];
    Ok((!rows.is_empty()).then(|| Grid {
        title: "Compared with the published figures".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            format!(
                "Published: {}, {}, with {} links.",
                published.source, published.url, Grouped(published.rows)
            ),
            "The published figures are in seconds, ours in instructions. The fan-out is that of a few \
             pages, and depends on the size."
                .to_owned(),
        ],
        lines: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::results::sample::{case, full, of};
    use stablebench_suite::results::{Detail, Outcome};

    #[test]
    fn each_kind_of_key_is_compared_with_the_first() {
        let row = |schema: &str, key: &str, instructions| {
            let mut case = case(LISTS, schema, key, instructions);
            let detail = full().cases[0].measured().unwrap().detail.clone().unwrap();
            let Outcome::Measured(measured) = &mut case.outcome else { panic!() };
            measured.detail = Some(Detail { rows: 10, ..detail });
            case
        };
        let results = of(vec![
            row("(a) id", "integer", 100_000),
            row("(a) id", "ULID", 200_000),
            row("(d) rowid alone", "integer", 100_000),
            row("(d) rowid alone", "ULID", 150_000),
        ]);
        let said = "ULID: a new link costs 1.50× to 2.00× of one with integer; least for (d) rowid \
                    alone, most for (a) id.";
        assert_eq!(KeysSuite.to_do(&results).unwrap(), [said]);
    }

    #[test]
    fn the_claims_are_those_of_the_article() {
        let claims = Claims::published().unwrap();
        assert_eq!(claims.rows, 1_000 * 100);
        let of: Vec<(String, f64)> =
            claims.claims.iter().map(|claim| (claim.title(), claim.value)).collect();
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let expected = [
            ("adding lists: (a) UUIDv4 / ULID", rounded(9.8 / 5.7)),
            ("bytes: (a) ULID / UUIDv4", 0.95),
            ("adding lists: (b) / (a), ULID", 1.2),
            ("bytes: (b) / (a), ULID", 1.05),
            ("bytes: (d) / (c), ULID", rounded(13.0 / 17.0)),
            ("bytes of indexes: (d) / (c), ULID", rounded(5.6 / 8.6)),
            ("share of indexes, %: (c) ULID", 51.0),
            ("share of indexes, %: (d) ULID", 43.0),
            ("fan-out of indexes: (d) ULID", 106.0),
            ("adding lists: (d) UUIDv4 / ULID", 1.0),
            ("bytes: (d) ULID / UUIDv4", 1.0),
        ];
        assert_eq!(of, expected.map(|(title, value)| (title.to_owned(), value)));
        assert!((5.6_f64 / 13.0 - 0.43).abs() < 0.005);
        assert!((8.6_f64 / 17.0 - 0.51).abs() < 0.005);
    }

    fn tree(table: &str, index: bool, bytes: u64, children: u64, internal: u64) -> StoredObject {
        StoredObject {
            name: String::new(),
            table: table.to_owned(),
            index,
            bytes,
            pages: bytes / 4_096,
            internal_pages: internal,
            overflow_pages: 0,
            children,
            leaf_entries: 0,
            payload_bytes: 0,
            unused_bytes: 0,
            depth: 2,
        }
    }

    #[test]
    fn sums_contain_only_tables_of_the_suite() {
        let mut measured = full().cases.remove(0).measured().cloned();
        let measured = measured.as_mut().unwrap();
        let trees = vec![
            tree("sqlite_schema", false, 4_096, 0, 0),
            tree("users", false, 8_192, 7, 1),
            tree("witch_watch", false, 40_960, 9, 1),
            tree("witch_watch", true, 20_480, 104, 1),
            tree("witch_watch", true, 12_288, 96, 1),
            tree("movies", false, 4_096, 0, 0),
        ];
        measured.detail.as_mut().unwrap().stored.as_mut().unwrap().objects = trees;
        let size = Size::of(measured).unwrap();
        assert_eq!((size.bytes, size.index_bytes), (77_824, 32_768));
        assert_eq!(size.index_share().map(f64::round), Some(42.0));
        assert_eq!(size.index_fan_out(), Some(100.0));
        assert_eq!(Size::default().index_fan_out(), None);
        assert_eq!(Size::default().index_share(), None);
        measured.detail.as_mut().unwrap().stored.as_mut().unwrap().objects.clear();
        assert_eq!(Size::of(measured), None, "an engine without dbstat");
    }
}
