//! Makes text of results: one file a format.

mod advice;
pub mod comparison;
mod csv;
pub mod number;
mod page;
pub mod price;
pub mod readme;
mod rules;
mod sheet;
pub mod style;
mod table;

use anyhow::Result;

use crate::cli::Format;
use crate::results::Results;
use crate::terminal::Terminal;
use style::Style;

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

/// The results as text; `terminal` is what a table is printed on.
pub fn render(results: &Results, format: Format, terminal: Terminal) -> Result<String> {
    let export: &dyn Export = match format {
        Format::Table => &table::Table { style: Style::of(terminal) },
        Format::Markdown => &table::Table { style: Style::MARKDOWN },
        Format::Csv => &csv::Csv,
        Format::Json => &Json,
    };
    export.export(results)
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
            let shown = committed(&format!("results/{run}.md"));
            assert!(shown == all, "renew it: scripts/renew-results {run}");
        }
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
