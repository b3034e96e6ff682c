//! The modules of the canisters, from the program itself or from files.
//!
//! A program that belongs to a checkout, because cargo runs it there or because its file is in it, ends
//! with an error if the sources of a module have changed since the module was built. An installed
//! program does not look at sources: `just install` gives it their revision.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use stablebench_replica::files::{self, MAX_TEXT};
use stablebench_suite_builds::{BENCH_BUILDS, Options};
use stablebench_wasi::convert;

use super::gzip::plain;
use super::list::{SOURCES, Source, WASI};
use super::module::{Built, imports_wasi};
use super::recorded::{RECORD, Record};
use super::revision::revision_of;
use crate::builds::toolchain::{ensure_target, remapped_paths};
use crate::builds::{Module, Project};
use crate::progress::Progress;

/// The folder from which this program was built.
const ORIGIN: &str = env!("CARGO_MANIFEST_DIR");
/// The manifest of a canister in a checkout.
const BENCH_SOURCES: &str = "canisters/bench/Cargo.toml";
/// The package of the suite builds.
const BUILDS: &str = "stablebench-bench-builds";

/// The record of the embedded modules.
const EMBEDDED: &str = include_str!("../../canisters/modules/list.json");
/// The revision of an installed program's sources.
const REVISION: Option<&str> = option_env!("STABLEBENCH_REVISION");

/// Returns the canister with this name, or the module at this path.
///
/// # Errors
///
/// [`NotBuilt`](stablebench_suite_builds::NotBuilt) if it is `bench_builds` with options for which
/// there is no module.
pub fn find(name: &str, progress: &Progress) -> Result<Built> {
    if let Some(options) = name.strip_prefix(BENCH_BUILDS).and_then(|it| it.strip_prefix('/')) {
        let root = found_checkout()?.context(
            "the suite builds compiles its canister; run this in a checkout of stablebench",
        )?;
        let module = with_options(&root, &options.parse()?, progress)?;
        return Ok(Built { programs: module.programs, ..Built::new(name, module.wasm) });
    }
    match Source::named(name) {
        Some(source) => embedded(source),
        None if Path::new(name).is_file() => load(Path::new(name), progress),
        None => bail!(
            "no canister {name}; there is {}, or give the path of a wasm file",
            SOURCES.map(|source| source.name).join(", ")
        ),
    }
}

/// Reads a module from a file, plain or in gzip. If it calls functions of WASI, it is converted with a
/// note: no replica accepts it unchanged.
///
/// # Errors
///
/// If it cannot be read or converted.
pub fn load(path: &Path, progress: &Progress) -> Result<Built> {
    let Built { name, wasm, .. } = Built::read(path)?;
    if !imports_wasi(&wasm) {
        return Ok(Built::new(&name, wasm));
    }
    let step = progress.spinner(&format!("converting {name} for the IC"));
    let wasm = plain(&wasm);
    let converted = convert(&wasm).with_context(|| {
        format!("{} calls WASI, and cannot be converted for the IC", path.display())
    })?;
    step.done("");
    progress.note(&format!(
        "{} calls WASI, which the IC does not have; these calls are replaced, as wasi2ic does",
        path.display()
    ));
    Ok(Built::new(&name, converted.unwrap_or_else(|| wasm.into_owned())))
}

/// Returns the module that this program contains.
///
/// # Errors
///
/// If it is not that of the checkout's sources.
pub fn embedded(source: Source) -> Result<Built> {
    if let Some(root) = &*CHECKOUT {
        check(source, root)?;
    }
    Ok(Built::new(source.name, plain(source.deployable()).into_owned()))
}

/// Returns the revision of the canisters' sources, if it is known.
pub fn revision() -> Option<String> {
    match &*CHECKOUT {
        Some(root) => revision_of(root),
        // Empty if git did not know it.
        None => REVISION.filter(|revision| !revision.is_empty()).map(str::to_owned),
    }
}

/// The checkout to which this program belongs.
static CHECKOUT: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let origin = Path::new(ORIGIN);
    // `cargo run` and `cargo test` set it.
    let is_run_by_cargo = env::var_os("CARGO_MANIFEST_DIR").is_some_and(|run| run == *ORIGIN);
    let is_inside = || {
        let program = env::current_exe().and_then(|program| program.canonicalize()).ok();
        program
            .zip(origin.canonicalize().ok())
            .is_some_and(|(program, root)| program.starts_with(root))
    };
    // A package of the program has no canisters.
    let is_checkout = origin.join(BENCH_SOURCES).is_file() && (is_run_by_cargo || is_inside());
    is_checkout.then(|| origin.to_owned())
});

/// Checks that a module is the one of the sources in a checkout.
fn check(source: Source, root: &Path) -> Result<()> {
    let path = source.path();
    let now = files::read_text(&root.join(RECORD), MAX_TEXT)
        .with_context(|| format!("cannot read {RECORD}"))?;
    ensure!(
        now == EMBEDDED,
        "{RECORD} has changed since this program was built; build it again: cargo build --release"
    );
    let recorded: Record = serde_json::from_str(EMBEDDED).with_context(|| RECORD.to_owned())?;
    let recorded = recorded.get(source.name);
    let recorded =
        recorded.with_context(|| format!("{RECORD} does not contain {}", source.name))?;
    if let Some(difference) = recorded.difference(root) {
        bail!("{path} is out of date: {difference}; build it again: cargo xtask modules");
    }
    Ok(())
}

/// Returns the checkout from which cargo runs this program, else the one that contains the current
/// folder, else the one in which the program was built, if it still exists.
fn found_checkout() -> Result<Option<PathBuf>> {
    let here = env::current_dir().context("the current folder is unknown")?;
    // `cargo run` and `cargo test` set it.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let found = manifest.as_deref().and_then(checkout_above).or_else(|| checkout_above(&here));
    // A package of the program has no canisters.
    let origin = || Path::new(ORIGIN).join(BENCH_SOURCES).is_file().then(|| Path::new(ORIGIN));
    Ok(found.or_else(origin).map(Path::to_owned))
}

/// Returns the nearest folder, from `folder` upwards, that contains this workspace.
fn checkout_above(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| {
        let manifest = files::read_text(&folder.join("Cargo.toml"), MAX_TEXT).unwrap_or_default();
        manifest.lines().any(|line| line == r#"name = "stablebench""#)
    })
}

/// Builds the canister `bench_builds` with options.
fn with_options(root: &Path, options: &Options, progress: &Progress) -> Result<Module> {
    ensure_target(root, WASI)?;
    let project = Project {
        name: format!("canister {BENCH_BUILDS}"),
        package: Some(BUILDS.to_owned()),
        folder: root.to_owned(),
        target: WASI.to_owned(),
        features: Vec::new(),
        flags: Some(remapped_paths(root)?),
        is_own: true,
    };
    project.build(options, progress)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::canisters::gzip::{deployable, hash};

    #[test]
    fn a_checkout_is_found_from_its_folders_and_nowhere_else() {
        let root = crate::canisters::root();
        for folder in ["", "src/canisters", "crates/replica/tests", "no/such/folder"] {
            assert_eq!(checkout_above(&root.join(folder)), Some(root), "{folder}");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let project = elsewhere.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("Cargo.toml"), "[package]\nname = \"other\"\n").unwrap();
        assert_eq!(checkout_above(&project), None);
    }

    #[test]
    fn the_committed_modules_are_those_of_the_sources() {
        let recorded: Record = serde_json::from_str(EMBEDDED).unwrap();
        assert!(recorded.keys().eq(BTreeSet::from(SOURCES.map(|source| source.name))));
        for source in SOURCES {
            let file = source.deployable();
            let wasm = plain(file);
            let of = &recorded[source.name];
            assert_eq!((&of.module_hash, &of.sha256), (&hash(file), &hash(&wasm)));
            assert!(deployable(&wasm).unwrap() == file, "{} is in another gzip", source.name);
            check(source, crate::canisters::root()).unwrap();
        }
    }

    #[test]
    fn a_stale_module_and_a_stale_program_are_errors_with_the_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let record = root.join(RECORD);
        let refused = || check(SOURCES[0], root).unwrap_err().to_string();
        assert!(refused().contains("cannot read canisters/modules/list.json"));
        fs::create_dir_all(record.parent().unwrap()).unwrap();
        fs::write(&record, EMBEDDED).unwrap();
        let stale = refused();
        assert!(stale.starts_with("canisters/modules/bench.wasm.gz is out of date: "), "{stale}");
        assert!(stale.ends_with("build it again: cargo xtask modules"), "{stale}");
        fs::write(&record, "{}").unwrap();
        assert!(refused().ends_with("build it again: cargo build --release"));
    }
}
