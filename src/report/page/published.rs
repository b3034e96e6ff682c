//! Figures of others that can stand in the same charts: in instructions, or as ratios.

use anyhow::Result;
use serde::Serialize;

use crate::results::Results;
use crate::suites::{self, sysbench, vfs};

#[derive(Serialize)]
pub struct Published {
    /// Who published them.
    source: String,
    figures: Vec<Figure>,
    ratios: Vec<Ratio>,
}

/// What a case cost there.
#[derive(Serialize)]
struct Figure {
    section: String,
    name: String,
    column: String,
    instructions: u64,
    operations: u64,
}

/// The arithmetic mean of a section's ratios there.
#[derive(Serialize)]
struct Ratio {
    section: String,
    ratio: f64,
    /// What was divided by what.
    of: String,
}

/// The figures that belong beside these results, if any do.
///
/// # Errors
///
/// Where figures that the results name are not published.
pub fn published(results: &Results) -> Result<Option<Published>> {
    Ok(match (results.suite.as_str(), &results.published) {
        (_, Some(name)) => Some(named(name)?),
        (vfs::NAME, None) => Some(of_vfs(results)?),
        (sysbench::NAME, None) => Some(of_sysbench()?),
        _ => None,
    })
}

fn named(name: &str) -> Result<Published> {
    let theirs = suites::published::get(name)?;
    let figures = theirs.cases.iter().filter_map(|case| {
        let measured = case.measured()?;
        Some(Figure {
            section: case.section.clone(),
            name: case.name.clone(),
            column: case.column.clone(),
            instructions: measured.instructions,
            operations: measured.operations,
        })
    });
    let figures = figures.collect();
    Ok(Published { source: suites::published::source(&theirs), figures, ratios: Vec::new() })
}

fn of_vfs(results: &Results) -> Result<Published> {
    let theirs = vfs::published::published()?;
    let [vfs, rusqlite] = vfs::published_columns().map(|setting| setting.key());
    let mut figures = Vec::new();
    for case in &theirs.cases {
        for (column, instructions) in [(&vfs, case.vfs), (&rusqlite, case.rusqlite)] {
            let ours = results.case(vfs::AS_PUBLISHED, &case.name, column);
            if let Some(measured) = ours.and_then(|ours| ours.measured()) {
                figures.push(Figure {
                    section: vfs::AS_PUBLISHED.to_owned(),
                    name: case.name.clone(),
                    column: column.clone(),
                    instructions,
                    operations: measured.operations,
                });
            }
        }
    }
    Ok(Published { source: theirs.source, figures, ratios: Vec::new() })
}

fn of_sysbench() -> Result<Published> {
    let theirs = sysbench::published::Published::read()?;
    let of = format!("{} / {}", theirs.other, theirs.base);
    let ratios = theirs.sections.into_iter().map(|average| Ratio {
        section: average.section,
        ratio: average.average,
        of: of.clone(),
    });
    Ok(Published { source: theirs.source, figures: Vec::new(), ratios: ratios.collect() })
}
