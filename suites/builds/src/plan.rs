//! Arguments, fixtures and steps.

use crate::job::{Builds, HEAP};
use crate::work::BuildsModel;
use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use stablebench_protocol::Engine;
use stablebench_suite_users::work::UsersModel;

use crate::options::{COMPARED, Options};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Fixture, Measures, Messages, Plan, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::ConfigurationInfo;
use stablebench_suite::{Suite, unique};
use stablebench_suite_users::{Access, EngineRows, RowWork, TableIds, Verb};

/// The suite.
pub struct BuildsSuite;

/// The name of the suite.
pub const NAME: &str = "builds";
/// The canister without options, and the beginning of the names of those with options.
pub const BENCH_BUILDS: &str = "bench_builds";

/// Sections in results.
pub const INSERT: &str = "insert";
pub const READ: &str = "read";
pub const COMPUTE: &str = "compute";
/// The installation of a module.
pub const INSTALL: &str = "install";
/// The calls of a user's own crate.
pub const CALL: &str = "call";

/// The cases of the section install: the estimate of compiling, and the functions that run.
pub const COMPILE: &str = "compile, estimated";
pub const RUN: &str = "start and canister_init";

/// Bytes of each row's text.
const TEXT: u32 = 100;
/// Transfers that are encoded or decoded.
const TRANSFERS: u32 = 1_000;
/// Bytes that are hashed.
const HASHED: u32 = 1_000_000;

#[derive(Clone, Debug, Args)]
pub struct BuildsArgs {
    /// The options of a build, such as `default` or `opt-level=s,lto=fat`; may be repeated. The first
    /// build is the one that others are compared with [default: each option alone, and some together].
    #[arg(long = "build", value_name = "OPTIONS")]
    pub builds: Vec<Options>,
    /// Kinds of work.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["map", "sqlite", "heap", "compute", "install"])]
    pub work: Vec<WorkArg>,
    /// Rows of the tables.
    #[arg(long, value_name = "ROWS", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,
    /// Rows that are inserted, and rows that are looked up.
    #[arg(long, value_name = "ROWS", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub batch: u64,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkArg {
    /// Rows in a `StableBTreeMap`.
    Map,
    /// Rows in SQLite on stable memory.
    Sqlite,
    /// Rows in a `BTreeMap` on the heap.
    Heap,
    /// Candid, CBOR and SHA-256.
    Compute,
    /// The installation of the module.
    Install,
}

impl Suite for BuildsSuite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "The same canister, built with many options of the compiler and of wasm-opt"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  The same canister, built with many options of the compiler and of wasm-opt:
    stablebench run builds
  Two builds, compared with cargo's default profile:
    stablebench run builds --build default --build lto=fat --build opt-level=z,lto=fat"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        BuildsArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        let args = BuildsArgs::from_arg_matches(matches)?;
        let builds = match args.builds.as_slice() {
            [] => COMPARED.iter().map(|key| key.parse()).collect::<Result<Vec<_>, _>>()?,
            chosen => unique(chosen),
        };
        let work = unique(&args.work);
        let fixtures = builds.iter().flat_map(|options| fixtures(&args, &work, options));
        let mut plan = Plan::new(self.name(), fixtures.collect());
        let place = |section: &str| {
            [INSERT, READ, COMPUTE, INSTALL].iter().position(|known| *known == section)
        };
        plan.rows.sort_by_key(|(section, _)| place(section));
        Ok(plan)
    }

    fn in_all(&self) -> bool {
        // It compiles a canister some thirty times.
        false
    }
}

/// Returns the fixtures of a build.
fn fixtures(args: &BuildsArgs, work: &[WorkArg], options: &Options) -> Vec<Fixture> {
    let wants = |of| work.contains(&of);
    let mut fixtures = Vec::new();
    for (of, engine, name) in [
        (WorkArg::Map, Engine::BTREE, "StableBTreeMap"),
        (WorkArg::Sqlite, Engine::SQLITE, "SQLite"),
        (WorkArg::Heap, HEAP, "BTreeMap on the heap"),
    ] {
        if wants(of) {
            fixtures.push(with_rows(args, options, engine, name));
        }
    }
    if wants(WorkArg::Compute) || wants(WorkArg::Install) {
        fixtures.push(computing(options, wants(WorkArg::Compute), wants(WorkArg::Install)));
    }
    fixtures
}

/// Returns the form in which results contain a build of a canister.
pub fn configuration(canister: &str, options: &Options) -> ConfigurationInfo {
    ConfigurationInfo {
        key: options.to_string(),
        canister: format!("{canister}/{options}"),
        engine: Engine::named(NAME),
        settings: None,
    }
}

/// Returns the fixture with rows in an engine.
fn with_rows(args: &BuildsArgs, options: &Options, engine: Engine, name: &str) -> Fixture {
    let rows = args.rows;
    let users = EngineRows { engine, payload: TEXT };
    let populate = Step { messages: Messages::ByCost, ..Step::new(users.populate(rows), rows) };
    let case = |section, verb, access| {
        let work = RowWork::new(verb, access, args.batch);
        Step::case(section, name, users.rows(TableIds::Populated(rows), work), args.batch)
    };
    Fixture {
        engine,
        configuration: configuration(BENCH_BUILDS, options),
        name: name.to_owned(),
        rows,
        payload: TEXT,
        model: || Box::new(UsersModel::default()),
        steps: vec![
            populate,
            case(INSERT, Verb::Insert, Access::Middle),
            case(READ, Verb::Read, Access::Uniform),
        ],
        populated: 1,
    }
}

/// Returns the fixture without rows.
fn computing(options: &Options, compute: bool, install: bool) -> Fixture {
    // The first message grows the heap, which is no part of a case.
    let first = Job::of(&Builds::Sha256(1));
    let mut steps = vec![Step::new(first.clone(), 1)];
    if compute {
        steps.extend(
            [
                (
                    format!("decode {} transfers from Candid", Grouped(TRANSFERS.into())),
                    Builds::Candid(TRANSFERS),
                ),
                (
                    format!("encode and decode {} in CBOR", Grouped(TRANSFERS.into())),
                    Builds::Cbor(TRANSFERS),
                ),
                (format!("SHA-256 of {} bytes", Grouped(HASHED.into())), Builds::Sha256(HASHED)),
            ]
            .map(|(name, job)| Step::case(COMPUTE, name, Job::of(&job), 1)),
        );
    }
    if install {
        for (name, measures) in [(COMPILE, Measures::Compilation), (RUN, Measures::Installation)] {
            steps.push(Step { measures, ..Step::case(INSTALL, name, first.clone(), 1) });
        }
    }
    Fixture {
        engine: Engine::named(NAME),
        configuration: configuration(BENCH_BUILDS, options),
        name: COMPUTE.to_owned(),
        rows: 0,
        payload: 0,
        model: || Box::new(BuildsModel),
        steps,
        populated: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    #[test]
    fn the_first_build_is_the_default_one_unless_others_are_chosen() {
        let keys = |typed: &str| -> Vec<String> {
            let plan = plan_of(&BuildsSuite, typed).unwrap();
            plan.configurations.into_iter().map(|column| column.key).collect()
        };
        assert_eq!(keys(""), COMPARED);
        let chosen = "--build lto=fat --build default --build lto=fat";
        assert_eq!(keys(chosen), ["lto=fat", "default"]);
        assert!(plan_of(&BuildsSuite, "--build lto=slim").is_err());
    }

    #[test]
    fn work_is_that_which_was_chosen() {
        let rows = |typed: &str| plan_of(&BuildsSuite, typed).unwrap().rows;
        assert_eq!(rows("").len(), 3 + 3 + 3 + 2);
        let heap = rows("--work heap --batch 5");
        assert_eq!(
            heap,
            [INSERT, READ].map(|it| (it.to_owned(), "BTreeMap on the heap".to_owned()))
        );
        let install = rows("--work install");
        assert_eq!(install, [COMPILE, RUN].map(|it| (INSTALL.to_owned(), it.to_owned())));
    }
}
