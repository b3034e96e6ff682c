//! Published figures beside ours.

use anyhow::Result;

use super::grid::{Cell, Grid, Style};
use crate::report::heading;
use crate::report::number::{Grouped, Ratio};
use crate::results::Results;
use crate::suites::published;

/// The post's table, with our figures below its own.
pub fn grid(results: &Results, name: &str, style: Style) -> Result<Grid> {
    const SECTION: &str = "insert";
    let theirs = published::get(name)?;
    let mut header = vec!["\"new elements\"".to_owned(), "new rows".to_owned()];
    let keys: Vec<&str> = theirs.columns.iter().map(|column| column.key.as_str()).collect();
    header.extend(keys.iter().map(|key| style.stacked(&heading(key), &"published, here")));
    let mut rows = Vec::new();
    for span in published::USERS_SPANS {
        let new_rows = published::rows_of_span(span);
        let name = format!("middle {}", Grouped(new_rows));
        let instructions = |results: &Results, key: &str| {
            Some(results.case(SECTION, &name, key)?.measured()?.instructions)
        };
        let cells = keys.iter().map(|key| {
            let Some(published) = instructions(&theirs, key) else { return Cell::Absent };
            let here = match instructions(results, key) {
                Some(here) => format!("{} {}", Grouped(here), Ratio(here, published)),
                None => "–".to_owned(),
            };
            Cell::Text(style.stacked(&Grouped(published), &here))
        });
        let labels = [Cell::text(Grouped(span)), Cell::text(Grouped(new_rows))];
        rows.push(labels.into_iter().chain(cells).collect());
    }
    Ok(Grid {
        title: "Beside the published figures".to_owned(),
        header,
        rows,
        notes: vec![format!(
            "Published: {}. It calls the span of the new ids their number, which is ten times as \
             many.",
            published::source(&theirs)
        )],
        lines: true,
    })
}
