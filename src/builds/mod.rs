//! Modules that cargo builds, with options that change them.
//!
//! ```text
//!   Project, Options ─→ cargo ─→ wasi2ic ─→ ic-wasm ─→ wasm-opt ─→ module
//!                       (cargo.rs)          (tools.rs)
//! ```

pub mod cargo;
mod package;
mod project;
mod wasi;

pub use package::Package;
pub use project::{Module, Project};
pub use wasi::{convert, is_wasi};
