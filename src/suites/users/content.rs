//! What a store must hold: the host's own account, which knows no engine.

use std::ops::Range;

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{Digest, Engine, Operation, Selection};
use stablebench_workload::payload::Payload;
use stablebench_workload::{ContentDigest, Rng, access, ids::STEP};

use super::task::{ids, selection};

/// One row of so many is deleted at random and another one inserted.
const CHURNED_ONE_IN: u64 = 10;

/// The ids that are there; every row holds [`Payload::New`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    rows: u64,
    /// Ascending; nothing where they are 0, 10, 20, …
    ids: Option<Vec<u64>>,
}

/// Neighbouring rows, in the order in which an engine digests them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Where they begin, as the engine counts.
    pub position: u64,
    /// Their number, and the digest of all of them.
    pub digest: Digest,
}

/// Rows on either side of those that were written, which are read back with them. More than a
/// node or a page holds, so that what those may have lost is noticed.
const MARGIN: u64 = 1_000;

/// Rows that go and rows that come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Churn {
    pub deleted: Vec<u64>,
    pub inserted: Vec<u64>,
}

impl Content {
    /// The ids 0, 10, 20, …
    pub fn populated(rows: u64) -> Self {
        Self { rows, ids: None }
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The id of a row, counted in the order of ids.
    pub fn id(&self, number: u64) -> u64 {
        match &self.ids {
            None => number * STEP,
            Some(ids) => ids.get(number as usize).copied().unwrap_or_default(),
        }
    }

    /// The largest id.
    pub fn last(&self) -> u64 {
        self.id(self.rows.saturating_sub(1))
    }

    /// Random rows that are deleted, and as many that are inserted between others.
    pub fn churn(&self, seed: u64) -> Churn {
        let count = self.rows / CHURNED_ONE_IN;
        let mut rng = random(seed, "churn");
        let deleted = access::distinct(&mut rng, self.rows, count);
        let inserted = access::distinct(&mut rng, self.rows, count);
        Churn {
            deleted: deleted.into_iter().map(|number| self.id(number)).collect(),
            inserted: inserted.into_iter().map(|number| self.id(number) + STEP / 2).collect(),
        }
    }

    /// What is there afterwards.
    pub fn churned(&self, churn: &Churn) -> Self {
        let mut deleted = churn.deleted.clone();
        deleted.sort_unstable();
        let kept = (0..self.rows).map(|number| self.id(number));
        let mut ids: Vec<u64> = kept.filter(|id| deleted.binary_search(id).is_err()).collect();
        ids.extend(&churn.inserted);
        ids.sort_unstable();
        Self { rows: ids.len() as u64, ids: Some(ids) }
    }

    /// The digest of these rows with texts of so many bytes.
    pub fn digest(&self, payload: u32) -> Digest {
        self.digest_of(0..self.rows, payload)
    }

    fn digest_of(&self, numbers: Range<u64>, payload: u32) -> Digest {
        let text = Payload::New.text(payload);
        let mut digest = ContentDigest::default();
        for number in numbers {
            digest.add(self.id(number), text.as_bytes());
        }
        digest.value()
    }

    /// Refuses an operation on rows other than it needs: inserts are to ids that are free,
    /// updates and deletes to rows that are there, and nothing is inserted or deleted twice.
    /// A measured message does not look for that itself.
    ///
    /// # Errors
    ///
    /// Names the first id that is wrong.
    pub fn check(&self, operation: &Operation) -> Result<()> {
        let (Operation::Insert(rows) | Operation::Update(rows) | Operation::Delete(rows)) =
            operation
        else {
            return Ok(());
        };
        let mut named: Vec<u64> = ids(rows).collect();
        named.sort_unstable();
        let insert = matches!(operation, Operation::Insert(_));
        if let Some(wrong) = named.iter().find(|id| self.has(**id) == insert) {
            bail!("the row {wrong} is {} there", if insert { "already" } else { "not" });
        }
        let once = !matches!(operation, Operation::Update(_));
        if let Some(twice) = named.windows(2).find(|pair| once && pair[0] == pair[1]) {
            bail!("the row {} is named twice", twice[0]);
        }
        Ok(())
    }

    fn has(&self, id: u64) -> bool {
        match &self.ids {
            None => id.is_multiple_of(STEP) && id / STEP < self.rows,
            Some(ids) => ids.binary_search(&id).is_ok(),
        }
    }

    /// How many rows have smaller ids.
    fn before(&self, id: u64) -> u64 {
        match &self.ids {
            None => id.div_ceil(STEP).min(self.rows),
            Some(ids) => ids.partition_point(|other| *other < id) as u64,
        }
    }

    /// The rows around those that `operation` names, as they are after it.
    pub fn around(&self, engine: Engine, operation: &Operation, payload: u32) -> Neighbours {
        let named = selection(operation).map_or_else(Vec::new, |rows| ids(rows).collect());
        let (Some(&least), Some(&most)) = (named.iter().min(), named.iter().max()) else {
            return Neighbours { position: 0, digest: Digest::default() };
        };
        let (from, to) = match engine {
            // A log: new rows are behind all others, which are in the order of their ids.
            Engine::Append => (self.rows.saturating_sub(MARGIN), self.rows),
            Engine::Btree | Engine::Sqlite | Engine::Leveldb | Engine::Array | Engine::Cuckoo => (
                self.before(least).saturating_sub(MARGIN),
                (self.before(most) + MARGIN).min(self.rows),
            ),
        };
        // Of the rows added before the first row there is, none has a smaller id.
        let first = if from == 0 { 0 } else { self.id(from) };
        let position = match engine {
            // A slot for each id that rows can have.
            Engine::Array => first / (STEP / 2),
            // Each row with its id and its length before it.
            Engine::Append => from * (8 + 4 + u64::from(payload)),
            Engine::Btree | Engine::Sqlite | Engine::Leveldb | Engine::Cuckoo => first,
        };
        Neighbours {
            position,
            digest: digest_after(self.digest_of(from..to, payload), operation, payload),
        }
    }
}

/// The digest after an operation on rows that had the digest `before`.
pub fn digest_after(before: Digest, operation: &Operation, payload: u32) -> Digest {
    let mut digest = ContentDigest::from(before);
    let (new, updated) = (Payload::New.text(payload), Payload::Updated.text(payload));
    let mut replace = |selection: &Selection| {
        // A row that is written twice holds what was written once.
        let mut ids: Vec<u64> = ids(selection).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            digest.remove(id, new.as_bytes());
            digest.add(id, updated.as_bytes());
        }
    };
    match operation {
        Operation::Overwrite(rows) | Operation::Update(rows) => replace(rows),
        Operation::Insert(rows) => ids(rows).for_each(|id| digest.add(id, new.as_bytes())),
        Operation::Delete(rows) => ids(rows).for_each(|id| digest.remove(id, new.as_bytes())),
        Operation::Read(_) | Operation::Range { .. } | Operation::Scan(_) | Operation::Count => {}
    }
    digest.value()
}

/// Rows that an operation writes, finds or removes, by this account.
///
/// # Errors
///
/// Where it would be about more rows than can be counted.
pub fn rows_of(content: &Content, operation: &Operation) -> Result<u64> {
    let there = |id: u64| content.has(id);
    let after = |id: u64| content.rows - content.before(id);
    Ok(match operation {
        Operation::Insert(rows)
        | Operation::Overwrite(rows)
        | Operation::Update(rows)
        | Operation::Delete(rows) => ids(rows).count() as u64,
        Operation::Read(rows) => ids(rows).filter(|id| there(*id)).count() as u64,
        Operation::Range { from, rows } => ids(from)
            .map(|id| after(id).min(*rows))
            .try_fold(0, u64::checked_add)
            .context("too many rows")?,
        Operation::Scan(limit) => content.rows.min(*limit),
        Operation::Count => content.rows,
    })
}

/// A generator for one purpose, so that one choice does not depend on another.
pub fn random(seed: u64, purpose: &str) -> Rng {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(purpose).finalize();
    let mut start = [0; 8];
    start.copy_from_slice(&hash[..8]);
    Rng::new(u64::from_le_bytes(start))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use stablebench_workload::{Ids, Model};

    /// Reads the neighbours out of all rows, as a canister does.
    fn read(rows: &BTreeMap<u64, Payload>, neighbours: Neighbours, payload: u32) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, text) in rows.range(neighbours.position..).take(neighbours.digest.rows as usize) {
            digest.add(*id, text.text(payload).as_bytes());
        }
        digest.value()
    }

    #[test]
    fn neighbours_are_the_rows_around_those_that_are_written() {
        let step = |first, step, rows| Selection::Step { first, step, rows };
        let list = |ids: &[u64]| Selection::List(ids.to_vec());
        let churned = Content::populated(5_000);
        let churned = churned.churned(&churned.churn(3));
        let some = |content: &Content, number: u64| content.id(number);
        for content in [Content::populated(5_000), churned, Content::populated(3)] {
            let there = [some(&content, 0), some(&content, content.rows / 2), content.last()];
            for operation in [
                Operation::Insert(step(25_003, 10, 40)),
                Operation::Insert(step(content.last() + 10, 10, 40)),
                Operation::Insert(list(&[1, 49_001])),
                Operation::Update(list(&there)),
                Operation::Update(list(&there[1..2])),
                Operation::Overwrite(list(&there[2..])),
                Operation::Delete(list(&there[..1])),
                Operation::Delete(list(&there[1..2])),
            ] {
                let mut rows: BTreeMap<u64, Payload> =
                    (0..content.rows).map(|number| (content.id(number), Payload::New)).collect();
                let named: Vec<u64> = ids(selection(&operation).unwrap()).collect();
                for id in &named {
                    match operation {
                        Operation::Delete(_) => drop(rows.remove(id)),
                        Operation::Insert(_) => drop(rows.insert(*id, Payload::New)),
                        _ => drop(rows.insert(*id, Payload::Updated)),
                    }
                }
                let neighbours = content.around(Engine::Btree, &operation, 7);
                assert_eq!(read(&rows, neighbours, 7), neighbours.digest, "{operation:?}");
                let least = MARGIN.min(rows.len() as u64);
                assert!(neighbours.digest.rows + 1 >= least, "{operation:?}: {neighbours:?}");
                // A row that is missing or another one is noticed.
                let (middle, _) = rows.range(neighbours.position..).next().unwrap();
                let middle = *middle;
                rows.remove(&middle);
                assert_ne!(read(&rows, neighbours, 7), neighbours.digest, "{operation:?}");
            }
        }
    }

    #[test]
    fn an_operation_is_on_the_rows_that_it_needs() {
        let list = |ids: &[u64]| Selection::List(ids.to_vec());
        let churned = Content::populated(100);
        let churn = churned.churn(3);
        let deleted = churn.deleted[0];
        let churned = churned.churned(&churn);
        let populated = Content::populated(100);
        for (content, operation, right) in [
            (&populated, Operation::Insert(list(&[5, 1_000, 995])), true),
            (&populated, Operation::Insert(list(&[5, 990])), false),
            (&populated, Operation::Insert(list(&[5, 15, 5])), false),
            (&populated, Operation::Update(list(&[990, 0, 990])), true),
            (&populated, Operation::Update(list(&[0, 5])), false),
            (&populated, Operation::Delete(list(&[990, 0])), true),
            (&populated, Operation::Delete(list(&[990, 990])), false),
            (&populated, Operation::Delete(list(&[1_000])), false),
            (&populated, Operation::Overwrite(list(&[5, 10])), true),
            (&populated, Operation::Read(list(&[5, 5])), true),
            (&populated, Operation::Scan(7), true),
            (&churned, Operation::Insert(list(&[deleted])), true),
            (&churned, Operation::Update(list(&[deleted])), false),
        ] {
            assert_eq!(content.check(&operation).is_ok(), right, "{operation:?}");
        }
    }

    fn model(rows: u64, payload: u32) -> Model {
        let mut model = Model::default();
        model.insert(Ids::new(0, STEP, rows).unwrap(), payload).unwrap();
        model
    }

    #[test]
    fn the_account_is_the_models() {
        let content = Content::populated(40);
        let mut model = model(40, 7);
        assert_eq!(content.digest(7), model.digest());
        let step = |first, rows| Selection::Step { first, step: 10, rows };
        let mut digest = content.digest(7);
        for (operation, ids) in [
            (Operation::Update(step(10, 5)), Ids::new(10, 10, 5).unwrap()),
            (Operation::Insert(step(5, 3)), Ids::new(5, 10, 3).unwrap()),
            (Operation::Delete(step(300, 4)), Ids::new(300, 10, 4).unwrap()),
        ] {
            digest = digest_after(digest, &operation, 7);
            match operation {
                Operation::Update(_) => model.update(ids, 7).unwrap(),
                Operation::Insert(_) => model.insert(ids, 7).unwrap(),
                _ => model.delete(ids).unwrap(),
            }
            assert_eq!(digest, model.digest(), "{operation:?}");
        }
        let twice = Operation::Overwrite(Selection::List(vec![100, 100, 110]));
        model.update(Ids::new(100, 10, 2).unwrap(), 7).unwrap();
        assert_eq!(digest_after(digest, &twice, 7), model.digest());
    }

    #[test]
    fn churn_keeps_the_number_of_rows() {
        let content = Content::populated(200);
        let churn = content.churn(3);
        assert_eq!((churn.deleted.len(), churn.inserted.len()), (20, 20));
        let churned = content.churned(&churn);
        assert_eq!(churned.rows(), 200);
        for number in 0..200 {
            let id = churned.id(number);
            assert!(
                !churn.deleted.contains(&id)
                    && (id.is_multiple_of(10) || churn.inserted.contains(&id))
            );
        }
        let deleted =
            digest_after(content.digest(9), &Operation::Delete(Selection::List(churn.deleted)), 9);
        let inserted =
            digest_after(deleted, &Operation::Insert(Selection::List(churn.inserted)), 9);
        assert_eq!(churned.digest(9), inserted);
    }

    #[test]
    fn rows_are_counted_as_an_engine_finds_them() {
        let rows = |content: &Content, operation| rows_of(content, &operation).unwrap();
        let whole = Content::populated(10);
        // The same ids, told one by one.
        let listed = Content { ids: Some((0..10).map(|row| row * 10).collect()), ..whole.clone() };
        for content in [&whole, &listed] {
            let list = |ids: &[u64]| Selection::List(ids.to_vec());
            assert_eq!(rows(content, Operation::Read(list(&[0, 5, 90, 100, 90]))), 3);
            assert_eq!(
                rows(content, Operation::Range { from: list(&[0, 75, 90, 100]), rows: 3 }),
                3 + 2 + 1
            );
            assert_eq!(rows(content, Operation::Scan(7)), 7);
            assert_eq!(rows(content, Operation::Scan(70)), 10);
            assert_eq!(rows(content, Operation::Count), 10);
        }
    }
}
