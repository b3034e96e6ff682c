//! Modules that cargo builds, with options that change them.
//!
//! ```text
//!   Project, Options ─→ cargo ─→ WASI replaced ─→ ic-wasm ─→ wasm-opt ─→ module
//!                       (cargo.rs)                (tools.rs)
//! ```

pub mod cargo;
pub mod options;
mod package;
mod project;
pub mod toolchain;
mod tools;

pub use options::Options;
pub use package::Package;
pub use project::{Module, Project};
pub use tools::Tool;

/// The reason why there is no module: the project's, or a program that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotBuilt {
    pub reason: String,
    /// Everything that the failed program has printed.
    pub printed: String,
}

impl NotBuilt {
    /// A reason without further output.
    pub fn because(reason: String) -> Self {
        Self { reason, printed: String::new() }
    }
}
