//! The options of the suite users, and the sections that they choose, with the cases of each.

use anyhow::Result;
use clap::{Args, ValueEnum};
use stablebench_suite::engines::{Configuration, Configurations, ENGINES, Kind};
use stablebench_suite::plan::{
    Before, Details, Effect, Measures, Messages, Role, Search, Sent, Step,
};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::State;
use stablebench_suite::unique;

use crate::rows::{Access, EngineRows, RowWork, TableIds, Verb};

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
    /// cache_size of 1000 is what we advise. `sqlite-vfs` is ic-sqlite-vfs, `doltlite` is
    /// DoltLite, `append` and `array` are the floor: bare stable memory.
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
const DESCRIPTIONS: &[(Section, &str)] = &[
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

/// A row of a table, for one fixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub section: Section,
    /// Unique in the section.
    pub name: String,
    pub state: State,
    pub work: RowWork,
    messages: CaseMessages,
}

/// The messages of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CaseMessages {
    /// The work in one message.
    One,
    /// The work in messages of this number of operations.
    Many(u64),
    /// As much of the work as one message can do.
    Capacity(Search),
}

impl Case {
    fn new(section: Section, name: impl Into<String>, state: State, work: RowWork) -> Self {
        Self { section, name: name.into(), state, work, messages: CaseMessages::One }
    }

    fn warm(section: Section, name: impl Into<String>, work: RowWork) -> Self {
        Self::new(section, name, State::Warm, work)
    }

    /// Returns the step that measures it. `each` is `true` if single operations are measured too.
    pub fn step(&self, users: EngineRows, table: TableIds, each: bool) -> Step {
        let Self { section, name, state, work, messages } = self.clone();
        let one_by_one =
            matches!(section, Section::Insert | Section::Work) && messages == CaseMessages::One;
        let operations = match messages {
            CaseMessages::One | CaseMessages::Capacity(_) => work.operations,
            CaseMessages::Many(operations) => operations,
        };
        Step {
            role: Role::Measure { section: section.name(), name, state },
            before: match state {
                State::Closed => Before::Job(users.close(), 1),
                State::Vacuumed => Before::Job(users.vacuum(), 1),
                State::Upgraded => Before::Upgrade,
                State::Warm | State::Churned | State::ChurnedAndVacuumed => Before::Nothing,
            },
            messages: Messages::Exactly(operations),
            measures: match messages {
                CaseMessages::Capacity(search) => Measures::Capacity(search),
                CaseMessages::One | CaseMessages::Many(_) => Measures::Job(Sent::Update),
            },
            effect: Effect::Dropped,
            details: Details { each: each && one_by_one, ..Details::default() },
            ..Step::new(users.rows(table, work), work.operations)
        }
    }
}

/// A case and the fixture that it needs: configuration, rows, and bytes of each text.
type PlannedCase = (Configuration, u64, u32, Case);

/// The cases of a section, fixture by fixture.
///
/// # Errors
///
/// If an engine does not support a setting.
pub fn cases(section: Section, args: &UsersArgs) -> Result<Vec<PlannedCase>> {
    let mut planned = Vec::new();
    let configurations = match section {
        Section::Settings => sweep(args)?,
        _ => args.configurations()?,
    };
    for configuration in configurations {
        let (rows, payload) = (args.rows, args.payload);
        let cases = match section {
            Section::Insert => inserts(args),
            Section::Transactions => transactions(args),
            Section::Work => work(args, configuration.engine.kind == Kind::Sql),
            Section::Base => base(args),
            Section::Locality => locality(args),
            Section::WorkingSet => working_set(args),
            Section::Settings => settings(args),
            Section::Capacity => capacity(args),
            Section::Payload => {
                for (rows, payload, case) in payloads(args) {
                    planned.push((configuration.clone(), rows, payload, case));
                }
                continue;
            }
            Section::Curve => {
                for (rows, case) in curve(args) {
                    planned.push((configuration.clone(), rows, payload, case));
                }
                continue;
            }
            Section::All => continue,
        };
        planned.extend(cases.into_iter().map(|case| (configuration.clone(), rows, payload, case)));
    }
    Ok(planned)
}

/// `read 1 000 uniform`, `100 ranges of 100 Zipf`, `scan`.
fn title(verb: Verb, access: Access, operations: u64) -> String {
    let count = Grouped(operations);
    match (verb, access) {
        (_, Access::All) => verb.to_string(),
        (Verb::Range(rows), _) => {
            let plural = if operations == 1 { "" } else { "s" };
            format!("{count} range{plural} of {} {access}", Grouped(rows))
        }
        _ => format!("{verb} {count} {access}"),
    }
}

fn inserts(args: &UsersArgs) -> Vec<Case> {
    let mut batches = args.batches.clone();
    batches.sort_unstable();
    batches.dedup();
    let mut cases = Vec::new();
    for place in args.places() {
        for rows in &batches {
            let name = format!("{place} {}", Grouped(*rows));
            let work = RowWork::new(Verb::Insert, place.access(), *rows);
            cases.push(Case::warm(Section::Insert, name, work));
        }
    }
    cases
}

fn transactions(args: &UsersArgs) -> Vec<Case> {
    let rows = args.transaction_rows;
    let mut cases = Vec::new();
    for each_message in [false, true] {
        for size in unique(&args.transactions) {
            let size = size.min(rows);
            let work = RowWork {
                transaction: Some(size),
                ..RowWork::new(Verb::Insert, Access::End, rows)
            };
            let (name, messages) = match each_message {
                true => ("a message each", CaseMessages::Many(size)),
                false => ("one message", CaseMessages::One),
            };
            let name = format!("{} rows by {}, {name}", Grouped(rows), Grouped(size));
            cases.push(Case { messages, ..Case::warm(Section::Transactions, name, work) });
        }
    }
    cases.dedup();
    cases
}

fn work(args: &UsersArgs, sql: bool) -> Vec<Case> {
    const RANGE: u64 = 100;
    let many = args.operations.min(args.rows);
    let ranges = (many / 10).max(1);
    let mut cases = Vec::new();
    let mut add = |verb: Verb, access: Access, operations: u64, states: &[State]| {
        for state in states {
            let name = format!("{}, {state}", title(verb, access, operations));
            let work = RowWork::new(verb, access, operations);
            cases.push(Case::new(Section::Work, name, *state, work));
        }
    };
    for access in [Access::Uniform, Access::Zipf] {
        if access == Access::Uniform {
            add(Verb::Insert, access, many, &[State::Warm]);
            add(Verb::Delete, access, many, &[State::Warm]);
            add(Verb::Miss, access, many, &[State::Warm]);
        }
        add(Verb::Overwrite, access, many, &[State::Warm]);
        add(Verb::Update, access, many, &[State::Warm]);
        add(Verb::Read, access, many, &[State::Warm]);
        add(Verb::Range(RANGE), access, ranges, &[State::Warm]);
    }
    // The first work in a state: a single operation.
    let cold: &[State] = match sql {
        true => &[State::Warm, State::Upgraded, State::Closed],
        false => &[State::Warm, State::Upgraded],
    };
    for verb in
        [Verb::Insert, Verb::Overwrite, Verb::Update, Verb::Delete, Verb::Read, Verb::Range(RANGE)]
    {
        add(verb, Access::Uniform, 1, cold);
    }
    add(Verb::Count, Access::All, 1, cold);
    // Reads of a table with earlier changes.
    let past: &[State] = match sql {
        true => &[State::Vacuumed, State::Churned, State::ChurnedAndVacuumed],
        false => &[State::Churned],
    };
    add(Verb::Read, Access::Uniform, many, past);
    add(Verb::Range(RANGE), Access::Uniform, ranges, past);
    add(Verb::Scan, Access::All, args.rows, &[cold, past].concat());
    cases
}

fn payloads(args: &UsersArgs) -> Vec<(u64, u32, Case)> {
    let mut cases = Vec::new();
    for payload in unique(&args.payloads) {
        // Each fixture has the same number of bytes of text, but at most --rows rows.
        let bytes = args.rows.saturating_mul(100);
        let rows = (bytes / u64::from(payload.max(1))).clamp(1, args.rows);
        let count = (rows / 4).clamp(1, 100);
        for (verb, access) in [
            (Verb::Insert, Access::Middle),
            (Verb::Insert, Access::End),
            (Verb::Update, Access::Uniform),
            (Verb::Read, Access::Uniform),
        ] {
            let name = format!(
                "{} bytes, {} rows of {}: {verb} {access}",
                Grouped(payload.into()),
                Grouped(count),
                Grouped(rows)
            );
            let work = RowWork::new(verb, access, count);
            cases.push((rows, payload, Case::warm(Section::Payload, name, work)));
        }
    }
    cases
}

fn curve(args: &UsersArgs) -> Vec<(u64, Case)> {
    let mut cases = Vec::new();
    for rows in unique(&args.curve_rows) {
        let count = (rows / 4).clamp(1, 100);
        for (verb, access) in [
            (Verb::Insert, Access::Middle),
            (Verb::Insert, Access::End),
            (Verb::Insert, Access::Uniform),
            (Verb::Read, Access::Uniform),
        ] {
            let name = format!("{} of {} rows: {verb} {access}", Grouped(count), Grouped(rows));
            let work = RowWork::new(verb, access, count);
            cases.push((rows, Case::warm(Section::Curve, name, work)));
        }
    }
    cases
}

fn base(args: &UsersArgs) -> Vec<Case> {
    let mut cases = Vec::new();
    for (verb, access) in [(Verb::Insert, Access::End), (Verb::Read, Access::Middle)] {
        for rows in [1, 2, 10, 100].into_iter().filter(|rows| *rows <= args.rows) {
            let name = format!("{}: {verb} {access}", Grouped(rows));
            cases.push(Case::warm(Section::Base, name, RowWork::new(verb, access, rows)));
        }
    }
    cases
}

fn locality(args: &UsersArgs) -> Vec<Case> {
    let rows = 100.min(args.rows / 4).max(1);
    let mut cases = Vec::new();
    for verb in [Verb::Insert, Verb::Update, Verb::Read] {
        for access in [Access::Middle, Access::Spread, Access::Sorted, Access::Uniform] {
            let name = format!("{access}: {verb} {}", Grouped(rows));
            cases.push(Case::warm(Section::Locality, name, RowWork::new(verb, access, rows)));
        }
    }
    cases
}

fn working_set(args: &UsersArgs) -> Vec<Case> {
    let operations = args.operations;
    let mut sets: Vec<u64> = args.working_sets.iter().map(|set| *set.min(&args.rows)).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut cases = Vec::new();
    for verb in [Verb::Read, Verb::Update] {
        for set in &sets {
            let name = format!("{} rows: {verb} {}", Grouped(*set), Grouped(operations));
            let work = RowWork::new(verb, Access::Among(*set), operations);
            cases.push(Case::warm(Section::WorkingSet, name, work));
        }
    }
    cases
}

fn settings(args: &UsersArgs) -> Vec<Case> {
    let many = args.operations.min(args.rows / 4).max(1);
    let some = many.min(100);
    let of = |(verb, access, operations, state): (Verb, Access, u64, State)| {
        let name = format!("{}, {state}", title(verb, access, operations));
        Case::new(Section::Settings, name, state, RowWork::new(verb, access, operations))
    };
    [
        (Verb::Insert, Access::End, 1, State::Warm),
        (Verb::Insert, Access::Middle, some, State::Warm),
        (Verb::Insert, Access::End, many, State::Warm),
        (Verb::Insert, Access::Uniform, many, State::Warm),
        (Verb::Update, Access::Uniform, many, State::Warm),
        (Verb::Read, Access::Uniform, many, State::Warm),
        (Verb::Read, Access::Uniform, 1, State::Upgraded),
        (Verb::Scan, Access::All, args.rows, State::Warm),
    ]
    .map(of)
    .to_vec()
}

fn capacity(args: &UsersArgs) -> Vec<Case> {
    let of = |name: &str, search: Search, work: RowWork| Case {
        messages: CaseMessages::Capacity(search),
        ..Case::warm(Section::Capacity, name, work)
    };
    let insert = RowWork::new(Verb::Insert, Access::End, u64::MAX);
    let read = RowWork::new(Verb::Read, Access::Spread, args.rows);
    let scan = RowWork::new(Verb::Scan, Access::All, args.rows);
    vec![
        of("rows inserted at the end in one update", Search::Update, insert),
        of("rows looked up one by one in one query", Search::Query, read),
        of("rows scanned in one query", Search::Query, scan),
    ]
}

/// The configurations of the section settings: for each library, the product of all values, or
/// each value by itself with the library's defaults. The library itself refuses values that it does
/// not support.
fn sweep(args: &UsersArgs) -> Result<Vec<Configuration>> {
    let values: [(&str, Vec<String>); 5] = [
        ("journal_mode", args.journal_modes.clone()),
        ("page_size", args.page_sizes.iter().map(ToString::to_string).collect()),
        ("cache_size", args.cache_sizes.iter().map(ToString::to_string).collect()),
        ("synchronous", args.synchronous.clone()),
        ("locking_mode", args.locking_modes.clone()),
    ];
    let mut swept = Vec::new();
    for library in args.libraries() {
        let base = library.named();
        if args.product {
            let mut product = vec![base];
            for (name, values) in &values {
                let mut next = Vec::new();
                for configuration in &product {
                    for value in values {
                        next.push(configuration.clone().with(name, value)?);
                    }
                }
                product = next;
            }
            swept.extend(product);
            continue;
        }
        swept.push(base.clone());
        for (name, values) in &values {
            for value in values {
                swept.push(base.clone().with(name, value)?);
            }
        }
        let chosen = |of: &[String], value: &str| of.iter().any(|known| known == value);
        if library.engine.key == "sqlite"
            && chosen(&args.journal_modes, "wal")
            && chosen(&args.locking_modes, "normal")
        {
            let wal = base.with("journal_mode", "wal")?;
            swept.push(wal.with("locking_mode", "normal")?);
        }
    }
    let swept: Vec<Configuration> =
        swept.into_iter().map(Configuration::without_defaults).collect();
    Ok(unique(&swept))
}

/// Returns the options of a plan that has a case, unless the user chose others: its section only,
/// or all sections if there is none with this name; for the section insert, any number of rows.
pub fn options_of_case(section: &str, name: &str, chosen: &[String]) -> Vec<String> {
    let chose = |option: &str| chosen.iter().any(|word| word.starts_with(option));
    if chose("--sections") || chose("--as-published") {
        return Vec::new();
    }
    let known = Section::value_variants().iter().find(|known| known.name() == section);
    let section = known.copied().unwrap_or(Section::All);
    let mut options = vec![format!("--sections={}", section.name())];
    if section == Section::Insert
        && let Some((place, rows)) = name.split_once('-')
        && let Ok(rows) = rows.parse::<u64>()
        && Place::value_variants().iter().any(|known| known.to_string() == place)
    {
        options.extend((!chose("--batches")).then(|| format!("--batches={rows}")));
        options.extend((!chose("--at")).then(|| format!("--at={place}")));
    }
    options
}
