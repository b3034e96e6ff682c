//! Fixtures and steps, and the forum post "Writing into StableBTreeMap vs SQLite": its run and its
//! figures.

use crate::work::{STEP, UsersModel};
use anyhow::{Result, bail, ensure};
use clap::{ArgMatches, Args, FromArgMatches};
use stablebench_suite::engines::{Configuration, Kind};
use stablebench_suite::plan::{Fixture, Messages, Plan, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::{Results, State};
use stablebench_suite::{Suite, smallest};

use crate::rows::{Access, EngineRows, RowWork, TableIds, Verb};
use crate::sections::{self, Case, MAX_ROWS, Place, Section, UsersArgs, cases};

/// The suite.
pub struct UsersSuite;

const BATCHES: [u64; 6] = [1, 10, 50, 100, 1_000, 10_000];

impl Suite for UsersSuite {
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
        Some(PUBLISHED)
    }

    fn options_of_case(&self, section: &str, name: &str, chosen: &[String]) -> Vec<String> {
        sections::options_of_case(section, name, chosen)
    }
}

/// The plan of the arguments.
///
/// # Errors
///
/// If the rows to add do not fit, or an engine has no order of rows.
fn plan(args: &UsersArgs) -> Result<Plan> {
    let lookup = args.engines.0.iter().find(|one| one.engine.kind == Kind::Lookup);
    if let Some(configuration) = lookup {
        bail!("users does not support the engine {}", configuration.engine.key);
    }
    let (args, left_out) = match args.as_published {
        true => (as_published(args)?, Vec::new()),
        false => with_batches(args),
    };
    let mut fixtures: Vec<(Configuration, u64, u32, Vec<Case>)> = Vec::new();
    let mut rows: Vec<(String, String)> = Vec::new();
    for section in args.sections() {
        let mut last = String::new();
        let mut after = rows.len();
        for (configuration, size, payload, case) in cases(section, &args)? {
            ensure!(case.work.fits(size), "{}", too_few(&args, section, &case, size));
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
    let mut plan = Plan::in_order(UsersSuite.name(), rows, fixtures);
    plan.check_around = args.check_around;
    plan.published = args.as_published.then(|| UsersSuite.name().to_owned());
    if !left_out.is_empty() {
        let batches: Vec<String> = left_out.iter().map(|rows| Grouped(*rows).to_string()).collect();
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
    let users = EngineRows { engine: configuration.engine.protocol, payload };
    let mut steps =
        vec![Step { messages: Messages::ByCost, ..Step::new(users.populate(rows), rows) }];
    let add = |steps: &mut Vec<Step>, states: &[State], table: TableIds| {
        let of = cases.iter().filter(|case| states.contains(&case.state));
        steps.extend(of.map(|case| case.step(users, table, each)));
    };
    let fresh = [State::Warm, State::Closed, State::Upgraded, State::Vacuumed];
    add(&mut steps, &fresh, TableIds::Populated(rows));
    let past = [State::Churned, State::ChurnedAndVacuumed];
    if cases.iter().any(|case| past.contains(&case.state)) {
        for deletes in [true, false] {
            let churn = Step::new(users.churn(rows, deletes), rows / 10);
            // The ids of a message are an argument of 80 KB.
            steps.push(Step { messages: Messages::UpTo(10_000), ..churn });
        }
        add(&mut steps, &past[..1], TableIds::Churned(rows));
        if cases.iter().any(|case| case.state == State::ChurnedAndVacuumed) {
            steps.push(Step::new(users.vacuum(), 1));
            add(&mut steps, &past[1..], TableIds::Churned(rows));
        }
    }
    Fixture {
        engine: users.engine,
        configuration: configuration.info(),
        name: String::new(),
        rows,
        payload,
        model: || Box::new(UsersModel::default()),
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
        let works = args
            .places()
            .into_iter()
            .map(|place| RowWork::new(Verb::Insert, place.access(), *batch));
        works.into_iter().all(|work| work.fits(args.rows))
    };
    let (batches, left_out): (Vec<u64>, Vec<u64>) = BATCHES.into_iter().partition(fits);
    match batches.is_empty() {
        // The smallest batch gives the same error as a chosen one.
        true => (UsersArgs { batches: BATCHES[..1].to_vec(), ..all }, Vec::new()),
        false => (UsersArgs { batches, ..all }, left_out),
    }
}

/// Says that a table has too few rows for a case, and which --rows have room for all.
fn too_few(args: &UsersArgs, section: Section, case: &Case, size: u64) -> String {
    let fits = |rows: u64| {
        let args = UsersArgs { rows, ..args.clone() };
        let all = args.sections().into_iter().map(|section| cases(section, &args));
        all.flatten().flatten().all(|(_, size, _, case)| case.work.fits(size))
    };
    let place = match case.work.access {
        Access::Middle => "in the middle of",
        _ => "between",
    };
    let option = match section {
        Section::Insert => "--batches",
        Section::Curve => "--curve-rows",
        _ => "--sections",
    };
    let more = match smallest(args.rows..=MAX_ROWS, fits) {
        Some(least) => format!(", or --rows of at least {least}"),
        None => String::new(),
    };
    format!(
        "{} rows cannot be added {place} {}; choose other {option}{more}",
        Grouped(case.work.operations),
        Grouped(size)
    )
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

/// The figures as results, for `published:users`.
const PUBLISHED: &str = include_str!("../published.json");

/// The numbers that the post calls "new elements".
///
/// The post counts the span of the new ids, ten times the number of rows: its loop is
/// `while i < count { add(offset + i); i += 10 }`. `published.json` lists the figures by the rows that
/// were actually added, so that 1 and 10 are one case.
pub const SPANS: [u64; 6] = [1, 10, 50, 100, 1_000, 10_000];

/// The rows of such a span, whose ids are [`STEP`] apart.
pub fn rows_of_span(span: u64) -> u64 {
    span.div_ceil(STEP)
}

/// The figures.
///
/// # Errors
///
/// If the text is broken; a test reads it.
pub fn published() -> Result<Results> {
    Results::parse(PUBLISHED)
}

/// The author of published figures, and the crates that were measured.
pub fn source(published: &Results) -> String {
    let crates: Vec<String> = published
        .canisters
        .iter()
        .flat_map(|of| &of.crates)
        .map(|of| format!("{} {}", of.name, of.version))
        .collect();
    format!("{}: {}", published.stablebench, crates.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::engines::{ADVISED, SHIPPED};

    fn planned(options: &[&str]) -> Plan {
        let command = UsersSuite.arguments(clap::Command::new("users"));
        let words = ["users"].iter().chain(options);
        UsersSuite.plan(&command.try_get_matches_from(words).unwrap(), 1).unwrap()
    }

    fn keys(plan: &Plan) -> Vec<&str> {
        plan.configurations.iter().map(|one| one.key.as_str()).collect()
    }

    #[test]
    fn the_smallest_table_with_room_is_named() {
        let tried = |typed: &str| stablebench_suite::plan_of(&UsersSuite, typed);
        let refused = |typed: &str| tried(typed).unwrap_err().to_string();
        // The first batch has less room than the last one needs.
        let batches = "--batches 6,20 --at middle,random --engines btree";
        assert_eq!(
            refused(&format!("--rows 10 {batches}")),
            "6 rows cannot be added in the middle of 10; choose other --batches, or --rows of at least 41"
        );
        assert!(refused(&format!("--rows 40 {batches}")).starts_with("20 rows cannot be added in"));
        assert!(tried(&format!("--rows 41 {batches}")).is_ok());
        // Without a choice, a table has the batches that fit.
        assert!(refused("--rows 2").ends_with("or --rows of at least 3"));
        // A larger table is of no use.
        let curve = refused("--sections curve --curve-rows 1");
        assert_eq!(curve, "1 rows cannot be added in the middle of 1; choose other --curve-rows");
        assert_eq!(refused("--engines btree,cuckoo"), "users does not support the engine cuckoo");
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

    /// The post's table.
    const USERS: [(u64, [u64; 4]); 6] = [
        (1, [49_359, 407_462, 202_686, 149_520]),
        (10, [49_359, 407_462, 202_686, 149_520]),
        (50, [256_551, 453_089, 248_313, 195_171]),
        (100, [548_249, 529_542, 324_840, 271_660]),
        (1_000, [5_706_594, 2_334_600, 2_064_459, 1_993_575]),
        (10_000, [57_301_658, 20_441_029, 18_909_213, 18_612_903]),
    ];
    /// "StableBTree", "SQLite", "SQLite in-memory journal", "SQLite no journal".
    const CONFIGURATIONS: [&str; 4] = ["btree", "sqlite/delete", "sqlite/memory", "sqlite/off"];

    #[test]
    fn users_are_the_posts_figures_at_the_rows_that_were_added() {
        let results = published().unwrap();
        for (span, figures) in USERS {
            let rows = rows_of_span(span);
            let name = format!("middle {}", Grouped(rows));
            for (configuration, instructions) in CONFIGURATIONS.into_iter().zip(figures) {
                let case = results.case("insert", &name, configuration).unwrap();
                let measured = case.measured().unwrap();
                assert_eq!((measured.instructions, measured.operations), (instructions, rows));
                assert_eq!((case.rows, case.payload), (100_000, 100));
                assert!(measured.detail.is_none());
            }
        }
        assert_eq!(results.cases.len(), 5 * CONFIGURATIONS.len(), "spans 1 and 10 are one row");
        let configurations: Vec<&str> =
            results.configurations.iter().map(|configuration| &*configuration.key).collect();
        assert_eq!(configurations, CONFIGURATIONS);
        assert_eq!(results.replica.kind, "published");
        assert_eq!(USERS.map(|(span, _)| span), SPANS);
    }

    #[test]
    fn the_text_is_formatted_like_saved_results() {
        assert_eq!(published().unwrap().to_json().unwrap(), PUBLISHED);
    }

    #[test]
    fn a_span_is_ten_times_its_rows() {
        assert_eq!(SPANS.map(rows_of_span), [1, 1, 5, 10, 100, 1_000]);
    }

    #[test]
    fn the_source_names_the_crates() {
        assert_eq!(
            source(&published().unwrap()),
            "developer forum post, 2025: ic-rusqlite 0.4.3, ic-stable-structures 0.7"
        );
    }
}
