//! Advice from query plans and counters: what reads or sorts too much, and the statement that would
//! help. The effect of an index is measured on copies of the canister:
//!
//! ```text
//!   copy ── INSERT of the last row ── statement                  without the index
//!   copy ── CREATE INDEX ── INSERT of the last row ── statement  with it
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result, bail};
use stablebench_suite_sql::{Answer, Counters, Value, split};

use super::dump::quoted;
use super::print::{self, PlanLine};
use super::session::{Bound, Executed, Session, execute, rows};
use super::text::shortened;
use crate::interrupt;
use crate::replica::Messages;
use crate::report::number::{Binary, Grouped, Short};
use crate::terminal::{Terminal, safe};

/// The rows of a table from which on reading all of them is noted.
const MANY: u64 = 1_000;
/// The statements for which indexes are tried, at most, the most expensive first.
const TRIED: usize = 5;
/// The instructions with an index by those without it, at most, for it to be advised.
const WORTH: f64 = 0.9;
/// Statements that differ in values only, from which on binding is advised.
const ALIKE: usize = 10;

/// A statement that was executed.
#[derive(Clone, Debug)]
pub struct Observed {
    statement: Bound,
    rows: u64,
    changes: u64,
    instructions: u64,
    prepare: u64,
    counters: Counters,
}

impl Observed {
    pub fn new(statement: &Bound, answer: &Answer) -> Self {
        Self {
            statement: statement.clone(),
            rows: answer.digest.rows,
            changes: answer.changes,
            instructions: answer.prepare + answer.step + answer.around,
            prepare: answer.prepare,
            counters: answer.counters,
        }
    }

    /// Returns `true` if the counters show that an index might help.
    fn is_notable(&self) -> bool {
        let Counters { scanned, auto_indexed, sorts, .. } = self.counters;
        scanned >= MANY || auto_indexed >= MANY || (sorts > 0 && self.rows >= MANY)
    }
}

/// Returns the query plan of a statement; none if it has none.
pub fn plan(session: &mut Session, statement: &Bound) -> Vec<PlanLine> {
    let explained = matches!(
        split::first_word(&statement.text).unwrap_or_default().to_ascii_lowercase().as_str(),
        "select" | "with" | "values" | "insert" | "update" | "delete" | "replace"
    );
    if !explained {
        return Vec::new();
    }
    let text = format!("EXPLAIN QUERY PLAN {}", statement.text);
    let explain = Bound { text, parameters: statement.parameters.clone() };
    // A plan is a note: without one, the answer is still right.
    let answers = session.look(&[explain]).unwrap_or_default();
    answers.first().and_then(print::plan_of).unwrap_or_default()
}

/// Returns a finding as text: the statement, and below it sentences that fit the terminal.
pub fn shown(finding: &str, terminal: Terminal) -> String {
    let mut text = "\n".to_owned();
    for (place, line) in finding.lines().map(str::trim_start).enumerate() {
        let width = terminal.width.map_or(100, usize::from).min(100);
        let indent = if place == 0 { "" } else { "  " };
        let options = textwrap::Options::new(width)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false)
            .initial_indent(indent)
            .subsequent_indent("  ");
        text += &safe(&textwrap::fill(line, options).replace('\u{a0}', " "));
        text.push('\n');
    }
    text
}

/// Returns a number with its unit, between which no line ends.
fn together(number: impl std::fmt::Display) -> String {
    number.to_string().replace(' ', "\u{a0}")
}

/// Returns a text for each finding: the statement, and a line for each sentence.
pub fn of(session: &mut Session, observed: &[Observed]) -> Vec<String> {
    let mut notable: Vec<&Observed> = observed.iter().filter(|it| it.is_notable()).collect();
    notable.sort_by_key(|it| std::cmp::Reverse(it.instructions));
    let mut advice: Vec<String> = Vec::new();
    let mut shapes: Vec<String> = Vec::new();
    for one in notable {
        let shape = shape(&one.statement.text);
        if !shapes.contains(&shape) {
            if shapes.len() < TRIED {
                advice.extend(of_one(session, one));
            }
            shapes.push(shape);
        }
    }
    advice.extend(of_preparing(observed));
    advice.dedup();
    if let Some(more) = shapes.len().checked_sub(TRIED).filter(|more| *more > 0) {
        let most =
            format!("{more} more statements read or sort many rows; these {TRIED} cost most");
        advice.push(most + ". Execute the others by themselves, or with .advice after each.");
    }
    advice
}

fn of_one(session: &mut Session, observed: &Observed) -> Option<String> {
    let plan = plan(session, &observed.statement);
    // Steps to the next row, which the first row needs none of.
    let [scanned, auto_indexed] = [observed.counters.scanned, observed.counters.auto_indexed]
        .map(|steps| if steps > 0 { steps + 1 } else { 0 });
    let returned = observed.rows + observed.changes;
    let statement = shortened(&observed.statement.text, 60);
    let detail = |start: &str, inside: &str| {
        let fits =
            |line: &&PlanLine| line.detail.starts_with(start) && line.detail.contains(inside);
        plan.iter().find(fits).map(|line| line.detail.clone())
    };
    let finding = if let Some(detail) = detail("SEARCH ", "AUTOMATIC").filter(|_| auto_indexed > 0)
    {
        format!("{detail} makes an index of {} rows each time", together(Grouped(auto_indexed)))
    } else if let Some(detail) = detail("SCAN ", "").filter(|_| scanned >= MANY) {
        // An aggregate needs all rows for one.
        let of = if returned < scanned / 10 && !aggregates(&observed.statement.text) {
            format!(", of which it needs {}", together(Grouped(returned)))
        } else {
            String::new()
        };
        format!("{detail} reads {} rows{of}", together(Grouped(scanned)))
    } else if let Some(detail) = detail("USE TEMP B-TREE", "") {
        format!("{detail} sorts {} rows", Grouped(observed.rows))
    } else {
        return None;
    };
    let candidates = candidates(session, &observed.statement, &plan);
    let tried = !candidates.is_empty();
    let best = candidates
        .into_iter()
        .filter_map(|index| Some((effect(session, &observed.statement, &index).ok()?, index)))
        .filter(|(effect, _)| (effect.with as f64) < effect.without as f64 * WORTH)
        .min_by_key(|(effect, _)| effect.with);
    // What was not tried is not said to be of no use.
    interrupt::check_work().ok()?;
    let mut line = format!("{statement}\n  {finding}.");
    if let Some((effect, index)) = best {
        let _ = write!(line, "\n  {} would help: {effect}.", index.statement());
    } else if returned < scanned / 10 {
        // A query of all rows has no column to look for.
        line += match tried {
            true => {
                " No index on its columns helps; read fewer rows, or keep the result in a table."
            }
            false => " Read fewer rows, or keep the result in a table.",
        };
    } else {
        return None;
    }
    Some(line)
}

/// Advice to bind values, where statements differ in nothing else.
fn of_preparing(observed: &[Observed]) -> Vec<String> {
    let mut shapes: BTreeMap<String, Vec<&Observed>> = BTreeMap::new();
    for one in observed {
        shapes.entry(shape(&one.statement.text)).or_default().push(one);
    }
    let mut advice = Vec::new();
    for (shape, alike) in shapes {
        let prepare: u64 = alike.iter().map(|one| one.prepare).sum();
        let all: u64 = alike.iter().map(|one| one.instructions).sum();
        let share = 100 * prepare / all.max(1);
        let again: u64 = alike.iter().map(|one| one.counters.prepared_again).sum();
        let text = shortened(&shape, 60);
        if alike.len() >= ALIKE && share >= 10 {
            advice.push(format!(
                "{text}\n  {} statements like this spend {share} % of their instructions on being prepared. \
                 Bind the values, and prepare it once for many of them.",
                Grouped(alike.len() as u64)
            ));
        }
        if again > 0 {
            advice.push(format!(
                "{text}\n  It was prepared {} times again, because the schema had changed meanwhile.",
                Grouped(again)
            ));
        }
    }
    advice
}

/// A piece of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// A keyword or a name, without its quotes.
    Word(&'a str),
    /// A string or a number.
    Literal,
    Sign(char),
}

/// Returns the pieces of a statement without space and comments.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let until = |end: char| rest[1..].find(end).map_or(rest.len(), |at| at + 2);
        let run = |fits: fn(char) -> bool| rest.find(|it| !fits(it)).unwrap_or(rest.len());
        let (bytes, piece) = match first {
            '-' if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), None),
            '/' if rest.starts_with("/*") => {
                (rest.find("*/").map_or(rest.len(), |at| at + 2), None)
            }
            '\'' => (until('\''), Some(Piece::Literal)),
            '"' | '`' | '[' => {
                let end = until(if first == '[' { ']' } else { first });
                (end, Some(Piece::Word(rest[1..end].trim_end_matches(['"', '`', ']']))))
            }
            _ if first.is_whitespace() => (run(char::is_whitespace), None),
            _ if first.is_ascii_digit() => {
                (run(|it| it.is_alphanumeric() || it == '.'), Some(Piece::Literal))
            }
            '?' | ':' | '@' | '$' => {
                let name = rest[1..].find(|it: char| !it.is_alphanumeric() && it != '_');
                (name.map_or(rest.len(), |at| at + 1), Some(Piece::Literal))
            }
            _ if first.is_alphabetic() || first == '_' => {
                let end = run(|it| it.is_alphanumeric() || it == '_');
                (end, Some(Piece::Word(&rest[..end])))
            }
            other => (other.len_utf8(), Some(Piece::Sign(other))),
        };
        pieces.extend(piece);
        rest = &rest[bytes..];
    }
    pieces
}

/// The functions of SQLite that make one row of many. Of some, `min` and `max`, others with the same name
/// do not.
const AGGREGATES: [&str; 13] = [
    "avg",
    "count",
    "group_concat",
    "json_group_array",
    "json_group_object",
    "max",
    "median",
    "min",
    "percentile",
    "percentile_cont",
    "string_agg",
    "sum",
    "total",
];

/// Returns `true` if a statement makes one row of many.
fn aggregates(text: &str) -> bool {
    let is = |word: &str, one: &str| word.eq_ignore_ascii_case(one);
    pieces(text).windows(2).any(|pair| match pair {
        [Piece::Word(name), Piece::Sign('(')] => AGGREGATES.iter().any(|one| is(name, one)),
        [Piece::Word(group), Piece::Word(by)] if is(group, "group") && is(by, "by") => true,
        [Piece::Word(word), _] => is(word, "distinct"),
        _ => false,
    })
}

/// Returns a statement with `?` instead of its values.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Sign(sign) => shape.push(sign),
            piece => {
                if shape.chars().last().is_some_and(|last| last.is_alphanumeric() || last == '?') {
                    shape.push(' ');
                }
                shape += if let Piece::Word(word) = piece { word } else { "?" };
            }
        }
    }
    shape
}

/// An index that might help.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Index {
    table: String,
    columns: Vec<String>,
}

impl Index {
    fn statement(&self) -> String {
        let plain = |name: &String| {
            let letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
            match name.chars().all(letter) && !name.starts_with(|it: char| it.is_ascii_digit()) {
                true => name.clone(),
                false => quoted(name),
            }
        };
        let columns: Vec<String> = self.columns.iter().map(plain).collect();
        let name = format!("{}_{}", self.table, self.columns.join("_"));
        format!("CREATE INDEX {} ON {}({});", plain(&name), plain(&self.table), columns.join(", "))
    }
}

/// How a statement uses a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Equal,
    Range,
    Order,
}

/// Returns how a statement uses the columns of a table that it calls `alias`.
fn uses<'a>(pieces: &[Piece<'_>], alias: &str, columns: &'a [String]) -> Vec<(Use, &'a String)> {
    let mut uses = Vec::new();
    // The clause under way: whether columns are compared or ordered by in it.
    let mut clause = None;
    let word = |at: usize| match pieces.get(at) {
        Some(Piece::Word(word)) => word.to_ascii_lowercase(),
        _ => String::new(),
    };
    for (at, piece) in pieces.iter().enumerate() {
        let Piece::Word(name) = piece else { continue };
        match word(at).as_str() {
            "where" | "on" => clause = Some(Use::Equal),
            "by" => clause = Some(Use::Order),
            "select" | "from" | "limit" | "having" | "set" | "returning" | "values" => {
                clause = None
            }
            _ => {}
        }
        let Some(column) = columns.iter().find(|column| column.eq_ignore_ascii_case(name)) else {
            continue;
        };
        let is_qualified = at >= 2 && pieces[at - 1] == Piece::Sign('.');
        if is_qualified && !word(at - 2).eq_ignore_ascii_case(alias) {
            continue;
        }
        let before = if is_qualified { at.checked_sub(3) } else { at.checked_sub(1) };
        let before = before.and_then(|at| pieces.get(at)).copied();
        let found = match (clause, pieces.get(at + 1), before) {
            (Some(Use::Order), next, _) if next != Some(&Piece::Sign('(')) => Use::Order,
            (Some(Use::Equal), Some(Piece::Sign('=')), _) => Use::Equal,
            (Some(Use::Equal), Some(Piece::Word(next)), _)
                if next.eq_ignore_ascii_case("in") || next.eq_ignore_ascii_case("is") =>
            {
                Use::Equal
            }
            (Some(Use::Equal), Some(Piece::Sign('<' | '>')), _) => Use::Range,
            (Some(Use::Equal), Some(Piece::Word(next)), _)
                if next.eq_ignore_ascii_case("between") =>
            {
                Use::Range
            }
            (Some(Use::Equal), _, Some(Piece::Sign('='))) => Use::Equal,
            (Some(Use::Equal), _, Some(Piece::Sign('<' | '>'))) => Use::Range,
            _ => continue,
        };
        if !uses.contains(&(found, column)) {
            uses.push((found, column));
        }
    }
    uses
}

/// Returns the indexes that might help a statement with this plan.
fn candidates(session: &mut Session, statement: &Bound, plan: &[PlanLine]) -> Vec<Index> {
    const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let texts = |rows: Vec<Vec<Value>>| -> Vec<String> {
        let text = |row: Vec<Value>| match row.into_iter().next() {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        rows.into_iter().filter_map(text).collect()
    };
    let tables = texts(session.rows(TABLES).unwrap_or_default());
    let pieces = pieces(&statement.text);
    let mut found: Vec<Index> = Vec::new();
    for line in plan {
        let automatic = line.detail.contains("AUTOMATIC");
        let words: Vec<&str> = line.detail.split_whitespace().collect();
        let alias = match words[..] {
            ["SCAN", alias, ..] => alias,
            ["SEARCH", alias, ..] if automatic => alias,
            _ => continue,
        };
        let Some(table) = table_of(&pieces, alias, &tables) else { continue };
        let columns = "SELECT name FROM pragma_table_info(?1)";
        let columns = session.rows_of(columns, vec![Value::Text(table.clone())]);
        let columns = texts(columns.unwrap_or_default());
        let uses = uses(&pieces, alias, &columns);
        let of =
            |wanted: Use| uses.iter().filter(move |(found, _)| *found == wanted).map(|it| it.1);
        let equal: Vec<String> = of(Use::Equal).cloned().collect();
        let mut lists: Vec<Vec<String>> = vec![
            equal.iter().chain(of(Use::Range).take(1)).cloned().collect(),
            equal.iter().chain(of(Use::Order)).cloned().collect(),
        ];
        lists.extend(equal.iter().map(|column| vec![column.clone()]));
        for mut columns in lists {
            let mut seen = Vec::new();
            columns.retain(|column| {
                let new = !seen.contains(column);
                seen.push(column.clone());
                new
            });
            let index = Index { table: table.clone(), columns };
            if !index.columns.is_empty() && !found.contains(&index) {
                found.push(index);
            }
        }
    }
    // Each is tried, which takes the time of the statement and of making the index.
    found.truncate(4);
    found
}

/// Returns the table that a statement calls `alias`.
fn table_of(pieces: &[Piece<'_>], alias: &str, tables: &[String]) -> Option<String> {
    let table = |name: &str| tables.iter().find(|table| table.eq_ignore_ascii_case(name));
    if let Some(table) = table(alias) {
        return Some(table.clone());
    }
    let words: Vec<&str> = pieces
        .iter()
        .map(|piece| if let Piece::Word(word) = piece { word } else { "" })
        .filter(|word| !word.eq_ignore_ascii_case("as"))
        .collect();
    let mut pairs = words.windows(2).filter(|pair| pair[1].eq_ignore_ascii_case(alias));
    pairs.find_map(|pair| table(pair[0])).cloned()
}

/// The measured effect of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effect {
    /// The instructions of the statement.
    without: u64,
    with: u64,
    /// The instructions that inserting a row takes in addition, if a row can be inserted again.
    insert: Option<u64>,
    bytes: u64,
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [with, without] = [self.with, self.without].map(|it| together(Short(it)));
        write!(f, "{with} instead of {without} instructions")?;
        if let Some(insert) = self.insert {
            write!(f, ", {} more for each insert", together(Short(insert)))?;
        }
        write!(f, ", {}", together(Binary(self.bytes)))
    }
}

/// Measures a statement without an index and with it.
fn effect(session: &mut Session, statement: &Bound, index: &Index) -> Result<Effect> {
    let insert = session.trial(|copy| inserting(copy, &index.table));
    let without = session.trial(|copy| cost(copy, statement))?;
    let create = Bound::from(index.statement().as_str());
    let (bytes, with) = session.trial(|copy| {
        let before = used(copy)?;
        cost(copy, &create)?;
        let bytes = used(copy)?.saturating_sub(before);
        Ok((bytes, cost(copy, statement)?))
    })?;
    let more = session.trial(|copy| {
        cost(copy, &create)?;
        inserting(copy, &index.table)
    });
    let insert = more.and_then(|more| Ok(more.saturating_sub(insert?))).ok();
    Ok(Effect { without, with, insert, bytes })
}

fn cost(canister: &mut dyn Messages, statement: &Bound) -> Result<u64> {
    last_cost(&execute(canister, std::slice::from_ref(statement))?)
}

/// Returns the instructions of the last statement of a message.
fn last_cost(executed: &Executed) -> Result<u64> {
    let answer = executed.answers.last().context("the canister returned no answer")?;
    match &answer.error {
        Some(failure) => bail!("{}", failure.message),
        None => Ok(answer.prepare + answer.step + answer.around),
    }
}

/// Returns the bytes of the pages in use.
fn used(canister: &mut dyn Messages) -> Result<u64> {
    const USED: &str = "SELECT (page_count - freelist_count) * page_size \
                        FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    match rows(canister, &USED.into())?.first().and_then(|row| row.first()) {
        Some(Value::Integer(bytes)) => Ok(u64::try_from(*bytes).unwrap_or(0)),
        _ => bail!("the size of the database is not known"),
    }
}

/// Deletes the last row of a table and inserts it again. Returns the instructions of inserting it.
fn inserting(canister: &mut dyn Messages, table: &str) -> Result<u64> {
    let columns = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0";
    let parameters = vec![Value::Text(table.to_owned())];
    let columns = rows(canister, &Bound { text: columns.to_owned(), parameters })?;
    let names: Vec<String> =
        columns.iter().flatten().map(|name| quoted(&print::text(name))).collect();
    let last = format!(
        "SELECT rowid, {} FROM {} ORDER BY rowid DESC LIMIT 1",
        names.join(", "),
        quoted(table)
    );
    let mut row = rows(canister, &last.as_str().into())?.pop().context("the table is empty")?;
    let values = row.split_off(1);
    let delete =
        Bound { text: format!("DELETE FROM {} WHERE rowid = ?1", quoted(table)), parameters: row };
    let places: Vec<String> = (1..=values.len()).map(|place| format!("?{place}")).collect();
    let text = format!(
        "INSERT INTO {}({}) VALUES({})",
        quoted(table),
        names.join(", "),
        places.join(", ")
    );
    last_cost(&execute(canister, &[delete, Bound { text, parameters: values }])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_other_values_have_the_same_shape() {
        let one = shape("INSERT INTO t VALUES(1, 'it''s', x'00') -- x");
        assert_eq!(one, "INSERT INTO t VALUES(?,? ?,x ?)");
        assert_eq!(
            shape("select * from \"t\" where a=:a and b>?2"),
            "select*from t where a=? and b>?"
        );
    }

    #[test]
    fn an_aggregate_needs_all_that_it_reads() {
        for text in [
            "SELECT count(*) FROM t WHERE a = 1",
            "select 1, SUM (b) from t",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t GROUP BY a",
        ] {
            assert!(aggregates(text), "{text}");
        }
        for text in ["SELECT a FROM t WHERE count = 1", "SELECT 'sum(', \"max\" FROM t -- avg("] {
            assert!(!aggregates(text), "{text}");
        }
    }

    #[test]
    fn columns_are_compared_or_ordered_by() {
        let columns = ["a", "b", "c", "d"].map(str::to_owned);
        let of = |text: &str, alias: &str| {
            let uses = uses(&pieces(text), alias, &columns);
            uses.into_iter().map(|(how, name)| (how, name.clone())).collect::<Vec<_>>()
        };
        let name = |how, name: &str| (how, name.to_owned());
        assert_eq!(
            of("SELECT a FROM t WHERE b = 1 AND ?1 < c GROUP BY d LIMIT 1", "t"),
            [name(Use::Equal, "b"), name(Use::Range, "c"), name(Use::Order, "d")]
        );
        assert_eq!(
            of("SELECT * FROM t AS x JOIN u ON u.a = x.b WHERE x.c IN (1)", "x"),
            [name(Use::Equal, "b"), name(Use::Equal, "c")]
        );
        assert_eq!(of("SELECT a, b FROM t ORDER BY lower(a)", "t"), [name(Use::Order, "a")]);
        let tables = ["t", "u"].map(str::to_owned);
        assert_eq!(
            table_of(&pieces("SELECT 1 FROM t AS x, u y"), "y", &tables).as_deref(),
            Some("u")
        );
        assert_eq!(table_of(&pieces("SELECT 1 FROM t AS x"), "x", &tables).as_deref(), Some("t"));
        assert_eq!(table_of(&pieces("SELECT 1 FROM (VALUES(1)) z"), "z", &tables), None);
    }

    #[test]
    fn names_are_quoted_where_necessary() {
        let index = Index { table: "my table".into(), columns: vec!["a".into()] };
        assert_eq!(index.statement(), "CREATE INDEX \"my table_a\" ON \"my table\"(a);");
    }
}
