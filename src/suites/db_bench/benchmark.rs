//! The benchmarks of `db_bench_sqlite3`, and what each is made of.

use clap::ValueEnum;
use stablebench_protocol::{DbBenchTask, DbBenchWrite};

use crate::cli::DbBenchArgs;

/// Entries a transaction of a …batch benchmark.
pub const BATCH: u64 = 1_000;
/// Bytes of a value of a …100K benchmark.
const LARGE_VALUE: u32 = 100_000;
/// A …sync benchmark writes one in so many keys.
const SYNC_ONE_IN: u64 = 100;
/// A …100K benchmark is about one in so many keys.
const LARGE_ONE_IN: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// Keys in order into an empty store, each in a transaction of its own.
    Fillseq,
    /// The same for a hundredth of the keys, each synced.
    Fillseqsync,
    /// Keys in order into an empty store, 1000 a transaction.
    Fillseqbatch,
    /// Random keys into an empty store, each in a transaction of its own.
    Fillrandom,
    /// The same for a hundredth of the keys, each synced.
    Fillrandsync,
    /// Random keys into an empty store, 1000 a transaction.
    Fillrandbatch,
    /// Random keys into what is there, each in a transaction of its own.
    Overwrite,
    /// Random keys into what is there, 1000 a transaction.
    Overwritebatch,
    /// Looks random keys up.
    Readrandom,
    /// Reads what is there in the order of keys.
    Readseq,
    /// A thousandth of the keys in random order, values of 100000 bytes, into an empty store.
    #[value(name = "fillrand100K")]
    Fillrand100K,
    /// The same in the order of keys.
    #[value(name = "fillseq100K")]
    Fillseq100K,
    /// Looks a thousandth of the keys up at random.
    #[value(name = "readrand100K")]
    Readrand100K,
}

/// A benchmark that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Whether the store is emptied first.
    pub fresh: bool,
    /// Whether SQLite is to sync.
    pub sync: bool,
    /// Operations.
    pub entries: u64,
    pub write: DbBenchWrite,
}

impl Benchmark {
    /// What `db_bench` runs where nothing is typed.
    pub const ALL: [Self; 14] = [
        Self::Fillseq,
        Self::Fillseqsync,
        Self::Fillseqbatch,
        Self::Fillrandom,
        Self::Fillrandsync,
        Self::Fillrandbatch,
        Self::Overwrite,
        Self::Overwritebatch,
        Self::Readrandom,
        Self::Readseq,
        Self::Fillrand100K,
        Self::Fillseq100K,
        Self::Readseq,
        Self::Readrand100K,
    ];

    /// How it writes, where it does; `stream` is its place in the run.
    pub fn fill(self, args: &DbBenchArgs, stream: u64) -> Option<Fill> {
        let random = match self {
            Self::Readrandom | Self::Readseq | Self::Readrand100K => return None,
            Self::Fillseq | Self::Fillseqsync | Self::Fillseqbatch | Self::Fillseq100K => false,
            Self::Fillrandom
            | Self::Fillrandsync
            | Self::Fillrandbatch
            | Self::Overwrite
            | Self::Overwritebatch
            | Self::Fillrand100K => true,
        };
        let sync = matches!(self, Self::Fillseqsync | Self::Fillrandsync);
        let large = self.fills_large();
        let batched =
            matches!(self, Self::Fillseqbatch | Self::Fillrandbatch | Self::Overwritebatch);
        let entries = match (sync, large) {
            (true, _) => part(args.num, SYNC_ONE_IN),
            (_, true) => part(args.num, LARGE_ONE_IN),
            _ => args.num,
        };
        let write = DbBenchWrite {
            random,
            keys: entries,
            value_bytes: if large { LARGE_VALUE } else { args.value_size },
            batch: if batched { BATCH } else { 1 },
            stream,
        };
        let fresh = !matches!(self, Self::Overwrite | Self::Overwritebatch);
        Some(Fill { fresh, sync, entries, write })
    }

    /// How it looks keys up, where it does, and how many.
    pub fn lookups(self, args: &DbBenchArgs, stream: u64) -> Option<(DbBenchTask, u64)> {
        let reads = args.reads.unwrap_or(args.num);
        let keys = match self {
            Self::Readrandom => reads,
            Self::Readrand100K => part(reads, LARGE_ONE_IN),
            _ => return None,
        };
        Some((DbBenchTask::ReadRandom { keys, stream }, keys))
    }

    /// Whether the store holds values of 100 000 bytes afterwards.
    pub fn fills_large(self) -> bool {
        matches!(self, Self::Fillrand100K | Self::Fillseq100K)
    }
}

/// One in so many; a run with few keys does everything at least once.
fn part(of: u64, one_in: u64) -> u64 {
    (of / one_in).max(1)
}

impl std::fmt::Display for Benchmark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::suites::command::typed(self))
    }
}
