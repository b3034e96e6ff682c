//! A canister on the replica that is tested, and the same on the embedded replica:
//! every answer must be the same, to the byte and to the cycle.

use crate::canister::{Canister, Mode, Outcome, Principal, Reject, Replica, Updated};
use crate::embedded::Embedded;

/// Both canisters, used as one.
pub struct Beside {
    tested: Box<dyn Canister>,
    embedded: Box<dyn Canister>,
}

impl Beside {
    /// Two canisters without code.
    pub fn new(replica: &dyn Replica) -> Self {
        Self { tested: replica.create(), embedded: Embedded(replica.rules()).create() }
    }

    /// Two canisters with that module, whose text is WebAssembly's.
    pub fn with(replica: &dyn Replica, wat: &str) -> Self {
        let mut beside = Self::new(replica);
        let installed = beside.install(Mode::Install, &wasm(wat), &[]);
        installed.unwrap_or_else(|reject| panic!("{reject:?}"));
        beside
    }
}

/// The module of that text.
pub fn wasm(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"))
}

impl Canister for Beside {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject> {
        let tested = self.tested.install(mode, wasm, argument);
        let embedded = self.embedded.install(mode, wasm, argument);
        // A module that is refused is described differently from one version to another.
        let code = |result: &Result<(), Reject>| result.clone().map_err(|reject| reject.code);
        assert_eq!(code(&tested), code(&embedded), "{mode:?}: {tested:?}, {embedded:?}");
        tested
    }

    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated {
        let tested = self.tested.update(caller, method, argument);
        let embedded = self.embedded.update(caller, method, argument);
        same(method, &tested.outcome, &embedded.outcome);
        assert_eq!(tested.cycles, embedded.cycles, "cycles of {method}, then as embedded");
        tested
    }

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        let tested = self.tested.query(caller, method, argument);
        same(method, &tested, &self.embedded.query(caller, method, argument));
        tested
    }

    fn keep(&mut self) {
        self.tested.keep();
        self.embedded.keep();
    }

    fn put_back(&mut self) {
        self.tested.put_back();
        self.embedded.put_back();
    }
}

#[track_caller]
fn same(method: &str, tested: &Outcome, embedded: &Outcome) {
    let comparable = |outcome: &Outcome| {
        let rejected = |reject: &Reject| (reject.code.clone(), said(&reject.message).to_owned());
        outcome.as_ref().map_err(rejected).cloned()
    };
    assert!(
        comparable(tested) == comparable(embedded),
        "{method}\n  answers    {tested:02x?}\n  embedded   {embedded:02x?}"
    );
}

/// What versions of the replica agree on: the first line, without what newer ones put
/// around it.
fn said(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let line = line
        .strip_prefix("Error from Canister ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(line, |(_, rest)| rest);
    line.trim_end_matches('.')
}
