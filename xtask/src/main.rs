//! Tasks of developers.
//!
//! ```text
//! cargo xtask modules [--check] [NAME…]   builds the canisters' modules, or compares them
//! cargo run --release --package xtask --features render -- render
//!                                         renders the figures of documents
//! ```

mod modules;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask modules [--check] [NAME…]

Builds the modules of all canisters, or of those named, and writes them to canisters/modules. Writes dfx.json
and icp.yaml.

  --check  writes nothing, and fails if the committed ones differ

usage: cargo run --release --package xtask --features render -- render

Renders the figures of README.md, docs/findings.md and the pages of suites, and the list of suites in
docs/README.md.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["render"] => render(&root()),
        ["modules", ..] => {
            words.remove(0);
            let before = words.len();
            words.retain(|word| *word != "--check");
            modules::modules(&root(), &words, words.len() < before)
        }
        _ => {
            note(USAGE);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The checkout.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Prints a line to stderr.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
}

#[cfg(feature = "render")]
fn render(root: &Path) -> anyhow::Result<()> {
    for page in stablebench::readme::rendered(root)? {
        std::fs::write(root.join(&page.name), page.text)?;
    }
    Ok(())
}

#[cfg(not(feature = "render"))]
fn render(_root: &Path) -> anyhow::Result<()> {
    anyhow::bail!(
        "this needs a feature: cargo run --release --package xtask --features render -- render"
    )
}
