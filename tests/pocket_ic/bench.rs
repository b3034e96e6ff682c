//! The bench canister on the replica that is tested and on the embedded one.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use candid::utils::ArgumentEncoder;
use candid::{CandidType, decode_one, encode_args};
use serde::de::DeserializeOwned;
use stablebench_protocol::{Digest, DigestPart, Engine, Measurement, Result};

use crate::beside::Beside;
use crate::canister::{CONTROLLER, Canister, Mode, Principal, Replica};

/// The module, built by the tool.
pub static WASM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args(["build", "bench"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    // The second file is the plain module.
    let (_, path) = printed.lines().nth(1).and_then(|line| line.split_once("  ")).unwrap();
    std::fs::read(root.join(path)).unwrap()
});

/// A bench canister.
pub struct Bench(pub Beside);

impl Bench {
    /// Fresh.
    pub fn new(replica: &dyn Replica) -> Self {
        let mut bench = Self(Beside::new(replica));
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
    ) -> Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        answer(method, self.0.update(caller, method, &arguments).outcome)
    }

    pub fn query_as<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        answer(method, self.0.query(caller, method, &arguments))
    }

    /// An update of the controller's that must not fail.
    pub fn update<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        let answer = self.update_as(CONTROLLER, method, arguments);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// A query of the controller's that must not fail.
    pub fn query<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        let answer = self.query_as(CONTROLLER, method, arguments);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// An update that measures work on so many rows.
    pub fn work(&mut self, method: &str, arguments: impl ArgumentEncoder, rows: u64) {
        let measurement: Measurement = self.update(method, arguments);
        assert_eq!(measurement.rows, rows, "{method}");
    }

    /// The digest of all rows, over several queries.
    pub fn digest(&mut self, engine: Engine) -> Digest {
        const ROWS: u64 = 300;
        let mut part: Option<DigestPart> = None;
        loop {
            let next: DigestPart = self.query("digest", (engine, part, ROWS));
            if next.done {
                return next.digest;
            }
            part = Some(next);
        }
    }
}

fn answer<T>(method: &str, outcome: crate::canister::Outcome) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let reply = outcome.unwrap_or_else(|reject| panic!("{method}: {reject:?}"));
    decode_one(&reply).unwrap_or_else(|error| panic!("{method} answered something else: {error}"))
}
