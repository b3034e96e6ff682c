//! The canisters of this repository, and modules in files.
//!
//! ```text
//!   list.rs      names, interfaces, packages, and the modules that the program contains
//!   recorded.rs  what each was built from: `cargo xtask modules`
//!   find ──→ a module of the list, checked against the sources in a checkout;
//!        ──→ bench_builds, built by cargo with options;
//!        ──→ load: a file, converted if it is for WASI
//! ```
//!
//! A program that belongs to a checkout, because cargo runs it there or because its file is in it, ends
//! with an error if the sources of a module have changed since the module was built. An installed
//! program does not look at sources: `just install` gives it their revision.

/// The committed module of a canister.
macro_rules! module_of {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/canisters/modules/",
            $name,
            ".wasm.gz"
        ))
    };
}

#[allow(dead_code, reason = "xtask and the tests use the rest")]
mod list;
mod recorded;

use std::collections::BTreeMap;
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use stablebench_protocol::CrateVersion;
use stablebench_replica::files::{self, MAX_TEXT};
use stablebench_suite_builds::{BENCH_BUILDS, Options};
use stablebench_wasi::{convert, is_wasi};
use wasmparser::{Import, Parser, Payload};

use crate::builds::toolchain::{ensure_target, remapped_paths};
use crate::builds::{Module, Project};
use crate::progress::Progress;
use list::{BENCH_DOLTLITE, BENCH_VFS, WASI};
use recorded::{RECORD, Record, inflated};

pub use list::{BENCH, SOURCES, Source};
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub use recorded::deployable;
pub use recorded::{hash, plain};

/// The checkout of these tests.
#[cfg(test)]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

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

/// The maximum size of a module that is read from a file, in bytes: more than any replica
/// accepts.
const MAX_FILE: u64 = 256 << 20;

/// Returns names of canisters, each once: those of this repository first, in their order.
pub fn in_order<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ordered: Vec<&str> = Vec::new();
    for name in names {
        if !ordered.contains(&name) {
            ordered.push(name);
        }
    }
    let place = |name: &str| SOURCES.iter().position(|source| source.name == name);
    ordered.sort_by_key(|name| place(name).unwrap_or(SOURCES.len()));
    ordered
}

impl Source {
    /// Returns `true` if the canister has the table of the suite users in SQLite.
    pub fn has_sqlite(self) -> bool {
        [BENCH, BENCH_VFS, BENCH_DOLTLITE].iter().any(|source| source.name == self.name)
    }
}

/// A canister's module.
#[derive(Clone, Debug)]
pub struct Built {
    /// The name of the canister, or of the file without its extensions.
    pub name: String,
    pub wasm: Vec<u8>,
    /// The versions of the programs that made it, if they are known.
    pub programs: Vec<CrateVersion>,
}

/// The names of the modules that were found, by hashes of them.
static NAMES: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

/// Returns the name of a module that was found.
pub fn name_of(wasm: &[u8]) -> Option<String> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).get(&short_hash(wasm)).cloned()
}

/// A hash that only tells modules apart.
fn short_hash(wasm: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    wasm.hash(&mut hasher);
    hasher.finish()
}

impl Built {
    fn new(name: &str, wasm: Vec<u8>) -> Self {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(short_hash(&wasm), name.to_owned());
        Self { name: name.to_owned(), wasm, programs: Vec::new() }
    }

    /// Reads a module from a file, plain or in gzip.
    fn read(path: &Path) -> Result<Self> {
        let wasm = files::read(path, MAX_FILE)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if wasm.is_empty() {
            bail!("{} is empty", path.display());
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.strip_suffix(".gz").unwrap_or(&file);
        Ok(Self::new(name.strip_suffix(".wasm").unwrap_or(name), wasm))
    }
}

/// The section of modules whose heap stays in upgrades.
#[cfg(any(feature = "network", feature = "pocket-ic"))]
const PERSISTENCE: [&str; 2] =
    ["icp:public enhanced-orthogonal-persistence", "icp:private enhanced-orthogonal-persistence"];

/// The sections that contain an interface. Motoko's compiler makes a private one.
const INTERFACE: [&str; 2] = ["icp:public candid:service", "icp:private candid:service"];

/// Returns the interface in a module's section `candid:service`, public or private.
pub fn candid_of(module: &[u8]) -> Option<String> {
    section_of(module, &INTERFACE).and_then(|interface| String::from_utf8(interface).ok())
}

/// Returns `true` if an upgrade of a module keeps the heap: enhanced orthogonal persistence.
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub fn keeps_heap(module: &[u8]) -> bool {
    section_of(module, &PERSISTENCE).is_some()
}

/// Returns `true` if a module imports functions of WASI.
fn imports_wasi(module: &[u8]) -> bool {
    any_import(module, |import| is_wasi(import.module))
}

/// Returns `true` if a module imports a function of the System API.
pub fn imports(module: &[u8], function: &str) -> bool {
    any_import(module, |import| import.name == function)
}

/// The bytes of a module in which its imports usually are.
const BEGINNING: u64 = 256 << 10;

/// Returns `true` if a module has an import of this kind. Usually only its beginning is unpacked.
fn any_import(module: &[u8], is_it: impl Fn(&Import<'_>) -> bool) -> bool {
    let found = |wasm: &[u8]| {
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.ok()? {
                Payload::ImportSection(section) => {
                    let mut imports = section.into_imports().filter_map(Result::ok);
                    return Some(imports.any(|import| is_it(&import)));
                }
                Payload::FunctionSection(_) | Payload::CodeSectionStart { .. } => break,
                _ => {}
            }
        }
        Some(false)
    };
    found(&inflated(module, BEGINNING)).or_else(|| found(&plain(module))).unwrap_or_default()
}

/// Returns the first custom section with one of these names.
fn section_of(module: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    found_in(module, |payload| match payload {
        Payload::CustomSection(section) if names.contains(&section.name()) => {
            Some(section.data().to_vec())
        }
        _ => None,
    })
}

/// Returns the first result for a module's sections.
fn found_in<T>(module: &[u8], find: impl Fn(Payload<'_>) -> Option<T>) -> Option<T> {
    let wasm = plain(module);
    Parser::new(0).parse_all(&wasm).filter_map(Result::ok).find_map(find)
}

/// The files that runs and reports change. None of them changes a result.
const OUTCOMES: [&str; 5] = [
    ":!suites/*/results*.json",
    ":!suites/*/README.md",
    ":!verification/results",
    ":!docs",
    ":!README.md",
];

/// Returns the revision of the sources in a folder, with `-dirty` if they were changed since, if
/// git knows it.
fn revision_of(root: &Path) -> Option<String> {
    let at = git(root, &["rev-parse", "--short", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--", "."];
    let changed = git(root, &[&status[..], &OUTCOMES].concat())?;
    Some(if changed.is_empty() { at } else { format!("{at}-dirty") })
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::recorded::deployable;
    use super::*;
    use crate::suites::SUITES;

    /// Engines and plans name their canisters. Those of the suite builds are built with options.
    #[test]
    fn engines_and_suites_name_canisters_of_the_list() {
        let engines = stablebench_suite::engines::ENGINES.iter().map(|engine| engine.canister);
        let mut named: Vec<String> = engines.map(str::to_owned).collect();
        for suite in SUITES {
            let plan = stablebench_suite::plan_of(suite, "").unwrap();
            named.extend(plan.configurations.into_iter().map(|column| column.canister));
        }
        for name in named.iter().filter(|name| !name.starts_with(BENCH_BUILDS)) {
            assert!(Source::named(name).is_some(), "{name}");
        }
        for source in SOURCES {
            assert!(named.iter().any(|name| name == source.name), "nothing uses {}", source.name);
        }
    }

    #[test]
    fn a_checkout_is_found_from_its_folders_and_nowhere_else() {
        let root = root();
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
            check(source, root()).unwrap();
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

    #[test]
    fn imports_are_found_wherever_they_are() {
        let import = r#"(import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))"#;
        // More than the beginning.
        let section = format!("(@custom \"a\" (before first) \"{}\")", "a".repeat(300 << 10));
        for (text, expected) in [
            (format!("(module {import})"), true),
            (format!("(module {section} {import})"), true),
            ("(module (func (nop)))".to_owned(), false),
            (format!("(module {section} (func (nop)))"), false),
        ] {
            let wasm = wat::parse_str(text).unwrap();
            for module in [deployable(&wasm).unwrap(), wasm] {
                assert_eq!(imports_wasi(&module), expected);
                assert_eq!(imports(&module, "sched_yield"), expected);
            }
        }
        assert!(!imports_wasi(b"\0asm\x01\0\0\0\xff") && !imports_wasi(b""));
    }

    #[test]
    fn changed_sources_are_dirty_and_changed_outcomes_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert_eq!(revision_of(root), None, "there is no repository");
        fs::create_dir_all(root.join("suites/users")).unwrap();
        for file in ["source.rs", "README.md", "suites/users/results.json"] {
            fs::write(root.join(file), "before").unwrap();
        }
        let who = [
            "-c",
            "user.name=nobody",
            "-c",
            "user.email=nobody@localhost",
            "-c",
            "commit.gpgsign=false",
        ];
        for args in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"]] {
            git(root, &[&who, args].concat()).unwrap();
        }
        let clean = revision_of(root).unwrap();
        assert!(clean.len() >= 7 && clean.bytes().all(|byte| byte.is_ascii_hexdigit()), "{clean}");
        for (file, dirty) in
            [("README.md", false), ("suites/users/results.json", false), ("source.rs", true)]
        {
            fs::write(root.join(file), "after").unwrap();
            let expected = if dirty { format!("{clean}-dirty") } else { clean.clone() };
            assert_eq!(revision_of(root).unwrap(), expected, "{file}");
        }
    }
}
