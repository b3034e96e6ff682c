//! The cuckoo suite: items in the order of their keys, and lookups in a random order.
//!
//! ```text
//! key of item i   sequential: 2i      as in RocksDB's benchmark
//!                 scattered:  i · span + a random even number below span
//! absent key      one more than the key of an item
//! value           the lowest four bytes of the key, little-endian, as there
//! ```
//!
//! Keys are even, ascending with i, and below 2⁶², so that every engine takes them as they are. The
//! span is a power of two and depends on the number of buckets, not on that of items: a fuller
//! table contains the items of a less full one, and more.
//!
//! The model keeps no items: which there are follows from their number.

use crate::job::{Cuckoo, CuckooKeys, CuckooTask};
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::sql::{Script, StatementCall, Value, ValueRef, add_row};
use stablebench_workload::{ContentDigest, Expected, Model, Rng};

/// Bytes of an item.
pub const ITEM_BYTES: u64 = 12;

/// The statement that creates the table in SQL.
pub const CREATE: &str = "CREATE TABLE cuckoo (id INTEGER PRIMARY KEY, value BLOB NOT NULL)";

const INSERT: &str = "INSERT INTO cuckoo (id, value) VALUES (?, ?)";
const SELECT: &str = "SELECT value FROM cuckoo WHERE id = ?";

/// Keys are below two to this power.
const LARGEST_BITS: u32 = 62;

/// Rounds of the Feistel network of [`Order`].
const ROUNDS: u64 = 4;

/// The items of a job, for every engine.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// The bits that distinguish the keys of one span.
    bits: u32,
    scattered: bool,
    seed: u64,
}

impl Items {
    /// The items of a job.
    pub fn new(job: &Cuckoo, seed: u64) -> Self {
        let scattered = job.keys == CuckooKeys::Scattered;
        let bits = if scattered {
            LARGEST_BITS.saturating_sub(job.buckets.max(1).ilog2()).max(1)
        } else {
            1
        };
        Self { bits, scattered, seed }
    }

    /// The key of an item.
    pub fn key(&self, index: u64) -> u64 {
        let random = match self.scattered {
            true => Rng::new(self.seed.wrapping_add(index)).next_u64(),
            false => 0,
        };
        index << self.bits | random & ((1 << self.bits) - 2)
    }

    /// A key that no item has, next to that of an item.
    pub fn absent(&self, index: u64) -> u64 {
        self.key(index) | 1
    }

    /// The index of the item that has a key, or has one next to it.
    #[inline]
    pub fn index(&self, key: u64) -> u64 {
        key >> self.bits
    }
}

/// The value of a key.
#[inline]
pub fn value(key: u64) -> [u8; 4] {
    (key as u32).to_le_bytes()
}

/// The numbers below a limit in a random order, each once, and any of them without the others.
///
/// A number is split into two halves of bits, and each half in turn is changed by a hash of the
/// other (a Feistel network), which permutes the numbers below a power of four. A result that is not
/// below the limit is permuted again until it is.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    limit: u64,
    seed: u64,
    /// Bits of a half.
    half: u32,
}

impl Order {
    /// The order of a seed.
    pub fn new(limit: u64, seed: u64) -> Self {
        let bits = u64::BITS - limit.saturating_sub(1).leading_zeros();
        Self { limit, seed, half: bits.div_ceil(2) }
    }

    /// The number at a position. Positions past the limit repeat the order. 0 if there are no
    /// numbers.
    pub fn place(&self, position: u64) -> u64 {
        let Some(mut number) = position.checked_rem(self.limit) else {
            return 0;
        };
        loop {
            number = self.shuffled(number);
            if number < self.limit {
                return number;
            }
        }
    }

    fn shuffled(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut high, mut low) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            let state = self.seed ^ (round << 62) ^ low;
            (high, low) = (low, high ^ (Rng::new(state).next_u64() & mask));
        }
        high << self.half | low
    }
}

/// The keys of a part in its order. Lookups past the last item repeat the order.
pub fn keys(part: &JobPart, job: &Cuckoo) -> Vec<u64> {
    let items = Items::new(job, part.seed);
    let order = Order::new(job.items, part.seed);
    let operations = part.from..part.from.saturating_add(part.count);
    match job.task {
        CuckooTask::Build => operations.map(|index| items.key(index)).collect(),
        CuckooTask::Hit(_) => operations.map(|index| items.key(order.place(index))).collect(),
        CuckooTask::Miss(_) => operations.map(|index| items.absent(order.place(index))).collect(),
    }
}

/// A part in SQL.
pub fn script(part: &JobPart, job: &Cuckoo) -> Script {
    let writes = job.task == CuckooTask::Build;
    let call = |key: u64| {
        let mut parameters = vec![Value::Integer(key as i64)];
        if writes {
            parameters.push(Value::Blob(value(key).to_vec()));
        }
        vec![StatementCall { statement: 0, parameters }]
    };
    Script {
        statements: vec![if writes { INSERT } else { SELECT }.to_owned()],
        operations: keys(part, job).into_iter().map(call).collect(),
        writes,
        ..Script::default()
    }
}

/// Adds an item to the digest of all items.
pub fn add_item(digest: &mut ContentDigest, key: u64, value: &[u8]) {
    add_row(digest, 0, [ValueRef::Integer(key as i64), ValueRef::Blob(value)]);
}

/// Adds a value that was looked up to the digest of the results.
pub fn add_found(digest: &mut ContentDigest, place: u64, value: &[u8]) {
    add_row(digest, place, [ValueRef::Blob(value)]);
}

/// The items that were added so far.
#[derive(Clone, Debug, Default)]
pub struct CuckooModel {
    items: u64,
    content: ContentDigest,
}

impl CuckooModel {
    fn build(&mut self, keys: &[u64]) -> Expected {
        for key in keys {
            add_item(&mut self.content, *key, &value(*key));
            self.items += 1;
        }
        let rows = keys.len() as u64;
        Expected { rows, bytes: rows * ITEM_BYTES, results: None }
    }

    fn look_up(&self, keys: &[u64], items: &Items) -> Expected {
        let mut expected = Expected::default();
        let mut results = ContentDigest::default();
        for key in keys {
            let index = items.index(*key);
            if index < self.items && items.key(index) == *key {
                add_found(&mut results, expected.rows, &value(*key));
                expected.rows += 1;
                expected.bytes += 4;
            }
        }
        Expected { results: Some(results.value()), ..expected }
    }
}

impl Model for CuckooModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: Cuckoo = part.job.decode()?;
        let keys = keys(part, &job);
        Ok(match job.task {
            CuckooTask::Build => self.build(&keys),
            CuckooTask::Hit(_) | CuckooTask::Miss(_) => {
                self.look_up(&keys, &Items::new(&job, part.seed))
            }
        })
    }

    fn content(&self) -> Digest {
        self.content.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
