//! Arguments, fixtures and steps.

use crate::job::{CallOptions, CallSize, CallTo, Callee, Calls};
use crate::work::{CallsModel, MAX_CALL_BYTES, MAX_PARALLEL};
use anyhow::{Result, ensure};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use stablebench_protocol::Engine;
use stablebench_suite_users::work::UsersModel;

use stablebench_suite::engines::Configuration;
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Effect, Fixture, Measures, Messages, Plan, Search, Sent, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::ConfigurationInfo;
use stablebench_suite::{Suite, unique};
use stablebench_suite_users::{Access, EngineRows, RowWork, TableIds, Verb};

/// The suite.
pub struct CallsSuite;

/// The canister that calls.
pub const BENCH_CALLS: &str = "bench_calls";

/// Sections in results.
pub const SIZE: &str = "size";
pub const REPLY: &str = "reply";
pub const FAN_OUT: &str = "fan-out";
pub const KINDS: &str = "kinds";
pub const TASKS: &str = "tasks";
pub const UPGRADE: &str = "upgrade";
pub const LIMIT: &str = "limit";

/// Configurations that call.
const ANOTHER: &str = "another canister";
const ITSELF: &str = "itself";
const BEST_EFFORT: &str = "best-effort";
const WITH_CYCLES: &str = "with cycles";
/// Configurations of the canister that is called.
pub const NO_TASK: &str = "no task";
const TIMER: &str = "timer";
const HEARTBEAT: &str = "heartbeat";
/// The configuration with rows on the heap.
const HEAP: &str = "map on the heap";

/// The case of the section tasks.
pub const ROUNDS: &str = "while a canister awaits rounds";

/// Executions of a task that are counted.
const EXECUTIONS: u64 = 30;
/// Bytes of a row's text in a canister that is upgraded.
const TEXT: u32 = 1_000;
/// Rows that a message adds to the heap.
const ADDED: u64 = 50_000;
/// The most rows in the search for the largest state.
const MOST: u64 = 4_000_000;

#[derive(Clone, Debug, Args)]
pub struct CallsArgs {
    /// Bytes of arguments and of replies.
    #[arg(long, value_delimiter = ',', value_name = "BYTES",
          default_values_t = [0, 1_000, 10_000, 100_000, 1_000_000, 2_000_000],
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_CALL_BYTES)))]
    pub sizes: Vec<u32>,
    /// Calls of a message.
    #[arg(long, value_delimiter = ',', value_name = "CALLS", default_values_t = [1, 10, 100, 400],
          value_parser = clap::value_parser!(u64).range(1..=MAX_PARALLEL))]
    pub fan_out: Vec<u64>,
    /// Rows of the canisters that are upgraded, each of 1000 bytes.
    #[arg(long, value_delimiter = ',', value_name = "ROWS",
          default_values_t = [1_000, 10_000, 100_000],
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub states: Vec<u64>,
    /// Sections.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["size", "reply", "fan-out", "kinds", "tasks", "upgrade", "limit"])]
    pub sections: Vec<SectionArg>,
}

/// A section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SectionArg {
    /// Calls by the size of the argument.
    Size,
    /// Calls by the size of the reply.
    Reply,
    /// Several calls, in parallel and one after another.
    FanOut,
    /// Messages of users, calls of updates and of queries.
    Kinds,
    /// Timers and heartbeats.
    Tasks,
    /// Upgrades by the size of the state.
    Upgrade,
    /// The largest state on the heap with which an upgrade works.
    Limit,
}

impl Suite for CallsSuite {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn summary(&self) -> &'static str {
        "Calls between canisters, timers and heartbeats, and upgrades"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  Calls between canisters, timers and heartbeats, and upgrades:
    stablebench run calls
  Calls of 1 kB and of 1 MB only:
    stablebench run calls --sections size --sizes 1000,1000000"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        CallsArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        let args = CallsArgs::from_arg_matches(matches)?;
        let wants = |section| args.sections.contains(&section);
        let mut fixtures: Vec<Fixture> = [ANOTHER, ITSELF, BEST_EFFORT, WITH_CYCLES]
            .into_iter()
            .filter_map(|configuration| calling(&args, configuration))
            .collect();
        if wants(SectionArg::Tasks) {
            fixtures.extend([
                with_task(NO_TASK, Callee::Plain),
                with_task(TIMER, Callee::Timer),
                with_task(HEARTBEAT, Callee::Heartbeat),
            ]);
        }
        for rows in unique(&args.states) {
            if wants(SectionArg::Upgrade) {
                for engine in ["btree", "sqlite"] {
                    fixtures.push(with_engine(Configuration::of(engine)?.info(), rows));
                }
                fixtures.push(with_heap(rows));
            }
        }
        if wants(SectionArg::Limit) {
            fixtures.push(limit());
        }
        ensure!(!fixtures.is_empty(), "there are no cases; choose other --sections");
        let mut plan = Plan::new(self.name(), fixtures);
        // Section by section, and not configuration by configuration.
        let sections = [SIZE, REPLY, FAN_OUT, KINDS, TASKS, UPGRADE, LIMIT];
        let place = |section: &str| sections.iter().position(|known| *known == section);
        plan.rows.sort_by_key(|(section, _)| place(section));
        Ok(plan)
    }
}

/// The canister that calls, with a key in results of its own.
fn info(key: &str) -> ConfigurationInfo {
    ConfigurationInfo {
        key: key.to_owned(),
        canister: BENCH_CALLS.to_owned(),
        engine: Engine::named("calls"),
        settings: None,
    }
}

fn fixture(key: &str, rows: u64, payload: u32, populate: Step, cases: Vec<Step>) -> Fixture {
    Fixture {
        engine: Engine::named("calls"),
        configuration: info(key),
        name: String::new(),
        rows,
        payload,
        model: || Box::new(CallsModel::default()),
        steps: [populate].into_iter().chain(cases).collect(),
        populated: 1,
    }
}

fn install(callee: Callee) -> Step {
    Step::new(Job::of(&Calls::Install(callee)), 1)
}

/// Returns the fixture of a configuration that calls. `None` if it has no cases.
fn calling(args: &CallsArgs, configuration: &str) -> Option<Fixture> {
    let to = match configuration {
        ITSELF => CallTo::Itself,
        BEST_EFFORT => CallTo::BestEffort,
        WITH_CYCLES => CallTo::WithCycles,
        _ => CallTo::Other,
    };
    let one = CallOptions { to, size: CallSize::Argument(0), parallel: false, from_query: false };
    let mut cases = Vec::new();
    for section in unique(&args.sections) {
        match section {
            SectionArg::Size => cases.extend(unique(&args.sizes).into_iter().map(|bytes| {
                let call = CallOptions { size: CallSize::Argument(bytes), ..one };
                calls(SIZE, bytes_of(bytes), call, 1)
            })),
            // The reply does not depend on cycles.
            SectionArg::Reply if to != CallTo::WithCycles => {
                cases.extend(unique(&args.sizes).into_iter().map(|bytes| {
                    let call = CallOptions { size: CallSize::Reply(bytes), ..one };
                    calls(REPLY, bytes_of(bytes), call, 1)
                }));
            }
            SectionArg::FanOut => {
                for (parallel, manner) in [(true, "in parallel"), (false, "one after another")] {
                    cases.extend(unique(&args.fan_out).into_iter().map(|count| {
                        let name = format!("{} {manner}", Grouped(count));
                        calls(FAN_OUT, name, CallOptions { parallel, ..one }, count)
                    }));
                }
            }
            SectionArg::Kinds if to == CallTo::Other => cases.extend(kinds(one)),
            SectionArg::Reply
            | SectionArg::Kinds
            | SectionArg::Tasks
            | SectionArg::Upgrade
            | SectionArg::Limit => {}
        }
    }
    let fixture = fixture(configuration, 0, 0, install(Callee::Plain), cases);
    (fixture.steps.len() > fixture.populated).then_some(fixture)
}

/// Returns a case of calls in one message.
fn calls(section: &str, name: String, call: CallOptions, count: u64) -> Step {
    let messages = Messages::Exactly(count);
    Step { messages, ..Step::case(section, name, Job::of(&Calls::Call(call)), count) }
}

/// Returns a step whose messages are of a kind.
fn sent_as(sent: Sent, step: Step) -> Step {
    Step { measures: Measures::Job(sent), ..step }
}

/// Returns the messages without arguments of each kind.
fn kinds(one: CallOptions) -> Vec<Step> {
    let message =
        |name: &str, sent| sent_as(sent, Step::case(KINDS, name, Job::of(&Calls::Message), 1));
    let call = |name: &str, call, sent| sent_as(sent, calls(KINDS, name.to_owned(), call, 1));
    let query = CallOptions { to: CallTo::Query, ..one };
    vec![
        message("a user calls an update", Sent::Update),
        message("a user calls a query", Sent::Query),
        message("a user calls a composite query", Sent::CompositeQuery),
        call("an update calls an update", one, Sent::Update),
        call("an update calls a query", query, Sent::Update),
        call(
            "a composite query calls a query",
            CallOptions { from_query: true, ..query },
            Sent::CompositeQuery,
        ),
    ]
}

/// Returns the fixture whose other canister has a task.
fn with_task(configuration: &str, callee: Callee) -> Fixture {
    let case = Step {
        messages: Messages::Exactly(EXECUTIONS),
        ..Step::case(TASKS, ROUNDS, Job::of(&Calls::Rounds), EXECUTIONS)
    };
    fixture(configuration, 0, 0, install(callee), vec![case])
}

/// Returns the upgrade of a canister with rows of a job.
fn upgrade(rows: u64, job: Job) -> Step {
    Step { measures: Measures::Upgrade, ..Step::case(UPGRADE, state_of(rows), job, rows) }
}

/// Returns the fixture with rows of an engine.
fn with_engine(configuration: ConfigurationInfo, rows: u64) -> Fixture {
    let users = EngineRows { engine: configuration.engine, payload: TEXT };
    let populate = Step { messages: Messages::ByCost, ..Step::new(users.populate(rows), rows) };
    let count = RowWork::new(Verb::Count, Access::All, rows);
    let count = users.rows(TableIds::Populated(rows), count);
    Fixture {
        engine: configuration.engine,
        configuration,
        name: String::new(),
        rows,
        payload: TEXT,
        model: || Box::new(UsersModel::default()),
        steps: vec![populate, upgrade(rows, count)],
        populated: 1,
    }
}

/// Adds rows to the heap.
fn insert(rows: u64) -> Step {
    Step { messages: Messages::UpTo(ADDED), ..Step::new(Job::of(&Calls::Insert(TEXT)), rows) }
}

/// Returns the fixture with rows on the heap.
fn with_heap(rows: u64) -> Fixture {
    let job = Job::of(&Calls::Insert(TEXT));
    fixture(HEAP, rows, TEXT, insert(rows), vec![upgrade(rows, job)])
}

/// Returns the search for the most rows on the heap with which an upgrade works.
fn limit() -> Fixture {
    let name = "rows of 1 000 bytes".to_owned();
    let measures = Measures::Capacity(Search::Upgrade);
    let search = Step { measures, effect: Effect::Dropped, ..insert(MOST) }.named(LIMIT, name);
    fixture(HEAP, 0, TEXT, install(Callee::Plain), vec![search])
}

fn bytes_of(bytes: u32) -> String {
    format!("{} B", Grouped(bytes.into()))
}

fn state_of(rows: u64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        many => format!("{} rows", Grouped(many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    fn names(plan: &Plan, section: &str) -> Vec<String> {
        let of = plan.rows.iter().filter(|(its, _)| its == section);
        of.map(|(_, name)| name.clone()).collect()
    }

    #[test]
    fn sizes_are_those_that_were_asked_for() {
        let plan = plan_of(&CallsSuite, "--sizes 7,2097088 --fan-out 3 --states 5").unwrap();
        for section in [SIZE, REPLY] {
            assert_eq!(names(&plan, section), ["7 B", "2 097 088 B"]);
        }
        assert_eq!(names(&plan, FAN_OUT), ["3 in parallel", "3 one after another"]);
        assert_eq!(names(&plan, UPGRADE), ["5 rows"]);
        for typed in ["--sizes 2097089", "--fan-out 501", "--fan-out 0", "--states 1000001"] {
            assert!(plan_of(&CallsSuite, typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_section_alone_has_its_fixtures_only() {
        let keys = |section: &str| -> Vec<String> {
            let plan = plan_of(&CallsSuite, &format!("--sections {section}")).unwrap();
            plan.configurations.into_iter().map(|column| column.key).collect()
        };
        assert_eq!(keys("reply"), [ANOTHER, ITSELF, BEST_EFFORT]);
        assert_eq!(keys("kinds"), [ANOTHER]);
        assert_eq!(keys("tasks"), [NO_TASK, TIMER, HEARTBEAT]);
        assert_eq!(keys("upgrade"), ["btree", "sqlite/persist", HEAP]);
        assert_eq!(keys("limit"), [HEAP]);
    }
}
