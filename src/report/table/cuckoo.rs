//! Tables of the suite cuckoo alone: what lookups read of stable memory, and the published
//! figures.

use anyhow::Result;

use super::grid::{Cell, Grid, Style};
use crate::report::heading;
use crate::report::number::Grouped;
use crate::results::{Case, Results};
use crate::suites::cuckoo::{self, BATCHED, HIT, MISS, SCATTERED, UTILISATIONS};

pub fn grids(results: &Results, style: Style) -> Result<Vec<Grid>> {
    let mut grids = Vec::new();
    grids.extend(reads(results, style));
    grids.push(beside(results, style)?);
    Ok(grids)
}

/// Calls and bytes a lookup; nothing where no replica told.
fn reads(results: &Results, style: Style) -> Option<Grid> {
    let keys: Vec<&str> = results.columns.iter().map(|column| column.key.as_str()).collect();
    // Messages that are not staged look everything up once more, for the digest.
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
    let told = rows.iter().flatten().any(|cell| *cell != Cell::Absent);
    let mut header = vec![String::new()];
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    (told && !rows.is_empty()).then(|| Grid {
        title: "Read from stable memory by a lookup: calls / bytes".to_owned(),
        header,
        rows,
        notes: vec!["A SQLite whose pages are all in its cache reads none.".to_owned()],
        lines: false,
    })
}

/// What a lookup reads, where a message does all of them once or twice.
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

/// Lookups a second there, instructions a lookup here.
fn beside(results: &Results, style: Style) -> Result<Grid> {
    let published = cuckoo::published()?;
    let mut header = vec!["full".to_owned(), "first hash".to_owned()];
    header.extend(published.batches.iter().map(|batch| format!("batch {batch}")));
    let mut rows = Vec::new();
    for row in &published.rows {
        let of_128 = UTILISATIONS.into_iter().find(|of| published.buckets / 128 * of == row.items);
        let Some(of_128) = of_128 else { continue };
        let cells = published.batches.iter().zip(&row.million_lookups_a_second);
        let cells = cells.map(|(batch, mqps)| {
            let name = cuckoo::batch_name(of_128, *batch);
            let case = results.case(BATCHED, &name, &cuckoo::table_key(&row.hash));
            let here = case.and_then(|case| Some(case.measured()?.each_operation()));
            let here = here.map_or_else(|| "–".to_owned(), |here| Grouped(here).to_string());
            Cell::Text(style.stacked(&format!("{mqps:.1} M/s"), &here))
        });
        let labels = [Cell::Text(cuckoo::utilisation(of_128)), Cell::text(&row.hash)];
        rows.push(labels.into_iter().chain(cells).collect());
    }
    Ok(Grid {
        title: "Beside the published figures: lookups a second there, instructions a lookup here"
            .to_owned(),
        header,
        rows,
        notes: vec![format!(
            "Published: {}, {} buckets. Batch 0 is one by one.",
            published.source,
            Grouped(published.buckets)
        )],
        lines: true,
    })
}
