//! `stablebench build`: a canister as it is deployed.

use std::env;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;

use crate::canisters::{self, SOURCES, Source};
use crate::progress::Output;
use crate::report::number::Grouped;
use crate::saving;
use crate::terminal::print;

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The canister.
    #[arg(default_value = "bench", value_parser = names())]
    pub canister: String,
}

/// Names of the canisters.
fn names() -> clap::builder::PossibleValuesParser {
    SOURCES.map(|source| source.name).into()
}

/// Writes the two files of a canister, and prints their hashes and paths in the form that
/// `sha256sum --check` reads. The first is the one to deploy.
pub fn build(args: &BuildArgs, output: &Output) -> Result<()> {
    let source = Source::named(&args.canister).unwrap_or(canisters::BENCH);
    let built = canisters::build(source, &output.progress)?;
    let step = output.progress.spinner(&format!("compressing {}", source.name));
    let deployable = canisters::deployable(&built.wasm)?;
    let folder = canisters::output_folder(source)?;
    let mut printed = String::new();
    for (extension, file) in [("wasm.gz", &deployable), ("wasm", &built.wasm)] {
        let path = folder.join(source.name).with_extension(extension);
        saving::save(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
        printed += &format!("{}  {}\n", canisters::hash(file), from_here(&path).display());
    }
    step.done("");
    output.progress.note(&format!(
        "{}: {} bytes to deploy, {} as plain module",
        source.name,
        Grouped(deployable.len() as u64),
        Grouped(built.wasm.len() as u64),
    ));
    print(&printed)
}

/// Returns the path relative to the current folder if it is inside, else the whole path.
fn from_here(path: &Path) -> &Path {
    env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}
