//! A canister with one map from numbers to numbers: on the heap, or in stable memory.
//!
//! ```text
//!   stable memory   page 0    the state: the map in use, and the entries of one on the heap
//!                   page 1 …  a StableBTreeMap or a table; a map on the heap has none, and its
//!                             entries may continue here
//! ```

mod collection;

mod table;

use collection::Collection;
use ic_stable_structures::{DefaultMemoryImpl, Memory as _};
use stablebench_harness::{Canister, SuiteEntry, crate_versions};
use stablebench_protocol::{CrateVersion, Error, Occupant};
use stablebench_suite_collections::Collections;
use stablebench_suite_collections::canister::{HasMap, Map as _};

stablebench_harness::canister!(Bench, include_bytes!("../../harness/harness.did"));

/// The canister: the map in use, which the first job decides.
#[derive(Default)]
struct Bench {
    collection: Option<Collection>,
}

impl HasMap for Bench {
    type Map = Collection;

    fn map(&mut self, job: &Collections) -> Result<&mut Collection> {
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

    fn occupant(&self) -> Occupant {
        match &self.collection {
            Some(of) if of.is_stable() => Occupant::Floor(of.engine()),
            _ => Occupant::Nobody,
        }
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        match &self.collection {
            Some(collection) => collection.save(),
            None => Ok(()),
        }
    }

    fn load(&mut self) {
        if DefaultMemoryImpl::default().size() > 0 {
            self.collection = Some(Collection::load());
        }
    }
}
