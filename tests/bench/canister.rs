//! A bench canister, and what its methods answer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use candid::utils::ArgumentEncoder;
use candid::{CandidType, decode_one, encode_args};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, EngineDescription, Measurement, Occupant, Result,
    SqliteConfig, SqliteSettings, Work, Worked,
};
use stablebench_replica::{Canister, Execution, Module, Principal, Replica};

pub const CONTROLLER: Principal = Principal::anonymous();

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The canisters that have the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Bench,
    Vfs,
    Leveldb,
    /// Where there is a C compiler.
    Doltlite,
}

impl Which {
    /// Those that can be built everywhere.
    pub const ALL: [Self; 3] = [Self::Bench, Self::Vfs, Self::Leveldb];

    /// Those with SQLite itself.
    pub const SQLITE: [Self; 2] = [Self::Bench, Self::Vfs];

    /// All of them.
    pub const WITH_C: [Self; 4] = [Self::Bench, Self::Vfs, Self::Leveldb, Self::Doltlite];

    const NUMBER: usize = Self::WITH_C.len();

    pub fn name(self) -> &'static str {
        match self {
            Self::Bench => "bench",
            Self::Vfs => "bench_vfs",
            Self::Leveldb => "bench_leveldb",
            Self::Doltlite => "bench_doltlite",
        }
    }

    /// Where its interface is, in the repository.
    pub fn candid(self) -> &'static str {
        match self {
            Self::Bench | Self::Vfs => "canisters/bench/bench.did",
            Self::Leveldb => "canisters/bench_leveldb/bench_leveldb.did",
            Self::Doltlite => "canisters/bench_doltlite/bench_doltlite.did",
        }
    }

    /// Whether the machine has what the canister is compiled by. Where it has not, the reason is
    /// shown whether or not the test's output is.
    pub fn can_be_built(self) -> bool {
        if self != Self::Doltlite {
            return true;
        }
        static KNOWN: OnceLock<bool> = OnceLock::new();
        *KNOWN.get_or_init(|| {
            let output = Command::new(env!("CARGO_BIN_EXE_stablebench"))
                .args(["build", self.name()])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let missing = !output.status.success() && said.contains("has C sources");
            if missing {
                let _ = writeln!(std::io::stderr(), "SKIPPED, tests of {}: {said}", self.name());
            }
            !missing
        })
    }

    /// What the tool leaves of the canister. Once a process: the tests run side by side.
    pub fn built(self) -> &'static BuiltFiles {
        static BUILT: [OnceLock<BuiltFiles>; Which::NUMBER] =
            [const { OnceLock::new() }; Which::NUMBER];
        BUILT[self as usize].get_or_init(|| BuiltFiles::in_place(self, root()))
    }

    /// As it is deployed.
    pub fn module(self) -> &'static Module {
        static MODULES: [OnceLock<Module>; Which::NUMBER] =
            [const { OnceLock::new() }; Which::NUMBER];
        MODULES[self as usize].get_or_init(|| {
            let wasm = std::fs::read(root().join(&self.built().deployable.path)).unwrap();
            replica().compile(&wasm).unwrap()
        })
    }
}

/// The files that `stablebench build` leaves, as it prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltFiles {
    pub deployable: BuiltFile,
    pub plain: BuiltFile,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltFile {
    pub sha256: String,
    pub path: PathBuf,
}

impl BuiltFiles {
    /// Builds where somebody stands in `directory`.
    pub fn in_place(which: Which, directory: &Path) -> Self {
        let output = Command::new(env!("CARGO_BIN_EXE_stablebench"))
            .args(["build", which.name()])
            .current_dir(directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let files: Vec<BuiltFile> = printed
            .lines()
            .map(|line| {
                let (sha256, path) = line.split_once("  ").unwrap();
                BuiltFile { sha256: sha256.to_owned(), path: path.into() }
            })
            .collect();
        let [deployable, plain] = files.try_into().unwrap();
        Self { deployable, plain }
    }
}

pub fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules");
        Replica::new(stablebench_replica::Rules::of_2025_10(), Some(cache)).unwrap()
    })
}

pub fn module() -> &'static Module {
    Which::Bench.module()
}

/// The arguments of a method about rows `first`, `first + step`, ….
pub fn rows(engine: Engine, first: u64, step: u64, rows: u64) -> (Engine, u64, u64, u64) {
    (engine, first, step, rows)
}

/// The arguments of a method about so many rows.
pub fn count(engine: Engine, rows: u64) -> (Engine, u64) {
    (engine, rows)
}

/// The bench canister.
#[derive(Debug)]
pub struct Bench(pub Canister);

impl Bench {
    /// Fresh.
    pub fn new() -> Self {
        Self::of(Which::Bench)
    }

    /// Fresh, one or the other.
    pub fn of(which: Which) -> Self {
        let mut bench = Self(replica().create_canister().unwrap());
        bench.install(which.module());
        bench
    }

    /// Fresh, with some settings of SQLite.
    pub fn configured(config: SqliteConfig) -> Self {
        Self::configured_of(Which::Bench, config)
    }

    pub fn configured_of(which: Which, config: SqliteConfig) -> Self {
        let mut bench = Self::of(which);
        let settings: Result<SqliteSettings> = bench.update("configure_sqlite", (config,));
        settings.unwrap_or_else(|error| panic!("{config:?}: {error}"));
        bench
    }

    /// Fresh, with rows 0, 10, … in some engines.
    pub fn filled(engines: &[Engine], rows: u64) -> Self {
        let mut bench = Self::new();
        for &engine in engines {
            bench.measure("add_users", (engine, 0_u64, 10_u64, rows));
        }
        bench
    }

    pub fn fork(&self) -> Self {
        Self(self.0.fork())
    }

    pub fn reinstall(&mut self) {
        let module = self.0.module().unwrap().clone();
        self.install(&module);
    }

    fn install(&mut self, module: &Module) {
        let arguments = encode_args(()).unwrap();
        let execution = self.0.install(module, CONTROLLER, &arguments);
        execution.unwrap().outcome.unwrap();
    }

    pub fn upgrade(&mut self) {
        let module = self.0.module().unwrap().clone();
        let arguments = encode_args(()).unwrap();
        let execution = self.0.upgrade(&module, CONTROLLER, &arguments);
        execution.unwrap().outcome.unwrap();
    }

    /// An update, and what it cost.
    pub fn execute<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> (Result<T>, Execution)
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = stablebench::encode_arguments(method, arguments).unwrap();
        let execution = self.0.update(caller, method, &arguments).unwrap();
        (answer(method, &execution), execution)
    }

    /// An update of the controller's.
    pub fn update<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        self.execute(CONTROLLER, method, arguments).0
    }

    /// An update that measures and must not fail.
    pub fn measure(&mut self, method: &str, arguments: impl ArgumentEncoder) -> Measurement {
        self.update(method, arguments).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Any work, which must not fail.
    pub fn work(&mut self, work: &Work) -> Worked {
        self.update("work", (work,)).unwrap_or_else(|error| panic!("{work:?}: {error}"))
    }

    /// What an engine holds, told without a digest.
    pub fn describe_engine(&self, engine: Engine) -> EngineDescription {
        let engines = self.describe().engines.into_iter();
        let mut of_engine = engines.filter(|there| there.engine == engine);
        of_engine.next().unwrap_or_else(|| panic!("{engine} is not there"))
    }

    /// An update that answers nothing and must not fail.
    pub fn do_it(&mut self, method: &str, arguments: impl ArgumentEncoder) {
        self.update::<()>(method, arguments).unwrap_or_else(|error| panic!("{method}: {error}"));
    }

    pub fn query<T>(&self, method: &str, arguments: impl ArgumentEncoder) -> Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        answer(method, &self.0.query(CONTROLLER, method, &arguments).unwrap())
    }

    pub fn describe(&self) -> Description {
        self.query("describe", ()).unwrap()
    }

    pub fn settings(&self) -> SqliteSettings {
        self.query("sqlite_settings", ()).unwrap()
    }

    /// The digest of all rows, `limit` rows a message.
    pub fn digest(&self, engine: Engine, limit: u64) -> Digest {
        let mut part: Option<DigestPart> = None;
        loop {
            let next: DigestPart = self.query("digest", (engine, part, limit)).unwrap();
            let seen = next.digest.rows - part.map_or(0, |part| part.digest.rows);
            if next.done {
                assert!(seen <= limit, "{engine}: {seen} rows, at most {limit}");
                return next.digest;
            }
            assert_eq!(seen, limit, "{engine}: a message that is not the last");
            part = Some(next);
        }
    }

    /// Everything that a refused call must leave as it is.
    pub fn contents(&self) -> Contents {
        let description = self.describe();
        let engines = description.engines.iter();
        Contents {
            occupant: description.occupant,
            payload_bytes: description.payload_bytes,
            stable_pages: description.stable_pages,
            engines: engines
                .map(|there| {
                    // What checks read stays cached; it is not content.
                    let there = EngineDescription { cache_bytes: 0, ..*there };
                    (there, self.digest(there.engine, 10_000))
                })
                .collect(),
            settings: self.query("sqlite_settings", ()).ok(),
        }
    }
}

/// What a canister holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub occupant: Occupant,
    pub payload_bytes: u32,
    pub stable_pages: u64,
    pub engines: Vec<(EngineDescription, Digest)>,
    /// Where SQLite can be used.
    pub settings: Option<SqliteSettings>,
}

fn answer<T>(method: &str, execution: &Execution) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let reply = execution.outcome.as_ref();
    let reply = reply.unwrap_or_else(|reject| panic!("{method}: {reject}"));
    decode_one(reply).unwrap_or_else(|error| panic!("{method} answered something else: {error}"))
}
