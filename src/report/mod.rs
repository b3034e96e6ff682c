//! Makes text of results: one file a format.

mod csv;
pub mod number;
mod overtaking;
mod table;

use anyhow::Result;

use crate::cli::Format;
use crate::results::Results;

/// Something that results can be printed as.
trait Export {
    /// The whole text.
    fn export(&self, results: &Results) -> Result<String>;
}

struct Json;

impl Export for Json {
    fn export(&self, results: &Results) -> Result<String> {
        results.to_json()
    }
}

/// The results as text.
pub fn render(results: &Results, format: Format) -> Result<String> {
    let export: &dyn Export = match format {
        Format::Table => &table::Table { markdown: false },
        Format::Markdown => &table::Table { markdown: true },
        Format::Csv => &csv::Csv,
        Format::Json => &Json,
    };
    export.export(results)
}

/// The column heading of a setting.
pub fn heading(key: &str) -> String {
    match key.split_once('/') {
        Some(("sqlite", mode)) => format!("SQLite {}", mode.to_uppercase()),
        _ => match key {
            "btree" => "StableBTreeMap".to_owned(),
            "append" => "floor: append".to_owned(),
            "array" => "floor: array".to_owned(),
            other => other.to_owned(),
        },
    }
}
