//! The own tables of the suite keys: the cost of a link, the size of each table and index, and the
//! published figures.

use crate::work::{USER_INDEX, WATCH_INDEX};
use anyhow::Result;
use stablebench_protocol::StoredObject;

use crate::claims::Claims;
use crate::plan::{KeysSuite, LISTS, WANTS, WATCHERS};
use crate::size::{Size, fan_out, is_of_links, objects};
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
}
