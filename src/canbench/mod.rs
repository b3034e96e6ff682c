//! Benchmarks of canbench projects on the embedded replica.
//!
//! ```text
//!   config.rs   canbench.yml
//!   measure.rs  runs the benchmarks that a module exports, each on a fork, on all cores
//!   results.rs  canbench_results.yml: read, compared with, written
//!     └──→ change.rs    changes, and whether they are noise
//!            ├─ text.rs      canbench's output
//!            └─ export.rs    JSON, Markdown, CSV
//!   yaml.rs     parses both files, unless they are nested too deeply
//! ```
//!
//! Texts and files are those of canbench 0.7, to the last character, because scripts read them.
//! Additional output is printed on request only.

pub mod change;
pub mod config;
pub mod export;
pub mod measure;
pub mod results;
#[cfg(test)]
mod tests;
pub mod text;
mod yaml;
