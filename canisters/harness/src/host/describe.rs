use super::Host;
use crate::{Canister, heap_pages, stable_pages};
use stablebench_protocol::{Description, Digest, EngineDescription, Occupant, Result};
use stablebench_workload::ContentDigest;

/// The most rows, and the most bytes of them, of which the digest is told.
const DESCRIBED_ROWS: u64 = 10_000;
const DESCRIBED_BYTES: u64 = 16 << 20;

impl<C: Canister> Host<C> {
    /// What the canister is and holds.
    ///
    /// # Errors
    ///
    /// The engines'.
    pub fn describe(&mut self) -> Result<Description> {
        // Looking at the engines can open what was closed, and grow both.
        let (heap_pages, stable_pages) = (heap_pages(), stable_pages());
        let occupant = self.canister.occupant();
        let mut engines = Vec::new();
        for &engine in self.canister.engines() {
            if occupant == Occupant::Nobody {
                engines.push(EngineDescription {
                    engine,
                    rows: 0,
                    stored_bytes: 0,
                    virtual_bytes: 0,
                    cache_bytes: 0,
                    digest: Some(Digest::default()),
                });
            } else if let Ok(store) = self.canister.engine(engine) {
                let (virtual_bytes, cache_bytes) = (store.virtual_bytes(), store.cache_bytes());
                store.prepare()?;
                let (rows, stored_bytes) = (store.rows()?, store.stored_bytes()?);
                let mut digest = None;
                if rows <= DESCRIBED_ROWS && stored_bytes <= DESCRIBED_BYTES {
                    let mut content = ContentDigest::default();
                    store.digest(0, rows, &mut content)?;
                    digest = Some(content.value());
                }
                engines.push(EngineDescription {
                    engine,
                    rows,
                    stored_bytes,
                    virtual_bytes,
                    cache_bytes,
                    digest,
                });
            }
        }
        Ok(Description {
            occupant,
            engines,
            payload_bytes: self.payload_bytes,
            max_rows: self.max_rows(),
            heap_pages,
            stable_pages,
            sqlite: self.canister.sqlite_description(),
            crates: self.canister.crates(),
        })
    }
}
