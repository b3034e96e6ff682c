//! Makes text of results: one file a format.

mod advice;
pub mod comparison;
mod csv;
pub mod number;
mod open_rule;
mod page;
pub mod price;
pub mod readme;
mod rules;
mod sheet;
pub mod style;
mod table;

use std::borrow::Cow;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::cli::Format;
use crate::results::Results;
use crate::terminal::{self, Terminal};
use style::Style;

/// Something that results can be printed as.
trait Export {
    /// The whole text.
    fn export(&self, results: &Results) -> Result<String>;
}

struct Json;

impl Export for Json {
    fn export(&self, results: &Results) -> Result<String> {
        // Beyond what JSON wants escaped.
        let json = results.to_json()?;
        let steers = |char: char| char != '\n' && terminal::steers(char);
        if !json.contains(steers) {
            return Ok(json);
        }
        let escaped = |char: char| match steers(char) {
            true => format!("\\u{:04x}", u32::from(char)),
            false => char.to_string(),
        };
        Ok(json.chars().map(escaped).collect())
    }
}

/// The results as text; `terminal` is what a table is printed on.
pub fn render(results: &Results, format: Format, terminal: Terminal) -> Result<String> {
    let export: &dyn Export = match format {
        Format::Table => &table::Table { style: Style::of(terminal) },
        Format::Markdown => &table::Table { style: Style::MARKDOWN },
        Format::Csv => &csv::Csv,
        Format::Json => &Json,
    };
    match format {
        Format::Json => export.export(results),
        _ => export.export(&printable(results)?),
    }
}

/// A table of the figures that the open rule changes, from the comparison in that file.
///
/// # Errors
///
/// Where the file is no such comparison.
pub fn open_rule(path: &Path, sections: &[String], style: Style) -> Result<String> {
    Ok(open_rule::OpenRule::read(path)?.table(sections, style))
}

/// The results with texts that cannot steer a terminal: canisters say a part of them, and files
/// can say anything.
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

/// One HTML page of the results of several files, each with the file's name.
///
/// # Errors
///
/// Where figures that the results name are not published.
pub fn page(results: &[(String, Results)]) -> Result<String> {
    page::page(results)
}

/// The column heading of a setting.
pub fn heading(key: &str) -> String {
    let set = |name: &str, setting: &str| match setting.split_once(',') {
        Some((mode, rest)) => format!("{name} {} {rest}", mode.to_uppercase()),
        None => format!("{name} {}", setting.to_uppercase().replace('-', " ")),
    };
    match key.split_once('/') {
        Some(("sqlite", setting)) => set("SQLite", setting),
        Some((name @ "sqlite-vfs", setting)) => set(name, setting),
        Some(("leveldb", setting)) => format!("LevelDB {}", setting.replace(',', " ")),
        Some(("doltlite", setting)) => set("DoltLite", setting),
        Some(("cuckoo", hash)) => format!("cuckoo {hash}"),
        _ => match key {
            "btree" => "StableBTreeMap".to_owned(),
            "doltlite" => "DoltLite".to_owned(),
            "append" => "floor: append".to_owned(),
            "array" => "floor: array".to_owned(),
            // `sqlite-vfs,page_size=4096`
            other => other.replace(',', " "),
        },
    }
}

/// Whether the column is bare stable memory.
pub fn is_floor(key: &str) -> bool {
    matches!(key, "append" | "array")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::CanisterInfo;
    use crate::suites::SUITES;

    fn committed(name: &str) -> String {
        std::fs::read_to_string(crate::canisters::root().join(name)).unwrap()
    }

    /// Runs that are shown: of each suite, and of two engines beside the others.
    fn shown() -> impl Iterator<Item = &'static str> {
        SUITES.iter().map(|(suite, _)| *suite).chain(["leveldb", "doltlite"])
    }

    /// What is shown are the committed runs, as this build prints them.
    #[test]
    fn the_committed_results_are_shown_as_this_build_prints_them() {
        for run in shown() {
            let saved = committed(&format!("results/{run}.json"));
            let results = Results::parse(&saved).unwrap();
            assert!(results.to_json().unwrap() == saved, "nothing of {run} is lost in reading");
            let all = render(&results, Format::Markdown, Terminal::default()).unwrap();
            let either_way = crate::canisters::root().join(format!("results/open-rule/{run}.csv"));
            let all = all + "\n" + &open_rule(&either_way, &[], Style::MARKDOWN).unwrap();
            let shown = committed(&format!("results/{run}.md"));
            assert!(shown == all, "renew it: scripts/renew-results {run}");
        }
    }

    #[test]
    fn no_text_of_results_steers_a_terminal() {
        use crate::results::{Case, Outcome, sample};
        const BAD: &str = "x\u{1b}[2J\u{9b}31m\u{7f}\r";
        let mut results = sample::full();
        results.command = BAD.to_owned();
        results.columns[0].key = BAD.to_owned();
        results.stores[0].column = BAD.to_owned();
        results.canisters[0].name = BAD.to_owned();
        results.cases[0].column = BAD.to_owned();
        let reason = BAD.to_owned();
        let failed = Outcome::Failed { reason };
        results.cases.push(Case {
            name: BAD.to_owned(),
            outcome: failed,
            ..results.cases[0].clone()
        });
        for format in [Format::Table, Format::Markdown, Format::Csv, Format::Json] {
            let text = render(&results, format, Terminal::default()).unwrap();
            assert!(text.contains("[2J"), "{format:?}");
            let steers = |char: char| char != '\n' && terminal::steers(char);
            assert!(!text.contains(steers), "{format:?}: {text:?}");
        }
        let json = render(&results, Format::Json, Terminal::default()).unwrap();
        assert_eq!(Results::parse(&json).unwrap(), results, "JSON says the same");
    }

    /// All that is of one canister was measured with one module.
    #[test]
    fn the_committed_results_are_of_the_same_modules() {
        let canisters = |run: &str| {
            let saved = committed(&format!("results/{run}.json"));
            Results::parse(&saved).unwrap().canisters
        };
        let mut known: Vec<CanisterInfo> = Vec::new();
        for (run, canister) in
            shown().flat_map(|run| canisters(run).into_iter().map(move |of| (run, of)))
        {
            match known.iter().find(|other| other.name == canister.name) {
                Some(other) => assert_eq!(*other, canister, "{run}"),
                None => known.push(canister),
            }
        }
        assert_eq!(known.len(), crate::canisters::SOURCES.len());
        // A server is not always at hand: these two are a pair of their own.
        assert_eq!(canisters("users-pocket-ic"), canisters("users-embedded"));
        // It has no column of the other.
        assert!(canisters("users-as-published")[..] == canisters("users")[..1]);
    }
}
