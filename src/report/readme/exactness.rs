//! How much the counts are held against the replica's own.

use std::path::Path;

use anyhow::{Context, Result};
use stablebench_conformance::read;

use super::Reference;
use crate::compare::{Gates, compare};
use crate::report::number::Grouped;
use crate::results::Results;

/// Calls in the recorded cases of a folder and those below it, and installs that were refused.
pub fn recorded(folder: &Path) -> Result<u64> {
    let listed = std::fs::read_dir(folder);
    let listed = listed.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut calls = 0;
    for entry in listed {
        let path = entry?.path();
        if path.is_dir() {
            calls += recorded(&path)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".json") || name.ends_with(".json.gz") {
            calls += read(&path)?
                .iter()
                .map(|case| case.calls.len() as u64 + u64::from(case.install.is_some()))
                .sum::<u64>();
        }
    }
    Ok(calls)
}

pub fn part(reference: &Reference) -> Result<String> {
    let gates = Gates { threshold: Some(0.0), ..Gates::default() };
    let there = &reference.users_pocket_ic;
    let found = compare(there, &reference.users_embedded, None, gates)?;
    let canisters = if there.canisters == reference.users.canisters {
        "of the run above".to_owned()
    } else {
        let revision = there.revision.as_deref().unwrap_or("unknown");
        format!("with the canisters of revision {revision}, the ones before today's,")
    };
    Ok(format!(
        "{} calls and refused installs that were recorded on a PocketIC server are part of the tests: replies, reject \
         codes, counts and cycles must be those. The sections {} {canisters} were repeated \
         on such a server ({} {}): of {} values (counters, charges, cycles, pages, digests), {} \
         differ.",
        Grouped(reference.recorded),
        sections(there).join(" and "),
        there.replica.kind,
        there.replica.version,
        Grouped(found.compared as u64),
        Grouped(found.failures.len() as u64),
    ))
}

/// Sections that were measured there.
fn sections(results: &Results) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    for case in &results.cases {
        if !sections.contains(&case.section) {
            sections.push(case.section.clone());
        }
    }
    sections
}
