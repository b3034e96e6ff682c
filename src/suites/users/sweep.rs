//! The settings of SQLite that the section `settings` goes through.

use stablebench_protocol::{Engine, JournalMode, LockingMode, SqliteConfig, Synchronous};

use super::setting::Setting;
use super::unique;
use crate::cli::UsersArgs;

/// The settings of a sweep: the product of all values, or each value by itself around
/// the library's defaults.
pub fn swept(args: &UsersArgs) -> Vec<Setting> {
    let modes: Vec<JournalMode> = args.journal_modes.iter().map(|mode| (*mode).into()).collect();
    let levels: Vec<Synchronous> = args.sweep.synchronous.iter().map(|it| (*it).into()).collect();
    let locks: Vec<LockingMode> = args.sweep.locking_modes.iter().map(|it| (*it).into()).collect();
    let (pages, caches) = (&args.sweep.page_sizes, &args.sweep.cache_sizes);
    let of = |sqlite: SqliteConfig| Setting { engine: Engine::Sqlite, sqlite };
    let base = SqliteConfig { journal_mode: Some(JournalMode::Persist), ..SqliteConfig::default() };
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
        settings.extend(modes.iter().copied().map(journal));
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
        if modes.contains(&JournalMode::Wal) && locks.contains(&LockingMode::Normal) {
            settings.push(of(SqliteConfig {
                journal_mode: Some(JournalMode::Wal),
                locking_mode: Some(LockingMode::Normal),
                ..base
            }));
        }
    }
    unique(settings)
}

/// Leaves out what `ic-rusqlite` chooses anyway, so that each setting has one name.
fn without_defaults(config: SqliteConfig) -> SqliteConfig {
    SqliteConfig {
        page_size: config.page_size.filter(|size| *size != 4096),
        cache_size: config.cache_size.filter(|size| *size != 500_000),
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

    /// Six journal modes, eight page sizes, four caches, four levels, two locks; the
    /// defaults are the same in all; and WAL in the locking mode where it cannot work.
    #[test]
    fn a_sweep_varies_one_thing_at_a_time() {
        let settings = swept(&args(&[]));
        assert_eq!(settings.len(), 1 + 5 + 7 + 3 + 3 + 1 + 1);
        let last = settings.last().unwrap().key();
        assert_eq!(last, "sqlite/wal,locking_mode=normal");
    }

    #[test]
    fn a_full_product_has_every_combination() {
        let settings = swept(&args(&["--product"]));
        assert_eq!(settings.len(), 6 * 8 * 4 * 4 * 2);
        let few = args(&["--product", "--page-sizes=512", "--cache-sizes=0,100"]);
        assert_eq!(swept(&few).len(), 6 * 2 * 4 * 2);
    }
}
