//! `stablebench module`: the module of a canister, in files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::canisters::{self, SOURCES, Source};
use crate::progress::Output;
use crate::report::number::Grouped;
use crate::saving;
use crate::terminal::print;

#[derive(Debug, Args)]
pub struct ModuleArgs {
    /// The canister.
    #[arg(default_value = "bench", value_parser = names())]
    pub canister: String,
    /// The folder of the files [default: the current one].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// Names of the canisters.
fn names() -> clap::builder::PossibleValuesParser {
    SOURCES.map(|source| source.name).into()
}

/// Writes the two files of a canister, and prints their hashes and paths in the form that
/// `sha256sum --check` reads. The first is the one to deploy.
pub fn module(args: &ModuleArgs, output: &Output) -> Result<()> {
    let source = Source::named(&args.canister).unwrap_or(canisters::BENCH);
    let plain = canisters::embedded(source)?.wasm;
    let folder = args.out.as_deref().unwrap_or(Path::new(""));
    let mut printed = String::new();
    for (extension, file) in [("wasm.gz", source.deployable()), ("wasm", &plain)] {
        let path = folder.join(source.name).with_extension(extension);
        saving::save(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
        printed += &format!("{}  {}\n", canisters::hash(file), path.display());
    }
    output.progress.note(&format!(
        "{}: {} bytes to deploy, {} as plain module",
        source.name,
        Grouped(source.deployable().len() as u64),
        Grouped(plain.len() as u64),
    ));
    print(&printed)
}
