//! The canisters of this repository, and modules in files.
//!
//! ```text
//!   list.rs      names, interfaces, packages, and the modules that the program contains
//!   recorded.rs  what each was built from: `cargo xtask modules`
//!   find ──→ a module of the list, checked against the sources in a checkout;
//!        ──→ bench_builds, built by cargo with options;
//!        ──→ load: a file, converted if it is for WASI
//! ```

/// The committed module of a canister.
macro_rules! module_of {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/canisters/modules/",
            $name,
            ".wasm.gz"
        ))
    };
}

mod find;
mod gzip;
#[allow(dead_code, reason = "xtask and the tests use the rest")]
mod list;
mod module;
mod recorded;
mod revision;

pub use find::{embedded, find, load, revision};
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub use gzip::deployable;
pub use gzip::{hash, plain};
pub use list::{BENCH, SOURCES, Source};
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub use module::keeps_heap;
pub use module::{Built, candid_of, imports, in_order, name_of};

/// The checkout of these tests.
#[cfg(test)]
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[cfg(test)]
mod tests {
    use stablebench_suite_builds::BENCH_BUILDS;

    use super::*;
    use crate::suites::SUITES;

    /// Engines and plans name their canisters. Those of the suite builds are built with options.
    #[test]
    fn engines_and_suites_name_canisters_of_the_list() {
        let engines = stablebench_suite::engines::ENGINES.iter().map(|engine| engine.canister);
        let mut named: Vec<String> = engines.map(str::to_owned).collect();
        for suite in SUITES {
            let plan = stablebench_suite::plan_of(suite, "").unwrap();
            named.extend(plan.configurations.into_iter().map(|column| column.canister));
        }
        for name in named.iter().filter(|name| !name.starts_with(BENCH_BUILDS)) {
            assert!(Source::named(name).is_some(), "{name}");
        }
        for source in SOURCES {
            assert!(named.iter().any(|name| name == source.name), "nothing uses {}", source.name);
        }
    }
}
