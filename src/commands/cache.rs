//! `stablebench cache`: compiled modules and populated canisters of earlier runs.

use std::io::Write;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use stablebench_replica::{Replica, Rules, saved_note};

use super::replica::{cache_folder, cache_limit};
use crate::cache::{Entry, Folder, Kind, Note, Versions};
use crate::replica::options::CacheFolderArgs;
use crate::report::number::{Age, Binary, Grouped};
use crate::terminal::safe_line;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CacheArgs {
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
    #[command(flatten)]
    pub folder: CacheFolderArgs,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Clear it. Files that are not the cache's stay.
    Clear(CacheFolderArgs),
}

/// Shows the cache, or clears it.
pub fn cache(args: &CacheArgs) -> Result<()> {
    let (folder, clearing) = match &args.command {
        None => (cache_folder(&args.folder)?, false),
        Some(CacheCommand::Clear(folder)) => (cache_folder(folder)?, true),
    };
    let done = if clearing { clear(&folder) } else { show(&folder, cache_limit(&args.folder)?) };
    done.with_context(|| format!("the cache at {}", folder.path().display()))
}

fn clear(folder: &Folder) -> Result<()> {
    let cleared = folder.clear()?;
    let mut out = std::io::stdout().lock();
    let (modules, states) = (Grouped(cleared.modules as u64), Grouped(cleared.states as u64));
    writeln!(
        out,
        "dropped from {}: {modules} compiled modules, {states} populated canisters, {}",
        folder.path().display(),
        Binary(cleared.bytes)
    )?;
    if cleared.others > 0 {
        writeln!(out, "left there: {} files that are not the cache's", cleared.others)?;
    }
    Ok(())
}

fn show(folder: &Folder, limit: u64) -> Result<()> {
    let versions = Versions::of(&Replica::new(Rules::today(), None)?)?;
    let files = folder.files()?;
    let mut entries = files.entries;
    entries.sort_by(|one, other| (other.used, &one.name).cmp(&(one.used, &other.name)));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", folder.path().display())?;
    for (what, kind) in [("compiled modules", Kind::Module), ("populated canisters", Kind::State)] {
        let of: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == kind).collect();
        let older = of.iter().filter(|entry| !versions.has(entry)).count();
        let bytes = of.iter().map(|entry| entry.bytes).sum();
        write!(out, "  {:>5} {what:<19} {:>9}", Grouped(of.len() as u64), Binary(bytes))?;
        match older {
            0 => writeln!(out)?,
            older => writeln!(out, "  ({older} of other versions)")?,
        }
    }
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    writeln!(out, "  in all {:>28} of at most {}", Binary(bytes), Binary(limit))?;
    if files.others > 0 {
        writeln!(out, "  and {} files that are not the cache's", files.others)?;
    }
    let states = entries.iter().filter(|entry| entry.kind == Kind::State);
    for (at, entry) in states.enumerate() {
        if at == 0 {
            writeln!(out, "\n      size      used  canister  what")?;
        }
        writeln!(out, "{}", line(folder, entry, &versions))?;
    }
    Ok(())
}

/// Returns the line of a populated canister.
fn line(folder: &Folder, entry: &Entry, versions: &Versions) -> String {
    let age = SystemTime::now().duration_since(entry.used).unwrap_or_default();
    let note = || -> Result<Note> {
        Ok(serde_json::from_str(&saved_note(&folder.path().join(&entry.name))?)?)
    };
    let (canister, content) = match note() {
        _ if !versions.has(entry) => (String::new(), "of another version".to_owned()),
        Err(_) => (String::new(), "damaged".to_owned()),
        Ok(note) => {
            let canister = note.setup.canister.chars().take(8).collect();
            (canister, note.setup.prepared.to_string())
        }
    };
    let content = safe_line(&content);
    let canister = safe_line(&canister);
    format!("{:>10} {:>9}  {canister:<8}  {content}", Binary(entry.bytes), Age(age))
}
