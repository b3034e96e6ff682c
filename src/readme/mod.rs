//! The parts of README.md, docs/README.md, docs/findings.md and the suites' pages that are rendered from the
//! reference runs, a task of developers (`just render`):
//!
//! ```text
//!   <!-- results: summary -->
//!   the output of `summary` for the reference runs
//!   <!-- end -->
//! ```
//!
//! `summary` and others are parts of their own. `answer SUITE` are the tables that `report` begins with for the
//! reference run of a suite; `blocks` has pages whose tables are columns of several.

mod blocks;
mod found;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use stablebench_conformance::recorded_calls;
use stablebench_replica::files;

use crate::compare::{Gates, compare};
use crate::engines::{ADVISED, SHIPPED, heading};
use crate::report::answer::chosen;
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::{Grouped, Ratio, Short};
use crate::results::{Measured, Results};
use crate::suites::{SUITES, presentation};
use blocks::BLOCKS;
use stablebench_suite::{Suite, unique};

/// The reference runs.
struct Reference {
    /// The root of the repository.
    repository: PathBuf,
    /// By today's rules.
    users: Results,
    /// By the rules of autumn 2025.
    users_2025: Results,
    /// A run on a PocketIC server, and the same on the embedded replica.
    users_pocket_ic: Results,
    users_embedded: Results,
    /// Calls, and installs that were refused, as recorded on a PocketIC server.
    recorded: u64,
}

impl Reference {
    /// Reads it from the repository.
    fn read(repository: &Path) -> Result<Self> {
        let results = |path: &str| Results::read(&repository.join(path));
        Ok(Self {
            repository: repository.to_owned(),
            users: results("suites/users/results.json")?,
            users_2025: results("suites/users/results-2025-10.json")?,
            users_pocket_ic: results("verification/results/users-pocket-ic.json")?,
            users_embedded: results("verification/results/users-embedded.json")?,
            recorded: recorded(&repository.join("crates/conformance/cases"))?,
        })
    }

    fn part(&self, name: &str) -> Option<Result<String>> {
        Some(match name {
            "summary" => summary(&self.users),
            "users costs" => table(&self.users, ROWS),
            "suites" => Ok(suites()),
            "findings" => found::findings(self),
            "found" => found::part(self),
            "exactness" => exactness(self),
            name if name.starts_with(ANSWER) => answer(&self.repository, &name[ANSWER.len()..]),
            name => BLOCKS.iter().find(|block| block.name == name)?.render(&self.repository),
        })
    }
}

/// The beginning of the name of a part with the tables of a suite's answer.
const ANSWER: &str = "answer ";

/// The tables of the answer of a suite's reference run.
fn answer(repository: &Path, suite: &str) -> Result<String> {
    let results = Results::read(&repository.join(format!("suites/{suite}/results.json")))?;
    let grids = chosen(presentation(&results), &results, Style::MARKDOWN)?;
    Ok(grids.iter().map(|grid| grid.render(Style::MARKDOWN)).collect::<Vec<_>>().join("\n"))
}

/// The pages of the suites, with their questions.
fn suites() -> String {
    let page = |suite: &&dyn Suite| {
        let name = suite.name();
        format!(
            "* [{name}](../suites/{name}/README.md): {}",
            suite.question().unwrap_or(suite.summary())
        )
    };
    SUITES.iter().map(page).collect::<Vec<_>>().join("\n")
}

/// The command that repeats a run.
fn again(results: &Results) -> String {
    format!("```sh\n{}\n```", results.command)
}

/// A page of the repository, rendered.
pub struct Page {
    /// Its path from the root of the repository.
    pub name: String,
    /// Its content, in Markdown.
    pub text: String,
}

/// Expected contents of the pages with rendered parts.
///
/// # Errors
///
/// If a file cannot be read or lacks a case.
pub fn rendered(repository: &Path) -> Result<Vec<Page>> {
    let reference = Reference::read(repository)?;
    let page = |name: String| -> Result<Page> {
        let text = files::read_text(&repository.join(&name), files::MAX_TEXT);
        let text = render(&text.context(name.clone())?, &reference).context(name.clone())?;
        Ok(Page { name, text })
    };
    let suites = SUITES.iter().map(|suite| format!("suites/{}/README.md", suite.name()));
    ["README.md", "docs/README.md", "docs/findings.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(suites)
        .map(page)
        .collect()
}

/// The same text with its parts rendered again.
fn render(text: &str, reference: &Reference) -> Result<String> {
    const BEGIN: &str = "<!-- results: ";
    const END: &str = "<!-- end -->";
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->").context("a comment does not end")?;
        let Some(part) = reference.part(name) else {
            bail!("there is no part {name}");
        };
        let part = part.with_context(|| format!("the part {name}"))?;
        let (_, after) =
            after.split_once(END).with_context(|| format!("the part {name} does not end"))?;
        new += &format!("{before}{BEGIN}{name} -->\n\n{}\n\n{END}", part.trim());
        rest = after;
    }
    Ok(new + rest)
}

/// The columns of the table: the map, `ic-rusqlite` as advised, as shipped and with WAL,
/// `ic-sqlite-vfs`, a floor.
const COLUMNS: [&str; 6] = ["btree", ADVISED, SHIPPED, "sqlite/wal", "sqlite-vfs", "array"];
/// The floor, which is no engine to choose.
const FLOOR: &str = "array";

/// A row of the table: label, section and name of the case.
type Row = (&'static str, &'static str, &'static str);

/// The rows of the table.
const ROWS: [Row; 11] = [
    ("insert, 1 row a message", "insert", "middle 1"),
    ("insert, 10 rows a message", "insert", "middle 10"),
    ("insert, 100 rows a message", "insert", "middle 100"),
    ("insert, 100 rows a message, at random", "insert", "random 100"),
    ("insert, 10 000 rows a message", "insert", "middle 10 000"),
    ("insert, 10 000 rows a message, at random", "insert", "random 10 000"),
    ("update, at random", "work", "update 1 000 uniform, warm"),
    ("delete, at random", "work", "delete 1 000 uniform, warm"),
    ("read one by one, at random", "work", "read 1 000 uniform, warm"),
    ("read all, in order", "work", "scan, warm"),
    ("the first read after an upgrade", "work", "read 1 uniform, upgraded"),
];

/// The columns of the short table in README.md, with their headings.
const SUMMARY_COLUMNS: [(&str, &str); 4] = [
    ("btree", "`StableBTreeMap`"),
    (ADVISED, "SQLite,<br>`cache_size=1000`"),
    (SHIPPED, "SQLite, as<br>`ic-rusqlite` ships it"),
    ("sqlite-vfs", "SQLite,<br>`ic-sqlite-vfs`"),
];

/// The rows of the short table.
const SUMMARY: [Row; 5] = [
    ("insert 1 row", "insert", "middle 1"),
    ("insert 100 rows between others", "insert", "middle 100"),
    ("insert 100 rows at random", "insert", "random 100"),
    ("update 1 000 rows at random", "work", "update 1 000 uniform, warm"),
    ("read 1 000 rows at random", "work", "read 1 000 uniform, warm"),
];

/// The short table, in instructions of a row, with a sentence above.
fn summary(users: &Results) -> Result<String> {
    let of = users.case("insert", "middle 1", "btree").context("the run has no section insert")?;
    let mut header = vec!["one message".to_owned()];
    header.extend(SUMMARY_COLUMNS.map(|(_, heading)| heading.to_owned()));
    let row = |(label, section, name): Row| -> Result<Vec<Cell>> {
        let cost = |(key, _)| {
            let measured = users.case(section, name, key).and_then(|case| case.measured());
            measured
                .map(Measured::each_operation)
                .with_context(|| lacking(users, section, name, key))
        };
        let costs = SUMMARY_COLUMNS.into_iter().map(cost).collect::<Result<Vec<u64>>>()?;
        let least = costs.iter().min();
        let cell = |cost: &u64| match Some(cost) == least {
            true => Cell::Text(format!("**{}**", Short(*cost))),
            false => Cell::text(Short(*cost)),
        };
        Ok([Cell::text(label)].into_iter().chain(costs.iter().map(cell)).collect())
    };
    let rows = SUMMARY.into_iter().map(row).collect::<Result<_>>()?;
    let table = Grid { header, rows, ..Grid::default() }.render(Style::MARKDOWN);
    Ok(format!(
        "Instructions per row, in a table of {} rows of {} bytes. Bold is the cheapest:\n\n{table}",
        Grouped(of.rows),
        Grouped(of.payload.into())
    ))
}

/// The error of a run without a case.
fn lacking(users: &Results, section: &str, name: &str, key: &str) -> String {
    format!(
        "the reference run by the rules {} lacks {section}/{name} of {key}; renew it: \
         scripts/renew-results users",
        users.replica.rules
    )
}

/// The table of some rows by today's rules, with a sentence above.
fn table(users: &Results, rows: impl IntoIterator<Item = Row>) -> Result<String> {
    let style = Style::MARKDOWN;
    let of = users.case("insert", "middle 1", "btree").context("the run has no section insert")?;
    let mut header = vec![String::new()];
    header.extend(COLUMNS.map(|key| match key {
        ADVISED => style.stacked(&"SQLite, ic-rusqlite", &"`cache_size=1000`"),
        SHIPPED => style.stacked(&"the same", &"as shipped: 500 000"),
        "sqlite/wal" => style.stacked(&"as shipped", &"WAL"),
        "sqlite-vfs" => style.stacked(&"SQLite", &"ic-sqlite-vfs"),
        key => style.narrow(&heading(key)),
    }));
    let row = |(label, section, name)| -> Result<Vec<Cell>> {
        Ok([Cell::text(label)].into_iter().chain(line(users, section, name)?).collect())
    };
    let rows = rows.into_iter().map(row).collect::<Result<_>>()?;
    let table = Grid { header, rows, ..Grid::default() }.render(style);
    let (rows, bytes) = (Grouped(of.rows), Grouped(of.payload.into()));
    Ok(format!(
        "Instructions a row in `StableBTreeMap`, and multiples of them, in {rows} rows of {bytes} bytes, \
         by the rules `{}`:\n\n{table}",
        users.replica.rules
    ))
}

/// The costs of one kind of work, those after the first as multiples of it, the cheapest choice marked.
///
/// # Errors
///
/// If the run lacks a column of this work.
fn line(users: &Results, section: &str, name: &str) -> Result<Vec<Cell>> {
    let cost = |column| users.case(section, name, column)?.measured().map(Measured::each_operation);
    let costs = COLUMNS.map(cost);
    if let Some(missing) = COLUMNS.iter().zip(costs).find(|(_, cost)| cost.is_none()) {
        bail!(lacking(users, section, name, missing.0));
    }
    let choice = COLUMNS.iter().zip(costs).filter(|(column, _)| **column != FLOOR);
    let best = choice.filter_map(|(_, cost)| cost).min();
    let cells = COLUMNS.iter().zip(costs).map(|(column, cost)| {
        let (Some(value), Some(base)) = (cost, costs[0]) else { return Cell::Absent };
        let figure = match *column == COLUMNS[0] {
            true => Grouped(value).to_string(),
            false => Ratio(value, base).to_string(),
        };
        match Some(value) == best && *column != FLOOR {
            true => Cell::text(format!("**{figure}**")),
            false => Cell::text(figure),
        }
    });
    Ok(cells.collect())
}

/// Calls in the recorded cases of a folder and those below it, and installs that were refused.
fn recorded(folder: &Path) -> Result<u64> {
    let listed = std::fs::read_dir(folder);
    let listed = listed.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut calls = 0;
    for entry in listed {
        let path = entry?.path();
        if path.is_dir() {
            calls += recorded(&path)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".json") || name.ends_with(".json.gz") {
            calls += recorded_calls(&path)?;
        }
    }
    Ok(calls)
}

fn exactness(reference: &Reference) -> Result<String> {
    let gates = Gates { threshold: Some(0.0), ..Gates::default() };
    let there = &reference.users_pocket_ic;
    let found = compare(there, &reference.users_embedded, None, gates)?;
    let canisters = if there.canisters == reference.users.canisters {
        "of the run above".to_owned()
    } else {
        let revision = there.revision.as_deref().unwrap_or("unknown");
        format!("with the older canisters of revision {revision}")
    };
    Ok(format!(
        "{} calls and refused installs that were recorded on PocketIC servers are part of the tests: replies, reject \
         codes, counts and cycles must be those. The sections {} {canisters} were repeated \
         on such a server ({} {}) by the rules `{}`: of {} values (counters, charges, cycles, pages, \
         digests), {} differ.",
        Grouped(reference.recorded),
        sections(there).join(" and "),
        there.replica.kind,
        there.replica.version,
        there.replica.rules,
        Grouped(found.compared as u64),
        Grouped(found.failures.len() as u64),
    ))
}

/// Sections that were measured there.
fn sections(results: &Results) -> Vec<String> {
    let sections: Vec<String> = results.cases.iter().map(|case| case.section.clone()).collect();
    unique(&sections)
}

#[cfg(test)]
mod tests {
    use super::blocks::Block;
    use super::*;
    use crate::canisters::root;
    use crate::results::sample::{case, of};

    #[test]
    fn the_committed_pages_are_rendered_from_the_committed_results() {
        let pages = rendered(root()).unwrap();
        for Page { name, text } in &pages {
            let committed = std::fs::read_to_string(root().join(name)).unwrap();
            assert!(committed == *text, "{name} differs; render it again: just render");
            assert!(text.contains("<!-- results: "), "{name} has no rendered part");
        }
        for Block { name, .. } in &BLOCKS {
            let mark = format!("<!-- results: {name} -->");
            assert!(pages.iter().any(|page| page.text.contains(&mark)), "no page has {name}");
        }
    }

    /// A run with every figure of the table; later columns are more expensive.
    fn run() -> Results {
        let of_row = |(_, section, name): Row| {
            let cost = |place: usize| 100_000 * (place as u64 + 1);
            (0..).zip(COLUMNS).map(move |(place, key)| case(section, name, key, cost(place)))
        };
        of(ROWS.into_iter().flat_map(of_row).collect())
    }

    #[test]
    fn sqlite_is_shown_as_advised_and_as_shipped() {
        let cells = line(&run(), "insert", "random 100").unwrap();
        let style = Style::MARKDOWN;
        let shown: Vec<String> = cells.iter().map(|cell| cell.render(style)).collect();
        assert_eq!(shown[..3], ["**100 000**", "2.00×", "3.00×"]);
        let table = table(&run(), [ROWS[3]]).unwrap();
        assert!(table.contains("`cache_size=1000` | "), "{table}");
        assert!(table.contains("as shipped: 500 000 | "), "{table}");
    }

    #[test]
    fn a_run_without_the_advised_setting_is_refused() {
        let mut old = run();
        old.cases.retain(|case| case.configuration != ADVISED);
        let error = line(&old, "insert", "middle 1").unwrap_err().to_string();
        assert!(error.contains("lacks insert/middle 1 of sqlite/persist,cache_size=1000; renew"));
    }

    #[test]
    fn the_tables_of_an_answer_are_a_part() {
        let reference = Reference::read(root()).unwrap();
        let part = reference.part("answer history").unwrap().unwrap();
        for row in ["| 1 row ", "| make a branch "] {
            assert!(part.contains(row), "{part}");
        }
        assert!(!part.contains("since the last commit"), "no headline: {part}");
        assert!(reference.part("answer nothing").unwrap().is_err());
    }

    #[test]
    fn only_the_text_between_the_marks_is_replaced() {
        let reference = Reference::read(root()).unwrap();
        let text = "above\n<!-- results: exactness -->\nwhat it contained\n<!-- end -->\nbelow\n";
        let new = render(text, &reference).unwrap();
        assert!(new.starts_with("above\n<!-- results: exactness -->\n\n"), "{new}");
        assert!(
            new.ends_with("\n\n<!-- end -->\nbelow\n") && !new.contains("what it contained"),
            "{new}"
        );
        assert_eq!(render(&new, &reference).unwrap(), new);
        assert_eq!(render("no parts", &reference).unwrap(), "no parts");
        let error = |text| format!("{:#}", render(text, &reference).unwrap_err());
        assert_eq!(error("<!-- results: nothing -->\n<!-- end -->"), "there is no part nothing");
        assert_eq!(error("<!-- results: found -->\n"), "the part found does not end");
    }
}
