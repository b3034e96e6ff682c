//! The suite users: a map or table with many rows, and the cost of working on them.
//!
//! ```text
//!   for each fixture (configuration, rows, payload):   install → configure → populate → check
//!     for each case:   fork → bring into the state → work, measured → check
//!   random deletes and inserts, VACUUM → check, and the cases of those states
//! ```

mod published;
mod sections;
pub mod tables;

use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use stablebench_workload::users::UsersModel;

use super::plan::{Fixture, Job, Messages, Plan, Step};
use super::rows::{Access, Table, Verb, Work};
use super::{Suite, unique};
use crate::engines::{Configuration, Configurations, Kind};
use crate::results::State;

use published::{SPANS, published, rows_of_span};
use sections::Case;
pub use sections::Section;

/// The suite.
pub struct Users;

#[derive(Clone, Debug, Args)]
pub struct UsersArgs {
    /// Sections to measure [default: insert].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub sections: Vec<Section>,
    /// Rows before the work.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rows: u64,
    /// Section insert: numbers of rows to add, each in a fork of its own [default: those of
    /// 1, 10, 50, 100, 1000 and 10000 that fit].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub batches: Vec<u64>,
    /// Engines or full configurations, such as `sqlite/wal,page_size=8192`. `sqlite` is ic-rusqlite
    /// in each of the --journal-modes, with the cache of 500 000 pages that it begins with; a
    /// cache_size of 1000 is what we advise. `sqlite-vfs` is ic-sqlite-vfs, `doltlite` needs a C
    /// compiler, `append` and `array` are the floor: bare stable memory.
    #[arg(long, value_name = "ENGINES", default_value = DEFAULT_ENGINES)]
    pub engines: Configurations,
    /// Journal modes of `sqlite`.
    #[arg(long, value_delimiter = ',', value_parser = JOURNAL_MODES, default_values = JOURNAL_MODES)]
    pub journal_modes: Vec<String>,
    /// Section insert: places of the new rows [default: all three, or without --sections, which is
    /// quicker, middle and end].
    #[arg(long, value_delimiter = ',')]
    pub at: Vec<Place>,
    /// Bytes of each row's text.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub payload: u32,
    /// Section transactions: rows to add.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub transaction_rows: u64,
    /// Section transactions: rows in a transaction.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Vec<u64>,
    /// Sections work, working-set and settings: operations of a case.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub operations: u64,
    /// Section payload: bytes of each row's text.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000, 100_000],
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub payloads: Vec<u32>,
    /// Section curve: rows before the work.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000, 1_000_000],
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub curve_rows: Vec<u64>,
    /// Section working-set: rows that the operations choose from.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 100_000, 1_000_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub working_sets: Vec<u64>,
    /// Section settings: bytes of a page.
    #[arg(long, value_delimiter = ',',
          default_values_t = [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536])]
    pub page_sizes: Vec<u32>,
    /// Section settings: pages in the cache; if negative, KiB.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true,
          default_values_t = [0, 10, 100, 1_000, 10_000, 500_000])]
    pub cache_sizes: Vec<i32>,
    /// Section settings: values of synchronous.
    #[arg(long, value_delimiter = ',', value_parser = ["off", "normal", "full", "extra"],
          default_values = ["off", "normal", "full", "extra"])]
    pub synchronous: Vec<String>,
    /// Section settings: values of locking_mode.
    #[arg(long, value_delimiter = ',', value_parser = ["exclusive", "normal"],
          default_values = ["exclusive", "normal"])]
    pub locking_modes: Vec<String>,
    /// Section settings: every combination instead of one setting at a time.
    #[arg(long)]
    pub product: bool,
    /// Sections insert and work: also measure each operation by itself, and report min, p50, p90,
    /// p99, max and the most expensive one.
    #[arg(long)]
    pub per_operation: bool,
    /// After each case that writes, read back only the rows near those written. Faster, but damage
    /// elsewhere is not found.
    #[arg(long)]
    pub check_around: bool,
    /// Repeat the forum post's run, which counted spans of ids as rows, and print its figures next
    /// to ours.
    #[arg(long, conflicts_with_all = ["sections", "rows", "batches", "journal_modes", "at", "payload", "engines"])]
    pub as_published: bool,
}

/// The map, SQLite as its users should set it and as `ic-rusqlite` ships it, `ic-sqlite-vfs`, the
/// floors.
const DEFAULT_ENGINES: &str = "btree,sqlite/persist,cache_size=1000,sqlite,sqlite-vfs,append,array";
const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "off", "wal"];
const BATCHES: [u64; 6] = [1, 10, 50, 100, 1_000, 10_000];

/// The place of new rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Between the rows in the middle.
    Middle,
    /// After the last row.
    End,
    /// Between rows chosen at random.
    Random,
}

impl Suite for Users {
    fn name(&self) -> &'static str {
        "users"
    }

    fn summary(&self) -> &'static str {
        "Insert into the middle and at the end of many rows"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  100 rows a message into a million, in all journal modes:
    stablebench run users --batches 100
  How cost grows with the rows:
    stablebench run users --sections curve --curve-rows 1000,10000,100000
  Two configurations of SQLite:
    stablebench run users --engines sqlite/wal,sqlite/persist,page_size=8192
  SQLite's page sizes with two cache sizes, every combination:
    stablebench run users --sections settings --engines sqlite --journal-modes persist \
--page-sizes 4096,16384 --cache-sizes 100,2000 --product
  The published figures next to ours:
    stablebench run users --as-published"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        UsersArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        plan(&UsersArgs::from_arg_matches(matches)?)
    }

    fn published_results(&self) -> Option<&'static str> {
        Some(published::TEXT)
    }

    fn options_of_case(&self, section: &str, name: &str, chosen: &[String]) -> Vec<String> {
        sections::options_of_case(section, name, chosen)
    }
}

/// The plan of the arguments.
///
/// # Errors
///
/// If the rows to add do not fit.
fn plan(args: &UsersArgs) -> Result<Plan> {
    let (args, left_out) = match args.as_published {
        true => (as_published(args)?, Vec::new()),
        false => with_batches(args),
    };
    let mut fixtures: Vec<(Configuration, u64, u32, Vec<Case>)> = Vec::new();
    let mut rows: Vec<(String, String)> = Vec::new();
    for section in args.sections() {
        let mut last = String::new();
        let mut after = rows.len();
        for (configuration, size, payload, case) in sections::cases(section, &args)? {
            case.work.check(size)?;
            if last != configuration.key() {
                last = configuration.key();
                after = rows.iter().take_while(|row| row.0 != section.name()).count();
            }
            // A row that other configurations do not have follows the previous one.
            let row = (section.name(), case.name.clone());
            after = match rows.iter().position(|other| *other == row) {
                Some(place) => place + 1,
                None => {
                    rows.insert(after, row);
                    after + 1
                }
            };
            let same = |fixture: &&mut (Configuration, u64, u32, Vec<Case>)| {
                (&fixture.0, fixture.1, fixture.2) == (&configuration, size, payload)
            };
            match fixtures.iter_mut().find(same) {
                Some(fixture) => fixture.3.push(case),
                None => fixtures.push((configuration, size, payload, vec![case])),
            }
        }
    }
    let fixtures = fixtures
        .iter()
        .map(|(configuration, rows, payload, cases)| {
            fixture(configuration, *rows, *payload, cases, args.per_operation)
        })
        .collect();
    let mut plan = Plan::in_order(Users.name(), rows, fixtures);
    plan.check_around = args.check_around;
    plan.published = args.as_published.then(|| Users.name().to_owned());
    if !left_out.is_empty() {
        let batches: Vec<String> =
            left_out.iter().map(|rows| crate::report::number::Grouped(*rows).to_string()).collect();
        plan.notes.push(format!(
            "left out: batches of {} rows, which do not fit between the others; more --rows have \
             room for them",
            batches.join(", ")
        ));
    }
    Ok(plan)
}

/// A configuration with rows, and the cases by the states that they need.
fn fixture(
    configuration: &Configuration,
    rows: u64,
    payload: u32,
    cases: &[Case],
    each: bool,
) -> Fixture {
    let all = Work::new(Verb::Insert, Access::End, rows);
    let populate = Job::Rows { table: Table::Empty, work: all };
    let mut steps = vec![Step { messages: Messages::ByCost, ..Step::new(populate, rows) }];
    let add = |steps: &mut Vec<Step>, states: &[State], table: Table| {
        let of = cases.iter().filter(|case| states.contains(&case.state));
        steps.extend(of.map(|case| case.step(table, each)));
    };
    let fresh = [State::Warm, State::Closed, State::Upgraded, State::Vacuumed];
    add(&mut steps, &fresh, Table::Populated(rows));
    let past = [State::Churned, State::ChurnedAndVacuumed];
    if cases.iter().any(|case| past.contains(&case.state)) {
        for deletes in [true, false] {
            let churn = Step::new(Job::Churn { rows, deletes }, rows / 10);
            // The ids of a message are an argument of 80 KB.
            steps.push(Step { messages: Messages::UpTo(10_000), ..churn });
        }
        add(&mut steps, &past[..1], Table::Churned(rows));
        if cases.iter().any(|case| case.state == State::ChurnedAndVacuumed) {
            steps.push(Step::new(Job::Vacuum, 1));
            add(&mut steps, &past[1..], Table::Churned(rows));
        }
    }
    Fixture {
        rows_in: None,
        configuration: configuration.info(),
        name: String::new(),
        rows,
        payload,
        model: |_| Box::new(UsersModel::default()),
        steps,
        populated: 1,
    }
}

/// Returns the arguments with batches, and the batches that were left out. Unless batches were
/// chosen, they are the default ones that fit.
fn with_batches(args: &UsersArgs) -> (UsersArgs, Vec<u64>) {
    if !args.batches.is_empty() {
        return (args.clone(), Vec::new());
    }
    let all = UsersArgs { batches: BATCHES.to_vec(), ..args.clone() };
    // Only the section insert needs room for them.
    if !args.sections().contains(&Section::Insert) {
        return (all, Vec::new());
    }
    let fits = |batch: &u64| {
        let works =
            args.places().into_iter().map(|place| Work::new(Verb::Insert, place.access(), *batch));
        works.into_iter().all(|work| work.check(args.rows).is_ok())
    };
    let (batches, left_out): (Vec<u64>, Vec<u64>) = BATCHES.into_iter().partition(fits);
    match batches.is_empty() {
        // The smallest batch gives the same error as a chosen one.
        true => (all, Vec::new()),
        false => (UsersArgs { batches, ..all }, left_out),
    }
}

/// Returns the arguments of the post's run: its spans of ids, ten apart, were a tenth as many rows.
fn as_published(args: &UsersArgs) -> Result<UsersArgs> {
    let mut batches = SPANS.map(rows_of_span).to_vec();
    batches.dedup();
    Ok(UsersArgs {
        sections: vec![Section::Insert],
        rows: published()?.cases.first().map_or(args.rows, |case| case.rows),
        batches,
        at: vec![Place::Middle],
        engines: "btree,sqlite".parse()?,
        journal_modes: ["delete", "memory", "off"].map(str::to_owned).to_vec(),
        ..args.clone()
    })
}

impl UsersArgs {
    /// The sections to measure.
    fn sections(&self) -> Vec<Section> {
        match self.sections.contains(&Section::All) {
            true => sections::DESCRIPTIONS.iter().map(|(section, _)| *section).collect(),
            false if self.sections.is_empty() => vec![Section::Insert],
            false => unique(&self.sections),
        }
    }

    /// The places of new rows. A case at random changes most pages, so that all rows are read back
    /// after it: it takes many times as long as another one.
    fn places(&self) -> Vec<Place> {
        match (self.at.is_empty(), self.sections.is_empty()) {
            (false, _) => unique(&self.at),
            (true, false) => vec![Place::Middle, Place::End, Place::Random],
            (true, true) => vec![Place::Middle, Place::End],
        }
    }

    /// The configurations to measure: `sqlite` in each of the journal modes.
    fn configurations(&self) -> Result<Vec<Configuration>> {
        let mut all = Vec::new();
        for one in &self.engines.0 {
            if one.engine.key == "sqlite" && one.value("journal_mode").is_none() {
                for mode in unique(&self.journal_modes) {
                    all.push(one.clone().with("journal_mode", mode)?);
                }
            } else {
                all.push(one.named());
            }
        }
        Ok(unique(&all))
    }

    /// The libraries whose settings are swept: ic-rusqlite, and others that were chosen.
    fn libraries(&self) -> Vec<Configuration> {
        let chosen = |key: &str| self.engines.0.iter().any(|one| one.engine.key == key);
        let sql = crate::engines::ENGINES.iter().filter(|engine| engine.kind == Kind::Sql);
        sql.filter(|engine| engine.key == "sqlite" || chosen(engine.key))
            .filter_map(|engine| Configuration::of(engine.key).ok())
            .collect()
    }
}

impl Place {
    /// The rows that it selects.
    pub fn access(self) -> Access {
        match self {
            Self::Middle => Access::Middle,
            Self::End => Access::End,
            Self::Random => Access::Uniform,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Middle => "middle",
            Self::End => "end",
            Self::Random => "random",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{ADVISED, SHIPPED};

    fn planned(options: &[&str]) -> Plan {
        let command = Users.arguments(clap::Command::new("users"));
        let words = ["users"].iter().chain(options);
        Users.plan(&command.try_get_matches_from(words).unwrap(), 1).unwrap()
    }

    fn keys(plan: &Plan) -> Vec<&str> {
        plan.configurations.iter().map(|one| one.key.as_str()).collect()
    }

    #[test]
    fn sqlite_is_measured_as_advised_and_as_shipped() {
        let all = [
            "btree",
            ADVISED,
            "sqlite/delete",
            "sqlite/truncate",
            SHIPPED,
            "sqlite/memory",
            "sqlite/off",
            "sqlite/wal",
            "sqlite-vfs",
            "append",
            "array",
        ];
        let plan = planned(&[]);
        assert_eq!(keys(&plan), all);
        // A case of each batch and place, in each configuration.
        let cases: usize = plan.fixtures.iter().map(|fixture| fixture.cases().count()).sum();
        assert_eq!((plan.rows.len(), cases), (6 * 2, 6 * 2 * all.len()));
        assert_eq!(planned(&["--sections=insert"]).rows.len(), 6 * 3, "at random too");
        assert_eq!(planned(&["--sections=insert", "--at=end"]).rows.len(), 6);
        // The settings sweep measures the advised one anyway.
        let all_sections = planned(&["--sections=all"]);
        let large = all_sections.fixtures.iter().filter(|fixture| {
            fixture.configuration.key == ADVISED
                && (fixture.rows, fixture.payload) == (1_000_000, 100)
        });
        assert_eq!(large.count(), 1);
    }

    #[test]
    fn the_published_run_has_neither_the_advised_setting_nor_other_places() {
        let plan = planned(&["--as-published"]);
        assert_eq!(keys(&plan), ["btree", "sqlite/delete", "sqlite/memory", "sqlite/off"]);
        assert!(plan.rows.iter().all(|(_, name)| name.starts_with("middle ")));
        assert_eq!(plan.rows.len(), 5);
    }
}
