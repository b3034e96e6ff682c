//! The single table of engines, and configurations of them.
//!
//! ```text
//!   key              ENGINE[/VALUE][,SETTING=VALUE]…
//!   btree            an engine without settings
//!   sqlite/wal       the first setting of an engine is named after the slash: a journal mode,
//!   leveldb/snappy   a compression, the first hash of a cuckoo table
//!   sqlite/persist,page_size=512,cache_size=100
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use stablebench_protocol::Engine as Protocol;

use crate::results::ConfigurationInfo;

/// A row of the table.
#[derive(Debug)]
pub struct Engine {
    /// The name on the command line and at the beginning of configuration keys.
    pub key: &'static str,
    /// The name in tables.
    pub heading: &'static str,
    /// The canister that contains the engine.
    pub canister: &'static str,
    pub kind: Kind,
    /// The name in the canister's interface.
    pub protocol: Protocol,
    /// The settings that it supports, in the order in which keys list them.
    settings: &'static [Setting],
    /// The library's own values of those settings.
    defaults: &'static [(&'static str, &'static str)],
    /// `true` if a key without a value of the first setting is complete: `sqlite-vfs`.
    implied: bool,
}

/// The workloads that an engine can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything that is written in SQL.
    Sql,
    /// Rows of keys and values.
    KeyValue,
    /// Values by their keys, which have no order.
    Lookup,
    /// The same bytes on bare stable memory: the lower bound, not an engine to choose.
    Floor,
}

/// A setting of an engine.
#[derive(Debug)]
struct Setting {
    name: &'static str,
    values: Values,
}

/// The values that a setting takes.
#[derive(Debug)]
enum Values {
    OneOf(&'static [&'static str]),
    PowerOfTwo { from: u32, to: u32 },
    Integer { from: i64, to: i64, unit: &'static str },
}

const PRAGMAS: &[Setting] = &[
    Setting {
        name: "journal_mode",
        values: Values::OneOf(&["delete", "truncate", "persist", "memory", "off", "wal"]),
    },
    Setting { name: "page_size", values: Values::PowerOfTwo { from: 512, to: 65_536 } },
    Setting {
        name: "cache_size",
        values: Values::Integer {
            from: i32::MIN as i64,
            to: i32::MAX as i64,
            unit: "pages or, if negative, KiB",
        },
    },
    Setting { name: "synchronous", values: Values::OneOf(&["off", "normal", "full", "extra"]) },
    Setting { name: "locking_mode", values: Values::OneOf(&["normal", "exclusive"]) },
];

const LEVELDB_OPTIONS: &[Setting] = &[
    Setting { name: "compression", values: Values::OneOf(&["none", "snappy"]) },
    Setting {
        name: "write_buffer_size",
        // LevelDB clips other values to this range.
        values: Values::Integer { from: 64 << 10, to: 1 << 30, unit: "bytes" },
    },
];

const HASHES: &[Setting] =
    &[Setting { name: "hash", values: Values::OneOf(&["murmur", "identity"]) }];

/// Every engine, in the order in which lists show them.
pub static ENGINES: &[Engine] = &[
    Engine {
        key: "btree",
        heading: "StableBTreeMap",
        canister: "bench",
        kind: Kind::KeyValue,
        protocol: Protocol::BTREE,
        settings: &[],
        defaults: &[],
        implied: true,
    },
    Engine {
        key: "sqlite",
        heading: "SQLite",
        canister: "bench",
        kind: Kind::Sql,
        protocol: Protocol::SQLITE,
        settings: PRAGMAS,
        defaults: &[
            ("journal_mode", "persist"),
            ("page_size", "4096"),
            ("cache_size", "500000"),
            ("synchronous", "off"),
            ("locking_mode", "exclusive"),
        ],
        implied: false,
    },
    Engine {
        key: "sqlite-vfs",
        heading: "sqlite-vfs",
        canister: "bench_vfs",
        kind: Kind::Sql,
        protocol: Protocol::SQLITE,
        settings: PRAGMAS,
        defaults: &[
            ("journal_mode", "memory"),
            ("page_size", "16384"),
            ("cache_size", "-32768"),
            ("synchronous", "off"),
            ("locking_mode", "exclusive"),
        ],
        implied: true,
    },
    Engine {
        key: "doltlite",
        heading: "DoltLite",
        canister: "bench_doltlite",
        kind: Kind::Sql,
        protocol: Protocol::SQLITE,
        settings: PRAGMAS,
        defaults: &[
            ("journal_mode", "wal"),
            ("page_size", "4096"),
            ("cache_size", "-65536"),
            ("synchronous", "off"),
            ("locking_mode", "exclusive"),
        ],
        implied: true,
    },
    Engine {
        key: "leveldb",
        heading: "LevelDB",
        canister: "bench_leveldb",
        kind: Kind::KeyValue,
        protocol: Protocol::LEVELDB,
        settings: LEVELDB_OPTIONS,
        defaults: &[("compression", "none"), ("write_buffer_size", "4194304")],
        implied: false,
    },
    Engine {
        key: "append",
        heading: "floor: append",
        canister: "bench",
        kind: Kind::Floor,
        protocol: Protocol::APPEND,
        settings: &[],
        defaults: &[],
        implied: true,
    },
    Engine {
        key: "array",
        heading: "floor: array",
        canister: "bench",
        kind: Kind::Floor,
        protocol: Protocol::ARRAY,
        settings: &[],
        defaults: &[],
        implied: true,
    },
    Engine {
        key: "cuckoo",
        heading: "cuckoo",
        canister: "bench",
        kind: Kind::Lookup,
        protocol: Protocol::CUCKOO,
        settings: HASHES,
        defaults: &[("hash", "murmur")],
        implied: false,
    },
];

/// SQLite as `ic-rusqlite` opens it, with a cache of 500 000 pages.
pub const SHIPPED: &str = "sqlite/persist";
/// SQLite as its users should set it: a message pays for each heap page that it touches, so a large
/// cache costs more than it saves.
pub const ADVISED: &str = "sqlite/persist,cache_size=1000";

/// Returns the engine with this key.
pub fn engine(key: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.key == key)
}

/// An engine with values for some of its settings; the others stay at the library's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub engine: &'static Engine,
    /// Values in the order of the engine's settings, each setting once.
    values: Vec<(&'static str, String)>,
}

/// A text that is not a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    #[error("there is no engine {engine}; the engines are {}", keys().join(", "))]
    Engine { engine: String },
    #[error("{engine} has no settings")]
    NoSettings { engine: &'static str },
    #[error("{engine} has no setting {name}; its settings are {known}")]
    Setting { engine: &'static str, name: String, known: String },
    #[error("{value} is not a value of {name}: it is {allowed}")]
    Value { name: &'static str, value: String, allowed: String },
    #[error("{name} is set twice")]
    Twice { name: &'static str },
}

fn keys() -> Vec<&'static str> {
    ENGINES.iter().map(|engine| engine.key).collect()
}

impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Engine {}

impl Engine {
    fn setting(&'static self, name: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }
}

impl Values {
    fn contain(&self, value: &str) -> bool {
        match self {
            Self::OneOf(values) => values.contains(&value),
            Self::PowerOfTwo { from, to } => value
                .parse::<u32>()
                .is_ok_and(|number| number.is_power_of_two() && (*from..=*to).contains(&number)),
            Self::Integer { from, to, .. } => {
                value.parse::<i64>().is_ok_and(|number| (*from..=*to).contains(&number))
            }
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneOf(values) => write!(f, "one of {}", values.join(", ")),
            Self::PowerOfTwo { from, to } => write!(f, "a power of two from {from} to {to}"),
            Self::Integer { from, to, unit } => {
                write!(f, "a number of {unit}, from {from} to {to}")
            }
        }
    }
}

impl Configuration {
    /// Returns the engine with this key, and all settings at the library's defaults.
    ///
    /// The first setting of an engine whose key names it is set to the default explicitly.
    pub fn of(key: &str) -> Result<Self, ConfigurationError> {
        key.parse()
    }

    /// An engine of the table without settings.
    fn new(engine: &'static Engine) -> Self {
        Self { engine, values: Vec::new() }
    }

    /// Returns the same configuration with another value of a setting.
    ///
    /// # Errors
    ///
    /// If the engine has no such setting, or the value is not valid.
    pub fn with(mut self, name: &str, value: impl ToString) -> Result<Self, ConfigurationError> {
        let (engine, value) = (self.engine, value.to_string());
        if engine.settings.is_empty() {
            return Err(ConfigurationError::NoSettings { engine: engine.key });
        }
        let setting = engine.setting(name).ok_or_else(|| ConfigurationError::Setting {
            engine: engine.key,
            name: name.to_owned(),
            known: engine.settings.iter().map(|known| known.name).collect::<Vec<_>>().join(", "),
        })?;
        if !setting.values.contain(&value) {
            let allowed = setting.values.to_string();
            return Err(ConfigurationError::Value { name: setting.name, value, allowed });
        }
        self.values.retain(|(known, _)| *known != setting.name);
        self.values.push((setting.name, value));
        let place = |name: &str| engine.settings.iter().position(|known| known.name == name);
        self.values.sort_by_key(|(name, _)| place(name));
        Ok(self)
    }

    /// Returns the value of a setting, if it was chosen.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a setting that was chosen, else the library's default.
    pub fn effective(&self, name: &str) -> Option<&str> {
        let default = self.engine.defaults.iter().find(|(known, _)| *known == name);
        self.value(name).or(default.map(|(_, value)| *value))
    }

    /// The same configuration without values that the library chooses anyway, so that each
    /// configuration has one key.
    #[must_use]
    pub fn without_defaults(mut self) -> Self {
        let engine = self.engine;
        let named = |name: &str| !engine.implied && engine.settings[0].name == name;
        self.values.retain(|(name, value)| {
            named(name) || !engine.defaults.contains(&(*name, value.as_str()))
        });
        self
    }

    /// The same configuration with the first setting at its default, if the key names that
    /// setting and it was left out: `sqlite` becomes `sqlite/persist`.
    #[must_use]
    pub fn named(&self) -> Self {
        let mut named = self.clone();
        if let Some(first) = self.engine.settings.first().filter(|_| !self.engine.implied)
            && self.value(first.name).is_none()
            && let Some((_, default)) =
                self.engine.defaults.iter().find(|(it, _)| *it == first.name)
        {
            named.values.insert(0, (first.name, (*default).to_owned()));
        }
        named
    }

    /// Returns the name in results and on the command line.
    pub fn key(&self) -> String {
        self.named().to_string()
    }

    /// Returns the form in which results contain it.
    pub fn info(&self) -> ConfigurationInfo {
        ConfigurationInfo {
            key: self.key(),
            canister: self.engine.canister.to_owned(),
            engine: self.engine.protocol,
            settings: self.settings(),
        }
    }

    /// The settings that the canister is configured with; nothing if the engine has none there.
    fn settings(&self) -> Option<BTreeMap<String, String>> {
        // The hash of a cuckoo table is a part of its jobs.
        let configured = self.engine.protocol != Protocol::CUCKOO;
        // Only chosen values are sent: the others stay at the library's defaults.
        let chosen = self.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        (configured && !self.engine.settings.is_empty()).then(|| chosen.collect())
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine.key)?;
        for (name, value) in &self.values {
            match self.engine.settings[0].name == *name {
                true => write!(f, "/{value}")?,
                false => write!(f, ",{name}={value}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Configuration {
    type Err = ConfigurationError;

    /// Reads a key. The first setting may be missing where [`key`](Self::key) would print it.
    fn from_str(text: &str) -> Result<Self, ConfigurationError> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let (name, first) = head.split_once('/').map_or((head, None), |(it, of)| (it, Some(of)));
        let unknown = || ConfigurationError::Engine { engine: name.to_owned() };
        let engine = engine(name).ok_or_else(unknown)?;
        let mut configuration = Self::new(engine);
        if let Some(value) = first {
            let first = engine.settings.first().map_or("", |setting| setting.name);
            let (setting, value) = value.split_once('=').unwrap_or((first, value));
            configuration = configuration.with(setting, value)?;
        }
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if let Some(known) =
                engine.setting(name).filter(|_| configuration.value(name).is_some())
            {
                return Err(ConfigurationError::Twice { name: known.name });
            }
            configuration = configuration.with(name, value)?;
        }
        Ok(configuration)
    }
}

/// A list of configurations on the command line, separated by commas. A part that contains `=`
/// belongs to the configuration before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configurations(pub Vec<Configuration>);

impl FromStr for Configurations {
    type Err = ConfigurationError;

    fn from_str(text: &str) -> Result<Self, ConfigurationError> {
        let mut keys: Vec<String> = Vec::new();
        for part in text.split(',') {
            match keys.last_mut() {
                Some(key) if part.contains('=') => *key += &format!(",{part}"),
                _ => keys.push(part.to_owned()),
            }
        }
        let mut configurations: Vec<Configuration> = Vec::new();
        for key in keys {
            let configuration = key.parse()?;
            if !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        }
        Ok(Self(configurations))
    }
}

impl fmt::Display for Configurations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&keys.join(","))
    }
}

/// Returns the heading of a configuration, from its key in results.
pub fn heading(key: &str) -> String {
    let head = key.split([',', '/']).next().unwrap_or_default();
    let Some(engine) = engine(head) else {
        return key.replace(',', " ");
    };
    let rest = &key[head.len()..];
    if rest.is_empty() {
        return engine.heading.to_owned();
    }
    let (first, rest) = rest.split_once(',').unwrap_or((rest, ""));
    let first = first.trim_start_matches('/');
    let first = match engine.kind {
        Kind::Sql => first.to_uppercase().replace('-', " "),
        Kind::KeyValue | Kind::Lookup | Kind::Floor => first.to_owned(),
    };
    let rest = rest.replace(',', " ");
    [engine.heading, first.as_str(), rest.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns `true` if the configuration with this key is bare stable memory.
pub fn is_floor(key: &str) -> bool {
    engine(key).is_some_and(|engine| engine.kind == Kind::Floor)
}

/// True if the engine of a key runs SQL.
pub fn has_sql(key: &str) -> bool {
    engine(key).is_some_and(|engine| engine.kind == Kind::Sql)
}

#[cfg(test)]
mod tests {
    use stablebench_protocol::{JournalMode, Keyword, LockingMode, Synchronous};

    use super::*;

    fn parse(key: &str) -> Configuration {
        key.parse().unwrap()
    }

    #[test]
    fn a_key_names_the_values_that_were_chosen() {
        for key in [
            "btree",
            "sqlite/wal",
            "sqlite/wal,page_size=512,cache_size=0,synchronous=full,locking_mode=normal",
            "sqlite-vfs",
            "sqlite-vfs,page_size=4096",
            "sqlite-vfs/wal,page_size=4096",
            "doltlite,cache_size=-2000",
            "leveldb/snappy,write_buffer_size=65536",
            "cuckoo/identity",
        ] {
            assert_eq!(parse(key).key(), key);
            assert_eq!(parse(key).to_string(), key);
        }
        assert_eq!(parse("sqlite").key(), "sqlite/persist");
        assert_eq!(
            parse("leveldb,write_buffer_size=65536").key(),
            "leveldb/none,write_buffer_size=65536"
        );
        assert_eq!(
            parse("sqlite,cache_size=5,page_size=512").to_string(),
            "sqlite,page_size=512,cache_size=5"
        );
    }

    #[test]
    fn a_wrong_key_names_the_part_that_is_wrong() {
        let all = format!("there is no engine ; the engines are {}", keys().join(", "));
        for (key, error) in [
            ("", all.as_str()),
            ("btree/wal", "btree has no settings"),
            (
                "sqlite/fast",
                "fast is not a value of journal_mode: it is one of delete, truncate, persist, memory, off, wal",
            ),
            (
                "sqlite/wal,page_size=511",
                "511 is not a value of page_size: it is a power of two from 512 to 65536",
            ),
            (
                "sqlite/wal,colour=red",
                "sqlite has no setting colour; its settings are journal_mode, page_size, cache_size, synchronous, locking_mode",
            ),
            ("sqlite/wal,page_size=512,page_size=512", "page_size is set twice"),
            (
                "leveldb,write_buffer_size=1",
                "1 is not a value of write_buffer_size: it is a number of bytes, from 65536 to 1073741824",
            ),
        ] {
            assert_eq!(key.parse::<Configuration>().unwrap_err().to_string(), error, "{key}");
        }
    }

    /// The table and the canisters' types have the same words.
    #[test]
    fn the_canisters_know_every_word() {
        fn words<K: Keyword>() -> (&'static str, Vec<&'static str>) {
            (K::PRAGMA, K::WORDS.iter().map(|(_, word)| *word).collect())
        }
        let known = [words::<JournalMode>(), words::<Synchronous>(), words::<LockingMode>()];
        for (name, mut known) in known {
            let setting = PRAGMAS.iter().find(|setting| setting.name == name).unwrap();
            let Values::OneOf(values) = setting.values else { panic!("{name} has no words") };
            let mut values = values.to_vec();
            known.sort_unstable();
            values.sort_unstable();
            assert_eq!(values, known, "{name}");
        }
        for engine in ENGINES.iter().filter(|engine| engine.kind == Kind::Sql) {
            for setting in engine.settings {
                assert!(engine.defaults.iter().any(|(name, _)| *name == setting.name));
            }
        }
    }

    #[test]
    fn only_chosen_values_are_sent() {
        let settings = |key: &str| {
            let settings = parse(key).info().settings;
            settings.map(|settings| format!("{settings:?}"))
        };
        assert_eq!(settings("btree"), None);
        assert_eq!(settings("cuckoo/identity"), None);
        assert_eq!(settings("sqlite").as_deref(), Some("{}"));
        assert_eq!(
            settings("sqlite/wal,cache_size=-7").as_deref(),
            Some(r#"{"cache_size": "-7", "journal_mode": "wal"}"#)
        );
        assert_eq!(settings("leveldb/snappy").as_deref(), Some(r#"{"compression": "snappy"}"#));
    }

    #[test]
    fn a_list_keeps_settings_with_their_engine() {
        let list: Configurations =
            "btree,sqlite/wal,page_size=512,cache_size=0,array,btree".parse().unwrap();
        let keys: Vec<String> = list.0.iter().map(Configuration::key).collect();
        assert_eq!(keys, ["btree", "sqlite/wal,page_size=512,cache_size=0", "array"]);
        assert_eq!(list.to_string(), "btree,sqlite/wal,page_size=512,cache_size=0,array");
        assert_eq!(
            parse("sqlite/persist,page_size=4096").without_defaults().key(),
            "sqlite/persist"
        );
        assert_eq!(parse("sqlite-vfs/memory").without_defaults().key(), "sqlite-vfs");
    }

    #[test]
    fn headings_are_those_of_the_table() {
        for (key, expected) in [
            ("btree", "StableBTreeMap"),
            ("sqlite/wal,locking_mode=normal", "SQLite WAL locking_mode=normal"),
            ("sqlite/with-rowid", "SQLite WITH ROWID"),
            ("sqlite-vfs,page_size=4096", "sqlite-vfs page_size=4096"),
            ("doltlite/without-rowid", "DoltLite WITHOUT ROWID"),
            ("leveldb/none,write_buffer_size=65536", "LevelDB none write_buffer_size=65536"),
            ("cuckoo/murmur", "cuckoo murmur"),
            ("array", "floor: array"),
            ("ULID", "ULID"),
        ] {
            assert_eq!(heading(key), expected);
        }
    }
}
