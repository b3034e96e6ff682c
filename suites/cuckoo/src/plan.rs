//! Arguments, fixtures and steps.

use crate::job::{Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Lookups};
use crate::work::{CuckooModel, ITEM_BYTES};
use anyhow::{Result, bail};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use stablebench_protocol::Engine;

use stablebench_suite::engines::{Configuration, Configurations};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Before, Effect, Fixture, Messages, Plan, Step};
use stablebench_suite::{Suite, unique};

/// The suite.
pub struct CuckooSuite;

/// The published numbers of items per 128 buckets.
pub const UTILISATIONS: [u64; 4] = [120, 100, 80, 70];
/// The numbers of keys that are looked up in one call; 0 is one by one.
pub const BATCHES: [u32; 5] = [0, 10, 25, 50, 100];

/// The number of operations in a message: preparing them takes little heap.
const MESSAGE: u64 = 20_000;

/// Sections in results.
pub const HIT: &str = "hit";
pub const MISS: &str = "miss";
pub const SCATTERED: &str = "scattered";
pub const BATCHED: &str = "batches";
pub const UPGRADED: &str = "upgraded";
pub const BUILD: &str = "build";

#[derive(Clone, Debug, Args)]
pub struct CuckooArgs {
    /// Buckets of the table, a power of two; the published run has 134217728. Tables have 120,
    /// 100, 80 and 70 items for 128 of them.
    #[arg(long, value_name = "BUCKETS", default_value_t = 131_072, value_parser = buckets)]
    pub num: u64,
    /// Lookups of a case.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub lookups: u64,
    /// Kinds of keys.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["sequential", "scattered"])]
    pub keys: Vec<KeysArg>,
    /// Engines: cuckoo/murmur and cuckoo/identity are cuckoo tables by their first hash.
    #[arg(
        long,
        value_name = "ENGINES",
        default_value = "cuckoo/murmur,cuckoo/identity,btree,sqlite,sqlite-vfs,array"
    )]
    pub engines: Configurations,
}

/// The kind of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeysArg {
    /// 0, 2, 4, … as published.
    Sequential,
    /// Random even numbers.
    Scattered,
}

/// Parses a number of buckets. From 128 on, the utilisations are exact.
fn buckets(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(buckets) if buckets.is_power_of_two() && (128..=1 << 40).contains(&buckets) => {
            Ok(buckets)
        }
        _ => Err("it must be a power of two of at least 128, such as 131072".to_owned()),
    }
}

impl Suite for CuckooSuite {
    fn name(&self) -> &'static str {
        "cuckoo"
    }

    fn summary(&self) -> &'static str {
        "Point reads of a cuckoo hash table next to those of a map and of SQLite"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  A hash table next to the map and SQLite:
    stablebench run cuckoo
  The cases, without measuring them:
    stablebench run cuckoo --list"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        CuckooArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        let args = CuckooArgs::from_arg_matches(matches)?;
        let mut fixtures = Vec::new();
        for configuration in &args.engines.0 {
            check(configuration)?;
            for keys in unique(&args.keys) {
                for of_128 in UTILISATIONS {
                    fixtures.push(fixture(&args, configuration, keys, of_128));
                }
            }
        }
        Ok(Plan::in_order(self.name(), rows(&args, &fixtures), fixtures))
    }
}

/// Returns the rows of the tables, section by section.
fn rows(args: &CuckooArgs, fixtures: &[Fixture]) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for section in [HIT, MISS, SCATTERED, BATCHED, UPGRADED, BUILD] {
        // All configurations have the same rows, except batches.
        for each in fixtures.chunks(unique(&args.keys).len() * UTILISATIONS.len()) {
            for case in each.iter().flat_map(Fixture::cases) {
                let row = (case.0.to_owned(), case.1.to_owned());
                if row.0 == section && !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
    }
    rows
}

/// Returns a utilisation such as `93.75 %`.
pub fn utilisation(items_of_128: u64) -> String {
    format!("{:.2} %", items_of_128 as f64 * 100.0 / 128.0)
}

/// Returns the name of a row of the section batches.
pub fn batch_name(items_of_128: u64, batch: u32) -> String {
    let lookups = match batch {
        0 => "one by one".to_owned(),
        size => format!("batches of {size}"),
    };
    format!("{} full, {lookups}", utilisation(items_of_128))
}

fn fixture(
    args: &CuckooArgs,
    configuration: &Configuration,
    keys: KeysArg,
    of_128: u64,
) -> Fixture {
    let items = args.num / 128 * of_128;
    let engine = configuration.engine.protocol;
    let first_hash = (engine == Engine::CUCKOO).then(|| match configuration.value("hash") {
        Some("identity") => CuckooHash::Identity,
        _ => CuckooHash::Murmur,
    });
    let full = format!("{} full", utilisation(of_128));
    let (kind, keys) = match keys {
        KeysArg::Sequential => ("sequential", CuckooKeys::Sequential),
        KeysArg::Scattered => ("scattered", CuckooKeys::Scattered),
    };
    let name = format!("{full}, {kind} keys");
    let step = |section: &str, name: String, task: CuckooTask, operations: u64| {
        let job = Job::of(&Cuckoo { engine, first_hash, keys, buckets: args.num, items, task });
        Step { messages: Messages::UpTo(MESSAGE), ..Step::case(section, name, job, operations) }
    };
    let single = Lookups::Single;
    let lookups = |section: &str, name: String, task| step(section, name, task, args.lookups);
    let mut steps =
        vec![Step { effect: Effect::Kept, ..step(BUILD, name.clone(), CuckooTask::Build, items) }];
    if keys == CuckooKeys::Scattered {
        steps.push(lookups(SCATTERED, format!("hit, {full}"), CuckooTask::Hit(single)));
        steps.push(lookups(SCATTERED, format!("miss, {full}"), CuckooTask::Miss(single)));
    } else {
        steps.push(lookups(HIT, full.clone(), CuckooTask::Hit(single)));
        steps.push(lookups(MISS, full.clone(), CuckooTask::Miss(single)));
        if engine == Engine::CUCKOO {
            for batch in BATCHES {
                let lookup = if batch == 0 { single } else { Lookups::Batch(batch) };
                let name = batch_name(of_128, batch);
                steps.push(lookups(BATCHED, name, CuckooTask::Hit(lookup)));
            }
        }
        if of_128 == UTILISATIONS[0] {
            for (name, operations) in [("the first lookup", 1), ("many lookups", args.lookups)] {
                let name = format!("{name}, {full}");
                let step = step(UPGRADED, name, CuckooTask::Hit(single), operations);
                steps.push(Step { before: Before::Upgrade, ..step });
            }
        }
    }
    Fixture {
        engine: configuration.engine.protocol,
        configuration: configuration.named().info(),
        name,
        rows: items,
        payload: ITEM_BYTES as u32,
        model: || Box::new(CuckooModel::default()),
        steps,
        populated: 1,
    }
}

/// Refuses engines without point reads, and LevelDB, whose canister does not offer the suite.
fn check(configuration: &Configuration) -> Result<()> {
    match configuration.engine.key {
        engine @ ("append" | "leveldb") => bail!("cuckoo does not support the engine {engine}"),
        _ => Ok(()),
    }
}

/// Returns the key of a cuckoo table: its first hash.
pub fn table_key(hash: &str) -> String {
    format!("cuckoo/{hash}")
}
