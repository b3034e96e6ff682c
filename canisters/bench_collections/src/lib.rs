//! A canister with one map from numbers to numbers: on the heap, or in stable memory.
//!
//! ```text
//!   stable memory   page 0    the state: the map in use, and the entries of one on the heap
//!                   page 1 …  a StableBTreeMap or a table; a map on the heap has none, and its
//!                             entries may continue here
//! ```

mod collection;

mod table;
mod tasks;

use collection::Collection;
use ic_stable_structures::{DefaultMemoryImpl, Memory as _};
use stablebench_collections::Collections;
use stablebench_harness::{Canister, KeyValue, SuiteEntry, crate_versions};
use stablebench_protocol::{CrateVersion, DEFAULT_PAYLOAD_BYTES, Error, Occupant};

stablebench_harness::canister!(Bench);

/// The canister: the map in use, which the first job decides.
#[derive(Default)]
struct Bench {
    collection: Option<Collection>,
}

impl Bench {
    /// Returns the map of a job, which is created if there is none.
    fn collection(&mut self, job: &Collections) -> Result<&mut Collection> {
        let unavailable = Error::EngineUnavailable { engine: job.engine };
        if self.collection.is_none() {
            self.collection = Some(Collection::new(job.engine, job.entries)?);
        }
        match &mut self.collection {
            Some(of) if of.engine() == job.engine => Ok(of),
            _ => Err(unavailable),
        }
    }
}

impl Canister for Bench {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<Collections>()];
    const ENGINES: &'static [Engine] = &[];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        Err(Error::EngineUnavailable { engine })
    }

    fn occupant(&self) -> Occupant {
        match &self.collection {
            Some(of) if of.is_stable() => Occupant::Floor(of.engine()),
            _ => Occupant::Nobody,
        }
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self, _: u32) -> Result<()> {
        match &self.collection {
            Some(collection) => collection.save(),
            None => Ok(()),
        }
    }

    fn load(&mut self) -> u32 {
        if DefaultMemoryImpl::default().size() > 0 {
            self.collection = Some(Collection::load());
        }
        DEFAULT_PAYLOAD_BYTES
    }
}
