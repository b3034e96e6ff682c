//! The same canister on the tested and on the embedded replica. Every answer must be equal, to
//! the byte and to the cycle.

use std::io::Read;
use std::sync::LazyLock;

use candid::utils::ArgumentEncoder;
use candid::{CandidType, decode_one, encode_args};
use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use stablebench_protocol::{Digest, DigestPart, Engine, Job, Measurement};
use stablebench_suite_users::{Users, UsersTask};

use crate::replica::{
    CONTROLLER, Canister, Embedded, Mode, Outcome, Principal, Reject, Replica, Updated,
};

/// Two canisters, used like one.
pub struct Pair {
    tested: Box<dyn Canister>,
    embedded: Box<dyn Canister>,
}

impl Pair {
    /// Creates two canisters without code.
    pub fn new(replica: &dyn Replica) -> Self {
        Self { tested: replica.create(), embedded: Embedded(replica.rules()).create() }
    }

    /// Creates two canisters with the module of a WebAssembly text.
    pub fn with(replica: &dyn Replica, wat: &str) -> Self {
        let mut pair = Self::new(replica);
        let installed = pair.install(Mode::Install, &wasm(wat), &[]);
        installed.unwrap_or_else(|reject| panic!("{reject:?}"));
        pair
    }
}

impl Pair {
    #[track_caller]
    fn assert_equal(&self, method: &str, tested: &Outcome, embedded: &Outcome) {
        // Canisters have other ids on newer servers.
        let ids = [self.tested.id(), self.embedded.id()].map(|id| id.to_text());
        let comparable = |outcome: &Outcome| {
            let rejected = |reject: &Reject| {
                let message = core(&reject.message).replace(&ids[0], &ids[1]);
                (reject.code.clone(), message)
            };
            outcome.as_ref().map_err(rejected).cloned()
        };
        assert!(
            comparable(tested) == comparable(embedded),
            "{method}\n  tested     {tested:02x?}\n  embedded   {embedded:02x?}"
        );
    }
}

/// Encodes a WebAssembly text.
pub fn wasm(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"))
}

impl Canister for Pair {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject> {
        let tested = self.tested.install(mode, wasm, argument);
        let embedded = self.embedded.install(mode, wasm, argument);
        // Versions of the replica describe a refused module in different words.
        let code = |result: &Result<(), Reject>| result.clone().map_err(|reject| reject.code);
        assert_eq!(code(&tested), code(&embedded), "{mode:?}: {tested:?}, {embedded:?}");
        tested
    }

    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated {
        // A message runs in the next round, which is a nanosecond later.
        if let Some(time) = self.tested.time() {
            self.embedded.set_time(time + 1);
        }
        let tested = self.tested.update(caller, method, argument);
        let embedded = self.embedded.update(caller, method, argument);
        self.assert_equal(method, &tested.outcome, &embedded.outcome);
        assert_eq!(tested.cycles, embedded.cycles, "cycles of {method}, tested and embedded");
        tested
    }

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        let tested = self.tested.query(caller, method, argument);
        let embedded = self.embedded.query(caller, method, argument);
        self.assert_equal(method, &tested, &embedded);
        tested
    }

    fn id(&self) -> Principal {
        self.tested.id()
    }

    fn time(&self) -> Option<u64> {
        self.tested.time()
    }

    fn set_time(&mut self, time: u64) {
        self.embedded.set_time(time);
    }

    fn take_snapshot(&mut self) {
        self.tested.take_snapshot();
        self.embedded.take_snapshot();
    }

    fn load_snapshot(&mut self) {
        self.tested.load_snapshot();
        self.embedded.load_snapshot();
    }
}

/// The part of a reject message that is the same in all versions of the replica: the first line
/// without the prefix and the full stop that newer versions add.
fn core(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let line = line
        .strip_prefix("Error from Canister ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(line, |(_, rest)| rest);
    line.trim_end_matches('.')
}

/// The module of the bench canister.
pub static WASM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let file = include_bytes!("../../canisters/modules/bench.wasm.gz");
    let mut wasm = Vec::new();
    GzDecoder::new(&file[..]).read_to_end(&mut wasm).unwrap();
    wasm
});

/// A bench canister on both replicas.
pub struct Bench(pub Pair);

impl Bench {
    /// Creates and installs the canister.
    pub fn new(replica: &dyn Replica) -> Self {
        let mut bench = Self(Pair::new(replica));
        bench.install(Mode::Install);
        bench
    }

    pub fn install(&mut self, mode: Mode) {
        let arguments = encode_args(()).unwrap();
        let installed = self.0.install(mode, &WASM, &arguments);
        installed.unwrap_or_else(|reject| panic!("{mode:?}: {reject:?}"));
    }

    pub fn update_as<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> stablebench_protocol::Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        decode(method, self.0.update(caller, method, &arguments).outcome)
    }

    pub fn query_as<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> stablebench_protocol::Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        decode(method, self.0.query(caller, method, &arguments))
    }

    /// Sends an update by the controller, which must succeed.
    pub fn update<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        let answer = self.update_as(CONTROLLER, method, arguments);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a query by the controller, which must succeed.
    pub fn query<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        let answer = self.query_as(CONTROLLER, method, arguments);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends an update that measures work on the given number of rows.
    pub fn work(&mut self, method: &str, arguments: impl ArgumentEncoder, rows: u64) {
        let measurement: Measurement = self.update(method, arguments);
        assert_eq!(measurement.rows, rows, "{method}");
    }

    /// Returns the digest of all rows, computed by several queries.
    pub fn digest(&mut self, engine: Engine) -> Digest {
        const ROWS: u64 = 300;
        let job = Users { engine, payload_bytes: 0, task: UsersTask::Close };
        let mut part: Option<DigestPart> = None;
        loop {
            let next: DigestPart = self.query("content", (Job::new(&job), part, ROWS));
            if next.done {
                return next.digest;
            }
            part = Some(next);
        }
    }
}

fn decode<T>(method: &str, outcome: Outcome) -> stablebench_protocol::Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let reply = outcome.unwrap_or_else(|reject| panic!("{method}: {reject:?}"));
    decode_one(&reply)
        .unwrap_or_else(|error| panic!("cannot decode the reply of {method}: {error}"))
}
