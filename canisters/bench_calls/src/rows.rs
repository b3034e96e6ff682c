//! Rows on the heap, which an upgrade writes to stable memory as one Candid value.

use std::collections::BTreeMap;

use candid::Principal;
use stablebench_protocol::{Error, Result};
use stablebench_suite_calls::work::text;
use stablebench_workload::{Amount, ContentDigest};

/// A map.
#[derive(Default)]
pub struct Rows(BTreeMap<u64, String>);

impl Rows {
    /// Adds rows from an id on, with texts of this length.
    ///
    /// # Errors
    ///
    /// If one of them exists; then nothing has changed.
    pub fn insert(&mut self, from: u64, count: u64, bytes: u32) -> Result<Amount> {
        if let Some((id, _)) = self.0.range(from..from + count).next() {
            return Err(Error::IdExists { id: *id });
        }
        for id in from..from + count {
            self.0.insert(id, text(id, bytes));
        }
        Ok(Amount { rows: count, bytes: count * u64::from(bytes) })
    }

    /// Adds at most `limit` rows from an id on to a digest. Returns the id of the next row.
    pub fn add_to(&self, digest: &mut ContentDigest, from: u64, limit: u64) -> Option<u64> {
        let mut rows = self.0.range(from..);
        for (id, text) in rows.by_ref().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            digest.add(*id, text.as_bytes());
        }
        rows.next().map(|(id, _)| *id)
    }

    /// Returns the bytes of the ids and texts.
    pub fn bytes(&self) -> u64 {
        self.0.values().map(|text| 8 + text.len() as u64).sum()
    }

    /// Writes the rows and the canister that is called to stable memory.
    ///
    /// # Errors
    ///
    /// If the memory cannot grow.
    pub fn save(&self, callee: Option<Principal>) -> std::result::Result<(), String> {
        ic_cdk::storage::stable_save((&self.0, callee)).map_err(|error| error.to_string())
    }

    /// Reads what was written.
    ///
    /// # Errors
    ///
    /// If stable memory does not begin with it.
    pub fn load() -> std::result::Result<(Self, Option<Principal>), String> {
        let (rows, callee) = ic_cdk::storage::stable_restore()?;
        Ok((Self(rows), callee))
    }
}
