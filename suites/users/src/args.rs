//! The options of the suite.

use anyhow::Result;
use clap::{Args, ValueEnum};
use stablebench_suite::engines::{Configuration, Configurations, ENGINES, Kind};
use stablebench_suite::unique;

use crate::rows::Access;

/// The most rows of a table.
pub const MAX_ROWS: u64 = 100_000_000;

#[derive(Clone, Debug, Args)]
pub struct UsersArgs {
    /// Sections to measure [default: insert].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub sections: Vec<Section>,
    /// Rows before the work.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
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

/// A table of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// New rows in the middle, at the end and at random, in batches.
    Insert,
    /// The same rows in transactions of different sizes.
    Transactions,
    /// Every kind of work, cold and warm, before and after churn and VACUUM.
    Work,
    /// Rows of 10 to 100 000 bytes.
    Payload,
    /// Few rows to many.
    Curve,
    /// The cost of a message with its first row, and with more.
    Base,
    /// The same number of rows, neighbours or far apart, in order or not.
    Locality,
    /// The same number of operations on few rows and on many.
    WorkingSet,
    /// SQLite's settings, one varied at a time.
    Settings,
    /// The number of rows that one message can work on.
    Capacity,
    /// All sections.
    All,
}

/// The titles of the sections.
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

/// The title of a section, from its name in results.
pub fn describe(name: &str) -> Option<&'static str> {
    let found = DESCRIPTIONS.iter().find(|(section, _)| section.name() == name);
    found.map(|(_, description)| *description)
}

impl Section {
    /// The name in results.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl UsersArgs {
    /// The sections to measure.
    pub fn sections(&self) -> Vec<Section> {
        match self.sections.contains(&Section::All) {
            true => DESCRIPTIONS.iter().map(|(section, _)| *section).collect(),
            false if self.sections.is_empty() => vec![Section::Insert],
            false => unique(&self.sections),
        }
    }

    /// The places of new rows. A case at random changes most pages, so that all rows are read back
    /// after it: it takes many times as long as another one.
    pub fn places(&self) -> Vec<Place> {
        match (self.at.is_empty(), self.sections.is_empty()) {
            (false, _) => unique(&self.at),
            (true, false) => vec![Place::Middle, Place::End, Place::Random],
            (true, true) => vec![Place::Middle, Place::End],
        }
    }

    /// The configurations to measure: `sqlite` in each of the journal modes.
    pub fn configurations(&self) -> Result<Vec<Configuration>> {
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
    pub fn libraries(&self) -> Vec<Configuration> {
        let chosen = |key: &str| self.engines.0.iter().any(|one| one.engine.key == key);
        let sql = ENGINES.iter().filter(|engine| engine.kind == Kind::Sql);
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
