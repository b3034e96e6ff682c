//! Rendering of results, with a file for each format. Tables of a single suite are in the suite's
//! folder, behind [`Presentation`].

pub mod advice;
pub mod answer;
pub mod comparison;
mod csv;
pub mod grid;
pub mod number;
mod page;
pub mod price;
mod tables;

use std::borrow::Cow;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::results::Results;
use crate::terminal::{self, Terminal};
use grid::{Grid, Style};
pub use page::{is_page, page};
pub use tables::{BASE, grids, incomplete};

/// The formats of a report on a terminal or in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Markdown,
    Csv,
    Json,
}

/// The parts of a report that depend on the suite.
pub trait Presentation: Sync {
    /// Returns the question that the suite answers.
    fn question(&self) -> Option<&'static str>;

    /// Returns the title of a section, from its name in results.
    fn section(&self, name: &str) -> Option<String>;

    /// Returns `true` if each section has a table of its cases.
    fn has_section_tables(&self) -> bool {
        true
    }

    /// Returns `true` if configurations are settings of engines, which the common tables compare.
    fn compares_engines(&self) -> bool {
        true
    }

    /// Returns `true` if the fixtures stay as they were populated and are listed.
    fn lists_fixtures(&self) -> bool {
        true
    }

    /// Returns the tables that follow the table of a section.
    ///
    /// # Errors
    ///
    /// If published figures cannot be read.
    fn after_section(&self, _: &Results, _: &str, _: Style) -> Result<Vec<Grid>> {
        Ok(Vec::new())
    }

    /// Returns the suite's own tables, which follow all sections.
    ///
    /// # Errors
    ///
    /// If published figures cannot be read.
    fn tables(&self, _: &Results, _: Style) -> Result<Vec<Grid>> {
        Ok(Vec::new())
    }

    /// Returns the suite's own tables that contain more than cases.
    ///
    /// # Errors
    ///
    /// If published figures cannot be read.
    fn summaries(&self, results: &Results) -> Result<Vec<Grid>> {
        self.tables(results, Style::default())
    }

    /// Returns the beginnings of the titles of the tables that answer the question. Without any, it is
    /// the first table.
    fn headlines(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns tables for the answer that no other report has.
    ///
    /// # Errors
    ///
    /// If published figures cannot be read.
    fn answer_tables(&self, _: &Results, _: Style) -> Result<Vec<Grid>> {
        Ok(Vec::new())
    }

    /// Returns sentences on what to do, if the suite knows better ones than those for every suite.
    fn to_do(&self, _: &Results) -> Option<Vec<String>> {
        None
    }

    /// Returns published figures for the charts.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn published(&self, _: &Results) -> Result<Option<PublishedFigures>> {
        Ok(None)
    }

    /// Returns a sentence for the end of the tables, on configurations that the results contain.
    fn note(&self, _: &Results) -> Option<String> {
        None
    }
}

/// Published figures for charts: in instructions, or as ratios.
#[derive(Serialize)]
pub struct PublishedFigures {
    /// The author of the figures.
    pub source: String,
    pub figures: Vec<Figure>,
    pub ratios: Vec<MeanRatio>,
}

/// The published cost of a case.
#[derive(Serialize)]
pub struct Figure {
    pub section: String,
    pub name: String,
    pub configuration: String,
    pub instructions: u64,
    pub operations: u64,
}

/// The arithmetic mean of a section's published ratios.
#[derive(Serialize)]
pub struct MeanRatio {
    pub section: String,
    pub ratio: f64,
    /// The dividend and the divisor.
    pub of: String,
}

/// The presentation of results of a suite that this program does not have.
pub struct Plain;

/// [`Plain`] as a constant.
pub const PLAIN: Plain = Plain;

impl Presentation for Plain {
    fn question(&self) -> Option<&'static str> {
        None
    }

    fn section(&self, _: &str) -> Option<String> {
        None
    }
}

/// Returns the results as text. `terminal` is the one on which a table is printed.
///
/// # Errors
///
/// If published figures cannot be read.
pub fn render(
    suite: &dyn Presentation,
    results: &Results,
    format: Format,
    terminal: Terminal,
) -> Result<String> {
    match format {
        Format::Table => tables::tables(suite, &printable(results)?, Style::of(terminal)),
        Format::Markdown => tables::tables(suite, &printable(results)?, Style::MARKDOWN),
        Format::Csv => csv::csv(&printable(results)?),
        Format::Json => results.to_json(),
    }
}

/// Returns the results without characters that control a terminal. Some texts come from canisters,
/// and a file may contain anything.
pub fn printable(results: &Results) -> Result<Results> {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(inner) => inner.values_mut().for_each(clean),
            Value::Array(inner) => inner.iter_mut().for_each(clean),
            Value::String(text) => {
                if let Cow::Owned(safe) = terminal::safe(text) {
                    *text = safe;
                }
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(results)?;
    clean(&mut value);
    Ok(serde_json::from_value(value)?)
}
