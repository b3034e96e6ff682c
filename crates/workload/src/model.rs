//! What an engine must hold after the same operations.

use crate::amount::Amount;
use crate::digest::ContentDigest;
use crate::id_set::IdSet;
use crate::payload::Payload;
use crate::selected::Selected;
use stablebench_protocol::{Digest, Error, Operation, Result};
use std::collections::BTreeMap;

/// Rows in memory, each with the kind and length of its payload.
///
/// The digest is kept up to date, so that asking for it costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    rows: BTreeMap<u64, (Payload, u32)>,
    digest: ContentDigest,
}

impl Model {
    /// Does any operation, with payloads of `bytes` bytes where it writes. A scan reads
    /// rows in the order of their ids.
    ///
    /// # Errors
    ///
    /// Those of the method that is named for the operation; where nothing is selected or
    /// asked for.
    pub fn apply(&mut self, operation: &Operation, bytes: u32) -> Result<Amount> {
        let written = |rows: Selected<'_>, bytes| {
            let rows = rows.rows();
            Amount { rows, bytes: rows * u64::from(bytes) }
        };
        match operation {
            Operation::Insert(rows) => {
                let rows = Selected::new(rows)?;
                self.insert(rows, bytes).map(|()| written(rows, bytes))
            }
            Operation::Overwrite(rows) => {
                let rows = Selected::new(rows)?;
                self.overwrite(rows, bytes);
                Ok(written(rows, bytes))
            }
            Operation::Update(rows) => {
                let rows = Selected::new(rows)?;
                self.update(rows, bytes).map(|()| written(rows, bytes))
            }
            Operation::Delete(rows) => {
                let rows = Selected::new(rows)?;
                self.delete(rows).map(|()| written(rows, 0))
            }
            Operation::Read(rows) => Ok(self.read(Selected::new(rows)?)),
            Operation::Range { rows: 0, .. } | Operation::Scan(0) => Err(Error::NoRows),
            Operation::Range { from, rows } => Ok(self.range(Selected::new(from)?, *rows)),
            Operation::Scan(rows) => Ok(self.after(0, *rows)),
            Operation::Count => Ok(Amount { rows: self.rows(), bytes: 0 }),
        }
    }

    /// Adds new rows with payloads of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// Where an id is named twice or exists already; then nothing changes.
    pub fn insert<'a>(&mut self, rows: impl Into<Selected<'a>>, bytes: u32) -> Result<()> {
        let ids = IdSet::once(rows.into())?;
        if let Some(id) = ids.iter().find(|id| self.rows.contains_key(id)) {
            return Err(Error::IdExists { id });
        }
        self.write(&ids, Payload::New, bytes);
        Ok(())
    }

    /// Writes rows, whether or not they are there.
    pub fn overwrite<'a>(&mut self, rows: impl Into<Selected<'a>>, bytes: u32) {
        self.write(&IdSet::of(rows.into()), Payload::Updated, bytes);
    }

    /// Replaces the payloads of rows.
    ///
    /// # Errors
    ///
    /// Where an id is missing; then nothing changes.
    pub fn update<'a>(&mut self, rows: impl Into<Selected<'a>>, bytes: u32) -> Result<()> {
        let ids = IdSet::of(rows.into());
        self.require(&ids)?;
        self.write(&ids, Payload::Updated, bytes);
        Ok(())
    }

    /// Removes rows.
    ///
    /// # Errors
    ///
    /// Where an id is named twice or missing; then nothing changes.
    pub fn delete<'a>(&mut self, rows: impl Into<Selected<'a>>) -> Result<()> {
        let ids = IdSet::once(rows.into())?;
        self.require(&ids)?;
        for id in ids.iter() {
            if let Some((old, old_bytes)) = self.rows.remove(&id) {
                self.digest.remove(id, old.text(old_bytes).as_bytes());
            }
        }
        Ok(())
    }

    /// Those of the rows that there are; one that is named twice is read twice.
    pub fn read<'a>(&self, rows: impl Into<Selected<'a>>) -> Amount {
        let mut found = Amount::default();
        rows.into().each(|id| {
            if let Some((_, bytes)) = self.rows.get(&id) {
                found += Amount { rows: 1, bytes: u64::from(*bytes) };
            }
        });
        found
    }

    /// From each id on, at most `rows` rows.
    pub fn range<'a>(&self, from: impl Into<Selected<'a>>, rows: u64) -> Amount {
        let mut found = Amount::default();
        from.into().each(|id| found += self.after(id, rows));
        found
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// The largest id.
    pub fn last_id(&self) -> Option<u64> {
        self.rows.last_key_value().map(|(id, _)| *id)
    }

    /// The digest of all rows.
    pub fn digest(&self) -> Digest {
        self.digest.value()
    }

    fn after(&self, from: u64, rows: u64) -> Amount {
        let mut found = Amount::default();
        let limit = usize::try_from(rows).unwrap_or(usize::MAX);
        for (_, bytes) in self.rows.range(from..).map(|(_, row)| row).take(limit) {
            found += Amount { rows: 1, bytes: u64::from(*bytes) };
        }
        found
    }

    fn write(&mut self, ids: &IdSet, payload: Payload, bytes: u32) {
        let text = payload.text(bytes);
        for id in ids.iter() {
            if let Some((old, old_bytes)) = self.rows.insert(id, (payload, bytes)) {
                self.digest.remove(id, old.text(old_bytes).as_bytes());
            }
            self.digest.add(id, text.as_bytes());
        }
    }

    fn require(&self, ids: &IdSet) -> Result<()> {
        match ids.iter().find(|id| !self.rows.contains_key(id)) {
            Some(id) => Err(Error::IdMissing { id }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Ids;
    use crate::operations::stream;
    use proptest::prelude::*;

    /// The digest from scratch.
    fn recomputed(model: &Model) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, (payload, bytes)) in &model.rows {
            digest.add(*id, payload.text(*bytes).as_bytes());
        }
        digest.value()
    }

    fn writes(operation: &Operation) -> bool {
        use Operation::*;
        matches!(operation, Insert(_) | Overwrite(_) | Update(_) | Delete(_))
    }

    proptest! {
        #[test]
        fn the_digest_kept_is_the_digest_of_the_rows(seed: u64) {
            let mut model = Model::default();
            for (operation, bytes) in stream(seed).take(40) {
                let before = model.clone();
                let outcome = model.apply(&operation, bytes);
                prop_assert_eq!(model.digest(), recomputed(&model));
                if outcome.is_err() || !writes(&operation) {
                    prop_assert_eq!(&model, &before);
                }
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut model = Model::default();
        model.insert(Ids::new(0, 10, 5).unwrap(), 3).unwrap();
        let list = [40, 7, 40, 0];
        let list = Selected::list(&list).unwrap();
        assert_eq!(model.update(list, 9), Err(Error::IdMissing { id: 7 }));
        assert_eq!(model.insert(list, 9), Err(Error::IdTwice { id: 40 }));
        assert_eq!(model.delete(list), Err(Error::IdTwice { id: 40 }));
        assert_eq!(model.read(list), Amount { rows: 3, bytes: 9 });
        model.overwrite(list, 100);
        assert_eq!(model.read(list), Amount { rows: 4, bytes: 400 });
        // 7, 10 and 10, 20 and nothing.
        let from = [5, 10, 41];
        let found = model.range(Selected::list(&from).unwrap(), 2);
        assert_eq!(found, Amount { rows: 4, bytes: 109 });
        assert_eq!(model.apply(&Operation::Scan(3), 0), Ok(Amount { rows: 3, bytes: 203 }));
        assert_eq!(model.apply(&Operation::Count, 0), Ok(Amount { rows: 6, bytes: 0 }));
        assert_eq!(model.apply(&Operation::Scan(0), 0), Err(Error::NoRows));
    }

    #[test]
    fn a_million_rows_are_cheap() {
        let mut model = Model::default();
        model.insert(Ids::new(0, 10, 1_000_000).unwrap(), 100).unwrap();
        model.insert(Ids::middle(model.last_id(), 10_000).unwrap(), 100).unwrap();
        assert_eq!(model.digest().rows, 1_010_000);
        assert_eq!(model.rows(), 1_010_000);
    }
}
