//! The interface of canisters without methods of a suite: one macro defines it.

#![allow(missing_docs)]

use candid_parser::utils::{CandidSource, service_equal};
use stablebench_harness::{Canister, SuiteEntry};
use stablebench_protocol::{CrateVersion, Occupant};

/// A canister that does nothing.
#[derive(Default)]
struct Idle;

stablebench_harness::canister!(Idle, include_bytes!("../harness.did"));

impl Canister for Idle {
    const SUITES: &'static [SuiteEntry<Self>] = &[];

    fn occupant(&self) -> Occupant {
        Occupant::Nobody
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self) -> Result<()> {
        Ok(())
    }

    fn load(&mut self) {}
}

candid::export_service!();

#[test]
fn the_candid_file_is_the_interface() {
    let (exported, file) = (__export_service(), include_str!("../harness.did"));
    if let Err(error) = service_equal(CandidSource::Text(&exported), CandidSource::Text(file)) {
        panic!("{error}\nThe interface is:\n{exported}");
    }
}
