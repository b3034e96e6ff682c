//! The columns of a table of the suite users. On a terminal, one column stands for all journal modes
//! of SQLite whose figures are about equal. It shows the best of each row, and has all their names:
//!
//! ```text
//!   DELETE   PERSIST   WAL           PERSIST = DELETE   WAL
//!      100       101   180      →                 100   180
//! ```
//!
//! Two modes are equal if no figure of one is more than 10 % larger than the other's. All tables of a
//! section compare the figures of the whole section, so that the same name stands for the same figure. Modes that the
//! run's command names are all shown, and so are those with a figure missing.

use super::style::Style;
use crate::engines::{Configurations, SHIPPED, heading};
use crate::results::Results;

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
