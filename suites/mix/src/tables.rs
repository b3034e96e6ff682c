//! What is printed: the cost of a message in each configuration.

use anyhow::Result;
use stablebench_suite::engines::heading;
use stablebench_suite::report::Presentation;
use stablebench_suite::report::answer::{Winner, cache_sizes, is_without_journal, shares, winner};
use stablebench_suite::report::grid::{Cell, Grid, Style, cheapest};
use stablebench_suite::report::number::{Ratio, Short};
use stablebench_suite::report::price::costs;
use stablebench_suite::results::{Case, Measured, Outcome, Results};

use crate::plan::{MESSAGES, MixSuite};

impl Presentation for MixSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What does a message of this mix cost in each engine?")
    }

    fn section(&self, name: &str) -> Option<String> {
        (name == MESSAGES).then(|| "Messages".to_owned())
    }

    fn has_section_tables(&self) -> bool {
        false
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let name = *results.names(MESSAGES).first()?;
        let winner = winner(results, MESSAGES, name)?;
        let (_, next) = winner.next?;
        let gain = Ratio(next.each_operation(), winner.measured.each_operation());
        let mut take = format!("Take {}: the next one takes {gain}.", heading(winner.key));
        if let Some(pragmas) = pragmas(winner.key) {
            take += &format!(" {pragmas}");
        }
        let best = best_of_sqlite(results, name, &winner);
        let sentences = [take].into_iter().chain(best).chain(cache_sizes(results));
        Some(sentences.chain(shares(results)).collect())
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        Ok(results.names(MESSAGES).into_iter().map(|name| messages(results, name, style)).collect())
    }
}

/// Returns a sentence on the cheapest configuration of SQLite, unless that is the cheapest of all.
fn best_of_sqlite(results: &Results, name: &str, winner: &Winner<'_>) -> Option<String> {
    let is_sqlite = |key: &str| key.starts_with("sqlite") && !is_without_journal(key);
    if is_sqlite(winner.key) {
        return None;
    }
    let cases = results.section(MESSAGES).filter(|case| case.name == name);
    let measured = cases.filter_map(|case| Some((case.configuration.as_str(), case.measured()?)));
    let of_sqlite = measured.filter(|(key, _)| is_sqlite(key));
    let (key, best) = of_sqlite.min_by_key(|(_, of)| of.each_operation())?;
    let mut sentence = format!(
        "The best of SQLite is {}, {} instructions, {} of the cheapest.",
        heading(key),
        Short(best.each_operation()),
        Ratio(best.each_operation(), winner.measured.each_operation())
    );
    if let Some(pragmas) = pragmas(key) {
        sentence += &format!(" {pragmas}");
    }
    Some(sentence)
}

/// Returns the statements that set a configuration of `ic-rusqlite`.
fn pragmas(key: &str) -> Option<String> {
    let (mode, settings) = key.strip_prefix("sqlite/")?.split_once(',').unwrap_or((key, ""));
    let mode = mode.trim_start_matches("sqlite/");
    let settings = settings.split(',').filter_map(|setting| setting.split_once('='));
    let settings: Vec<(&str, &str)> = settings.collect();
    // The size of pages is set before a journal is.
    let (pages, others): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|(name, _)| *name == "page_size");
    let all = pages.into_iter().chain([("journal_mode", mode)]).chain(others);
    Some(all.map(|(name, value)| format!("PRAGMA {name}={value};")).collect::<Vec<_>>().join(" "))
}

/// Returns the table of a mix, with a row for each configuration.
fn messages(results: &Results, name: &str, style: Style) -> Grid {
    let cases: Vec<&Case> = results.section(MESSAGES).filter(|case| case.name == name).collect();
    let measured = || cases.iter().filter_map(|case| case.measured());
    let best = cheapest(measured().map(Measured::each_operation));
    let mut notes = Vec::new();
    let mut row = |case: &&Case| {
        let label = heading(&case.configuration);
        let mut row = vec![Cell::text(&label)];
        match case.measured() {
            Some(of) => {
                let value = of.each_operation();
                row.push(Cell::Number { value, base: None, best: Some(value) == best });
                row.extend(costs(results, of));
            }
            None => {
                row.extend((0..6).map(|_| Cell::missing(&case.outcome)));
                if let Outcome::NotApplicable { reason } | Outcome::Failed { reason } =
                    &case.outcome
                {
                    notes.push(format!("{label}: {reason}"));
                }
            }
        }
        row
    };
    let rows = cases.iter().map(&mut row).collect();
    let messages = measured().map(|of| of.operations).next().unwrap_or(0);
    notes.insert(
        0,
        format!(
            "Means of {messages} messages, one after the other. cycles: of the whole messages."
        ),
    );
    Grid {
        title: format!("A message: {name}"),
        header: vec![
            String::new(),
            "instructions".to_owned(),
            "compute".to_owned(),
            style.narrow("heap pages"),
            style.narrow("stable pages"),
            "cycles".to_owned(),
            style.narrow("$ a million"),
        ],
        rows,
        notes,
        lines: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::results::sample::{case, of};

    #[test]
    fn the_best_of_sqlite_is_named_if_the_map_wins() {
        let results = |btree| {
            let costs = [
                ("btree", btree),
                ("sqlite/persist", 900_000),
                ("sqlite/wal,cache_size=100", 300_000),
                ("sqlite/off", 1_000),
            ];
            of(costs.map(|(key, cost)| case(MESSAGES, "1 read", key, cost)).to_vec())
        };
        let sentences = MixSuite.to_do(&results(200_000)).unwrap();
        assert_eq!(
            sentences[1],
            "The best of SQLite is SQLite WAL cache_size=100, 300 k instructions, 1.50× of the cheapest. \
             PRAGMA journal_mode=wal; PRAGMA cache_size=100;"
        );
        let sentences = MixSuite.to_do(&results(400_000)).unwrap();
        assert!(sentences.iter().all(|it| !it.contains("best of SQLite")), "{sentences:?}");
    }

    #[test]
    fn pragmas_can_be_pasted() {
        for (key, statements) in [
            ("sqlite/wal", Some("PRAGMA journal_mode=wal;")),
            (
                "sqlite/wal,cache_size=500,page_size=8192",
                Some("PRAGMA page_size=8192; PRAGMA journal_mode=wal; PRAGMA cache_size=500;"),
            ),
            ("btree", None),
            ("sqlite-vfs", None),
        ] {
            assert_eq!(pragmas(key).as_deref(), statements, "{key}");
        }
    }
}
