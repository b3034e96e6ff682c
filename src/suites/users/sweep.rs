//! The settings of SQLite that the section `settings` goes through.

use stablebench_protocol::{JournalMode, LockingMode, SqliteConfig, Synchronous};

use super::setting::{Library, Setting};
use super::unique;
use crate::cli::{EngineArg, UsersArgs};

/// The settings of a sweep: of each library, the product of all values, or each value by
/// itself around the library's defaults. What a library does not take, it says.
pub fn swept(args: &UsersArgs) -> Vec<Setting> {
    let swept = |library: &Library| match library {
        Library::IcRusqlite => true,
        Library::IcSqliteVfs => args.engines.contains(&EngineArg::SqliteVfs),
        Library::DoltLite => args.engines.contains(&EngineArg::Doltlite),
    };
    Library::ALL.into_iter().filter(swept).flat_map(|library| of_library(args, library)).collect()
}

fn of_library(args: &UsersArgs, library: Library) -> Vec<Setting> {
    let modes: Vec<JournalMode> = args.journal_modes.iter().map(|mode| (*mode).into()).collect();
    let levels: Vec<Synchronous> = args.sweep.synchronous.iter().map(|it| (*it).into()).collect();
    let locks: Vec<LockingMode> = args.sweep.locking_modes.iter().map(|it| (*it).into()).collect();
    let (pages, caches) = (&args.sweep.page_sizes, &args.sweep.cache_sizes);
    let of = |sqlite| Setting { sqlite, ..Setting::through(library) };
    let base = match library {
        Library::IcRusqlite => Setting::sqlite(JournalMode::Persist).sqlite,
        Library::IcSqliteVfs | Library::DoltLite => SqliteConfig::default(),
    };
    let without_defaults = |config| without_defaults(library, config);
    let mut settings = vec![of(base)];
    if args.sweep.product {
        settings.clear();
        for mode in modes {
            for page_size in pages {
                for cache_size in caches {
                    for synchronous in &levels {
                        for locking_mode in &locks {
                            settings.push(of(without_defaults(SqliteConfig {
                                journal_mode: Some(mode),
                                page_size: Some(*page_size),
                                cache_size: Some(*cache_size),
                                synchronous: Some(*synchronous),
                                locking_mode: Some(*locking_mode),
                                temp_store: None,
                            })));
                        }
                    }
                }
            }
        }
    } else {
        let journal = |mode| of(SqliteConfig { journal_mode: Some(mode), ..base });
        settings.extend(
            modes
                .iter()
                .copied()
                .map(journal)
                .map(|setting| Setting { sqlite: without_defaults(setting.sqlite), ..setting }),
        );
        let vary = |change: SqliteConfig| of(without_defaults(change));
        settings
            .extend(pages.iter().map(|size| vary(SqliteConfig { page_size: Some(*size), ..base })));
        settings.extend(
            caches.iter().map(|size| vary(SqliteConfig { cache_size: Some(*size), ..base })),
        );
        settings.extend(
            levels.iter().map(|level| vary(SqliteConfig { synchronous: Some(*level), ..base })),
        );
        settings.extend(
            locks.iter().map(|mode| vary(SqliteConfig { locking_mode: Some(*mode), ..base })),
        );
        let wal = modes.contains(&JournalMode::Wal) && library == Library::IcRusqlite;
        if wal && locks.contains(&LockingMode::Normal) {
            settings.push(of(SqliteConfig {
                journal_mode: Some(JournalMode::Wal),
                locking_mode: Some(LockingMode::Normal),
                ..base
            }));
        }
    }
    unique(settings)
}

/// Leaves out what the library chooses anyway, so that each setting has one name.
fn without_defaults(library: Library, config: SqliteConfig) -> SqliteConfig {
    let (journal_mode, page_size, cache_size) = match library {
        // Its journal mode is always in the name.
        Library::IcRusqlite => (None, 4096, 500_000),
        Library::IcSqliteVfs => (Some(JournalMode::Memory), 16_384, -32_768),
        Library::DoltLite => (Some(JournalMode::Wal), 4096, -65_536),
    };
    SqliteConfig {
        journal_mode: config.journal_mode.filter(|mode| Some(*mode) != journal_mode),
        page_size: config.page_size.filter(|size| *size != page_size),
        cache_size: config.cache_size.filter(|size| *size != cache_size),
        synchronous: config.synchronous.filter(|level| *level != Synchronous::Off),
        locking_mode: config.locking_mode.filter(|mode| *mode != LockingMode::Exclusive),
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn args(typed: &[&str]) -> UsersArgs {
        crate::cli::Cli::parse_from([&["stablebench"], typed].concat()).users
    }

    /// Six journal modes, eight page sizes, six caches, four levels, two locks; the
    /// defaults are the same in all; and WAL in the locking mode where it cannot work.
    #[test]
    fn a_sweep_varies_one_thing_at_a_time() {
        let settings = swept(&args(&[]));
        let (vfs, sqlite): (Vec<&Setting>, Vec<&Setting>) =
            settings.iter().partition(|setting| setting.library == Library::IcSqliteVfs);
        assert_eq!(sqlite.len(), 1 + 5 + 7 + 5 + 3 + 1 + 1);
        assert_eq!(sqlite.last().unwrap().key(), "sqlite/wal,locking_mode=normal");
        // Six caches, of which none is its own.
        assert_eq!(vfs.len(), 1 + 5 + 7 + 6 + 3 + 1);
        assert_eq!(vfs[0].key(), "sqlite-vfs");
        assert_eq!(swept(&args(&["--engines=sqlite"])).len(), sqlite.len());
    }

    /// What DoltLite runs with anyway is one setting, all else is asked for.
    #[test]
    fn doltlite_is_swept_where_it_is_asked_for() {
        let settings = swept(&args(&["--engines=doltlite", "--cache-sizes=-2000,-65536"]));
        let keys: Vec<String> = settings
            .iter()
            .filter(|setting| setting.library == Library::DoltLite)
            .map(Setting::key)
            .collect();
        // Without its own log, page size, cache, level and lock.
        assert_eq!(keys.len(), 1 + 5 + 7 + 1 + 3 + 1, "{keys:?}");
        assert!(keys.contains(&"doltlite,cache_size=-2000".to_owned()), "{keys:?}");
        assert!(!keys.contains(&"doltlite/wal".to_owned()), "{keys:?}");
    }

    #[test]
    fn a_full_product_has_every_combination() {
        let settings = swept(&args(&["--product"]));
        assert_eq!(settings.len(), 2 * 6 * 8 * 6 * 4 * 2);
        let few = args(&["--product", "--page-sizes=512", "--cache-sizes=0,100"]);
        assert_eq!(swept(&few).len(), 2 * 6 * 2 * 4 * 2);
    }
}
