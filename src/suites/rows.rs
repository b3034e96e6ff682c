//! Work on the rows of the users suite: an operation, the rows that it selects, and the model
//! that checks it.
//!
//! Rows have the ids 0, 10, 20, …; rows that are added in between end in 5.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{Digest, Engine, Operation, Selection};
use stablebench_workload::payload::Payload;
use stablebench_workload::{ContentDigest, Ids, Rng, access, ids::STEP};

use crate::report::number::Grouped;

/// An operation on rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Insert,
    /// Upsert of rows that exist.
    Overwrite,
    Update,
    Delete,
    /// Lookups of rows that exist.
    Read,
    /// Lookups of rows that do not exist.
    Miss,
    /// Reads of so many rows in order, each from a row that exists.
    Range(u64),
    /// A read of all rows in order.
    Scan,
    /// The number of rows.
    Count,
}

/// The rows that an operation selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neighbours in the middle of the table.
    Middle,
    /// After the last row.
    End,
    /// Evenly spaced over all rows, ascending.
    Spread,
    /// Any row with the same likelihood.
    Uniform,
    /// The rows of [`Uniform`](Self::Uniform), in the order of their ids.
    Sorted,
    /// Any of so many neighbours in the middle, with the same likelihood.
    Among(u64),
    /// Some rows much more often than others.
    Zipf,
    /// All rows.
    All,
}

/// Work on the rows of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub verb: Verb,
    pub access: Access,
    /// Rows, lookups or ranges.
    pub operations: u64,
    /// Operations a transaction; `None` for all in one.
    pub transaction: Option<u64>,
}

/// The ids of a table before the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// No row yet.
    Empty,
    /// The ids 0, 10, 20, …
    Populated(u64),
    /// The same after random deletes and inserts.
    Churned(u64),
}

/// One row of so many is deleted by a churn, and another one inserted.
const CHURNED_ONE_IN: u64 = 10;

impl Work {
    /// Work in one transaction.
    pub fn new(verb: Verb, access: Access, operations: u64) -> Self {
        Self { verb, access, operations, transaction: None }
    }

    /// The operation as canisters take it, the same for every engine.
    ///
    /// # Errors
    ///
    /// If the rows do not fit into the table.
    pub fn operation(&self, table: Table, seed: u64) -> Result<Operation> {
        let selection = || self.select(&Keys::of(table, seed), seed);
        Ok(match self.verb {
            Verb::Insert => Operation::Insert(selection()?),
            Verb::Overwrite => Operation::Overwrite(selection()?),
            Verb::Update => Operation::Update(selection()?),
            Verb::Delete => Operation::Delete(selection()?),
            Verb::Read | Verb::Miss => Operation::Read(selection()?),
            Verb::Range(rows) => Operation::Range { from: selection()?, rows },
            Verb::Scan => Operation::Scan(self.operations),
            Verb::Count => Operation::Count,
        })
    }

    /// Checks, before anything is populated, that the rows fit into a table of so many rows.
    ///
    /// # Errors
    ///
    /// Advises other numbers if they do not.
    pub fn check(&self, rows: u64) -> Result<()> {
        if self.verb != Verb::Insert {
            return Ok(());
        }
        let last = rows.saturating_sub(1) * STEP;
        match self.access {
            Access::Middle => {
                Ids::middle(Some(last), self.operations).with_context(|| {
                    format!(
                        "{} rows cannot be added in the middle of {}; choose other --batches or \
                         more --rows",
                        Grouped(self.operations),
                        Grouped(rows)
                    )
                })?;
            }
            Access::Spread | Access::Uniform | Access::Sorted => ensure!(
                self.operations <= rows,
                "{} rows cannot be added between {}; choose other --batches or more --rows",
                Grouped(self.operations),
                Grouped(rows)
            ),
            Access::End | Access::Among(_) | Access::Zipf | Access::All => {}
        }
        Ok(())
    }

    fn select(&self, keys: &Keys, seed: u64) -> Result<Selection> {
        let (rows, count) = (keys.rows, self.operations);
        // Sorted access selects the same rows as uniform access.
        let drawn = if self.access == Access::Sorted { Access::Uniform } else { self.access };
        let mut rng = random(seed, &format!("{} {drawn}", self.verb));
        let last = (rows > 0).then(|| keys.last());
        let absent = matches!(self.verb, Verb::Insert | Verb::Miss);
        let offset = if absent { STEP / 2 } else { 0 };
        let middle = |count: u64| (rows / 2).saturating_sub(count / 2);
        // A row can be inserted or deleted only once.
        let once = matches!(self.verb, Verb::Insert | Verb::Delete);
        let mut numbers = match self.access {
            Access::Middle if self.verb == Verb::Insert => {
                return Ok(step(Ids::middle(last, count)?));
            }
            Access::Middle => {
                let first = middle(count);
                (first..first + count.min(rows)).collect()
            }
            Access::End => return Ok(step(Ids::end(last, count)?)),
            Access::Spread | Access::All => {
                let apart = (rows / count.max(1)).max(1);
                return Ok(step(Ids::new(offset, STEP * apart, count)?));
            }
            Access::Zipf => access::zipf(&mut rng, rows, count),
            Access::Uniform | Access::Sorted if once => access::distinct(&mut rng, rows, count),
            Access::Uniform | Access::Sorted => access::uniform(&mut rng, rows, count),
            Access::Among(set) => {
                let set = set.min(rows);
                let first = middle(set);
                let drawn = access::uniform(&mut rng, set, count);
                drawn.into_iter().map(|number| first + number).collect()
            }
        };
        if self.access == Access::Sorted {
            numbers.sort_unstable();
        }
        let id = |number| keys.id(number) + offset;
        Ok(Selection::List(numbers.into_iter().map(id).collect()))
    }
}

/// The ids of a table, ascending.
struct Keys {
    rows: u64,
    /// `None` for 0, 10, 20, …
    ids: Option<Vec<u64>>,
}

impl Keys {
    fn of(table: Table, seed: u64) -> Self {
        match table {
            Table::Empty => Self { rows: 0, ids: None },
            Table::Populated(rows) => Self { rows, ids: None },
            Table::Churned(rows) => {
                let churn = Churn::of(rows, seed);
                let mut deleted = churn.deleted;
                deleted.sort_unstable();
                let all = (0..rows).map(|number| number * STEP);
                let mut ids: Vec<u64> =
                    all.filter(|id| deleted.binary_search(id).is_err()).collect();
                ids.extend(churn.inserted);
                ids.sort_unstable();
                Self { rows: ids.len() as u64, ids: Some(ids) }
            }
        }
    }

    fn id(&self, number: u64) -> u64 {
        match &self.ids {
            None => number * STEP,
            Some(ids) => ids.get(number as usize).copied().unwrap_or_default(),
        }
    }

    fn last(&self) -> u64 {
        self.id(self.rows.saturating_sub(1))
    }
}

/// Random rows that are deleted, and as many that are inserted between others.
pub struct Churn {
    pub deleted: Vec<u64>,
    pub inserted: Vec<u64>,
}

impl Churn {
    /// The churn of a populated table of so many rows.
    pub fn of(rows: u64, seed: u64) -> Self {
        let count = rows / CHURNED_ONE_IN;
        let mut rng = random(seed, "churn");
        let deleted = access::distinct(&mut rng, rows, count);
        let inserted = access::distinct(&mut rng, rows, count);
        Self {
            deleted: deleted.into_iter().map(|number| number * STEP).collect(),
            inserted: inserted.into_iter().map(|number| number * STEP + STEP / 2).collect(),
        }
    }
}

/// A generator for one purpose, so that one choice does not depend on another.
fn random(seed: u64, purpose: &str) -> Rng {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(purpose).finalize();
    let mut start = [0; 8];
    start.copy_from_slice(&hash[..8]);
    Rng::new(u64::from_le_bytes(start))
}

fn step(ids: Ids) -> Selection {
    Selection::Step { first: ids.first(), step: ids.step(), rows: ids.rows() }
}

/// The ids of a selection, in their order.
pub fn ids(selection: &Selection) -> Box<dyn Iterator<Item = u64> + '_> {
    match selection {
        Selection::Step { first, step, rows } => {
            Box::new((0..*rows).map(move |row| first + row * step))
        }
        Selection::List(ids) => Box::new(ids.iter().copied()),
    }
}

/// The number of ids of a selection.
pub fn count(selection: &Selection) -> u64 {
    match selection {
        Selection::Step { rows, .. } => *rows,
        Selection::List(ids) => ids.len() as u64,
    }
}

/// The rows that an operation names; `None` if it reads all.
pub fn selection(operation: &Operation) -> Option<&Selection> {
    match operation {
        Operation::Insert(selection)
        | Operation::Overwrite(selection)
        | Operation::Update(selection)
        | Operation::Delete(selection)
        | Operation::Read(selection)
        | Operation::Range { from: selection, .. } => Some(selection),
        Operation::Scan(_) | Operation::Count => None,
    }
}

/// True if the operation changes rows.
pub fn writes(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Insert(_)
            | Operation::Overwrite(_)
            | Operation::Update(_)
            | Operation::Delete(_)
    )
}

/// The operation on `count` of its rows, after the first `from`.
pub fn part(operation: &Operation, from: u64, count: u64) -> Operation {
    let narrow = |selection: &Selection| match selection {
        Selection::Step { first, step, .. } => {
            Selection::Step { first: first + from * step, step: *step, rows: count }
        }
        Selection::List(ids) => {
            Selection::List(ids[from as usize..(from + count) as usize].to_vec())
        }
    };
    match operation {
        Operation::Insert(ids) => Operation::Insert(narrow(ids)),
        Operation::Overwrite(ids) => Operation::Overwrite(narrow(ids)),
        Operation::Update(ids) => Operation::Update(narrow(ids)),
        Operation::Delete(ids) => Operation::Delete(narrow(ids)),
        Operation::Read(ids) => Operation::Read(narrow(ids)),
        Operation::Range { from: ids, rows } => Operation::Range { from: narrow(ids), rows: *rows },
        Operation::Scan(_) | Operation::Count => operation.clone(),
    }
}

/// Neighbouring rows, in the order in which an engine digests them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// The position of the first one, as the engine counts.
    pub position: u64,
    /// Their number and the digest of all of them.
    pub digest: Digest,
}

/// Ids on either side of those that were written, which are read back with them: more rows than
/// a node or a page contains, so that damage there is noticed.
const MARGIN: u64 = 1_000 * STEP;

/// The rows of a table as they must be: the ids 0, 10, 20, …, and what has changed since.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Bytes of each text.
    payload: u32,
    /// Rows with the ids 0, 10, 20, …, unless they are in `changes`.
    base: u64,
    /// Rows that differ from that: another text, one more row, or (`None`) one row less.
    changes: BTreeMap<u64, Option<Payload>>,
    digest: ContentDigest,
}

impl Rows {
    /// A table without rows.
    pub fn new(payload: u32) -> Self {
        Self { payload, base: 0, changes: BTreeMap::new(), digest: ContentDigest::default() }
    }

    /// The digest of all rows.
    pub fn digest(&self) -> Digest {
        self.digest.value()
    }

    /// Executes an operation. Returns the rows that it writes, finds or removes, and the bytes of
    /// their texts.
    ///
    /// # Errors
    ///
    /// Names the first id that is inserted although it exists, updated or deleted although it
    /// does not, or deleted twice.
    pub fn execute(&mut self, operation: &Operation) -> Result<(u64, u64)> {
        let bytes = u64::from(self.payload);
        let written = |rows: u64| (rows, rows * bytes);
        Ok(match operation {
            Operation::Insert(selection) => {
                if let Selection::Step { first, step: STEP, rows } = *selection
                    && first == self.base * STEP
                    && self.changes.is_empty()
                {
                    let text = Payload::New.text(self.payload);
                    ids(selection).for_each(|id| self.digest.add(id, text.as_bytes()));
                    self.base += rows;
                    return Ok(written(rows));
                }
                written(self.write(selection, Some(false), Payload::New)?)
            }
            Operation::Overwrite(selection) => {
                written(self.write(selection, None, Payload::Updated)?)
            }
            Operation::Update(selection) => {
                written(self.write(selection, Some(true), Payload::Updated)?)
            }
            Operation::Delete(selection) => {
                let mut rows = 0;
                for id in ids(selection) {
                    let Some(old) = self.row(id) else {
                        bail!("the row {id} does not exist");
                    };
                    self.digest.remove(id, old.text(self.payload).as_bytes());
                    match self.is_base(id) {
                        true => self.changes.insert(id, None),
                        false => self.changes.remove(&id),
                    };
                    rows += 1;
                }
                (rows, 0)
            }
            Operation::Read(selection) => {
                written(ids(selection).filter(|id| self.row(*id).is_some()).count() as u64)
            }
            Operation::Range { from, rows } => written(
                ids(from)
                    .map(|id| self.after(id).min(*rows))
                    .try_fold(0, u64::checked_add)
                    .context("too many rows")?,
            ),
            Operation::Scan(limit) => written(self.digest().rows.min(*limit)),
            Operation::Count => (self.digest().rows, 0),
        })
    }

    /// Writes a text to each row; `exists` is what must be true of each row before.
    fn write(
        &mut self,
        selection: &Selection,
        exists: Option<bool>,
        payload: Payload,
    ) -> Result<u64> {
        let text = payload.text(self.payload);
        let mut rows = 0;
        for id in ids(selection) {
            let old = self.row(id);
            match (exists, old.is_some()) {
                (Some(true), false) => bail!("the row {id} does not exist"),
                (Some(false), true) => bail!("the row {id} exists already"),
                _ => {}
            }
            if let Some(old) = old {
                self.digest.remove(id, old.text(self.payload).as_bytes());
            }
            self.digest.add(id, text.as_bytes());
            self.changes.insert(id, Some(payload));
            rows += 1;
        }
        Ok(rows)
    }

    fn is_base(&self, id: u64) -> bool {
        id.is_multiple_of(STEP) && id / STEP < self.base
    }

    fn row(&self, id: u64) -> Option<Payload> {
        match self.changes.get(&id) {
            Some(change) => *change,
            None => self.is_base(id).then_some(Payload::New),
        }
    }

    /// The number of rows from an id on.
    fn after(&self, id: u64) -> u64 {
        let mut rows = self.base.saturating_sub(id.div_ceil(STEP));
        for (id, change) in self.changes.range(id..) {
            match (change.is_some(), self.is_base(*id)) {
                (true, false) => rows += 1,
                (false, true) => rows -= 1,
                _ => {}
            }
        }
        rows
    }

    /// The rows around those that an operation named, after it was executed; `None` if an engine
    /// does not keep rows in the order of their ids.
    pub fn around(&self, engine: Engine, operation: &Operation) -> Option<Neighbours> {
        let named = selection(operation)?;
        let (least, most) = (ids(named).min()?, ids(named).max()?);
        let (from, to) = (least.saturating_sub(MARGIN), most.saturating_add(MARGIN));
        let position = match engine {
            // A slot for each id that rows can have.
            Engine::Array => from / (STEP / 2),
            Engine::Append => return None,
            Engine::Btree | Engine::Sqlite | Engine::Leveldb | Engine::Cuckoo => from,
        };
        let mut digest = ContentDigest::default();
        let mut add = |id: u64, row: Payload| digest.add(id, row.text(self.payload).as_bytes());
        let base = (from.div_ceil(STEP)..self.base).map(|number| number * STEP);
        base.take_while(|id| *id <= to)
            .filter(|id| !self.changes.contains_key(id))
            .for_each(|id| add(id, Payload::New));
        for (id, change) in self.changes.range((Bound::Included(from), Bound::Included(to))) {
            if let Some(row) = change {
                add(*id, *row);
            }
        }
        Some(Neighbours { position, digest: digest.value() })
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert => f.write_str("insert"),
            Self::Overwrite => f.write_str("overwrite"),
            Self::Update => f.write_str("update"),
            Self::Delete => f.write_str("delete"),
            Self::Read => f.write_str("read"),
            Self::Miss => f.write_str("read missing"),
            Self::Range(rows) => write!(f, "range of {}", Grouped(*rows)),
            Self::Scan => f.write_str("scan"),
            Self::Count => f.write_str("count"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Middle => "middle",
            Self::End => "end",
            Self::Spread => "evenly spaced",
            Self::Uniform => "uniform",
            Self::Sorted => "uniform, sorted",
            Self::Among(rows) => return write!(f, "among {}", Grouped(*rows)),
            Self::Zipf => "Zipf",
            Self::All => "all",
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use stablebench_workload::Model;

    use super::*;

    fn all(rows: u64) -> Ids {
        Ids::new(0, STEP, rows).unwrap()
    }

    const EVERYWHERE: [Access; 6] = [
        Access::Middle,
        Access::Spread,
        Access::Uniform,
        Access::Sorted,
        Access::Among(7),
        Access::Zipf,
    ];

    fn operation(verb: Verb, access: Access, operations: u64, rows: u64) -> Operation {
        Work::new(verb, access, operations).operation(Table::Populated(rows), 1).unwrap()
    }

    fn numbers(verb: Verb, access: Access, operations: u64) -> Vec<u64> {
        let operation = operation(verb, access, operations, 1_000);
        ids(selection(&operation).unwrap()).map(|id| id / STEP).collect()
    }

    #[test]
    fn sorted_rows_are_the_uniform_ones() {
        for verb in [Verb::Insert, Verb::Update, Verb::Read] {
            let mut uniform = numbers(verb, Access::Uniform, 100);
            assert!(!uniform.is_sorted());
            uniform.sort_unstable();
            assert_eq!(numbers(verb, Access::Sorted, 100), uniform);
        }
    }

    #[test]
    fn a_working_set_is_in_the_middle() {
        let mut found = numbers(Verb::Read, Access::Among(20), 500);
        found.sort_unstable();
        found.dedup();
        assert!(found.iter().copied().eq(490..510), "{found:?}");
        let all = numbers(Verb::Read, Access::Among(5_000), 500);
        assert!(all.iter().all(|row| *row < 1_000));
    }

    #[test]
    fn reads_select_rows_that_exist_and_inserts_rows_that_do_not() {
        for (verb, accesses, exist) in [
            (Verb::Read, &EVERYWHERE[..], true),
            (Verb::Update, &EVERYWHERE, true),
            (Verb::Delete, &[Access::Middle, Access::Uniform], true),
            (
                Verb::Insert,
                &[Access::Uniform, Access::Sorted, Access::Spread, Access::Middle, Access::End],
                false,
            ),
            (Verb::Miss, &[Access::Uniform], false),
        ] {
            for access in accesses {
                let operation = operation(verb, *access, 30, 100);
                let ids: Vec<u64> = ids(selection(&operation).unwrap()).collect();
                assert_eq!(ids.len(), 30, "{verb} {access}");
                for id in ids {
                    assert_eq!(id % 10 == 0 && id < 1_000, exist, "{verb} {access} {id}");
                }
            }
        }
    }

    #[test]
    fn parts_are_the_whole() {
        for access in [Access::Middle, Access::Uniform] {
            let whole = operation(Verb::Insert, access, 30, 100);
            let mut together = Vec::new();
            for from in [0, 7, 14, 21, 28] {
                let part = part(&whole, from, 7.min(30 - from));
                together.extend(ids(selection(&part).unwrap()));
            }
            assert_eq!(together, ids(selection(&whole).unwrap()).collect::<Vec<_>>());
        }
    }

    fn populated(rows: u64, payload: u32) -> Rows {
        let mut table = Rows::new(payload);
        table.execute(&Operation::Insert(step(all(rows)))).unwrap();
        table
    }

    /// Against the model that keeps every row: the same rows, bytes, digests and errors.
    #[test]
    fn rows_agree_with_the_model_that_keeps_them_all() {
        for seed in 0..60 {
            let (mut table, mut model) = (populated(50, 7), Model::default());
            model.insert(all(50), 7).unwrap();
            for (operation, _) in stablebench_workload::operations::stream(seed).take(40) {
                let mut next = table.clone();
                match (next.execute(&operation), model.apply(&operation, 7)) {
                    (Ok(found), Ok(amount)) => {
                        assert_eq!(found, (amount.rows, amount.bytes), "{seed} {operation:?}");
                        table = next;
                    }
                    (Err(_), Err(_)) => {}
                    // The model refuses to read nothing; no suite asks for that.
                    (Ok((0, 0)), Err(_)) => {}
                    (found, expected) => {
                        panic!("{seed} {operation:?}: {found:?}, but {expected:?}")
                    }
                }
                assert_eq!(table.digest(), model.digest(), "{seed} {operation:?}");
            }
        }
    }

    #[test]
    fn churn_keeps_the_number_of_rows() {
        let (mut table, churn) = (populated(200, 3), Churn::of(200, 3));
        assert_eq!((churn.deleted.len(), churn.inserted.len()), (20, 20));
        table.execute(&Operation::Delete(Selection::List(churn.deleted.clone()))).unwrap();
        table.execute(&Operation::Insert(Selection::List(churn.inserted))).unwrap();
        assert_eq!(table.digest().rows, 200);
        let keys = Keys::of(Table::Churned(200), 3);
        let list = Selection::List((0..200).map(|number| keys.id(number)).collect());
        assert_eq!(table.execute(&Operation::Read(list)).unwrap().0, 200);
        let deleted = Operation::Read(Selection::List(churn.deleted));
        assert_eq!(table.execute(&deleted).unwrap().0, 0);
    }

    /// Reads the neighbours as an engine does: rows in the order of ids, from a position on.
    fn read(table: &Rows, from: u64, rows: u64) -> Digest {
        let mut digest = ContentDigest::default();
        let ids = (from..100_000).filter(|id| table.row(*id).is_some()).take(rows as usize);
        for (id, row) in ids.filter_map(|id| Some((id, table.row(id)?))) {
            digest.add(id, row.text(table.payload).as_bytes());
        }
        digest.value()
    }

    #[test]
    fn neighbours_are_the_rows_around_those_that_are_written() {
        let list = |ids: &[u64]| Selection::List(ids.to_vec());
        let last = 49_990;
        for operation in [
            Operation::Insert(Selection::Step { first: 25_003, step: 10, rows: 40 }),
            Operation::Insert(Selection::Step { first: last + 10, step: 10, rows: 40 }),
            Operation::Insert(list(&[1, 49_001])),
            Operation::Update(list(&[0, 25_000, last])),
            Operation::Overwrite(list(&[last])),
            Operation::Delete(list(&[0])),
            Operation::Delete(list(&[25_000])),
        ] {
            let mut table = populated(5_000, 7);
            table.execute(&operation).unwrap();
            let around = table.around(Engine::Btree, &operation).unwrap();
            assert!(around.digest.rows >= 999, "{operation:?}: {around:?}");
            assert_eq!(read(&table, around.position, around.digest.rows), around.digest);
            // A missing row is noticed.
            let first = (around.position..).find(|id| table.row(*id).is_some()).unwrap();
            table.execute(&Operation::Delete(list(&[first]))).unwrap();
            assert_ne!(read(&table, around.position, around.digest.rows), around.digest);
        }
    }

    #[test]
    fn work_that_does_not_fit_is_refused_before_anything_is_populated() {
        let insert = |access, operations| Work::new(Verb::Insert, access, operations);
        assert!(insert(Access::Middle, 499).check(1_000).is_ok());
        let error = insert(Access::Middle, 501).check(1_000).unwrap_err().to_string();
        assert!(error.starts_with("501 rows cannot be added in the middle of 1 000;"), "{error}");
        assert!(insert(Access::Uniform, 1_001).check(1_000).is_err());
        assert!(insert(Access::End, 1_001).check(1_000).is_ok());
    }
}
