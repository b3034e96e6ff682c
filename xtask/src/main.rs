//! Tasks of developers.
//!
//! ```text
//! cargo xtask modules [--check] [NAME…]   builds the canisters' modules, or compares them
//! cargo run --release --package xtask --features render -- render
//!                                         renders the figures of documents
//! ```
//!
//! Building a module, and comparing it with the committed one:
//!
//! ```text
//!   cargo build --profile canister --target …  →  WASI replaced  →  gzip  →  canisters/modules/NAME.wasm.gz
//!                                                                           canisters/modules/list.json
//!   src/canisters/list.rs  →  dfx.json, icp.yaml
//! ```
//!
//! The files that a module is built from are those that cargo lists next to it, and the manifests of
//! their packages. So a record has the suites that a canister links, and no other.
//!
//! Canisters with C sources need a C compiler, which the crate `cc` reads from the environment:
//!
//! ```text
//!   CC_wasm32_wasip1       clang-19, unless the user chose another
//!   AR_wasm32_wasip1       ar
//!   CFLAGS_wasm32_wasip1   -isystem …/wasm32-wasi -include canisters/…/canister.h, quoted for a shell
//! ```

/// Nothing is embedded here.
macro_rules! module_of {
    ($name:literal) => {
        &[]
    };
}

#[path = "../../src/canisters/list.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod list;
#[path = "../../src/canisters/recorded.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod recorded;
#[path = "../../src/builds/toolchain.rs"]
mod toolchain;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use self::list::{Origin, Package, SOURCES, Source};
use self::recorded::{RECORD, Record, Recorded, deployable, hash, hash_of_files, plain};
use self::toolchain::{ensure_target, isolate, own, own_paths, remapped_paths};

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
    let words: Vec<String> = env::args().skip(1).collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["render"] => render(&root()),
        ["modules", ..] => {
            words.remove(0);
            let before = words.len();
            words.retain(|word| *word != "--check");
            modules(&root(), &words, words.len() < before)
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
fn render(root: &Path) -> Result<()> {
    for page in stablebench::readme::rendered(root)? {
        fs::write(root.join(&page.name), page.text)?;
    }
    Ok(())
}

#[cfg(not(feature = "render"))]
fn render(_root: &Path) -> Result<()> {
    bail!("this needs a feature: cargo run --release --package xtask --features render -- render")
}

/// The profile of canisters in Cargo.toml.
const PROFILE: &str = "canister";
/// A file that decides about every module.
const TOOLCHAIN: &str = "rust-toolchain.toml";

/// The C compiler. One version, so that everybody gets the same module.
const COMPILER: &str = "clang-19";

/// The folders in which Debian's packages install the headers of WASI's C library.
const HEADERS: [&str; 2] = ["/usr/include/wasm32-wasi", "/usr/include/wasm32-wasip1"];

/// A module as it is committed.
struct Built {
    /// The module in gzip.
    file: Vec<u8>,
    recorded: Recorded,
}

/// Builds the modules of all canisters, or of those named, and writes or checks them.
///
/// # Errors
///
/// If a module cannot be built, or one that is checked differs.
pub fn modules(root: &Path, names: &[&str], check: bool) -> Result<()> {
    let mut chosen: Vec<Source> = Vec::new();
    for name in names {
        let all = || SOURCES.map(|source| source.name).join(", ");
        let source = Source::named(name);
        chosen.push(source.with_context(|| format!("no canister {name}; there is {}", all()))?);
    }
    if chosen.is_empty() {
        chosen = SOURCES.to_vec();
    }
    // What is missing is noticed before anything is compiled.
    for source in &chosen {
        environment(root, *source, |name| env::var_os(name))?;
    }
    let mut different = Vec::new();
    for (file, text) in deployments() {
        let path = root.join(file);
        match check {
            true if !read(&path).is_ok_and(|old| old == text.as_bytes()) => different.push(file),
            true => {}
            false => fs::write(path, text).with_context(|| format!("cannot write {file}"))?,
        }
    }
    let committed = read(&root.join(RECORD)).ok();
    let committed: Option<Record> = committed.as_deref().and_then(parse);
    let mut record = match names {
        [] => Record::new(),
        _ => committed.clone().unwrap_or_default(),
    };
    for source in chosen {
        let Built { file, recorded } = build(root, source)?;
        let path = root.join(source.path());
        let is_same = read(&path).is_ok_and(|old| old == file)
            && committed.as_ref().and_then(|all| all.get(source.name)) == Some(&recorded);
        note(&format!("{}  {}", recorded.module_hash, source.path()));
        if !is_same {
            different.push(source.name);
        }
        if !check {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
            record.insert(source.name.to_owned(), recorded);
        }
    }
    if check {
        ensure!(
            different.is_empty(),
            "the sources make other files than the committed ones: {}; build them, and commit them: \
             cargo xtask modules",
            different.join(", ")
        );
    } else {
        let text = text(&record)?;
        fs::write(root.join(RECORD), text).with_context(|| format!("cannot write {RECORD}"))?;
    }
    Ok(())
}

/// Returns the files from which other tools deploy the canisters, with their contents.
fn deployments() -> [(&'static str, String); 2] {
    let dfx = SOURCES.map(|source| {
        format!(
            "    \"{}\": {{\n      \"type\": \"custom\",\n      \"wasm\": \"{}\",\n      \
             \"candid\": \"{}\",\n      \"shrink\": false\n    }}",
            source.name,
            source.path(),
            source.candid
        )
    });
    let icp = SOURCES.map(|source| {
        format!(
            "  - name: {}\n    build:\n      steps:\n        - type: pre-built\n          path: {}\n",
            source.name,
            source.path()
        )
    });
    let dfx = dfx.join(",\n");
    [
        ("dfx.json", format!("{{\n  \"version\": 1,\n  \"canisters\": {{\n{dfx}\n  }}\n}}\n")),
        (
            "icp.yaml",
            format!(
                "# For icp-cli: `icp network start -d`, then `icp deploy bench` or another canister.\n\n\
                 canisters:\n{}",
                icp.concat()
            ),
        ),
    ]
}

#[expect(clippy::disallowed_methods, reason = "files of the checkout")]
fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn parse(record: &[u8]) -> Option<Record> {
    serde_json::from_slice(record).ok()
}

#[expect(clippy::disallowed_methods, reason = "written to a file of the checkout")]
fn text(record: &Record) -> Result<String> {
    Ok(serde_json::to_string_pretty(record)? + "\n")
}

fn build(root: &Path, source: Source) -> Result<Built> {
    let (wasm, files, crates) = match source.origin {
        // The file is in gzip, but maybe not by this program.
        Origin::Motoko => (plain(&read(&root.join(source.path()))?).into_owned(), vec![], vec![]),
        Origin::Package(package) => {
            note(&format!("building {}", source.name));
            let target = target_folder(root)?;
            let compiled = compile(root, source, package, &target, remapped_paths(root)?)?;
            let files = files(root, package, &compiled, &target)?;
            (converted(source, &compiled)?, files, crates(root, package)?)
        }
    };
    let sources = match files.is_empty() {
        true => String::new(),
        false => hash_of_files(root, &files)
            .map_err(|(file, error)| anyhow::Error::new(error).context(file))?,
    };
    let file = deployable(&wasm)?;
    let recorded =
        Recorded { sha256: hash(&wasm), module_hash: hash(&file), sources, files, crates };
    Ok(Built { file, recorded })
}

/// Returns a compiled module as the IC takes it.
fn converted(source: Source, compiled: &Path) -> Result<Vec<u8>> {
    let wasm = read(compiled)?;
    let converted = stablebench_wasi::convert(&wasm)
        .with_context(|| format!("{} cannot be converted for the IC", source.name))?;
    Ok(converted.unwrap_or(wasm))
}

/// Returns the folder of what cargo builds.
fn target_folder(root: &Path) -> Result<PathBuf> {
    // Cargo runs in the checkout, but a relative path begins where this program was started.
    Ok(match env::var_os("CARGO_TARGET_DIR") {
        Some(named) => std::path::absolute(named)?,
        None => root.join("target"),
    })
}

/// Runs cargo and returns the path of the module.
fn compile(
    root: &Path,
    source: Source,
    package: Package,
    target: &Path,
    flags: Vec<OsString>,
) -> Result<PathBuf> {
    ensure_target(root, package.target)?;
    let mut cargo = own();
    cargo
        .args(["build", "--locked", "--profile", PROFILE])
        .args(["--package", package.name, "--target", package.target])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root)
        .envs(environment(root, source, |name| env::var_os(name))?);
    isolate(&mut cargo, flags);
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo could not build canister {}", source.name);
    let file = format!("{}.wasm", package.name.replace('-', "_"));
    Ok(target.join(package.target).join(PROFILE).join(file))
}

/// Returns the files of the repository that decide about a module, in order.
fn files(root: &Path, package: Package, compiled: &Path, target: &Path) -> Result<Vec<String>> {
    let listed = read(&compiled.with_extension("d"))?;
    let listed = String::from_utf8(listed)?;
    let (_, listed) = listed.split_once(": ").context("cargo lists files in another format")?;
    let mut found = BTreeSet::from([TOOLCHAIN.to_owned()]);
    found.extend(package.c_header.map(str::to_owned));
    // Spaces in paths follow a backslash.
    for path in listed.replace("\\ ", "\0").split_whitespace() {
        let path = normal(Path::new(&path.replace('\0', " ")));
        // The lock file is compared by crate.
        if path.starts_with(target) || path == root.join("Cargo.lock") {
            continue;
        }
        let Ok(inside) = path.strip_prefix(root) else { continue };
        for folder in inside.ancestors().skip(1).take_while(|folder| *folder != Path::new("")) {
            let manifest = folder.join("Cargo.toml");
            if root.join(&manifest).is_file() {
                found.insert(manifest.to_string_lossy().into_owned());
                break;
            }
        }
        found.insert(inside.to_string_lossy().into_owned());
    }
    ensure!(found.len() > 2, "cargo lists no files of {}", package.name);
    Ok(found.into_iter().collect())
}

/// Returns a path without `..`, as it is written.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

/// Returns the crates of registries that a package is built from: name and version.
fn crates(root: &Path, package: Package) -> Result<Vec<String>> {
    let output = own()
        .args(["tree", "--locked", "--package", package.name, "--target", package.target])
        .args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo cannot list the crates of {}", package.name);
    let mut found = BTreeSet::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        // Packages of this workspace are followed by their paths.
        if !words.any(|word| word.starts_with("(/")) {
            found.insert(format!("{name} {}", version.trim_start_matches('v')));
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns the environment in which cargo builds a canister.
///
/// # Errors
///
/// If it has C sources and the compiler or the headers are missing; the message names the packages to
/// install.
fn environment(
    root: &Path,
    source: Source,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(String, OsString)>> {
    let Origin::Package(Package { target, c_header: Some(header), .. }) = source.origin else {
        return Ok(Vec::new());
    };
    let header = &root.join(header);
    let name = |tool: &str| format!("{tool}_{}", target.replace('-', "_"));
    let chosen = |tool: &str| variable(&name(tool));
    let compiler = chosen("CC").unwrap_or_else(|| COMPILER.into());
    let mut missing = Vec::new();
    if !runs(&compiler) {
        missing.push(format!("the C compiler {}", compiler.display()));
    }
    let headers = HEADERS.into_iter().find(|folder| Path::new(folder).join("stdio.h").is_file());
    if headers.is_none() && chosen("CFLAGS").is_none() {
        missing.push(format!("the headers of wasi-libc in {}", HEADERS[0]));
    }
    if !missing.is_empty() {
        bail!(
            "canister {} has C sources, and for them {} {} missing; install them: \
             apt-get install {COMPILER} wasi-libc\n\
             No other canister needs that, and others can be built alone: cargo xtask modules NAME…",
            source.name,
            missing.join(" and "),
            if missing.len() == 1 { "is" } else { "are" },
        );
    }
    let mut flags = chosen("CFLAGS").unwrap_or_default();
    let mut add = |flag: &str, value: &OsStr| {
        // In quotes, since paths may contain spaces.
        for part in [OsStr::new(flag), OsStr::new("'"), value, OsStr::new("'")] {
            flags.push(part);
        }
    };
    if let Some(headers) = headers {
        add(" -isystem ", headers.as_ref());
    }
    add(" -include ", header.as_os_str());
    // Cargo does not know the header, but compiles again if flags change.
    let text = read(header)?;
    add(" -DCANISTER_HEADER=", format!("0x{}", &hash(&text)[..8]).as_ref());
    for (from, to) in own_paths(root) {
        let mut map = from.into_os_string();
        map.push("=");
        map.push(to);
        add(" -ffile-prefix-map=", &map);
    }
    let archiver = chosen("AR").unwrap_or_else(|| "ar".into());
    Ok(vec![
        (name("CC"), compiler),
        (name("AR"), archiver),
        (name("CFLAGS"), flags),
        ("CC_SHELL_ESCAPED_FLAGS".to_owned(), "1".into()),
    ])
}

fn runs(program: &OsStr) -> bool {
    let mut command = Command::new(program);
    let silent = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_reported_with_the_packages_to_install() {
        let root = root();
        let set = |name: &str| (name == "CC_wasm32_wasip1").then(|| "/nowhere/clang".into());
        let error = environment(&root, list::BENCH_DOLTLITE, set).unwrap_err().to_string();
        for part in
            ["bench_doltlite has C sources", "/nowhere/clang", "apt-get install clang-19 wasi-libc"]
        {
            assert!(error.contains(part), "{error}");
        }
        assert!(environment(&root, list::BENCH, set).unwrap().is_empty());
    }

    #[test]
    fn deployments_are_those_of_the_list() {
        for (file, text) in deployments() {
            let committed = String::from_utf8(read(&root().join(file)).unwrap()).unwrap();
            assert_eq!(committed, text, "{file} is old; write it: cargo xtask modules");
        }
    }

    /// The suites of a canister: those that its manifest names.
    fn suites_of(package: Package, root: &Path) -> BTreeSet<String> {
        let folder = package.name.trim_start_matches("stablebench-").replace('-', "_");
        let manifest = read(&root.join("canisters").join(folder).join("Cargo.toml")).unwrap();
        let manifest = String::from_utf8(manifest).unwrap();
        let named = |line: &str| {
            let name = line.strip_prefix("stablebench-suite-")?;
            Some(name[..name.find([' ', '.'])?].to_owned())
        };
        manifest.lines().filter_map(named).collect()
    }

    #[test]
    fn a_record_has_the_suites_of_its_canister_and_no_other() {
        let root = root();
        let record = parse(&read(&root.join(RECORD)).unwrap()).unwrap();
        for source in SOURCES {
            let Origin::Package(package) = source.origin else { continue };
            let files = &record[source.name].files;
            let folders =
                files.iter().filter_map(|file| file.strip_prefix("suites/")?.split_once('/'));
            let recorded: BTreeSet<String> = folders.map(|(suite, _)| suite.to_owned()).collect();
            assert_eq!(recorded, suites_of(package, &root), "{}", source.name);
            // What only the program has of a suite decides nothing about a module.
            let plan = |file: &String| file.starts_with("suites/") && file.ends_with("/plan.rs");
            assert!(!files.iter().any(plan), "{files:?}");
        }
    }

    /// Links all entries of a folder but one into another.
    #[cfg(unix)]
    fn link(from: &Path, to: &Path, except: &[&str]) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            if !except.iter().any(|name| entry.file_name() == *name) {
                std::os::unix::fs::symlink(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }

    /// The sources are linked into another folder, where one type differs. Compiled crates are shared.
    #[cfg(unix)]
    #[test]
    fn a_changed_type_of_another_suite_changes_no_module() {
        const JOB: &str = "suites/history/src/job.rs";
        let source = list::BENCH_LEVELDB;
        let Origin::Package(package) = source.origin else { unreachable!() };
        let (root, folder) = (root(), tempfile::tempdir().unwrap());
        let copy = folder.path();
        link(&root, copy, &[".git", "suites", "target"]);
        link(&root.join("suites"), &copy.join("suites"), &["history"]);
        link(&root.join("suites/history"), &copy.join("suites/history"), &["src"]);
        link(&root.join("suites/history/src"), &copy.join("suites/history/src"), &["job.rs"]);
        let text = String::from_utf8(read(&root.join(JOB)).unwrap()).unwrap();
        let changed =
            text.replace("pub rows: u64,", "pub rows: u64,\n    pub columns: Option<u8>,");
        assert_ne!(changed, text);
        fs::write(copy.join(JOB), changed).unwrap();

        let flags = remapped_paths(&root).unwrap();
        let target = target_folder(&root).unwrap();
        let compiled = compile(copy, source, package, &target, flags).unwrap();
        let module = deployable(&converted(source, &compiled).unwrap()).unwrap();
        let record = parse(&read(&root.join(RECORD)).unwrap()).unwrap();
        assert_eq!(hash(&module), record[source.name].module_hash);
    }

    #[test]
    fn paths_are_those_of_the_files() {
        for (path, expected) in
            [("/a/b/../c.rs", "/a/c.rs"), ("/a/./b/../../c", "/c"), ("/a", "/a")]
        {
            assert_eq!(normal(Path::new(path)), Path::new(expected));
        }
    }
}
