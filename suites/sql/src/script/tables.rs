//! What is printed: transactions, where their instructions go, and their statements.

use anyhow::Result;
use stablebench_suite::engines::heading;
use stablebench_suite::report::Presentation;
use stablebench_suite::report::answer::{shares, winner};
use stablebench_suite::report::grid::{Cell, Grid, Style, cheapest};
use stablebench_suite::report::number::{Binary, Fixed, Grouped, Ratio};
use stablebench_suite::report::price::costs;
use stablebench_suite::results::{Case, Detail, Measured, Outcome, Results};

use super::plan::SqlSuite;
use super::{STATEMENT, TRANSACTION};

impl Presentation for SqlSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What does a transaction of my own SQL cost?")
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            TRANSACTION => "Transactions",
            STATEMENT => "Statements",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn has_section_tables(&self) -> bool {
        false
    }

    fn lists_fixtures(&self) -> bool {
        false
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let names = results.names(TRANSACTION);
        let best = names.iter().filter_map(|name| {
            let winner = winner(results, TRANSACTION, name)?;
            let (next, other) = winner.next?;
            Some(format!(
                "{name}: take {}; {} takes {}.",
                heading(winner.key),
                heading(next),
                Ratio(other.each_operation(), winner.measured.each_operation())
            ))
        });
        Some(best.chain(most_expensive(results)).chain(shares(results)).collect())
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let mut grids = Vec::new();
        for name in results.names(TRANSACTION) {
            grids.push(spread(results, name));
            grids.push(parts(results, name, style));
        }
        grids.push(match &results.configurations[..] {
            [one] => statements_of(results, &one.key),
            _ => statements(results, style),
        });
        grids.retain(|grid| !grid.rows.is_empty());
        Ok(grids)
    }

    fn note(&self, _: &Results) -> Option<String> {
        Some(
            "Instructions are those of SQLite and its library for the statements: preparing, binding and \
             executing them, with the pages that they touch. Decoding the message and copying rows are \
             in the cycles only."
                .to_owned(),
        )
    }
}

/// Returns a sentence on the statement that takes the most instructions of the first configuration.
fn most_expensive(results: &Results) -> Option<String> {
    let key = &results.configurations.first()?.key;
    let of = |case: &&Case| case.configuration == *key;
    let cost = |case: &Case| case.measured().map_or(0, |measured| measured.instructions);
    let most = results.section(STATEMENT).filter(of).max_by_key(|case| cost(case))?;
    let all: u64 = results.section(STATEMENT).filter(of).map(cost).sum();
    Some(format!(
        "{} % of all instructions in {} are for statement {}",
        Fixed(100.0 * cost(most) as f64 / all.max(1) as f64, 0),
        heading(key),
        most.name
    ))
}

/// Returns the measured cases of a row.
fn cases<'a>(
    results: &'a Results,
    section: &'a str,
    name: &'a str,
) -> impl Iterator<Item = (&'a Case, &'a Measured)> {
    results
        .section(section)
        .filter(move |case| case.name == name)
        .filter_map(|case| Some((case, case.measured()?)))
}

/// Returns a table of the distribution of the instructions of transactions.
fn spread(results: &Results, name: &str) -> Grid {
    let best = cheapest(cases(results, TRANSACTION, name).map(|(_, of)| of.each_operation()));
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for case in results.section(TRANSACTION).filter(|case| case.name == name) {
        let label = heading(&case.configuration);
        let Some(measured) = case.measured() else {
            let missing = (0..5).map(|_| Cell::missing(&case.outcome));
            rows.push([Cell::text(&label)].into_iter().chain(missing).collect());
            if let Outcome::NotApplicable { reason } | Outcome::Failed { reason } = &case.outcome {
                notes.push(format!("{label}: {reason}"));
            }
            continue;
        };
        let mean = measured.each_operation();
        let number = |value: u64| Cell::text(Grouped(value));
        let mean = Cell::Number { value: mean, base: None, best: Some(mean) == best };
        let mut row = vec![Cell::text(&label), mean];
        match &measured.each {
            Some(each) => {
                row.extend([number(each.p50)]);
                row.push(each.p95.map_or(Cell::Absent, number));
                row.extend([number(each.p99), number(each.max)]);
                if let Some(worst) = &each.worst_work {
                    notes.push(format!("Most expensive, {label}: {worst}."));
                }
            }
            None => row.extend((0..4).map(|_| Cell::Absent)),
        }
        rows.push(row);
    }
    let operations = cases(results, TRANSACTION, name).map(|(_, of)| of.operations).next();
    let messages = cases(results, TRANSACTION, name)
        .find_map(|(_, of)| of.detail.as_ref().map(|detail| detail.messages));
    let header = ["", "mean", "median", "95 %", "99 %", "most"];
    Grid {
        title: format!(
            "{name}: instructions of a transaction; {} were measured, in {} messages",
            Grouped(operations.unwrap_or(0)),
            Grouped(messages.unwrap_or(0))
        ),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes,
        lines: false,
    }
}

/// Returns a table of the parts and the price of a transaction, and of the storage afterwards.
fn parts(results: &Results, name: &str, style: Style) -> Grid {
    let stored = |detail: &Detail| detail.stored.as_ref().map(|stored| stored.bytes);
    let is_stored = cases(results, TRANSACTION, name)
        .any(|(_, of)| of.detail.as_ref().and_then(stored).is_some());
    let row = |(case, of): (&Case, &Measured)| {
        let mut row = vec![Cell::Text(heading(&case.configuration))];
        row.extend(costs(results, of));
        if is_stored {
            let bytes = of.detail.as_ref().and_then(stored);
            row.push(bytes.map_or(Cell::Absent, |bytes| Cell::text(Binary(bytes))));
        }
        row
    };
    let mut header = vec![
        String::new(),
        "compute".to_owned(),
        style.narrow("heap pages"),
        style.narrow("stable pages"),
        "cycles".to_owned(),
        style.narrow("$ a million"),
    ];
    header.extend(is_stored.then(|| "stored".to_owned()));
    Grid {
        title: format!("{name}: the cost of a transaction"),
        header,
        rows: cases(results, TRANSACTION, name).map(row).collect(),
        notes: vec![
            "compute, heap pages, stable pages: the parts of the mean. cycles: of the whole messages. \
             stored: the database after all transactions."
                .to_owned(),
        ],
        lines: false,
    }
}

/// Returns a table of the mean instructions of statements, with a column for each configuration.
fn statements(results: &Results, style: Style) -> Grid {
    let keys: Vec<&str> = results.configurations.iter().map(|of| of.key.as_str()).collect();
    let row = |name: &str| {
        let of = |key: &&str| results.case(STATEMENT, name, key);
        let each = |key: &&str| of(key)?.measured().map(Measured::each_operation);
        let best = cheapest(keys.iter().filter_map(each));
        let times = keys.iter().find_map(|key| of(key)?.measured());
        let cell = |key: &&str| match (each(key), of(key)) {
            (Some(value), _) => Cell::Number { value, base: None, best: Some(value) == best },
            (None, Some(case)) => Cell::missing(&case.outcome),
            (None, None) => Cell::Absent,
        };
        let times = times.map_or(Cell::Absent, |of| Cell::text(Grouped(of.operations)));
        [Cell::text(name), times].into_iter().chain(keys.iter().map(cell)).collect()
    };
    let mut header = vec!["line".to_owned(), "times".to_owned()];
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    Grid {
        title: "Statements: instructions of an execution, mean".to_owned(),
        header,
        rows: results.names(STATEMENT).into_iter().map(row).collect(),
        notes: Vec::new(),
        lines: false,
    }
}

/// Returns a table of the statements of one configuration.
fn statements_of(results: &Results, key: &str) -> Grid {
    let row = |name: &str| {
        let case = results.case(STATEMENT, name, key)?;
        let of = case.measured()?;
        let mean = of.each_operation();
        let mut row = vec![
            Cell::text(name),
            Cell::text(Grouped(of.operations)),
            of.detail.as_ref().map_or(Cell::Absent, |detail| Cell::text(Grouped(detail.rows))),
            Cell::text(Grouped(mean)),
        ];
        row.extend(costs(results, of).into_iter().take(4));
        Some(row)
    };
    let header =
        ["line", "times", "rows", "mean", "compute", "heap pages", "stable pages", "cycles"];
    Grid {
        title: "Statements: instructions of an execution, mean and its parts".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: results.names(STATEMENT).into_iter().filter_map(row).collect(),
        notes: vec!["rows: found or changed by all executions.".to_owned()],
        lines: false,
    }
}
