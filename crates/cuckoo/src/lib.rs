//! A read-only hash table in the stable memory of a canister, for lookups by key.
//!
//! A lookup is one read of stable memory, sometimes two, for any number of items; a search tree reads a
//! node for each of its levels. In return, the table is built once, from sorted items, and then only
//! read. There are no inserts, no deletes, and no ranges. Keys and values have fixed lengths.
//!
//! That fits data that is published from time to time and read often: prices, allow
//! lists, airdrops, snapshots of balances, lookups of identifiers. A newer table is
//! built in another memory, over one message or many, and takes the older one's place.
//!
//! ```
//! use ic_stable_structures::VectorMemory;
//! use stablebench_cuckoo::{Builder, Cuckoo, Error, Plan};
//!
//! # fn main() -> Result<(), Error> {
//! // In a canister: a memory of the MemoryManager.
//! let memory = VectorMemory::default();
//!
//! let mut builder = Builder::<u64, u32, _>::new(memory.clone(), Plan::for_items(1_000))?;
//! builder.extend((0..500).map(|id| (id * 2, id as u32)))?;
//! // The next message, even after an upgrade:
//! let mut builder = Builder::<u64, u32, _>::resume(memory.clone())?;
//! builder.extend((500..1_000).map(|id| (id * 2, id as u32)))?;
//! builder.finish();
//!
//! // After an upgrade too:
//! let table = Cuckoo::<u64, u32, _>::open(memory)?;
//! assert_eq!(table.get(&14), Some(7));
//! assert_eq!(table.get(&15), None);
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Two hashes of a key point to two blocks of neighbouring buckets, and the key is in
//! one of them (cuckoo hashing, with blocks as in RocksDB's `CuckooTable`):
//!
//! ```text
//!           ┌──────── the first hash, modulo the buckets
//!           ▼
//! header │ b0 b1 b2 b3 b4 b5 b6 b7 … b(n−1)  …  b(n+block−2) │
//!           └── block of 5 ──┘        └ the last block has neighbours too
//! bucket = key, value;   empty = zeros
//! ```
//!
//! The key of zeros itself is in the header. A lookup reads the first block; if neither
//! the key nor an empty bucket is in it, the second. An item that finds both of its
//! blocks full when it is added makes others move to their other blocks; if a bounded
//! search finds none that can, the item is refused, and the table needs more buckets.
//!
//! With two hashes and blocks of 5, tables that are 90 % full are built with ease; see
//! [`Plan`]. The fewer buckets are empty, the more lookups need the second block.
//!
//! # What it costs
//!
//! * Stable memory: a bucket is exactly as long as a key and a value. The header
//!   takes 48 bytes and those of one bucket.
//! * Heap: one block. While building: one search, `Plan::search` items at most.
//! * Opening reads the header and checks it: magic, version, lengths, checksum, and that
//!   the memory is as long as the table. Bytes of the buckets are not checked.
//!
//! After each call of [`Builder::extend`], [`Builder::resume`] can continue the build. If a message traps, the system undoes its changes:
//! drop the builder with it and resume.

#![forbid(unsafe_code)]

mod builder;
mod layout;
mod table;

pub use builder::Builder;
pub use layout::{FirstHash, Plan};
pub use table::{Bytes, Cuckoo, Fixed, Items};

/// The example of README.md, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The reason why a table cannot be built or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key is smaller than the one before it.
    #[error("item {item} is not in order: its key is smaller than the one before it")]
    NotSorted {
        /// The item, counted from 0 over the whole build.
        item: u64,
    },
    /// A key occurs twice.
    #[error("item {item} has the same key as the one before it")]
    Duplicate {
        /// The item, counted from 0 over the whole build.
        item: u64,
    },
    /// No place was found for a key within the plan's bound.
    #[error(
        "item {item} finds no place: {searched} buckets were searched, and all are full. \
         The table is {} % full ({item} items in {buckets} buckets): build it with more \
         buckets, larger blocks, or a longer search",
        percent(*.item, *.buckets)
    )]
    CannotPlace {
        /// The item, counted from 0 over the whole build, and the number of items placed.
        item: u64,
        /// The buckets that the plan gave the table.
        buckets: u64,
        /// The number of buckets that were searched for one that could be emptied.
        searched: u64,
    },
    /// An impossible plan.
    #[error("a table needs one bucket or more, blocks of one or more, and fewer than 2^64 bytes")]
    UnsoundPlan,
    /// The memory cannot grow as far as needed.
    #[error("the memory cannot grow to {pages} pages of 64 KiB")]
    OutOfMemory {
        /// The wasm pages needed.
        pages: u64,
    },
    /// The memory for a new table is not empty.
    #[error("the memory is not empty; replace() builds over an older table")]
    NotEmpty,
    /// The memory has no table.
    #[error("the memory has no cuckoo table")]
    Foreign,
    /// The table has an unknown version.
    #[error("the table has version {found}; this crate knows version {known}")]
    Version {
        /// Its version.
        found: u8,
        /// The version known here.
        known: u8,
    },
    /// Keys or values have other lengths than the types that the table is opened with.
    #[error(
        "the table has keys of {key} and values of {value} bytes, not {key_asked} and \
         {value_asked}"
    )]
    Lengths {
        /// Bytes of its keys.
        key: u32,
        /// Bytes of its values.
        value: u32,
        /// Bytes of the keys asked for.
        key_asked: u32,
        /// Bytes of the values asked for.
        value_asked: u32,
    },
    /// The header's checksum is not that of its bytes.
    #[error("the table's header is damaged")]
    Damaged,
    /// The memory ends before the table does.
    #[error("the table takes {needed} bytes, and its memory has {found}")]
    Truncated {
        /// The bytes of the table according to its header.
        needed: u64,
        /// The bytes of the memory.
        found: u64,
    },
    /// The table was not finished.
    #[error("the table is still being built: {items} items so far")]
    Unfinished {
        /// Items placed so far.
        items: u64,
    },
    /// A finished table cannot be added to.
    #[error("the table is finished: nothing can be added")]
    Finished,
}

/// A share in percent with two decimals.
fn percent(items: u64, buckets: u64) -> String {
    let hundredths = u128::from(items) * 10_000 / u128::from(buckets.max(1));
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
