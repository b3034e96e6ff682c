//! The tables of the suite sysbench: workloads with the sides and their multipliers, and the averages
//! next to the published ones, which are the time of DoltLite divided by that of SQLite.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::plan::{Place, Section, SysbenchSuite, describe};
use stablebench_suite::compare::{Comparison, Gates, Means, compare};
use stablebench_suite::engines::heading;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::{Factor, Grouped};
use stablebench_suite::report::{MeanRatio, Presentation, PublishedFigures};
use stablebench_suite::results::{Case, ConfigurationInfo, Outcome, Results};

const TEXT: &str = include_str!("../published.json");

/// The known part of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// The author and the date.
    source: String,
    /// The divisor.
    base: String,
    /// The dividend.
    other: String,
    /// The number of rows of the main table.
    rows: u64,
    /// The number of runs of each workload, whose median is its time.
    runs: u64,
    ceilings: Ceilings,
    /// In the order of our sections.
    sections: Vec<Average>,
    /// Single workloads that are known.
    workloads: Vec<Multiplier>,
}

/// The ceilings above which the report fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ceilings {
    /// The maximum multiplier of a workload.
    ratio: f64,
    /// The maximum average of a section.
    average: f64,
}

/// The arithmetic mean of a section's multipliers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Average {
    section: String,
    average: f64,
}

/// The multiplier of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Multiplier {
    section: String,
    name: String,
    ratio: f64,
}

impl Published {
    /// Returns the report.
    ///
    /// # Errors
    ///
    /// If the embedded text is invalid; a test reads it.
    fn read() -> Result<Self> {
        serde_json::from_str(TEXT).context("the published figures of sysbench")
    }

    /// Returns the average of a section by its name.
    fn average(&self, section: &str) -> Option<f64> {
        self.sections.iter().find(|of| of.section == section).map(|of| of.average)
    }

    /// Returns the multiplier of a workload.
    fn ratio(&self, section: &str, name: &str) -> Option<f64> {
        let of = self.workloads.iter().find(|of| of.section == section && of.name == name);
        of.map(|of| of.ratio)
    }
}

impl Presentation for SysbenchSuite {
    fn question(&self) -> Option<&'static str> {
        Some("How much more does each statement cost on one side than on the other?")
    }

    fn answer_tables(&self, results: &Results, _: Style) -> Result<Vec<Grid>> {
        let Some(sides) = sides(results)? else { return Ok(Vec::new()) };
        Ok(vec![answer(averages(&sides, &Published::read()?))])
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let sides = sides(results).ok()??;
        Some(sides.others.iter().filter_map(|other| extremes(&sides, other)).collect())
    }

    fn section(&self, name: &str) -> Option<String> {
        describe(name)
    }

    fn has_section_tables(&self) -> bool {
        // The multipliers have a layout of their own.
        false
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let Some(sides) = sides(results)? else { return Ok(Vec::new()) };
        let published = Published::read()?;
        let mut grids: Vec<Grid> = Section::all()
            .filter(|section| results.section(&section.name()).next().is_some())
            .map(|section| multipliers(results, &sides, section, &published, style))
            .collect();
        grids.extend(summaries(results, &sides, &published));
        Ok(grids)
    }

    /// Returns the averages without the workloads.
    fn summaries(&self, results: &Results) -> Result<Vec<Grid>> {
        let Some(sides) = sides(results)? else { return Ok(Vec::new()) };
        Ok(summaries(results, &sides, &Published::read()?))
    }

    fn published(&self, _: &Results) -> Result<Option<PublishedFigures>> {
        let theirs = Published::read()?;
        let of = format!("{} / {}", theirs.other, theirs.base);
        let ratios = theirs.sections.into_iter().map(|average| MeanRatio {
            section: average.section,
            ratio: average.average,
            of: of.clone(),
        });
        let ratios = ratios.collect();
        Ok(Some(PublishedFigures { source: theirs.source, figures: Vec::new(), ratios }))
    }
}

/// The base and the other sides.
struct Sides<'a> {
    base: &'a str,
    others: Vec<Other<'a>>,
}

/// A side, compared with the base.
struct Other<'a> {
    key: &'a str,
    found: Comparison,
}

impl Sides<'_> {
    fn keys(&self) -> impl Iterator<Item = &str> {
        [self.base].into_iter().chain(self.others.iter().map(|other| other.key))
    }
}

/// Returns the averages of the first kind of key.
fn answer(mut grid: Grid) -> Grid {
    let keys = |row: &[Cell]| match row.first() {
        Some(Cell::Text(label)) => {
            label.split_once(", ").map(|(keys, rest)| (keys.to_owned(), rest.to_owned()))
        }
        _ => None,
    };
    let Some((first, _)) = grid.rows.first().and_then(|row| keys(row)) else { return grid };
    grid.rows.retain(|row| keys(row).is_some_and(|(keys, _)| keys == first));
    for row in &mut grid.rows {
        if let (Some((_, rest)), Some(label)) = (keys(row), row.first_mut()) {
            *label = Cell::Text(rest);
        }
    }
    grid.title = format!("{}, {first}", grid.title);
    let shown: Vec<bool> = grid.header.iter().map(|heading| heading != "largest").collect();
    let kept = |row: &mut Vec<Cell>| {
        let mut shown = shown.iter();
        row.retain(|_| shown.next() == Some(&true));
    };
    grid.rows.iter_mut().for_each(kept);
    grid.header.retain(|heading| heading != "largest");
    for heading in &mut grid.header {
        *heading = heading.replace(", average", "");
    }
    grid.notes.clear();
    grid
}

/// Returns a sentence on the sections in which a side costs the least and the most, of those with the
/// first kind of key.
fn extremes(sides: &Sides<'_>, other: &Other<'_>) -> Option<String> {
    let average = |section: Section| {
        mean(&other.found, &section.name()).map(|means| (means.arithmetic, section))
    };
    let all: Vec<(f64, Section)> = Section::all().filter_map(average).collect();
    // Those that the table of the answer shows.
    let shape = all.first()?.1.shape;
    let averages = all.into_iter().filter(|(_, section)| section.shape == shape);
    let averages: Vec<(f64, Section)> = averages.collect();
    let order = |one: &&(f64, Section), other: &&(f64, Section)| one.0.total_cmp(&other.0);
    let (least, most) = (averages.iter().min_by(order)?, averages.iter().max_by(order)?);
    Some(format!(
        "{}: {} to {} of {}; most {}, {}.",
        heading(other.key),
        Factor(least.0),
        Factor(most.0),
        heading(sides.base),
        most.1.place_title(),
        most.1.kind()
    ))
}

fn summaries(results: &Results, sides: &Sides<'_>, published: &Published) -> Vec<Grid> {
    [averages(sides, published)].into_iter().chain(places(results, sides)).collect()
}

/// Returns the first configuration and the others; `None` if there are no others.
fn sides(results: &Results) -> Result<Option<Sides<'_>>> {
    let Some((base, others)) = results.configurations.split_first() else { return Ok(None) };
    let base = base.key.as_str();
    // A shard may have cases of one side only.
    let compared_with_base = |other: &&ConfigurationInfo| {
        let of_other = results.cases.iter().filter(|case| case.configuration == other.key);
        of_other.into_iter().any(|case| results.case(&case.section, &case.name, base).is_some())
    };
    let others: Vec<&ConfigurationInfo> = others.iter().filter(compared_with_base).collect();
    if others.is_empty() {
        return Ok(None);
    }
    let compared = |other: &'_ ConfigurationInfo| -> Result<Comparison> {
        compare(results, results, Some((base, &other.key)), Gates::default())
    };
    let others: Result<Vec<Other<'_>>> =
        others.into_iter().map(|of| Ok(Other { key: &of.key, found: compared(of)? })).collect();
    Ok(Some(Sides { base, others: others? }))
}

/// Returns the table of a section in the published layout.
fn multipliers(
    results: &Results,
    sides: &Sides<'_>,
    section: Section,
    published: &Published,
    style: Style,
) -> Grid {
    let section_name = section.name();
    let names = results.names(&section_name);
    let mut reasons: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for name in names {
        let case = |side: &str| results.case(&section_name, name, side);
        let operations = sides.keys().filter_map(case).find_map(|case| case.measured());
        let mut row = vec![
            Cell::text(name),
            operations.map_or(Cell::Absent, |of| Cell::text(Grouped(of.operations))),
            instructions(case(sides.base)),
        ];
        for Other { key, found } in &sides.others {
            let ratio =
                found.rows.iter().find(|row| row.section == section_name && row.name == name);
            row.push(instructions(case(key)));
            row.push(factor(ratio.map(|row| row.ratio)));
        }
        row.push(factor(published.ratio(&section_name, name)));
        rows.push(row);
        reasons.extend(sides.keys().filter_map(|side| reason(side, case(side))));
    }
    let mut average = vec![Cell::text("average"), Cell::text(""), Cell::text("")];
    for Other { found, .. } in &sides.others {
        average.push(Cell::text(""));
        average.push(factor(mean(found, &section_name).map(|means| means.arithmetic)));
    }
    average.push(factor(published.average(&section_name)));
    rows.push(average);
    reasons.sort_unstable();
    reasons.dedup();
    let mut header = vec!["workload".to_owned(), "operations".to_owned()];
    header.push(style.narrow(&heading(sides.base)));
    for Other { key, .. } in &sides.others {
        header.extend([style.narrow(&heading(key)), "multiplier".to_owned()]);
    }
    header.push("published".to_owned());
    let sizes = results.section(&section_name).map(|case| case.rows).max().unwrap_or(0);
    Grid {
        title: format!("{}: instructions, {} rows", section.title(), Grouped(sizes)),
        header,
        rows,
        notes: reasons,
        lines: false,
    }
}

fn instructions(case: Option<&Case>) -> Cell {
    let Some(case) = case else { return Cell::Absent };
    match case.measured() {
        Some(measured) => Cell::Number { value: measured.instructions, base: None, best: false },
        None => Cell::missing(&case.outcome),
    }
}

fn reason(side: &str, case: Option<&Case>) -> Option<String> {
    let (mark, reason) = match &case?.outcome {
        Outcome::Measured(_) => return None,
        Outcome::NotApplicable { reason } => ("n/a", reason),
        Outcome::Failed { reason } => ("failed", reason),
    };
    Some(format!("{mark}: {}: {reason}", heading(side)))
}

/// Returns a table of each section's average and largest multiplier, and the published average.
fn averages(sides: &Sides<'_>, published: &Published) -> Grid {
    let mut rows = Vec::new();
    for section in Section::all() {
        let name = section.name();
        let mut row = vec![Cell::text(section.title())];
        for Other { found, .. } in &sides.others {
            let of_section = found.rows.iter().filter(|row| row.section == name);
            let largest = of_section.max_by(|one, other| one.ratio.total_cmp(&other.ratio));
            row.push(factor(mean(found, &name).map(|means| means.arithmetic)));
            row.push(largest.map_or(Cell::Absent, |row| {
                Cell::Text(format!("{} {}", row.name, Factor(row.ratio)))
            }));
        }
        if row.iter().skip(1).any(|cell| *cell != Cell::Absent) {
            row.push(factor(published.average(&name)));
            rows.push(row);
        }
    }
    let mut header = vec!["section".to_owned()];
    for Other { key, .. } in &sides.others {
        header.extend([format!("{}, average", heading(key)), "largest".to_owned()]);
    }
    header.push("published".to_owned());
    Grid {
        title: format!("Averages of multipliers, against {}", heading(sides.base)),
        header,
        rows,
        notes: vec![format!(
            "Published: {}, {} rows: {} / {}, wall time, median of {} runs. {} Published ceilings: {} \
             for a workload, {} for an average.",
            published.source,
            Grouped(published.rows),
            published.other,
            published.base,
            published.runs,
            if are_published(sides) {
                "The units differ: the published figures are times on a disk, ours are instructions \
                 on stable memory."
            } else {
                "The published sides and units differ from ours. Only the layout and the most \
                 expensive section can be compared."
            },
            published.ceilings.ratio,
            published.ceilings.average,
        )],
        lines: false,
    }
}

/// Returns `true` if the sides are the published ones: SQLite and DoltLite.
fn are_published(sides: &Sides<'_>) -> bool {
    let is = |key: &str, engine: &str| key.split(['/', ',']).next() == Some(engine);
    is(sides.base, "sqlite") && sides.others.iter().any(|other| is(other.key, "doltlite"))
}

/// Returns a table of the cost of stable memory for each side, against the same workload in memory.
fn places(results: &Results, sides: &Sides<'_>) -> Option<Grid> {
    let mut rows = Vec::new();
    for memory in Section::all().filter(|of| of.place == Place::Memory) {
        let mut row = vec![Cell::Text(memory.title().replace(", in memory,", ","))];
        for side in sides.keys() {
            for place in [Place::Stable, Place::Autocommit] {
                row.push(factor(against(results, side, memory, Section { place, ..memory })));
            }
        }
        if row.iter().skip(1).any(|cell| *cell != Cell::Absent) {
            rows.push(row);
        }
    }
    let mut header = vec!["workloads".to_owned()];
    for side in sides.keys() {
        let side = heading(side);
        header.extend([side.clone(), format!("{side}, each statement a transaction")]);
    }
    (!rows.is_empty()).then(|| Grid {
        title: "The cost of stable memory: averages against the same workload in memory".to_owned(),
        header,
        rows,
        notes: Vec::new(),
        lines: false,
    })
}

/// Returns the average ratio of a section's workloads to the same workloads of another section.
fn against(results: &Results, side: &str, base: Section, other: Section) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for case in results.section(&base.name()).filter(|case| case.configuration == side) {
        let base = case.measured()?.instructions;
        let other = results.case(&other.name(), &case.name, side)?.measured()?.instructions;
        sum += other as f64 / base.max(1) as f64;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

fn mean<'a>(found: &'a Comparison, section: &str) -> Option<&'a Means> {
    found.sections.iter().find(|means| means.section.as_deref() == Some(section))
}

fn factor(ratio: Option<f64>) -> Cell {
    ratio.map_or(Cell::Absent, |ratio| Cell::text(Factor(ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{PUBLISHED_ROWS, WORKLOADS};

    /// The averages of the report: reads and writes in memory, in a file, and with each statement a
    /// transaction.
    const AVERAGES: [[f64; 6]; 4] = [
        [1.46, 1.86, 1.79, 1.73, 2.12, 4.09],
        [1.31, 1.76, 1.80, 1.82, 2.18, 4.13],
        [1.42, 1.87, 2.09, 1.84, 2.54, 4.64],
        [1.48, 1.89, 2.10, 1.64, 2.54, 3.84],
    ];

    #[test]
    fn every_section_has_its_published_average() {
        let published = Published::read().unwrap();
        let sections: Vec<String> = Section::all().map(Section::name).collect();
        let averages: Vec<Option<f64>> =
            sections.iter().map(|section| published.average(section)).collect();
        assert_eq!(
            averages,
            AVERAGES.as_flattened().iter().map(|one| Some(*one)).collect::<Vec<_>>()
        );
        assert_eq!(published.sections.len(), sections.len());
        assert_eq!(published.average("integer reads"), None);
        assert_eq!((published.rows, published.runs), (PUBLISHED_ROWS, 5));
        assert_eq!((published.ceilings.ratio, published.ceilings.average), (6.0, 5.0));
    }

    #[test]
    fn the_most_expensive_workload_is_known() {
        let published = Published::read().unwrap();
        let of = |name| published.ratio("integer autocommit writes", name);
        assert_eq!((of("update_index"), of("insert")), (Some(4.51), None));
        for one in &published.workloads {
            assert!(WORKLOADS.iter().any(|(_, name, _)| *name == one.name));
        }
    }

    #[test]
    fn the_text_is_formatted_like_saved_results() {
        let published = Published::read().unwrap();
        assert_eq!(stablebench_suite::terminal::json_lines(&published).unwrap(), TEXT);
    }
}
