//! The users suite: adding rows to a table or map that holds many.
//!
//! ```text
//!   for each setting:  install → configure → populate → check
//!     for each place and batch:  fork → insert → check
//! ```
//!
//! Rows have the ids 0, 10, 20, …; those added in the middle lie between them.

use anyhow::Result;
use clap::ValueEnum;
use stablebench_protocol::{Digest, Engine, JournalMode, SqliteConfig};
use stablebench_workload::payload::Payload;
use stablebench_workload::{ContentDigest, Ids, ids::STEP};

use crate::cli::{Place, ReplicaKind, TargetArgs, UsersArgs};
use crate::suites::published;

/// What one run of the suite measures.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rows that are there before.
    pub rows: u64,
    /// Bytes of each row's text.
    pub payload: u32,
    /// The settings, each with a canister of its own.
    pub settings: Vec<Setting>,
    /// The insertions, each in a fork of its own.
    pub insertions: Vec<Insertion>,
    /// The command that repeats the run.
    pub command: String,
    /// Whether published figures stand beside ours.
    pub as_published: bool,
}

/// An engine and how it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub engine: Engine,
    /// Only for SQLite.
    pub journal_mode: Option<JournalMode>,
}

/// Rows added in one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertion {
    pub place: Place,
    pub rows: u64,
}

impl Setting {
    /// The name in results: `btree`, `sqlite/delete`, …
    pub fn key(&self) -> String {
        match self.journal_mode {
            Some(mode) => format!("{}/{}", self.engine, journal_mode_name(mode)),
            None => self.engine.to_string(),
        }
    }

    /// What SQLite is asked for; the rest stays at the library's defaults.
    pub fn config(&self) -> SqliteConfig {
        SqliteConfig { journal_mode: self.journal_mode, ..SqliteConfig::default() }
    }
}

/// The name that SQLite gives a journal mode.
pub fn journal_mode_name(mode: JournalMode) -> &'static str {
    match mode {
        JournalMode::Delete => "delete",
        JournalMode::Truncate => "truncate",
        JournalMode::Persist => "persist",
        JournalMode::Memory => "memory",
        JournalMode::Wal => "wal",
        JournalMode::Off => "off",
    }
}

impl Plan {
    /// What the arguments mean.
    pub fn new(args: &UsersArgs) -> Self {
        if args.as_published {
            return Self::as_published(args);
        }
        let mut settings = Vec::new();
        for engine in unique(args.engines.iter().map(|engine| Engine::from(*engine))) {
            if engine == Engine::Sqlite {
                let modes = args.journal_modes.iter().map(|mode| JournalMode::from(*mode));
                settings.extend(
                    unique(modes)
                        .into_iter()
                        .map(|mode| Setting { engine, journal_mode: Some(mode) }),
                );
            } else {
                settings.push(Setting { engine, journal_mode: None });
            }
        }
        let mut batches = args.batches.clone();
        batches.sort_unstable();
        batches.dedup();
        let insertions = unique(args.at.iter().copied())
            .into_iter()
            .flat_map(|place| batches.iter().map(move |rows| Insertion { place, rows: *rows }))
            .collect();
        Self {
            rows: args.rows,
            payload: args.payload,
            settings,
            insertions,
            command: command(args, &batches),
            as_published: false,
        }
    }

    /// The post's run: its spans of ids, with step 10, were a tenth as many rows.
    fn as_published(args: &UsersArgs) -> Self {
        let mut batches: Vec<u64> = published::USERS.rows.iter().map(|row| row.rows()).collect();
        batches.dedup();
        let mut settings = vec![Setting { engine: Engine::Btree, journal_mode: None }];
        settings.extend(
            published::USERS_JOURNAL_MODES
                .iter()
                .map(|mode| Setting { engine: Engine::Sqlite, journal_mode: Some(*mode) }),
        );
        Self {
            rows: published::USERS.populated_span / STEP,
            payload: 100,
            settings,
            insertions: batches
                .into_iter()
                .map(|rows| Insertion { place: Place::Middle, rows })
                .collect(),
            command: format!("stablebench run users --as-published{}", on(&args.target)),
            as_published: true,
        }
    }

    /// The rows that an insertion adds.
    pub fn ids(&self, insertion: Insertion) -> Result<Ids> {
        let last = Some((self.rows - 1) * STEP);
        Ok(match insertion.place {
            Place::Middle => Ids::middle(last, insertion.rows)?,
            Place::End => Ids::end(last, insertion.rows)?,
        })
    }

    /// The rows that are there before.
    pub fn populated(&self) -> Result<Ids> {
        Ok(Ids::new(0, STEP, self.rows)?)
    }

    /// What the model says of the content before and after each insertion.
    pub fn digests(&self) -> Result<(Digest, Vec<Digest>)> {
        let text = Payload::New.text(self.payload);
        let mut populated = ContentDigest::default();
        for id in self.populated()?.iter() {
            populated.add(id, text.as_bytes());
        }
        let after = self.insertions.iter().map(|insertion| {
            let mut digest = populated;
            for id in self.ids(*insertion)?.iter() {
                digest.add(id, text.as_bytes());
            }
            Ok(digest.value())
        });
        Ok((populated.value(), after.collect::<Result<_>>()?))
    }
}

fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn command(args: &UsersArgs, batches: &[u64]) -> String {
    let list = |items: Vec<String>| items.join(",");
    format!(
        "stablebench run users --rows {} --batches {} --engines {} --journal-modes {} --at {} \
         --payload {}{}",
        args.rows,
        list(batches.iter().map(ToString::to_string).collect()),
        list(args.engines.iter().map(typed).collect()),
        list(args.journal_modes.iter().map(typed).collect()),
        list(args.at.iter().map(typed).collect()),
        args.payload,
        on(&args.target),
    )
}

/// As it is typed.
fn typed(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The replica, where it is not the one that is taken anyway.
fn on(target: &TargetArgs) -> String {
    match target.replica {
        ReplicaKind::Embedded => String::new(),
        ReplicaKind::PocketIc => {
            format!(" --replica {} --subnet {}", typed(&target.replica), typed(&target.subnet))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn plan(args: &[&str]) -> Plan {
        let cli = crate::cli::Cli::parse_from([&["stablebench"], args].concat());
        Plan::new(&cli.users)
    }

    #[test]
    fn the_default_run() {
        let plan = plan(&[]);
        let keys: Vec<String> = plan.settings.iter().map(Setting::key).collect();
        assert_eq!(
            keys,
            [
                "btree",
                "sqlite/delete",
                "sqlite/truncate",
                "sqlite/persist",
                "sqlite/memory",
                "sqlite/off",
                "sqlite/wal",
                "append",
                "array"
            ]
        );
        assert_eq!((plan.rows, plan.payload, plan.insertions.len()), (1_000_000, 100, 12));
    }

    #[test]
    fn as_published_counts_rows() {
        let plan = plan(&["--as-published"]);
        assert_eq!(plan.rows, 100_000);
        let batches: Vec<u64> = plan.insertions.iter().map(|insertion| insertion.rows).collect();
        assert_eq!(batches, [1, 5, 10, 100, 1_000]);
    }

    #[test]
    fn digests_hold_the_populated_and_the_added_rows() {
        let plan = plan(&["--rows", "1000", "--batches", "7", "--payload", "3"]);
        let mut model = stablebench_workload::Model::default();
        model.insert(plan.populated().unwrap(), 3).unwrap();
        let (populated, after) = plan.digests().unwrap();
        assert_eq!(populated, model.digest());
        model.insert(plan.ids(plan.insertions[0]).unwrap(), 3).unwrap();
        assert_eq!(after[0], model.digest());
    }
}
