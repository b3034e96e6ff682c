//! The canisters of this repository: their modules, and the origin of these.
//!
//! ```text
//!   find ──→ embedded in this program (feature embed-canisters), or
//!        ──→ build.rs: built by cargo in the checkout that contains the current folder,
//!            bench_builds with options; the ones in Motoko are files of the checkout
//!   load ──→ a file, converted by wasi2ic if it is for WASI
//! ```

mod build;
mod module;
mod revision;

pub use build::{build, find, load, output_folder, revision};
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub use module::keeps_heap;
pub use module::{
    BENCH, Built, SOURCES, Source, candid_of, deployable, hash, imports, in_order, plain,
};

/// The checkout of these tests.
#[cfg(test)]
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}
