//! `stablebench build`: a canister as it is deployed.

use std::env;
use std::io::Write;
use std::path::Path;

use anyhow::Result;

use super::Output;
use crate::canisters::{self, Source};
use crate::cli::BuildArgs;
use crate::report::number::Grouped;

/// Builds the canister and prints the hashes and the paths of its two files, in the form that
/// `sha256sum --check` reads. The first is what is deployed.
pub fn build(args: &BuildArgs, output: &Output) -> Result<()> {
    let source = Source::named(&args.canister).unwrap_or(canisters::BENCH);
    let built = canisters::build(source, &output.progress)?;
    let step = output.progress.spinner(&format!("compressing {}", source.name));
    let deployable = canisters::deployable(&built.wasm);
    let path = source.deployable_path();
    canisters::write(&path, &deployable)?;
    step.done("");
    output.progress.note(&format!(
        "{}: {} bytes to deploy, {} as plain module",
        source.name,
        Grouped(deployable.len() as u64),
        Grouped(built.wasm.len() as u64),
    ));
    let mut out = std::io::stdout().lock();
    for (path, file) in [(&path, &deployable), (&built.path, &built.wasm)] {
        writeln!(out, "{}  {}", canisters::hash(file), from_here(path).display())?;
    }
    Ok(())
}

/// The path from where one is, or the whole path.
fn from_here(path: &Path) -> &Path {
    env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}
