//! Modules that cargo builds, with options that change them.
//!
//! ```text
//!   Project, Options ─→ cargo ─→ WASI replaced ─→ ic-wasm ─→ wasm-opt ─→ module
//!                       (cargo.rs)              (Options::tools)
//! ```

pub mod cargo;
mod package;
mod project;
pub mod toolchain;

pub use package::Package;
pub use project::{Module, Project};
