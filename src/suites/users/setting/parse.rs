//! A setting from its name: the other way round of [`Setting::key`].

use std::str::FromStr;

use stablebench_protocol::{Compression, Engine, JournalMode, LockingMode, Synchronous};

use super::{Library, Setting, compression, journal_mode, locking_mode, synchronous};

/// What is no setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error(
        "no setting is called so; a setting is an engine ({}) or sqlite/JOURNAL_MODE or \
         sqlite-vfs or doltlite, after which may stand ,page_size=… ,cache_size=… ,synchronous=… \
         ,locking_mode=…, or leveldb/COMPRESSION, after which may stand ,write_buffer_size=…",
        engines()
    )]
    Setting,
    #[error("{mode} is no journal mode; there are: {}", names(&JOURNAL_MODES, journal_mode))]
    JournalMode { mode: String },
    #[error("{way} is no compression; there are: {}", names(&COMPRESSIONS, compression))]
    Compression { way: String },
    #[error("{value} is no value of {name}; {hint}")]
    Value { name: String, value: String, hint: String },
    #[error(
        "{name} is no setting of SQLite here; there are: page_size, cache_size, synchronous, \
         locking_mode"
    )]
    Pragma { name: String },
    #[error("{name} is no setting of LevelDB here; there is: write_buffer_size")]
    Option { name: String },
    #[error("{name} is set twice")]
    Twice { name: String },
}

const JOURNAL_MODES: [JournalMode; 6] = [
    JournalMode::Delete,
    JournalMode::Truncate,
    JournalMode::Persist,
    JournalMode::Memory,
    JournalMode::Wal,
    JournalMode::Off,
];

const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Snappy];

const LEVELS: [Synchronous; 4] =
    [Synchronous::Off, Synchronous::Normal, Synchronous::Full, Synchronous::Extra];

const LOCKING_MODES: [LockingMode; 2] = [LockingMode::Normal, LockingMode::Exclusive];

impl FromStr for Setting {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let mut parts = text.split(',');
        let engine = parts.next().unwrap_or_default();
        let (engine, mode) = match engine.split_once('/') {
            Some((engine, mode)) => (engine, Some(mode)),
            None => (engine, None),
        };
        let leveldb = engine == Engine::Leveldb.name();
        if let (true, Some(way)) = (leveldb, mode) {
            let found = named(&COMPRESSIONS, compression, way);
            let unknown = || Unknown::Compression { way: way.to_owned() };
            return Self::leveldb(found.ok_or_else(unknown)?).with(parts);
        }
        let mode = mode.map(|mode| {
            named(&JOURNAL_MODES, journal_mode, mode)
                .ok_or_else(|| Unknown::JournalMode { mode: mode.to_owned() })
        });
        let setting = match (named(&Library::ALL, Library::engine_name, engine), mode) {
            (Some(Library::IcRusqlite), Some(mode)) => Self::sqlite(mode?),
            (Some(library @ (Library::IcSqliteVfs | Library::DoltLite)), mode) => {
                let mut setting = Self::through(library);
                setting.sqlite.journal_mode = mode.transpose()?;
                setting
            }
            _ => {
                let engine = Engine::ALL.into_iter().find(|engine| engine.name() == text);
                return match engine {
                    Some(engine) if engine != Engine::Sqlite => Ok(Self::of(engine)),
                    _ => Err(Unknown::Setting),
                };
            }
        };
        setting.with(parts)
    }
}

impl Setting {
    /// With values of what may be set, each once.
    fn with<'a>(mut self, parts: impl Iterator<Item = &'a str>) -> Result<Self, Unknown> {
        let mut seen: Vec<&str> = Vec::new();
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if seen.contains(&name) {
                return Err(Unknown::Twice { name: name.to_owned() });
            }
            seen.push(name);
            match self.engine {
                Engine::Leveldb => self.set_leveldb(name, value)?,
                _ => self.set(name, value)?,
            }
        }
        Ok(self)
    }

    fn set_leveldb(&mut self, name: &str, value: &str) -> Result<(), Unknown> {
        if name != "write_buffer_size" {
            return Err(Unknown::Option { name: name.to_owned() });
        }
        let (name, value) = (name.to_owned(), value.to_owned());
        let bytes = write_buffer_size(&value);
        let bytes = bytes.map_err(|hint| Unknown::Value { name, value, hint })?;
        self.leveldb.write_buffer_size = Some(bytes);
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Unknown> {
        let refused =
            |hint| Unknown::Value { name: name.to_owned(), value: value.to_owned(), hint };
        let config = &mut self.sqlite;
        match name {
            "page_size" => {
                let sound = |size: &u32| (512..=65_536).contains(size) && size.is_power_of_two();
                let size = value.parse().ok().filter(sound);
                let hint = || "it is a power of two from 512 to 65536".to_owned();
                config.page_size = Some(size.ok_or_else(|| refused(hint()))?);
            }
            "cache_size" => {
                let hint = || "it is a number of pages or, where negative, of KiB".to_owned();
                config.cache_size = Some(value.parse().map_err(|_| refused(hint()))?);
            }
            "synchronous" => {
                let hint = || format!("there are: {}", names(&LEVELS, synchronous));
                let level = named(&LEVELS, synchronous, value);
                config.synchronous = Some(level.ok_or_else(|| refused(hint()))?);
            }
            "locking_mode" => {
                let hint = || format!("there are: {}", names(&LOCKING_MODES, locking_mode));
                let mode = named(&LOCKING_MODES, locking_mode, value);
                config.locking_mode = Some(mode.ok_or_else(|| refused(hint()))?);
            }
            _ => return Err(Unknown::Pragma { name: name.to_owned() }),
        }
        Ok(())
    }
}

/// Bytes of LevelDB's write buffer, within what LevelDB clips them to.
///
/// # Errors
///
/// What they have to be.
pub fn write_buffer_size(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok().filter(|bytes| (64 << 10..=1 << 30).contains(bytes));
    bytes.ok_or_else(|| "it is a number of bytes from 65536 to 1073741824".to_owned())
}

fn named<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Option<T> {
    all.iter().copied().find(|one| name(*one) == text)
}

fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
    all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ")
}

fn engines() -> String {
    let others = Engine::ALL.into_iter().filter(|engine| *engine != Engine::Sqlite);
    others.map(Engine::name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of what may be chosen or left out.
    #[test]
    fn a_key_is_parsed_to_what_it_names() {
        for engine in [Engine::Btree, Engine::Append, Engine::Array] {
            assert_eq!(Setting::of(engine).key().parse(), Ok(Setting::of(engine)));
        }
        let mut parsed = 0;
        for mode in JOURNAL_MODES {
            for page_size in [None, Some(512), Some(4_096), Some(65_536)] {
                for cache_size in [None, Some(0), Some(-2_000), Some(i32::MIN), Some(i32::MAX)] {
                    for synchronous in [None].into_iter().chain(LEVELS.map(Some)) {
                        for locking_mode in [None].into_iter().chain(LOCKING_MODES.map(Some)) {
                            let mut setting = Setting::sqlite(mode);
                            setting.sqlite.page_size = page_size;
                            setting.sqlite.cache_size = cache_size;
                            setting.sqlite.synchronous = synchronous;
                            setting.sqlite.locking_mode = locking_mode;
                            assert_eq!(setting.key().parse(), Ok(setting), "{}", setting.key());
                            parsed += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(parsed, 6 * 4 * 5 * 5 * 3);
    }

    #[test]
    fn a_key_of_leveldb_is_parsed_to_what_it_names() {
        for way in COMPRESSIONS {
            for bytes in [None, Some(65_536), Some(1 << 30)] {
                let mut setting = Setting::leveldb(way);
                setting.leveldb.write_buffer_size = bytes;
                assert_eq!(setting.key().parse(), Ok(setting), "{}", setting.key());
            }
        }
    }

    #[test]
    fn the_order_of_pragmas_does_not_matter() {
        let one: Setting = "sqlite/off,locking_mode=normal,page_size=512".parse().unwrap();
        assert_eq!(one.key(), "sqlite/off,page_size=512,locking_mode=normal");
    }

    #[test]
    fn what_is_no_key_is_refused_in_one_line() {
        for (text, part) in [
            ("", "no setting is called so"),
            ("sqlite", "sqlite/JOURNAL_MODE"),
            ("btree/off", "an engine (btree, append, array)"),
            ("sqlite/none", "none is no journal mode; there are: delete, truncate, persist"),
            ("sqlite/off,pages=1", "pages is no setting of SQLite here"),
            ("sqlite/off,page_size", " is no value of page_size"),
            ("sqlite/off,", " is no setting"),
            ("sqlite/off,page_size=1000", "a power of two from 512 to 65536"),
            ("sqlite/off,page_size=256", "a power of two"),
            ("sqlite/off,cache_size=many", "many is no value of cache_size"),
            ("sqlite/off,synchronous=on", "there are: off, normal, full, extra"),
            ("sqlite/off,locking_mode=Normal", "there are: normal, exclusive"),
            ("sqlite/off,page_size=512,page_size=512", "page_size is set twice"),
            ("leveldb", "leveldb/COMPRESSION"),
            ("leveldb/zstd", "zstd is no compression; there are: none, snappy"),
            ("leveldb/none,page_size=512", "page_size is no setting of LevelDB here"),
            ("leveldb/none,write_buffer_size=65535", "a number of bytes from 65536"),
        ] {
            let error = text.parse::<Setting>().unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
