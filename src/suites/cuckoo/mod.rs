//! The suite cuckoo: point reads of a hash table that is built once, as RocksDB's reader
//! test of its CuckooTable measures them, beside those of a map, of SQLite, and the floor.
//!
//! ```text
//!   for each store, utilisation and kind of key, a lane:
//!     build    all items, in the order of their keys
//!     hit      lookups in random order, one by one
//!     miss     the same of keys that are not there
//!     batches  hits, so many in a call                     (cuckoo tables alone)
//!     upgrade  the first hit after an upgrade, and many    (the fullest stores)
//! ```

mod published;

use anyhow::Result;
use stablebench_protocol::{
    Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Engine, Job, JournalMode, Lookups, PointStore,
};
use stablebench_workload::cuckoo::CuckooModel;
use stablebench_workload::cuckoo::items::ITEM_BYTES;

use super::command::{Command, typed};
use super::lane::{Lane, Plan, Step};
use super::outline::Outline;
use super::users::{Library, Setting};
use crate::cli::{CuckooArgs, KeysArg, StoreArg};
use crate::results::Column;

pub use published::published;

/// The name in results.
pub const NAME: &str = "cuckoo";

/// Items for each 128 buckets, as published.
pub const UTILISATIONS: [u64; 4] = [120, 100, 80, 70];
/// Keys looked up in one call; 0 is one by one.
pub const BATCHES: [u32; 5] = [0, 10, 25, 50, 100];

/// Operations a message: what it takes on the heap to make them ready stays small.
const MESSAGE: u64 = 20_000;

/// What a section is about, from its name in results.
pub fn describe(section: &str) -> Option<String> {
    let what = match section {
        HIT => "Lookups of keys that are there, sequential keys",
        MISS => "Lookups of keys that are not there, sequential keys",
        SCATTERED => "The same with scattered keys",
        BATCHED => "Lookups in batches, sequential keys",
        UPGRADED => "Lookups after an upgrade, sequential keys",
        BUILD => "Adding the items, in the order of keys",
        _ => return None,
    };
    Some(what.to_owned())
}

pub const HIT: &str = "hit";
pub const MISS: &str = "miss";
pub const SCATTERED: &str = "scattered";
pub const BATCHED: &str = "batches";
const UPGRADED: &str = "upgraded";
const BUILD: &str = "build";

/// How full it is: `93.75 %`.
pub fn utilisation(items_of_128: u64) -> String {
    format!("{:.2} %", items_of_128 as f64 * 100.0 / 128.0)
}

/// A row of the batches.
pub fn batch_name(items_of_128: u64, batch: u32) -> String {
    let how = match batch {
        0 => "one by one".to_owned(),
        size => format!("batches of {size}"),
    };
    format!("{} full, {how}", utilisation(items_of_128))
}

/// What the arguments mean.
///
/// # Errors
///
/// None: what could be wrong was refused when it was read.
pub fn plan(args: &CuckooArgs) -> Result<Plan> {
    let mut outline = Outline::new(NAME, command(args), &args.run);
    outline.rows = rows(args);
    let mut lanes = Vec::new();
    for store in unique(&args.stores) {
        for keys in unique(&args.keys) {
            for utilisation in UTILISATIONS {
                lanes.push(lane(args, store, keys, utilisation));
            }
        }
    }
    Ok(Plan::new(outline, lanes))
}

fn command(args: &CuckooArgs) -> String {
    let mut command = Command::new(NAME);
    command.value("--num", args.num);
    command.value("--lookups", args.lookups);
    command.values("--keys", unique(&args.keys).iter().map(typed));
    command.values("--stores", unique(&args.stores).iter().map(typed));
    command.run(&args.run)
}

/// Rows of the tables, section by section.
fn rows(args: &CuckooArgs) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for section in [HIT, MISS, SCATTERED, BATCHED, UPGRADED, BUILD] {
        for keys in unique(&args.keys) {
            for utilisation in UTILISATIONS {
                // A cuckoo table has every row that any store has.
                let lane = lane(args, StoreArg::Murmur, keys, utilisation);
                let cases = lane.steps.into_iter().filter_map(|step| step.case);
                rows.extend(cases.filter(|case| case.0 == section));
            }
        }
    }
    rows
}

fn lane(args: &CuckooArgs, store: StoreArg, keys: KeysArg, of_128: u64) -> Lane {
    let items = args.num / 128 * of_128;
    let full = format!("{} full", utilisation(of_128));
    let sequential = keys == KeysArg::Sequential;
    let name = format!("{full}, {} keys", typed(&keys));
    let step = |section: &str, name: String, task: CuckooTask, operations: u64| Step {
        case: Some((section.to_owned(), name)),
        job: Job::Cuckoo(Cuckoo {
            store: point_store(store),
            keys: CuckooKeys::from(keys),
            buckets: args.num,
            items,
            task,
        }),
        operations,
        message_operations: MESSAGE,
        before: None,
        phases: false,
        as_measured: false,
        anew: false,
        forked: true,
        upgraded: false,
        inspected: false,
    };
    let single = Lookups::Single;
    let lookups = |section: &str, name: String, task| step(section, name, task, args.lookups);
    let mut steps =
        vec![Step { forked: false, ..step(BUILD, name.clone(), CuckooTask::Build, items) }];
    if !sequential {
        steps.push(lookups(SCATTERED, format!("hit, {full}"), CuckooTask::Hit(single)));
        steps.push(lookups(SCATTERED, format!("miss, {full}"), CuckooTask::Miss(single)));
    } else {
        steps.push(lookups(HIT, full.clone(), CuckooTask::Hit(single)));
        steps.push(lookups(MISS, full.clone(), CuckooTask::Miss(single)));
        if matches!(store, StoreArg::Murmur | StoreArg::Identity) {
            for batch in BATCHES {
                let how = if batch == 0 { single } else { Lookups::Batch(batch) };
                let name = batch_name(of_128, batch);
                steps.push(lookups(BATCHED, name, CuckooTask::Hit(how)));
            }
        }
        if of_128 == UTILISATIONS[0] {
            for (name, operations) in [("the first lookup", 1), ("many lookups", args.lookups)] {
                let name = format!("{name}, {full}");
                let step = step(UPGRADED, name, CuckooTask::Hit(single), operations);
                steps.push(Step { upgraded: true, ..step });
            }
        }
    }
    Lane {
        column: column(store),
        name,
        rows: items,
        payload: ITEM_BYTES as u32,
        tables: |_| Box::new(CuckooModel::default()),
        steps,
        populated: 1,
    }
}

fn point_store(store: StoreArg) -> PointStore {
    match store {
        StoreArg::Murmur => PointStore::Cuckoo(CuckooHash::Murmur),
        StoreArg::Identity => PointStore::Cuckoo(CuckooHash::Identity),
        StoreArg::Btree => PointStore::Btree,
        StoreArg::Sqlite | StoreArg::SqliteVfs | StoreArg::Doltlite => PointStore::Sqlite,
        StoreArg::Array => PointStore::Array,
    }
}

/// The name of a table's column: its first hash.
pub fn table_key(hash: &str) -> String {
    format!("cuckoo/{hash}")
}

fn column(store: StoreArg) -> Column {
    let table = |hash| Column { key: table_key(hash), ..Setting::of(Engine::Cuckoo).column() };
    match store {
        StoreArg::Murmur => table("murmur"),
        StoreArg::Identity => table("identity"),
        StoreArg::Btree => Setting::of(Engine::Btree).column(),
        StoreArg::Sqlite => Setting::sqlite(JournalMode::Persist).column(),
        StoreArg::SqliteVfs => Setting::through(Library::IcSqliteVfs).column(),
        StoreArg::Doltlite => Setting::through(Library::DoltLite).column(),
        StoreArg::Array => Setting::of(Engine::Array).column(),
    }
}

fn unique<T: Copy + PartialEq>(items: &[T]) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(item) {
            seen.push(*item);
        }
    }
    seen
}
