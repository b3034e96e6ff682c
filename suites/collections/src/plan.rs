//! Arguments, fixtures and steps.

use crate::job::{Collections, CollectionsTask};
use crate::work::{CollectionsModel, VALUE_BYTES};
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, FromArgMatches};
use stablebench_protocol::Engine;

use stablebench_suite::job::Job;
use stablebench_suite::plan::{Effect, Fixture, Measures, Plan, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::ConfigurationInfo;
use stablebench_suite::{Suite, unique};

/// The suite.
pub struct CollectionsSuite;

/// Sections in results.
pub const GENERATE: &str = "generate";
pub const GET: &str = "get";
pub const GET_EXISTING: &str = "get existing";
pub const PUT: &str = "put";
pub const REMOVE: &str = "remove";
pub const UPGRADE: &str = "upgrade";

/// Operations of the sections between generating and upgrading.
pub const OPERATIONS: u64 = 50;

/// A map.
pub struct Map {
    /// Its name on the command line and in results.
    pub key: &'static str,
    pub heading: &'static str,
    pub canister: &'static str,
    /// Its name in the canister.
    pub engine: &'static str,
}

const fn map(
    key: &'static str,
    heading: &'static str,
    canister: &'static str,
    engine: &'static str,
) -> Map {
    Map { key, heading, canister, engine }
}

/// The canisters with maps.
const BENCH_COLLECTIONS: &str = "bench_collections";
const BENCH_MOTOKO: &str = "bench_motoko";
const BENCH_MOTOKO_CLASSICAL: &str = "bench_motoko_classical";

/// All maps. Others are compared with the first one.
pub static MAPS: [Map; 11] = [
    map("rust-btree-map", "Rust, BTreeMap", BENCH_COLLECTIONS, "btree_map"),
    map("rust-hash-map", "Rust, FxHashMap", BENCH_COLLECTIONS, "hash_map"),
    map("motoko-map", "Motoko, core/Map", BENCH_MOTOKO, "map"),
    map("motoko-pure-map", "Motoko, core/pure/Map", BENCH_MOTOKO, "pure_map"),
    map("classical-hash-map", "Motoko, base/HashMap", BENCH_MOTOKO_CLASSICAL, "hash_map"),
    map("classical-trie-map", "Motoko, base/TrieMap", BENCH_MOTOKO_CLASSICAL, "trie_map"),
    map("classical-rb-tree", "Motoko, base/RBTree", BENCH_MOTOKO_CLASSICAL, "rb_tree"),
    map("rust-stable-btree-map", "Rust, StableBTreeMap", BENCH_COLLECTIONS, "stable_btree_map"),
    map("rust-table", "Rust, table in stable memory", BENCH_COLLECTIONS, "table"),
    map("motoko-table", "Motoko, table in a Region", BENCH_MOTOKO, "table"),
    map("classical-table", "Motoko, table in a Region, classical", BENCH_MOTOKO_CLASSICAL, "table"),
];

/// The entries that canister-profiling generated.
pub const DEFAULT_ENTRIES: [u64; 2] = [50_000, 1_000_000];

#[derive(Clone, Debug, Args)]
pub struct CollectionsArgs {
    /// Entries that are generated.
    #[arg(long, value_delimiter = ',', value_name = "ENTRIES", default_values_t = DEFAULT_ENTRIES,
          value_parser = clap::value_parser!(u64).range(OPERATIONS..=3_000_000))]
    pub entries: Vec<u64>,
    /// Maps. Others are compared with the first one [default: all].
    #[arg(long, value_delimiter = ',', value_name = "MAP",
          value_parser = PossibleValuesParser::new(MAPS.iter().map(|map| map.key)))]
    pub maps: Vec<String>,
}

impl Suite for CollectionsSuite {
    fn name(&self) -> &'static str {
        "collections"
    }

    fn summary(&self) -> &'static str {
        "Maps in Motoko and in Rust, on the heap and in stable memory"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  Maps in Motoko and in Rust, on the heap and in stable memory:
    stablebench run collections
  The map of Motoko's library and StableBTreeMap, with 50 000 entries:
    stablebench run collections --maps motoko-map,rust-stable-btree-map --entries 50000"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        CollectionsArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        let args = CollectionsArgs::from_arg_matches(matches)?;
        let named = |name: &String| MAPS.iter().find(|map| map.key == name);
        let maps: Vec<&Map> = match args.maps.as_slice() {
            [] => MAPS.iter().collect(),
            chosen => unique(chosen).iter().filter_map(named).collect(),
        };
        let entries = unique(&args.entries);
        let fixtures = maps.iter().flat_map(|map| entries.iter().map(|count| fixture(map, *count)));
        let mut plan = Plan::new(self.name(), fixtures.collect());
        let sections = [GENERATE, GET, GET_EXISTING, PUT, REMOVE, UPGRADE];
        let place = |section: &str| sections.iter().position(|known| *known == section);
        plan.rows.sort_by_key(|(section, _)| place(section));
        Ok(plan)
    }
}

/// Returns the name of the cases with so many entries.
pub fn name(entries: u64) -> String {
    format!("{} entries", Grouped(entries))
}

fn fixture(map: &Map, entries: u64) -> Fixture {
    let engine = Engine::named(map.engine);
    let job = |task| Job::of(&Collections { engine, entries, task });
    let case = |section, task| Step::case(section, name(entries), job(task), OPERATIONS);
    let generate = Step {
        effect: Effect::Kept,
        ..Step::case(GENERATE, name(entries), job(CollectionsTask::Generate), entries)
    };
    Fixture {
        engine,
        configuration: ConfigurationInfo {
            key: map.key.to_owned(),
            canister: map.canister.to_owned(),
            engine,
            settings: None,
        },
        name: String::new(),
        rows: entries,
        payload: VALUE_BYTES as u32,
        model: || Box::new(CollectionsModel::default()),
        steps: vec![
            generate.clone(),
            case(GET, CollectionsTask::Get),
            case(GET_EXISTING, CollectionsTask::GetExisting),
            case(PUT, CollectionsTask::Put),
            case(REMOVE, CollectionsTask::Remove),
            Step { measures: Measures::Upgrade, effect: Effect::Dropped, ..generate }
                .named(UPGRADE, name(entries)),
        ],
        populated: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    #[test]
    fn maps_are_those_that_were_chosen_in_their_order() {
        let keys = |typed: &str| -> Vec<String> {
            let plan = plan_of(&CollectionsSuite, typed).unwrap();
            plan.configurations.into_iter().map(|column| column.key).collect()
        };
        assert_eq!(keys(""), MAPS.iter().map(|map| map.key).collect::<Vec<_>>());
        let chosen = "--maps motoko-table,rust-hash-map,motoko-table";
        assert_eq!(keys(chosen), ["motoko-table", "rust-hash-map"]);
        assert!(plan_of(&CollectionsSuite, "--maps haskell-map").is_err());
        assert!(plan_of(&CollectionsSuite, "--entries 49").is_err());
    }
}
