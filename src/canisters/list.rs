//! The list of the canisters whose modules are committed: each name is written here once, and what else
//! needs names reads this list or is checked against it by a test.
//!
//! The program and `cargo xtask modules` share this file. The macro `module_of!` decides what is
//! embedded: the committed module in the program, nothing in xtask, which builds it.

/// A canister of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub name: &'static str,
    /// The file with its interface.
    pub candid: &'static str,
    pub origin: Origin,
}

/// The origin of a canister's module.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// Cargo builds it.
    Package(Package),
    /// `npm run motoko --prefix clients` compiles it.
    Motoko,
}

/// A package that cargo builds for a target.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    pub name: &'static str,
    pub target: &'static str,
    /// The header that is included before each of its C sources, if it has any.
    pub c_header: Option<&'static str>,
}

/// The target of canisters with code in C.
pub const WASI: &str = "wasm32-wasip1";
/// The target of the others.
const UNKNOWN: &str = "wasm32-unknown-unknown";

/// The interface of canisters that offer the suite users, whose methods can be called by hand.
const USERS: &str = "canisters/bench.did";
/// The interface of other canisters with the harness.
const HARNESS: &str = "canisters/harness/harness.did";
const MOTOKO: &str = "canisters/bench_collections/motoko/bench_motoko.did";

/// Defines a constant for each row, the list of them and the lookup of their modules.
macro_rules! canisters {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $candid:expr, $origin:expr;)*) => {
        $($(#[$doc])*
        pub const $constant: Source = Source { name: $name, candid: $candid, origin: $origin };)*

        /// All canisters.
        pub const SOURCES: [Source; [$($name),*].len()] = [$($constant),*];

        impl Source {
            /// Returns its module in gzip, as it is deployed.
            pub fn deployable(self) -> &'static [u8] {
                match self.name {
                    $($name => module_of!($name),)*
                    _ => &[],
                }
            }
        }
    };
}

canisters! {
    /// StableBTreeMap and SQLite through `ic-rusqlite`.
    BENCH = "bench", USERS, package("stablebench-bench", WASI);
    /// SQLite through `ic-sqlite-vfs`.
    BENCH_VFS = "bench_vfs", USERS, package("stablebench-bench-vfs", UNKNOWN);
    /// LevelDB through `rusty-leveldb`.
    BENCH_LEVELDB = "bench_leveldb", USERS, package("stablebench-bench-leveldb", UNKNOWN);
    /// DoltLite: SQL on a prolly tree.
    BENCH_DOLTLITE = "bench_doltlite", USERS, Origin::Package(Package {
        name: "stablebench-bench-doltlite",
        target: WASI,
        c_header: Some("canisters/bench_doltlite/include/canister.h"),
    });
    /// Calls to other canisters, and a map on the heap.
    BENCH_CALLS = "bench_calls", "canisters/bench_calls/bench_calls.did",
        package("stablebench-bench-calls", UNKNOWN);
    /// Maps from numbers to numbers.
    BENCH_COLLECTIONS = "bench_collections", HARNESS,
        package("stablebench-bench-collections", UNKNOWN);
    /// The same in Motoko, with enhanced orthogonal persistence.
    BENCH_MOTOKO = "bench_motoko", MOTOKO, Origin::Motoko;
    /// The same in Motoko, with classical persistence.
    BENCH_MOTOKO_CLASSICAL = "bench_motoko_classical", MOTOKO, Origin::Motoko;
}

const fn package(name: &'static str, target: &'static str) -> Origin {
    Origin::Package(Package { name, target, c_header: None })
}

impl Source {
    /// Returns the canister with this name.
    pub fn named(name: &str) -> Option<Self> {
        SOURCES.iter().copied().find(|source| source.name == name)
    }

    /// Returns the path of its module in the repository.
    pub fn path(self) -> String {
        format!("canisters/modules/{}.wasm.gz", self.name)
    }
}
