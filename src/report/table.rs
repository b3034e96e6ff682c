//! Tables for people: a row a number of new rows, a column a setting, as the
//! published table has them.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, TableComponent};

use super::number::{Grouped, Ratio, Short};
use super::{Export, heading, overtaking};
use crate::cli::Place;
use crate::results::{Case, Results};
use crate::suites::published;
use crate::suites::users::journal_mode_name;

pub struct Table {
    pub markdown: bool,
}

/// Marks the cheapest engine of a row.
const BEST: &str = "*";
/// The setting that others are compared with.
const BASE: &str = "btree";

impl Export for Table {
    fn export(&self, results: &Results) -> Result<String> {
        let mut text = String::new();
        for at in [Place::Middle, Place::End] {
            if results.batches(at).is_empty() {
                continue;
            }
            writeln!(text, "{}\n", self.title(results, at))?;
            writeln!(text, "{}\n", self.insertions(results, at))?;
            if results.as_published {
                writeln!(text, "{}\n", self.published(results, at))?;
            }
            for sentence in overtaking::sentences(results, at) {
                writeln!(text, "{}{sentence}", if self.markdown { "- " } else { "" })?;
            }
            writeln!(text)?;
        }
        if !results.settings.is_empty() {
            writeln!(text, "{}\n", self.heading("Before: what the settings are and hold"))?;
            writeln!(text, "{}\n", self.settings(results))?;
        }
        text.push_str(&self.notes(results)?);
        Ok(text)
    }
}

impl Table {
    fn heading(&self, title: &str) -> String {
        if self.markdown { format!("### {title}") } else { title.to_owned() }
    }

    fn title(&self, results: &Results, at: Place) -> String {
        let wherever = match at {
            Place::Middle => "into the middle of",
            Place::End => "at the end of",
        };
        self.heading(&format!(
            "Instructions for new rows {wherever} {} rows, {} bytes each",
            Grouped(results.rows),
            Grouped(u64::from(results.payload))
        ))
    }

    fn table(&self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table
            .load_preset(if self.markdown { ASCII_MARKDOWN } else { UTF8_HORIZONTAL_ONLY })
            .set_content_arrangement(ContentArrangement::Disabled);
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            table.force_no_tty();
        }
        table
    }

    /// Two lines in one cell.
    fn stacked(&self, above: &str, below: &dyn std::fmt::Display) -> String {
        format!("{above}{}{below}", if self.markdown { "<br>" } else { "\n" })
    }

    /// A heading as narrow as the numbers below it.
    fn column(&self, key: &str) -> String {
        let heading = heading(key);
        match heading.split_once(' ') {
            Some((above, below)) => self.stacked(above, &below),
            None => heading,
        }
    }

    fn finish(mut table: comfy_table::Table, left: usize) -> String {
        for (index, column) in table.column_iter_mut().enumerate() {
            if index >= left {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    fn insertions(&self, results: &Results, at: Place) -> String {
        let keys: Vec<&str> = results.settings.iter().map(|setting| setting.key.as_str()).collect();
        let mut table = self.table();
        let mut header = vec!["new rows".to_owned()];
        header.extend(keys.iter().map(|key| self.column(key)));
        table.set_header(header);
        for rows in results.batches(at) {
            let cost = |key: &str| -> Option<u64> {
                results.case(key, at, rows).map(|case| case.measurement.instructions)
            };
            let best = keys.iter().filter(|key| !is_floor(key)).filter_map(|key| cost(key)).min();
            let cells = keys.iter().map(|key| match cost(key) {
                None => Cell::new("–"),
                Some(instructions) => {
                    let is_best = Some(instructions) == best && !is_floor(key);
                    let number = match (is_best, self.markdown) {
                        (true, true) => format!("**{}**", Grouped(instructions)),
                        (true, false) => format!("{BEST}{}", Grouped(instructions)),
                        (false, _) => Grouped(instructions).to_string(),
                    };
                    let text = match cost(BASE) {
                        Some(base) => self.stacked(&number, &Ratio(instructions, base)),
                        None => number,
                    };
                    let cell = Cell::new(text);
                    if is_best && !self.markdown {
                        cell.add_attribute(Attribute::Bold)
                    } else {
                        cell
                    }
                }
            });
            table.add_row([Cell::new(Grouped(rows))].into_iter().chain(cells));
        }
        Self::finish(table, 0)
    }

    fn published(&self, results: &Results, at: Place) -> String {
        let mut keys = vec![BASE.to_owned()];
        keys.extend(
            published::USERS_JOURNAL_MODES
                .iter()
                .map(|mode| format!("sqlite/{}", journal_mode_name(*mode))),
        );
        let mut table = self.table();
        let mut header = vec!["\"new elements\"".to_owned(), "new rows".to_owned()];
        for key in &keys {
            header.push(self.stacked(&heading(key), &"published, here"));
        }
        table.set_header(header);
        for row in published::USERS.rows {
            let mut cells = vec![Grouped(row.span).to_string(), Grouped(row.rows()).to_string()];
            for (key, published) in keys.iter().zip(row.instructions) {
                let here = results.case(key, at, row.rows()).map_or_else(
                    || "–".to_owned(),
                    |Case { measurement, .. }| {
                        let ratio = Ratio(measurement.instructions, published);
                        format!("{} {ratio}", Grouped(measurement.instructions))
                    },
                );
                cells.push(self.stacked(&Grouped(published).to_string(), &here));
            }
            table.add_row(cells);
        }
        format!(
            "{}\n\n{}\n\nPublished: {}. It calls the span of the new ids their number, which is \
             ten times as many.",
            self.heading("Beside the published figures"),
            Self::finish(table, 0),
            published::USERS.source
        )
    }

    fn settings(&self, results: &Results) -> String {
        let mut table = self.table();
        if !self.markdown {
            for inner in [
                TableComponent::HorizontalLines,
                TableComponent::MiddleIntersections,
                TableComponent::LeftBorderIntersections,
                TableComponent::RightBorderIntersections,
            ] {
                table.remove_style(inner);
            }
        }
        table.set_header([
            "setting",
            "populate",
            "a row",
            "messages",
            "stored",
            "bytes a row",
            "heap",
            "page",
            "cache",
            "synchronous",
            "locking",
        ]);
        for setting in &results.settings {
            let sqlite = |value: &dyn Fn(&stablebench_protocol::SqliteSettings) -> String| {
                setting.sqlite.as_ref().map_or_else(|| "–".to_owned(), value)
            };
            table.add_row([
                heading(&setting.key),
                Short(setting.populate.instructions).to_string(),
                Grouped(setting.populate.instructions / results.rows.max(1)).to_string(),
                Grouped(setting.populate.messages).to_string(),
                format!("{}B", Short(setting.stored_bytes)),
                Grouped(setting.stored_bytes / results.rows.max(1)).to_string(),
                format!("{}B", Short(setting.heap_pages * 65_536)),
                sqlite(&|sqlite| Grouped(u64::from(sqlite.page_size)).to_string()),
                sqlite(&|sqlite| sqlite.cache_size.to_string()),
                sqlite(&|sqlite| format!("{:?}", sqlite.synchronous).to_lowercase()),
                sqlite(&|sqlite| format!("{:?}", sqlite.locking_mode).to_lowercase()),
            ]);
        }
        Self::finish(table, 1)
    }

    fn notes(&self, results: &Results) -> Result<String> {
        let mut text = String::new();
        let overhead = results.cases.first().map_or(0, |case| case.measurement.counter_overhead);
        writeln!(
            text,
            "{} is the cheapest of a row; × is against StableBTreeMap. The floors store the same \
             bytes on bare stable memory.\nInstructions of one message, SQLite in one \
             transaction, read from performance_counter(0); reading it twice costs {overhead}, \
             not subtracted.\nWhat the counter does not see, changed heap pages, is in the saved \
             results as `message.inside.charge`.",
            if self.markdown { "Bold" } else { BEST }
        )?;
        if results.settings.iter().any(|setting| {
            setting.sqlite.as_ref().is_some_and(|sqlite| {
                sqlite.locking_mode == stablebench_protocol::LockingMode::Exclusive
            })
        }) {
            writeln!(
                text,
                "In exclusive locking mode, ic-rusqlite's default, SQLite keeps the journal file \
                 open: DELETE then overwrites its header, as PERSIST does."
            )?;
        }
        let canister = &results.canister;
        let versions: Vec<String> = canister
            .crates
            .iter()
            .map(|version| format!("{} {}", version.name, version.version))
            .chain(canister.sqlite.iter().map(|sqlite| format!("SQLite {}", sqlite.version)))
            .collect();
        writeln!(text, "\nMeasured: {}", versions.join(", "))?;
        writeln!(
            text,
            "Canister {} {}, replica {} {}, stablebench {}{}",
            canister.name,
            &canister.sha256[..canister.sha256.len().min(16)],
            results.replica.kind,
            results.replica.version,
            results.stablebench,
            results.revision.as_ref().map(|revision| format!(" {revision}")).unwrap_or_default()
        )?;
        writeln!(text, "Again: {}", results.command)?;
        Ok(text)
    }
}

fn is_floor(key: &str) -> bool {
    matches!(key, "append" | "array")
}
