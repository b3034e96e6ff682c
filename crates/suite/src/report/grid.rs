//! A table with a title and notes, for a terminal or as Markdown. A table that is wider than the
//! terminal is split into several tables, one below the other, each with the labels:
//!
//! ```text
//!   label  a  b  c  d        label  a  b
//!                      →
//!                            label  c  d
//! ```
//!
//! On a terminal, one column of the suite users stands for all journal modes of SQLite whose figures are
//! about equal. It shows the best of each row, and has all their names:
//!
//! ```text
//!   DELETE   PERSIST   WAL           PERSIST = DELETE   WAL
//!      100       101   180      →                 100   180
//! ```
//!
//! Two modes are equal if no figure of one is more than 10 % larger than the other's. All tables of a
//! section compare the figures of the whole section, so that the same name stands for the same figure.
//! Modes that the run's command names are all shown, and so are those with a figure missing.

use std::fmt::{Display, Write};

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{
    Attribute, CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
};

use super::number::{Grouped, Ratio};
use crate::engines::{Configurations, SHIPPED, heading};
use crate::results::{Outcome, Results};
use crate::terminal::Terminal;

/// The style of tables and sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub markdown: bool,
    /// The terminal, unless the style is Markdown.
    pub terminal: Terminal,
}

impl Style {
    /// Markdown, which has no maximum width.
    pub const MARKDOWN: Self =
        Self { markdown: true, terminal: Terminal { colour: false, width: None } };

    /// Returns the style for a terminal.
    pub fn of(terminal: Terminal) -> Self {
        Self { markdown: false, terminal }
    }

    pub fn heading(self, title: &str) -> String {
        let bold = anstyle::Style::new().bold();
        match self.markdown {
            true => format!("### {title}"),
            false if self.terminal.colour => format!("{bold}{}{bold:#}", self.sentence(title)),
            false => self.sentence(title),
        }
    }

    /// Formats a sentence of a list.
    pub fn item(self, sentence: &str) -> String {
        if self.markdown { format!("- {sentence}") } else { self.sentence(sentence) }
    }

    /// Formats a single sentence.
    pub fn sentence(self, sentence: &str) -> String {
        if self.markdown { sentence.to_owned() } else { self.terminal.wrapped(sentence) }
    }

    /// Formats two lines of one cell.
    pub fn stacked(self, above: &dyn Display, below: &dyn Display) -> String {
        format!("{above}{}{below}", if self.markdown { "<br>" } else { "\n" })
    }

    /// Formats a heading in two lines, since the numbers below it are narrow. Each setting has a line
    /// of its own.
    pub fn narrow(self, heading: &str) -> String {
        let Some((above, below)) = heading.split_once(' ') else { return heading.to_owned() };
        let mut text = above.to_owned();
        for (place, word) in below.split(' ').enumerate() {
            text = match place == 0 || word.contains('=') {
                true => self.stacked(&text, &word),
                false => format!("{text} {word}"),
            };
        }
        text
    }
}

/// The mark of the cheapest configuration of a row.
pub const BEST: &str = "*";

/// Returns the smallest of the numbers that are compared; `None` if there are fewer than two, of
/// which none is the cheapest.
pub fn cheapest(compared: impl IntoIterator<Item = u64>) -> Option<u64> {
    let mut compared = compared.into_iter();
    let first = compared.next()?;
    let second = compared.next()?;
    Some(compared.fold(first.min(second), u64::min))
}

/// A table with a title above and notes below.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Empty if the table has none.
    pub title: String,
    /// The headings, starting with that of the labels.
    pub header: Vec<String>,
    /// The rows, each starting with a label.
    pub rows: Vec<Vec<Cell>>,
    pub notes: Vec<String>,
    /// `true` if rows are separated by lines.
    pub lines: bool,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Text(String),
    /// A number, the number that it is compared with, and a flag for the best of a row.
    Number {
        value: u64,
        base: Option<u64>,
        best: bool,
    },
    /// Not measured.
    Absent,
    /// Not supported by the engine.
    NotApplicable,
    Failed,
}

impl Cell {
    pub fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    /// Returns the cell for an outcome without a number.
    pub fn missing<T>(outcome: &Outcome<T>) -> Self {
        match outcome {
            Outcome::Measured(_) => Self::Absent,
            Outcome::NotApplicable { .. } => Self::NotApplicable,
            Outcome::Failed { .. } => Self::Failed,
        }
    }

    fn shown(&self, style: Style) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(self.render(style));
        let best = matches!(self, Self::Number { best: true, .. });
        if best && !style.markdown { cell.add_attribute(Attribute::Bold) } else { cell }
    }

    /// Returns the cell as text.
    pub fn render(&self, style: Style) -> String {
        let (value, base, best) = match self {
            Self::Text(text) => return text.clone(),
            Self::Absent => return "–".to_owned(),
            Self::NotApplicable => return "n/a".to_owned(),
            Self::Failed => return "failed".to_owned(),
            Self::Number { value, base, best } => (*value, *base, *best),
        };
        let number = match (best, style.markdown) {
            (true, true) => format!("**{}**", Grouped(value)),
            (true, false) => format!("{BEST}{}", Grouped(value)),
            (false, _) => Grouped(value).to_string(),
        };
        match base {
            Some(base) => style.stacked(&number, &Ratio(value, base)),
            None => number,
        }
    }
}

impl Grid {
    /// Returns the rows as texts. Lines in a cell are separated by newlines.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Absent => "–".to_owned(),
            Cell::NotApplicable => "n/a".to_owned(),
            Cell::Failed => "failed".to_owned(),
            Cell::Number { value, base: None, .. } => Grouped(*value).to_string(),
            Cell::Number { value, base: Some(base), .. } => {
                format!("{}\n{}", Grouped(*value), Ratio(*value, *base))
            }
        };
        self.rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    /// Returns `true` if a number is marked as the best.
    pub fn marks_best(&self) -> bool {
        self.rows.iter().flatten().any(|cell| matches!(cell, Cell::Number { best: true, .. }))
    }

    /// Returns the table as text, with its title and notes.
    pub fn render(&self, style: Style) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| cell.shown(style)).collect());
        let sheet = Sheet { header: self.header.clone(), rows: rows.collect(), lines: self.lines };
        let title = match self.title.as_str() {
            "" => String::new(),
            title => style.heading(title) + "\n\n",
        };
        let mut text = format!("{title}{}\n", sheet.render(style));
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", style.item(note));
        }
        text
    }
}

/// The width of the space around a cell's content and of the line to the next cell.
const PADDING: u16 = 3;
/// The maximum widths of labels that are tried in order: unlimited, then wrapped.
const LABELS: [u16; 2] = [u16::MAX, 24];

/// A table without a title.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The headings, starting with that of the labels.
    pub header: Vec<String>,
    /// The rows, each starting with a label. Other cells are aligned to the right.
    pub rows: Vec<Vec<comfy_table::Cell>>,
    /// `true` if rows are separated by lines.
    pub lines: bool,
}

impl Sheet {
    /// Returns the table as text, without a newline at the end.
    pub fn render(&self, style: Style) -> String {
        let all: Vec<usize> = (1..self.header.len()).collect();
        let whole = self.table(&all, style);
        let Some(width) = style.terminal.width.filter(|_| !style.markdown) else {
            return whole.to_string();
        };
        let widths = whole.column_max_content_widths();
        let parts = parts(&widths, width);
        let tables = parts.iter().map(|columns| {
            let mut table = self.table(columns, style);
            fit(&mut table, width);
            table.to_string()
        });
        tables.collect::<Vec<String>>().join("\n\n")
    }

    /// Returns a table of the labels and these columns.
    fn table(&self, columns: &[usize], style: Style) -> Table {
        let mut table = Table::new();
        table
            .load_preset(if style.markdown { ASCII_MARKDOWN } else { UTF8_HORIZONTAL_ONLY })
            .set_content_arrangement(ContentArrangement::Disabled)
            .force_no_tty();
        if style.terminal.colour && !style.markdown {
            table.enforce_styling();
        }
        if !self.lines && !style.markdown {
            for inner in [
                TableComponent::HorizontalLines,
                TableComponent::MiddleIntersections,
                TableComponent::LeftBorderIntersections,
                TableComponent::RightBorderIntersections,
            ] {
                table.remove_style(inner);
            }
        }
        let shown = || std::iter::once(0).chain(columns.iter().copied());
        table.set_header(shown().filter_map(|column| self.header.get(column)));
        for row in &self.rows {
            table.add_row(shown().filter_map(|column| row.get(column).cloned()));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// Splits columns into as few tables as possible, with about as many columns in each.
fn parts(widths: &[u16], width: u16) -> Vec<Vec<usize>> {
    let Some((label, others)) = widths.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return vec![Vec::new()];
    };
    let columns: Vec<usize> = (1..=others.len()).collect();
    let total = |columns: &[usize]| -> u32 {
        columns.iter().map(|column| u32::from(widths[*column] + PADDING)).sum()
    };
    // Labels are wrapped if that saves a table.
    for (tables, most) in (1..=columns.len()).flat_map(|tables| LABELS.map(|most| (tables, most))) {
        let left = u32::from(width.saturating_sub((*label).min(most) + PADDING));
        let parts = || columns.chunks(columns.len().div_ceil(tables));
        if parts().all(|part| total(part) <= left) {
            return parts().map(<[usize]>::to_vec).collect();
        }
    }
    columns.chunks(1).map(<[usize]>::to_vec).collect()
}

/// Wraps labels, and other cells if a single column is too wide.
fn fit(table: &mut Table, width: u16) {
    let widths = table.column_max_content_widths();
    let total: u32 = widths.iter().map(|content| u32::from(content + PADDING)).sum();
    if total <= u32::from(width) {
        return;
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    let others = total - u32::from(widths[0] + PADDING);
    let label = u32::from(width).saturating_sub(others + u32::from(PADDING));
    let label = u16::try_from(label).unwrap_or(u16::MAX);
    if label >= widths[0].min(LABELS[1]) {
        for (column, content) in table.column_iter_mut().zip(&widths).skip(1) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(content + 2)));
        }
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(label + 2)));
        }
    }
}

/// The heading over the names of rows.
pub fn row_heading(section: &str) -> &'static str {
    match section {
        "insert" => "new rows",
        "base" => "rows",
        "working-set" => "chosen from",
        _ => "",
    }
}

/// The ratio of two figures up to which they are about equal.
const EQUAL: f64 = 1.1;

/// The columns of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Columns<'r> {
    /// The configurations that are shown.
    pub shown: Vec<&'r str>,
    /// Modes that are equal, the shown one first.
    equal: Vec<Vec<&'r str>>,
}

impl<'r> Columns<'r> {
    /// Chooses the columns of a table of a section.
    pub fn of_section(
        results: &'r Results,
        section: &str,
        keys: Vec<&'r str>,
        style: Style,
    ) -> Self {
        let figure = |name: &str, key: &str| {
            let measured = results.case(section, name, key)?.measured()?;
            Some(if measured.capacity.is_some() {
                measured.operations
            } else {
                measured.instructions
            })
        };
        let mut names = results.names(section);
        // Cases of other configurations say nothing about modes.
        let is_of_modes = |name: &str| {
            keys.iter().any(|key| mode(key).is_some() && results.case(section, name, key).is_some())
        };
        names.retain(|name| is_of_modes(name));
        let figures = |key: &str| names.iter().map(|name| figure(name, key)).collect();
        Self::of(results, keys.clone(), style, figures)
    }

    /// Chooses the columns among `keys`, of which `figures` returns the figures in the table.
    pub fn of(
        results: &Results,
        keys: Vec<&'r str>,
        style: Style,
        figures: impl Fn(&str) -> Vec<Option<u64>>,
    ) -> Self {
        if style.markdown || !folds_modes(results) {
            return Self { shown: keys, equal: Vec::new() };
        }
        // The library's own mode stands for those equal to it.
        let mut modes: Vec<&str> = keys.iter().copied().filter(|key| mode(key).is_some()).collect();
        modes.sort_by_key(|key| *key != SHIPPED);
        let mut groups: Vec<Vec<Mode>> = Vec::new();
        for key in modes {
            let own = Mode { key, figures: figures(key) };
            match groups.iter_mut().find(|group| group.iter().all(|other| own.equals(other))) {
                Some(group) => group.push(own),
                None => groups.push(vec![own]),
            }
        }
        groups.retain(|group| group.len() > 1);
        let keys_of = |group: &Vec<Mode<'r>>| group.iter().map(|mode| mode.key).collect();
        let equal: Vec<Vec<&str>> = groups.iter().map(keys_of).collect();
        let hidden = |key: &&str| equal.iter().any(|group| group[1..].contains(key));
        Self { shown: keys.into_iter().filter(|key| !hidden(key)).collect(), equal }
    }

    /// Returns the configuration with the smallest rank among those that a column stands for.
    pub fn best<T: Ord>(&self, shown: &'r str, rank: impl Fn(&str) -> T) -> &'r str {
        let equal = self.equal.iter().find(|group| group[0] == shown);
        let of = equal.and_then(|group| group.iter().copied().min_by_key(|key| rank(key)));
        of.unwrap_or(shown)
    }

    /// Returns the name of a column, with the modes that it stands for: `SQLite PERSIST = DELETE`.
    pub fn heading(&self, shown: &str) -> String {
        const NAMED: usize = 2;
        let own = heading(shown);
        let others = self.equal.iter().find(|group| group[0] == shown).map(|group| &group[1..]);
        match others {
            None => own,
            Some(others) if others.len() > NAMED => format!("{own} = {} others", others.len()),
            Some(others) => {
                let names = others.iter().map(|key| mode(key).unwrap_or(key).to_uppercase());
                [own].into_iter().chain(names).collect::<Vec<_>>().join(" = ")
            }
        }
    }

    /// Returns the equal modes, if there are any: `PERSIST = DELETE, OFF = MEMORY`.
    pub fn equal(&self) -> Option<String> {
        let name = |key: &&str| mode(key).unwrap_or(key).to_uppercase();
        let group = |group: &Vec<&str>| group.iter().map(name).collect::<Vec<_>>().join(" = ");
        let groups: Vec<String> = self.equal.iter().map(group).collect();
        (!groups.is_empty()).then(|| groups.join(", "))
    }

    /// Returns the sentence that names the equal modes, if there are any.
    pub fn note(&self) -> Option<String> {
        Some(format!(
            "{}: their figures differ by at most 10 %; the best is shown, and --format markdown shows \
             each.",
            self.equal()?
        ))
    }
}

/// Returns the journal mode of a configuration that sets nothing else.
fn mode(key: &str) -> Option<&str> {
    key.strip_prefix("sqlite/").filter(|mode| !mode.contains(','))
}

/// Returns `true` if the run measured every mode because none was asked for.
fn folds_modes(results: &Results) -> bool {
    let published = results.published.is_some() || results.replica.kind == "published";
    results.suite == "users" && !published && !names_modes(&results.command)
}

/// Returns `true` if a command chooses journal modes.
fn names_modes(command: &str) -> bool {
    let mut words = command.split(' ');
    let engines = words.clone().skip_while(|word| *word != "--engines").nth(1);
    let engines = engines.and_then(|engines| engines.parse::<Configurations>().ok());
    words.any(|word| word == "--journal-modes")
        || engines.is_some_and(|all| all.0.iter().any(|one| mode(&one.to_string()).is_some()))
}

/// A journal mode with its figures in a table.
struct Mode<'r> {
    key: &'r str,
    figures: Vec<Option<u64>>,
}

impl Mode<'_> {
    fn equals(&self, other: &Self) -> bool {
        let near = |(one, other): (&Option<u64>, &Option<u64>)| match (one, other) {
            (Some(one), Some(other)) => *one.max(other) as f64 <= EQUAL * *one.min(other) as f64,
            _ => false,
        };
        self.figures.iter().zip(&other.figures).all(near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::of;

    #[test]
    fn headings_are_narrow() {
        for (heading, lines) in [
            ("StableBTreeMap", "StableBTreeMap"),
            ("floor: array", "floor:<br>array"),
            ("SQLite WITH ROWID", "SQLite<br>WITH ROWID"),
            ("SQLite PERSIST cache_size=1000", "SQLite<br>PERSIST<br>cache_size=1000"),
            ("sqlite-vfs page_size=4096", "sqlite-vfs<br>page_size=4096"),
        ] {
            assert_eq!(Style::MARKDOWN.narrow(heading), lines);
        }
    }

    fn sheet() -> Sheet {
        let header = ["", "StableBTreeMap", "SQLite\nDELETE", "SQLite\nWAL", "floor:\nappend"];
        let row = |label: &str| {
            let cells = [label, "54 003", "151 234\n2.80×", "189 012", "7 890"];
            cells.map(comfy_table::Cell::new).to_vec()
        };
        let long = "insert 1 000 uniform, upgraded, in transactions of 1 row";
        Sheet {
            header: header.map(str::to_owned).to_vec(),
            rows: vec![row("middle 1"), row(long)],
            lines: false,
        }
    }

    fn rendered(width: Option<u16>) -> String {
        sheet().render(Style::of(Terminal { colour: false, width }))
    }

    #[test]
    fn wide_tables_are_folded() {
        let all = [None, Some(120), Some(100), Some(60), Some(30)];
        let text = all.map(|width| format!("{width:?}\n{}\n", rendered(width)));
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for width in [40, 41, 57, 60, 79, 80, 99, 100, 101, 132] {
            let text = rendered(Some(width));
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= usize::from(width), "{longest} in {width}:\n{text}");
        }
    }

    #[test]
    fn every_cell_is_shown_once_at_any_width() {
        for width in [40, 80, 200] {
            let text = rendered(Some(width));
            assert_eq!(text.matches("189 012").count(), 2, "{width}");
            assert_eq!(text.matches("7 890").count(), 2, "{width}:\n{text}");
        }
    }

    #[test]
    fn columns_are_distributed_evenly() {
        let widths = [10, 8, 8, 8, 8, 8, 8, 8];
        assert_eq!(parts(&widths, 100).len(), 1);
        let sizes: Vec<usize> = parts(&widths, 80).iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 3]);
        assert_eq!(parts(&widths, 5).len(), 7);
        assert_eq!(parts(&[4], 80), [Vec::<usize>::new()], "labels alone are a table");
    }

    const KEYS: [&str; 6] = [
        "btree",
        "sqlite/delete",
        "sqlite/persist",
        "sqlite/wal",
        "sqlite/off",
        "sqlite/persist,cache_size=1000",
    ];

    /// Two figures of each configuration.
    fn figures(key: &str) -> Vec<Option<u64>> {
        let second = match key {
            "sqlite/delete" => Some(1_100),
            "sqlite/wal" => Some(1_101),
            "sqlite/off" => None,
            _ => Some(1_000),
        };
        vec![Some(7), second]
    }

    fn columns(results: &Results, style: Style) -> (Vec<&'static str>, Option<String>) {
        let columns = Columns::of(results, KEYS.to_vec(), style, figures);
        (columns.shown.clone(), columns.note())
    }

    #[test]
    fn modes_that_differ_by_at_most_a_tenth_share_a_column() {
        let (shown, note) = columns(&of(Vec::new()), Style::default());
        // Other settings are never folded, and neither is a mode without a figure.
        let expected: Vec<&str> = KEYS.into_iter().filter(|key| *key != "sqlite/delete").collect();
        assert_eq!(shown, expected);
        assert!(
            note.unwrap().starts_with("PERSIST = DELETE: their figures differ by at most 10 %")
        );
    }

    /// A value that is marked as the best of a row is the best of all modes.
    #[test]
    fn a_column_shows_the_best_figure_of_its_modes() {
        let results = of(Vec::new());
        let columns = Columns::of(&results, KEYS.to_vec(), Style::default(), figures);
        let best = |shown, row: usize| columns.best(shown, |key| figures(key)[row]);
        assert_eq!(best("sqlite/persist", 1), "sqlite/persist");
        let reversed = |key: &str| if key == "sqlite/delete" { 1 } else { 2 };
        assert_eq!(columns.best("sqlite/persist", reversed), "sqlite/delete");
        assert_eq!(columns.best("btree", reversed), "btree");
    }

    /// The answer and the tables of a section have the same columns with the same names.
    #[test]
    fn a_column_is_named_after_the_modes_of_the_whole_section() {
        let case =
            |name: &str, key: &str, cost| crate::results::sample::case("insert", name, key, cost);
        let cost = |key: &str, name: &str| match (key, name) {
            ("sqlite/delete", "end 1") | ("sqlite/wal", _) => 200_000,
            _ => 100_000,
        };
        let names = ["middle 1", "end 1"];
        let keys = ["sqlite/persist", "sqlite/delete", "sqlite/truncate", "sqlite/wal"];
        let all = |names: &[&str], keys: &[&'static str]| {
            let results = of(names
                .iter()
                .flat_map(|name| keys.iter().map(|key| case(name, key, cost(key, name))))
                .collect());
            let columns = Columns::of_section(&results, "insert", keys.to_vec(), Style::default());
            let shown = columns.shown.iter().map(|key| columns.heading(key));
            shown.collect::<Vec<String>>().join(", ")
        };
        // DELETE differs at the end only.
        let whole = "SQLite PERSIST = TRUNCATE, SQLite DELETE, SQLite WAL";
        assert_eq!(all(&names, &keys), whole);
        assert_eq!(all(&names[..1], &keys), "SQLite PERSIST = DELETE = TRUNCATE, SQLite WAL");
        let more = [&keys[..], &["sqlite/memory"]].concat();
        assert_eq!(all(&names[..1], &more), "SQLite PERSIST = 3 others, SQLite WAL");
    }

    /// PERSIST and WAL are both close to DELETE, but not to each other.
    #[test]
    fn each_pair_of_equal_modes_is_equal() {
        let keys = vec!["sqlite/wal", "sqlite/delete", "sqlite/persist"];
        let near = |key: &str| {
            vec![Some(if key == "sqlite/wal" { 1_205 } else { figures(key)[1].unwrap() })]
        };
        let results = of(Vec::new());
        let columns = Columns::of(&results, keys, Style::default(), near);
        assert_eq!(columns.shown, ["sqlite/wal", "sqlite/persist"]);
    }

    #[test]
    fn all_modes_are_shown_where_someone_asked_for_them() {
        let all = (KEYS.to_vec(), None);
        assert_eq!(columns(&of(Vec::new()), Style::MARKDOWN), all);
        for option in ["--journal-modes delete,persist", "--engines btree,sqlite/delete"] {
            let command = format!("stablebench run users {option}");
            let results = Results { command, ..of(Vec::new()) };
            assert_eq!(columns(&results, Style::default()), all, "{option}");
        }
        // The advised setting is no choice of a mode.
        let command = "stablebench run users --engines btree,sqlite/persist,cache_size=1000,sqlite";
        let results = Results { command: command.to_owned(), ..of(Vec::new()) };
        assert!(columns(&results, Style::default()).1.is_some());
        let suite = Results { suite: "sysbench".to_owned(), ..of(Vec::new()) };
        assert_eq!(columns(&suite, Style::default()), all);
        let published = Results { published: Some("users".to_owned()), ..of(Vec::new()) };
        assert_eq!(columns(&published, Style::default()), all);
    }
}
