//! The suite mix in a canister: a table of SQLite, or maps of stable structures.
//!
//! ```text
//!   memory 0        map of rows     id              → columns, payload
//!   memory 1 + n    map of index n  column n, id    → nothing
//! ```
//!
//! Positions in the content of the maps: those of rows are ids; those of index n are n + 1 in the bits above
//! the column's, and the column.

use crate::job::{Mix, MixTask};
use crate::work::{
    COLUMN_BITS, MixRow, Operation, OperationGenerator, SCANNED, contents, create, script,
};
use ic_stable_structures::storable::Bound;
use ic_stable_structures::{BTreeMap, Memory, Storable};
use stablebench_harness::sql::{self, ContentTable, MeasuredScript};
use stablebench_harness::{Canister, Staged, Suite, instructions, measure, measure_step};
use stablebench_protocol::{
    Digest, Engine, Error, Inspected, JobPart, OperationCost, PartCost, Result, Storage,
};
use stablebench_workload::{Amount, ContentDigest};
use std::borrow::Cow;
use std::hint::black_box;

/// A canister with a table of the suite.
pub trait MixCanister: Canister {
    /// Returns the table in maps of stable structures.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn mix_maps(&mut self) -> Result<&mut dyn MixTable> {
        Err(Error::EngineUnavailable { engine: Engine::BTREE })
    }
}

/// A table with indexes, without SQL.
pub trait MixTable {
    /// Work: opens the table if it is closed, and executes operations. Reads the counter around each of
    /// the elements if asked for.
    fn execute(
        &mut self,
        indexes: u32,
        operations: &[Vec<Operation>],
        costs: Option<&mut Vec<OperationCost>>,
    ) -> Amount;

    /// Adds the rows that operations read to a digest.
    fn read(&mut self, indexes: u32, operation: &Operation, digest: &mut ContentDigest);

    /// Adds at most `limit` rows and entries of indexes to a digest, starting at a position. Returns the
    /// next one, if there is one.
    fn content(
        &mut self,
        indexes: u32,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Option<u64>;

    /// Returns the storage of the table.
    fn inspect(&self, indexes: u32) -> Inspected;
}

impl<C: MixCanister> Suite<C> for Mix {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        let sql = self.engine == Engine::SQLITE;
        if self.task == MixTask::Create {
            let statements = create(self.indexes);
            return Ok(Staged::writing(move |canister: &mut C| {
                let measurement = if sql {
                    let sql = canister.sql(Storage::Stable)?;
                    measure_step(|| sql.batch(&statements))
                } else {
                    let maps = canister.mix_maps()?;
                    measure(|| Ok(maps.execute(self.indexes, &[], None)))
                };
                Ok(measurement?.into())
            }));
        }
        if sql {
            let script = script(&self, part.seed, part.from, part.count);
            return Ok(MeasuredScript::new(script, part.each).staged(Storage::Stable));
        }
        let operations = operations(&self, part);
        let each = part.each;
        let writes = !matches!(self.task, MixTask::Message(operations) if !operations.write());
        Ok(Staged::new(writes, move |canister: &mut C| {
            let maps = canister.mix_maps()?;
            let mut costs = Vec::new();
            if each {
                // Allocating is not part of the work.
                costs.reserve_exact(operations.len());
            }
            let measurement = measure(|| {
                Ok(maps.execute(self.indexes, &operations, each.then_some(&mut costs)))
            })?;
            Ok(PartCost { measurement, each: costs })
        }))
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        let MixTask::Message(all) = self.task else {
            return Ok(None);
        };
        if all.write() {
            return Ok(None);
        }
        if self.engine == Engine::SQLITE {
            let script = script(self, part.seed, part.from, part.count);
            return sql::results(canister.sql(Storage::Stable)?, &script);
        }
        let maps = canister.mix_maps()?;
        let mut digest = ContentDigest::default();
        for operation in operations(self, part).iter().flatten() {
            maps.read(self.indexes, operation, &mut digest);
        }
        Ok(Some(digest.value()))
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        if self.engine != Engine::SQLITE {
            return Ok(canister.mix_maps()?.content(self.indexes, position, limit, digest));
        }
        let texts = contents(self.indexes);
        let tables: Vec<ContentTable<'_>> = texts
            .iter()
            .map(|[name, columns, order]| ContentTable { name, columns, order })
            .collect();
        sql::content(canister.sql(Storage::Stable)?, &tables, position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        match self.engine {
            Engine::SQLITE => sql::inspect(canister.sql(Storage::Stable)?),
            _ => Ok(canister.mix_maps()?.inspect(self.indexes)),
        }
    }
}

fn operations(job: &Mix, part: &JobPart) -> Vec<Vec<Operation>> {
    OperationGenerator { job, seed: part.seed }
        .operations(part.from..part.from.saturating_add(part.count))
}

/// A row without its id, as it is stored: the number of columns, the columns, the payload.
#[derive(Clone, Debug)]
struct StoredRow {
    columns: Vec<u64>,
    payload: String,
}

impl Storable for StoredRow {
    const BOUND: Bound = Bound::Unbounded;

    fn to_bytes(&self) -> Cow<'_, [u8]> {
        let mut bytes = Vec::with_capacity(1 + 8 * self.columns.len() + self.payload.len());
        bytes.push(self.columns.len() as u8);
        for column in &self.columns {
            bytes.extend_from_slice(&column.to_le_bytes());
        }
        bytes.extend_from_slice(self.payload.as_bytes());
        Cow::Owned(bytes)
    }

    fn into_bytes(self) -> Vec<u8> {
        self.to_bytes().into_owned()
    }

    fn from_bytes(bytes: Cow<'_, [u8]>) -> Self {
        let (columns, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let (columns, payload) = rest.split_at((8 * *columns as usize).min(rest.len()));
        let (columns, _) = columns.as_chunks::<8>();
        Self {
            columns: columns.iter().map(|column| u64::from_le_bytes(*column)).collect(),
            payload: String::from_utf8_lossy(payload).into_owned(),
        }
    }
}

impl StoredRow {
    fn row(self, id: u64) -> MixRow {
        MixRow { id, columns: self.columns, payload: self.payload }
    }
}

/// A table in maps of stable structures, opened when it is needed.
pub struct Maps<M: Memory> {
    /// The memory with a number: 0 of the rows, then of each index.
    memory: fn(u8) -> M,
    /// The bytes of a memory that a map uses.
    stored_bytes: fn(&M) -> u64,
    open: Option<OpenMaps<M>>,
}

struct OpenMaps<M: Memory> {
    rows: BTreeMap<u64, StoredRow, M>,
    indexes: Vec<BTreeMap<(u64, u64), (), M>>,
}

impl<M: Memory> Maps<M> {
    /// Maps in these memories.
    pub const fn new(memory: fn(u8) -> M, stored_bytes: fn(&M) -> u64) -> Self {
        Self { memory, stored_bytes, open: None }
    }

    fn opened(&mut self, indexes: u32) -> &mut OpenMaps<M> {
        let memory = self.memory;
        self.open.get_or_insert_with(|| OpenMaps {
            rows: BTreeMap::init(memory(0)),
            indexes: (1..=indexes).map(|index| BTreeMap::init(memory(index as u8))).collect(),
        })
    }
}

impl<M: Memory> OpenMaps<M> {
    #[inline]
    fn put(&mut self, row: MixRow) {
        let MixRow { id, columns, payload } = row;
        let old = self.rows.insert(id, StoredRow { columns: columns.clone(), payload });
        for (place, index) in self.indexes.iter_mut().enumerate() {
            if let Some(old) = &old {
                index.remove(&(old.columns[place], id));
            }
            index.insert((columns[place], id), ());
        }
    }

    #[inline]
    fn remove(&mut self, id: u64) -> bool {
        let Some(old) = self.rows.remove(&id) else {
            return false;
        };
        for (index, column) in self.indexes.iter_mut().zip(old.columns) {
            index.remove(&(column, id));
        }
        true
    }

    /// Visits the rows that an operation reads.
    #[inline]
    fn visit(&self, operation: &Operation, mut visit: impl FnMut(MixRow)) {
        match operation {
            Operation::Read(id) => {
                if let Some(row) = self.rows.get(id) {
                    visit(row.row(*id));
                }
            }
            Operation::Scan(id) => {
                for entry in self.rows.range(*id..).take(SCANNED as usize) {
                    visit(entry.value().row(*entry.key()));
                }
            }
            Operation::Insert(_) | Operation::Update(_) | Operation::Delete(_) => {}
        }
    }

    fn execute(&mut self, operation: &Operation, done: &mut Amount) {
        match operation {
            Operation::Insert(row) | Operation::Update(row) => {
                *done += Amount { rows: 1, bytes: row.bytes() };
                self.put(row.clone());
            }
            Operation::Delete(id) => {
                *done += Amount { rows: self.remove(*id).into(), bytes: 8 };
            }
            Operation::Read(_) | Operation::Scan(_) => self.visit(operation, |row| {
                *done += Amount { rows: 1, bytes: row.bytes() };
                black_box(row);
            }),
        }
    }
}

impl<M: Memory> MixTable for Maps<M> {
    fn execute(
        &mut self,
        indexes: u32,
        operations: &[Vec<Operation>],
        mut costs: Option<&mut Vec<OperationCost>>,
    ) -> Amount {
        let open = self.opened(indexes);
        let mut done = Amount::default();
        for message in operations {
            let before = costs.is_some().then(instructions);
            for operation in message {
                open.execute(operation, &mut done);
            }
            if let (Some(costs), Some(before)) = (&mut costs, before) {
                costs.push(OperationCost { instructions: instructions() - before, allocated: 0 });
            }
        }
        done
    }

    fn read(&mut self, indexes: u32, operation: &Operation, digest: &mut ContentDigest) {
        self.opened(indexes).visit(operation, |row| {
            let place = digest.value().rows;
            row.digest(digest, place);
        });
    }

    fn content(
        &mut self,
        indexes: u32,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Option<u64> {
        let open = self.opened(indexes);
        let mut left = limit;
        let (map, from) = (position >> COLUMN_BITS, position & ((1 << COLUMN_BITS) - 1));
        if map == 0 {
            for entry in open.rows.range(from..) {
                if left == 0 {
                    return Some(*entry.key());
                }
                left -= 1;
                entry.value().row(*entry.key()).digest(digest, 0);
            }
        }
        for (number, index) in (0..).zip(&open.indexes) {
            if number + 1 < map {
                continue;
            }
            let from = if number + 1 == map { from } else { 0 };
            for entry in index.range((from, 0)..) {
                let (column, id) = *entry.key();
                if left == 0 {
                    return Some((number + 1) << COLUMN_BITS | column);
                }
                left -= 1;
                MixRow::digest_entry(digest, number, column, id);
            }
        }
        None
    }

    fn inspect(&self, indexes: u32) -> Inspected {
        let memories = || (0..=indexes).map(|number| (self.memory)(number as u8));
        Inspected {
            stored_bytes: memories().map(|memory| (self.stored_bytes)(&memory)).sum(),
            virtual_bytes: memories().map(|memory| memory.size() << 16).sum(),
            cache_bytes: 0,
            sqlite: None,
            objects: Vec::new(),
        }
    }
}
