//! Tasks of developers.
//!
//! ```text
//! cargo run --release --package xtask -- render    renders the figures of documents
//! ```

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match std::env::args().nth(1).as_deref() {
        Some("render") => {
            for page in stablebench::readme::rendered(&root)? {
                std::fs::write(root.join(&page.name), page.text)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            let usage = b"usage: cargo run --release --package xtask -- render\n";
            let _ = std::io::stderr().write_all(usage);
            Ok(ExitCode::from(2))
        }
    }
}
