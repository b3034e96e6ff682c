//! What an engine must hold after the same operations.

use crate::digest::ContentDigest;
use crate::ids::Ids;
use crate::payload::Payload;
use stablebench_protocol::{Digest, Error, Result};
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
    /// Adds new rows with payloads of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// Where an id exists already; then nothing changes.
    pub fn insert(&mut self, ids: Ids, bytes: u32) -> Result<()> {
        if let Some(id) = ids.iter().find(|id| self.rows.contains_key(id)) {
            return Err(Error::IdExists { id });
        }
        let text = Payload::New.text(bytes);
        for id in ids.iter() {
            self.rows.insert(id, (Payload::New, bytes));
            self.digest.add(id, text.as_bytes());
        }
        Ok(())
    }

    /// Replaces the payloads of rows.
    ///
    /// # Errors
    ///
    /// Where an id is missing; then nothing changes.
    pub fn update(&mut self, ids: Ids, bytes: u32) -> Result<()> {
        self.require(ids)?;
        let text = Payload::Updated.text(bytes);
        for id in ids.iter() {
            if let Some((old, old_bytes)) = self.rows.insert(id, (Payload::Updated, bytes)) {
                self.digest.remove(id, old.text(old_bytes).as_bytes());
            }
            self.digest.add(id, text.as_bytes());
        }
        Ok(())
    }

    /// Removes rows.
    ///
    /// # Errors
    ///
    /// Where an id is missing; then nothing changes.
    pub fn delete(&mut self, ids: Ids) -> Result<()> {
        self.require(ids)?;
        for id in ids.iter() {
            if let Some((old, old_bytes)) = self.rows.remove(&id) {
                self.digest.remove(id, old.text(old_bytes).as_bytes());
            }
        }
        Ok(())
    }

    /// How many of the rows there are.
    pub fn read(&self, ids: Ids) -> u64 {
        ids.iter().filter(|id| self.rows.contains_key(id)).count() as u64
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

    fn require(&self, ids: Ids) -> Result<()> {
        match ids.iter().find(|id| !self.rows.contains_key(id)) {
            Some(id) => Err(Error::IdMissing { id }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{Operation, stream};
    use proptest::prelude::*;

    /// The digest from scratch.
    fn recomputed(model: &Model) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, (payload, bytes)) in &model.rows {
            digest.add(*id, payload.text(*bytes).as_bytes());
        }
        digest.value()
    }

    proptest! {
        #[test]
        fn the_digest_kept_is_the_digest_of_the_rows(seed: u64) {
            let mut model = Model::default();
            for operation in stream(seed).take(40) {
                let before = model.clone();
                let outcome = match operation {
                    Operation::Insert { ids, bytes } => model.insert(ids, bytes),
                    Operation::Update { ids, bytes } => model.update(ids, bytes),
                    Operation::Delete { ids } => model.delete(ids),
                    Operation::Read { ids } => {
                        prop_assert!(model.read(ids) <= ids.rows());
                        Ok(())
                    }
                };
                prop_assert_eq!(model.digest(), recomputed(&model));
                if outcome.is_err() {
                    prop_assert_eq!(&model, &before);
                }
            }
        }
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
