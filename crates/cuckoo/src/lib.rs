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
mod error;
mod fixed;
mod layout;
mod plan;
mod table;

pub use builder::Builder;
pub use error::Error;
pub use fixed::{Bytes, Fixed};
pub use plan::{FirstHash, Plan};
pub use table::{Cuckoo, Items};

/// The example of README.md, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
