//! The tables of the suite, and the cases that each is made of.

use clap::ValueEnum;
use stablebench_protocol::Engine;

use super::setting::Setting;
use super::task::{Access, Task, Verb, Work};
use super::{CasePlan, sweep, unique};
use crate::cli::{Place, UsersArgs};
use crate::report::number::Grouped;
use crate::results::State;

/// A table of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// New rows in the middle and at the end, in batches.
    Insert,
    /// The same rows in transactions of different sizes.
    Transactions,
    /// Every kind of work, cold and warm, before and after churn and VACUUM.
    Work,
    /// Rows of 10 to 100 000 bytes.
    Payload,
    /// Few rows to many.
    Curve,
    /// What a message costs with its first row, and with more.
    Base,
    /// The same number of rows, neighbours or far apart, in order or not.
    Locality,
    /// The same number of operations on few rows and on many.
    WorkingSet,
    /// SQLite's settings, one varied at a time.
    Settings,
    /// How many rows one message can do.
    Capacity,
    /// All of these.
    All,
}

/// What a reader asks of each section.
pub const DESCRIPTIONS: &[(Section, &str)] = &[
    (Section::Insert, "New rows in one message, SQLite in one transaction"),
    (Section::Transactions, "The same new rows in transactions of different sizes"),
    (Section::Work, "Every kind of work, warm and cold"),
    (Section::Payload, "Rows of different lengths"),
    (Section::Curve, "Few rows to many"),
    (Section::Base, "The first row of a message, and more"),
    (Section::Locality, "Rows near each other and far apart, in order and not"),
    (Section::WorkingSet, "The same work on few rows and on many"),
    (Section::Settings, "Settings of SQLite"),
    (Section::Capacity, "How much one message can do"),
];

/// What a section is about, from its name in results.
pub fn describe(name: &str) -> Option<&'static str> {
    DESCRIPTIONS
        .iter()
        .find(|(section, _)| section.name() == name)
        .map(|(_, description)| *description)
}

impl Section {
    /// The name in results.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl UsersArgs {
    /// The sections asked for.
    pub fn sections(&self) -> Vec<Section> {
        if self.sections.contains(&Section::All) {
            return DESCRIPTIONS.iter().map(|(section, _)| *section).collect();
        }
        self.sections.clone()
    }
}

/// A case and the store that it needs.
type Planned = (Setting, u64, u32, CasePlan);

/// The cases of a section, store by store.
pub fn cases(section: Section, args: &UsersArgs) -> Vec<Planned> {
    match section {
        Section::Insert => on_each(args, |_| inserts(args)),
        Section::Transactions => on_each(args, |_| transactions(args)),
        Section::Work => on_each(args, |setting| work(args, setting)),
        Section::Capacity => on_each(args, |_| capacity(args)),
        Section::Base => on_each(args, |_| base(args)),
        Section::Locality => on_each(args, |_| locality(args)),
        Section::WorkingSet => on_each(args, |_| working_set(args)),
        Section::Payload => payloads(args),
        Section::Curve => curve(args),
        Section::Settings => settings(args),
        Section::All => {
            args.sections().into_iter().flat_map(|section| cases(section, args)).collect()
        }
    }
}

fn on_each(args: &UsersArgs, cases: impl Fn(&Setting) -> Vec<CasePlan>) -> Vec<Planned> {
    let settings = args.settings();
    let planned = settings.iter().flat_map(|setting| {
        cases(setting).into_iter().map(|case| (*setting, args.rows, args.payload, case))
    });
    planned.collect()
}

fn case(section: Section, name: String, state: State, task: Task) -> CasePlan {
    CasePlan { section, name, state, task }
}

fn warm(section: Section, name: String, work: Work) -> CasePlan {
    case(section, name, State::Warm, Task::One(work))
}

/// `read 1 000 uniform`, `100 ranges of 100 Zipf`, `scan`.
fn what(verb: Verb, access: Access, operations: u64) -> String {
    let count = Grouped(operations);
    match (verb, access) {
        (_, Access::All) => verb.to_string(),
        (Verb::Range(rows), _) => {
            let plural = if operations == 1 { "" } else { "s" };
            format!("{count} range{plural} of {} {access}", Grouped(rows))
        }
        _ => format!("{verb} {count} {access}"),
    }
}

fn inserts(args: &UsersArgs) -> Vec<CasePlan> {
    let mut batches = args.batches.clone();
    batches.sort_unstable();
    batches.dedup();
    let places = unique(args.at.clone());
    let of = |place: &Place| {
        let place = *place;
        batches.clone().into_iter().map(move |rows| {
            let name = format!("{place} {}", Grouped(rows));
            warm(Section::Insert, name, Work::new(Verb::Insert, place.access(), rows))
        })
    };
    places.iter().flat_map(of).collect()
}

fn transactions(args: &UsersArgs) -> Vec<CasePlan> {
    let rows = args.transaction_rows;
    let mut cases = Vec::new();
    for each_message in [false, true] {
        for size in unique(args.transactions.clone()) {
            let size = size.min(rows);
            let work =
                Work { transaction: Some(size), ..Work::new(Verb::Insert, Access::End, rows) };
            let (name, task) = if each_message {
                ("a message each", Task::Messages(work, size))
            } else {
                ("one message", Task::One(work))
            };
            let name = format!("{} rows by {}, {name}", Grouped(rows), Grouped(size));
            cases.push(case(Section::Transactions, name, State::Warm, task));
        }
    }
    cases.dedup();
    cases
}

fn work(args: &UsersArgs, setting: &Setting) -> Vec<CasePlan> {
    const RANGE: u64 = 100;
    let many = args.operations.min(args.rows);
    let ranges = (many / 10).max(1);
    let mut cases = Vec::new();
    let mut add = |verb: Verb, access: Access, operations: u64, states: &[State]| {
        for state in states {
            let what = what(verb, access, operations);
            let work = Work::new(verb, access, operations);
            cases.push(case(Section::Work, format!("{what}, {state}"), *state, Task::One(work)));
        }
    };
    for access in [Access::Uniform, Access::Zipf] {
        if access == Access::Uniform {
            add(Verb::Insert, access, many, &[State::Warm]);
            add(Verb::Delete, access, many, &[State::Warm]);
            add(Verb::Miss, access, many, &[State::Warm]);
        }
        add(Verb::Overwrite, access, many, &[State::Warm]);
        add(Verb::Update, access, many, &[State::Warm]);
        add(Verb::Read, access, many, &[State::Warm]);
        add(Verb::Range(RANGE), access, ranges, &[State::Warm]);
    }
    // The first work after something else: one operation alone.
    let sqlite = setting.engine == Engine::Sqlite;
    let cold: &[State] = match sqlite {
        true => &[State::Warm, State::Upgraded, State::Closed],
        false => &[State::Warm, State::Upgraded],
    };
    for verb in
        [Verb::Insert, Verb::Overwrite, Verb::Update, Verb::Delete, Verb::Read, Verb::Range(RANGE)]
    {
        add(verb, Access::Uniform, 1, cold);
    }
    add(Verb::Count, Access::All, 1, cold);
    // Reads of a table that has a past.
    let past: &[State] = match sqlite {
        true => &[State::Vacuumed, State::Churned, State::ChurnedAndVacuumed],
        false => &[State::Churned],
    };
    add(Verb::Read, Access::Uniform, many, past);
    add(Verb::Range(RANGE), Access::Uniform, ranges, past);
    add(Verb::Scan, Access::All, args.rows, &[cold, past].concat());
    cases
}

fn payloads(args: &UsersArgs) -> Vec<Planned> {
    let mut planned = Vec::new();
    for setting in args.settings() {
        for payload in unique(args.payloads.clone()) {
            // As many bytes of text in each store, but not more rows than asked for.
            let bytes = args.rows.saturating_mul(100);
            let rows = (bytes / u64::from(payload.max(1))).clamp(1, args.rows);
            let count = (rows / 4).clamp(1, 100);
            for (verb, access) in [
                (Verb::Insert, Access::Middle),
                (Verb::Insert, Access::End),
                (Verb::Update, Access::Uniform),
                (Verb::Read, Access::Uniform),
            ] {
                let name = format!(
                    "{} bytes, {} rows of {}: {verb} {access}",
                    Grouped(payload.into()),
                    Grouped(count),
                    Grouped(rows)
                );
                let case = warm(Section::Payload, name, Work::new(verb, access, count));
                planned.push((setting, rows, payload, case));
            }
        }
    }
    planned
}

fn curve(args: &UsersArgs) -> Vec<Planned> {
    let mut planned = Vec::new();
    for setting in args.settings() {
        for rows in unique(args.curve_rows.clone()) {
            let count = (rows / 4).clamp(1, 100);
            for (verb, access) in [
                (Verb::Insert, Access::Middle),
                (Verb::Insert, Access::End),
                (Verb::Insert, Access::Uniform),
                (Verb::Read, Access::Uniform),
            ] {
                let name = format!("{} of {} rows: {verb} {access}", Grouped(count), Grouped(rows));
                let case = warm(Section::Curve, name, Work::new(verb, access, count));
                planned.push((setting, rows, args.payload, case));
            }
        }
    }
    planned
}

/// Rows of the section `locality`.
const LOCALITY_ROWS: u64 = 100;

fn base(args: &UsersArgs) -> Vec<CasePlan> {
    let mut cases = Vec::new();
    for (verb, access) in [(Verb::Insert, Access::End), (Verb::Read, Access::Middle)] {
        for rows in [1, 2, 10, 100].into_iter().filter(|rows| *rows <= args.rows) {
            let name = format!("{}: {verb} {access}", Grouped(rows));
            cases.push(warm(Section::Base, name, Work::new(verb, access, rows)));
        }
    }
    cases
}

fn locality(args: &UsersArgs) -> Vec<CasePlan> {
    let rows = LOCALITY_ROWS.min(args.rows / 4).max(1);
    let mut cases = Vec::new();
    for verb in [Verb::Insert, Verb::Update, Verb::Read] {
        for access in [Access::Middle, Access::Spread, Access::Sorted, Access::Uniform] {
            let name = format!("{access}: {verb} {}", Grouped(rows));
            cases.push(warm(Section::Locality, name, Work::new(verb, access, rows)));
        }
    }
    cases
}

fn working_set(args: &UsersArgs) -> Vec<CasePlan> {
    let operations = args.operations;
    let mut sets: Vec<u64> = args.working_sets.iter().map(|set| *set.min(&args.rows)).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut cases = Vec::new();
    for verb in [Verb::Read, Verb::Update] {
        for set in &sets {
            let name = format!("{} rows: {verb} {}", Grouped(*set), Grouped(operations));
            let work = Work::new(verb, Access::Among(*set), operations);
            cases.push(warm(Section::WorkingSet, name, work));
        }
    }
    cases
}

fn settings(args: &UsersArgs) -> Vec<Planned> {
    let mut planned = Vec::new();
    for setting in sweep::swept(args) {
        let many = args.operations.min(args.rows / 4).max(1);
        let some = many.min(100);
        for (verb, access, operations, state) in [
            (Verb::Insert, Access::End, 1, State::Warm),
            (Verb::Insert, Access::Middle, some, State::Warm),
            (Verb::Insert, Access::End, many, State::Warm),
            (Verb::Insert, Access::Uniform, many, State::Warm),
            (Verb::Update, Access::Uniform, many, State::Warm),
            (Verb::Read, Access::Uniform, many, State::Warm),
            (Verb::Read, Access::Uniform, 1, State::Upgraded),
            (Verb::Scan, Access::All, args.rows, State::Warm),
        ] {
            let what = what(verb, access, operations);
            let work = Work::new(verb, access, operations);
            let case = case(Section::Settings, format!("{what}, {state}"), state, Task::One(work));
            planned.push((setting, args.rows, args.payload, case));
        }
    }
    planned
}

fn capacity(args: &UsersArgs) -> Vec<CasePlan> {
    let rows = args.rows;
    let planned =
        |name: &str, task: Task| case(Section::Capacity, name.to_owned(), State::Warm, task);
    vec![
        planned(
            "rows inserted at the end in one update",
            Task::UpdateCapacity(Work::new(Verb::Insert, Access::End, u64::MAX)),
        ),
        planned(
            "rows looked up one by one in one query",
            Task::QueryCapacity(Work::new(Verb::Read, Access::Spread, rows)),
        ),
        planned(
            "rows scanned in one query",
            Task::QueryCapacity(Work::new(Verb::Scan, Access::All, rows)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::BTreeSet;

    fn args(typed: &[&str]) -> UsersArgs {
        crate::cli::Cli::parse_from([&["stablebench"], typed].concat()).users
    }

    #[test]
    fn names_are_unique_in_a_column_of_a_section() {
        let args = args(&["--sections=all"]);
        let mut seen = BTreeSet::new();
        for (setting, _, _, case) in cases(Section::All, &args) {
            let identity = (case.section.name(), case.name, setting.key());
            assert!(seen.insert(identity.clone()), "twice: {identity:?}");
        }
        assert!(seen.len() > 500, "{}", seen.len());
    }
}
