//! The own tables of the suite users: prices, and the published figures next to ours.

mod answer;

use anyhow::Result;

use crate::args::describe;
use crate::plan::UsersSuite;
use crate::published::{SPANS, published, rows_of_span, source};
use stablebench_suite::engines::{ADVISED, SHIPPED, heading, is_floor};
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::report::{BASE, Figure, Presentation, PublishedFigures, price};
use stablebench_suite::results::Results;

impl Presentation for UsersSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What does it cost to add, read, change and remove rows among many?")
    }

    fn headlines(&self) -> &'static [&'static str] {
        &["Compared with the published figures"]
    }

    fn section(&self, name: &str) -> Option<String> {
        describe(name).map(str::to_owned)
    }

    fn after_section(&self, results: &Results, name: &str, style: Style) -> Result<Vec<Grid>> {
        let mut grids = Vec::new();
        if name == "insert" {
            if results.published.is_some() {
                grids.push(published_and_ours(results, style)?);
            }
            grids.extend(price::grid(results, style));
        }
        if ["insert", "base", "locality", "working-set"].contains(&name) {
            let title = describe(name).unwrap_or(name);
            grids.extend(price::parts(results, name, title, style));
        }
        Ok(grids)
    }

    fn answer_tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        // The published table is the answer to what it was repeated for.
        let own = answer::grid(results, style).filter(|_| results.published.is_none());
        Ok(own.into_iter().collect())
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        answer::to_do(results)
    }

    fn published(&self, results: &Results) -> Result<Option<PublishedFigures>> {
        if results.published.is_none() {
            return Ok(None);
        }
        let theirs = published()?;
        let figures = theirs.cases.iter().filter_map(|case| {
            let measured = case.measured()?;
            Some(Figure {
                section: case.section.clone(),
                name: case.name.clone(),
                configuration: case.configuration.clone(),
                instructions: measured.instructions,
                operations: measured.operations,
            })
        });
        let (source, figures) = (source(&theirs), figures.collect());
        Ok(Some(PublishedFigures { source, figures, ratios: Vec::new() }))
    }

    fn note(&self, results: &Results) -> Option<String> {
        let mut sentences = Vec::new();
        // Only the section insert has ratios.
        if results.section("insert").any(|case| case.configuration == BASE) {
            sentences.push(format!("× is against {}.", heading(BASE)));
        }
        let has = |key: &str| results.configurations.iter().any(|one| one.key == key);
        if has(ADVISED) && has(SHIPPED) {
            sentences.push(format!(
                "{} is SQLite as we advise to set it; without a cache_size, it has the 500 000 pages \
                 that ic-rusqlite begins with.",
                heading(ADVISED)
            ));
        }
        if results.configurations.iter().any(|one| is_floor(&one.key)) {
            sentences.push("The floors store the same bytes on bare stable memory.".to_owned());
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// Returns the post's table, with our figures below the published ones.
fn published_and_ours(results: &Results, style: Style) -> Result<Grid> {
    const SECTION: &str = "insert";
    let theirs = published()?;
    let mut header = vec!["\"new elements\"".to_owned(), "new rows".to_owned()];
    let keys: Vec<&str> =
        theirs.configurations.iter().map(|configuration| configuration.key.as_str()).collect();
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    let mut rows = Vec::new();
    for span in SPANS {
        let new_rows = rows_of_span(span);
        let name = format!("middle {}", Grouped(new_rows));
        let line = |results: &Results, labels: [Cell; 2]| {
            let cell = |key: &&str| {
                let case = results.case(SECTION, &name, key).and_then(|case| case.measured());
                case.map_or(Cell::Absent, |case| Cell::text(Grouped(case.instructions)))
            };
            labels.into_iter().chain(keys.iter().map(cell)).collect::<Vec<Cell>>()
        };
        rows.push(line(&theirs, [Cell::text(Grouped(span)), Cell::text(Grouped(new_rows))]));
        rows.push(line(results, [Cell::text("– here"), Cell::text("")]));
    }
    Ok(Grid {
        title: "Compared with the published figures".to_owned(),
        header,
        rows,
        notes: vec![format!(
            "Published: {}. Its \"new elements\" are the span of the new ids, which is ten times \
             their number.",
            source(&theirs)
        )],
        lines: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::results::sample::{case, of};

    #[test]
    fn notes_are_on_configurations_that_were_run() {
        let note = |section: &str, keys: &[&str]| {
            let cases = keys.iter().map(|key| case(section, "middle 1", key, 100_000));
            UsersSuite.note(&of(cases.collect()))
        };
        let (ratios, floors) = (
            "× is against StableBTreeMap.",
            "The floors store the same bytes on bare stable memory.",
        );
        let both = format!("{ratios} {floors}");
        assert_eq!(note("insert", &["sqlite/wal"]), None);
        assert_eq!(note("insert", &["btree", "sqlite/wal"]).as_deref(), Some(ratios));
        assert_eq!(note("insert", &["sqlite/wal", "array"]).as_deref(), Some(floors));
        assert_eq!(note("insert", &["btree", "array"]), Some(both));
        assert_eq!(note("work", &["btree", "sqlite/wal"]), None);
        assert_eq!(note("work", &["btree", ADVISED]), None);
        let advised = note("work", &[ADVISED, SHIPPED]).unwrap();
        assert!(advised.starts_with("SQLite PERSIST cache_size=1000 is SQLite as we advise"));
    }
}
