//! The users suite: a table or map with many rows, and what is done to it.
//!
//! ```text
//!   for each store (setting, rows, payload):   install → configure → populate → check
//!     for each case:   fork → bring into the state → work, measured → check
//! ```
//!
//! Rows have the ids 0, 10, 20, …; those added in between end in 5.

mod command;
pub mod content;
mod section;
mod setting;
mod sweep;
pub mod task;

use anyhow::Result;
use stablebench_protocol::{Compression, JournalMode};

use crate::cli::{EngineArg, JournalModeArg, Place, UsersArgs};
use crate::results::State;
use crate::suites::outline::{Outline, StoreKey};
use crate::suites::published;

pub use section::{Section, describe};
pub use setting::{Library, Setting, write_buffer_size};
use task::Task;

/// The name in results, and of the published figures.
pub const NAME: &str = "users";

/// What one run of the suite measures.
#[derive(Clone, Debug)]
pub struct Plan {
    pub outline: Outline,
    /// What is populated, each in a canister of its own.
    pub stores: Vec<StorePlan>,
    /// Default batches that so few rows have no room for.
    pub left_out: Vec<u64>,
}

/// A setting with rows in it.
#[derive(Clone, Debug)]
pub struct StorePlan {
    pub setting: Setting,
    pub rows: u64,
    pub payload: u32,
    pub cases: Vec<CasePlan>,
}

/// A row of a table, for one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CasePlan {
    pub section: Section,
    /// Unique in the section.
    pub name: String,
    pub state: State,
    pub task: Task,
}

impl Plan {
    /// What the arguments mean.
    ///
    /// # Errors
    ///
    /// Where rows would have to be added that do not fit.
    pub fn new(args: &UsersArgs) -> Result<Self> {
        let (args, left_out) = &with_batches(args);
        let mut outline = Outline::new(NAME, command::command(args), &args.run);
        outline.each = args.per_operation;
        outline.check_around = args.check_around;
        let mut plan = Self { outline, stores: Vec::new(), left_out: left_out.clone() };
        if args.as_published {
            plan.outline.published = Some(NAME.to_owned());
            plan.add(Section::Insert, &as_published(args)?);
        } else {
            for section in unique(args.sections()) {
                plan.add(section, args);
            }
        }
        plan.check()?;
        plan.outline.columns = plan.settings().iter().map(Setting::column).collect();
        plan.outline.stores = plan.stores.iter().map(StorePlan::key).collect();
        Ok(plan)
    }

    /// Adds a section's cases to the stores that they need.
    fn add(&mut self, section: Section, args: &UsersArgs) {
        let mut column = String::new();
        let rows_of_tables = &mut self.outline.rows;
        let mut after = rows_of_tables.len();
        for (setting, rows, payload, case) in section::cases(section, args) {
            if column != setting.key() {
                column = setting.key();
                after = rows_of_tables.iter().take_while(|row| row.0 != section.name()).count();
            }
            // A row that other settings do not have stands below the one before it.
            let row = (section.name(), case.name.clone());
            after = match rows_of_tables.iter().position(|other| *other == row) {
                Some(place) => place + 1,
                None => {
                    rows_of_tables.insert(after, row);
                    after + 1
                }
            };
            let same = |store: &&mut StorePlan| {
                store.setting.key() == setting.key()
                    && (store.rows, store.payload) == (rows, payload)
            };
            match self.stores.iter_mut().find(same) {
                Some(store) => store.cases.push(case),
                None => {
                    self.stores.push(StorePlan { setting, rows, payload, cases: vec![case] });
                }
            }
        }
    }

    /// A run whose work is impossible must not populate first.
    fn check(&self) -> Result<()> {
        for store in &self.stores {
            let content = content::Content::populated(store.rows);
            store.cases.iter().try_for_each(|case| case.check(&content))?;
        }
        Ok(())
    }

    /// Settings in the order of the tables.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        for store in &self.stores {
            if settings.iter().all(|setting| setting.key() != store.setting.key()) {
                settings.push(store.setting);
            }
        }
        settings
    }
}

/// The arguments with batches, where none were typed: those of the default ones that fit. The
/// others are beside.
fn with_batches(args: &UsersArgs) -> (UsersArgs, Vec<u64>) {
    const BATCHES: [u64; 6] = [1, 10, 50, 100, 1_000, 10_000];
    if !args.batches.is_empty() {
        return (args.clone(), Vec::new());
    }
    let all = UsersArgs { batches: BATCHES.to_vec(), ..args.clone() };
    // Only who adds rows in between needs room for them.
    if args.as_published || !args.sections().contains(&Section::Insert) {
        return (all, Vec::new());
    }
    let content = content::Content::populated(args.rows);
    let fits = |batch: &u64| {
        let one = UsersArgs { batches: vec![*batch], ..args.clone() };
        section::cases(Section::Insert, &one).iter().all(|(.., case)| case.check(&content).is_ok())
    };
    let (batches, left_out): (Vec<u64>, Vec<u64>) = BATCHES.into_iter().partition(fits);
    match batches.is_empty() {
        // Why none fits is told like that of typed ones.
        true => (all, Vec::new()),
        false => (UsersArgs { batches, ..all }, left_out),
    }
}

/// The post's run: its spans of ids, with step 10, were a tenth as many rows.
fn as_published(args: &UsersArgs) -> Result<UsersArgs> {
    let published = published::get(NAME)?;
    let mut batches = published::USERS_SPANS.map(published::rows_of_span).to_vec();
    batches.dedup();
    Ok(UsersArgs {
        rows: published.cases.first().map_or(args.rows, |case| case.rows),
        batches,
        at: vec![Place::Middle],
        engines: vec![EngineArg::Btree, EngineArg::Sqlite],
        journal_modes: vec![JournalModeArg::Delete, JournalModeArg::Memory, JournalModeArg::Off],
        ..args.clone()
    })
}

impl CasePlan {
    fn check(&self, content: &content::Content) -> Result<()> {
        let (Task::One(work)
        | Task::Messages(work, _)
        | Task::UpdateCapacity(work)
        | Task::QueryCapacity(work)) = self.task;
        work.check(content)
    }
}

impl StorePlan {
    /// How results call it.
    pub fn key(&self) -> StoreKey {
        StoreKey {
            column: self.setting.key(),
            name: String::new(),
            rows: self.rows,
            payload: self.payload,
        }
    }
}

impl UsersArgs {
    /// The engines asked for, SQLite in each of the journal modes.
    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for engine in unique(self.engines.clone()) {
            match engine {
                EngineArg::Sqlite => {
                    let modes = self.journal_modes.iter().map(|mode| JournalMode::from(*mode));
                    settings.extend(unique(modes.collect()).into_iter().map(Setting::sqlite));
                }
                EngineArg::SqliteVfs => settings.push(Setting::through(Library::IcSqliteVfs)),
                EngineArg::Doltlite => settings.push(Setting::through(Library::DoltLite)),
                EngineArg::Leveldb => {
                    let ways = self.compression.iter().map(|way| Compression::from(*way));
                    settings.extend(unique(ways.collect()).into_iter().map(Setting::leveldb));
                }
                EngineArg::Btree | EngineArg::Append | EngineArg::Array => {
                    settings.push(Setting::of(engine.into()));
                }
            }
        }
        settings
    }
}

pub(super) fn unique<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
