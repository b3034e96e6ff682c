//! The origin of modules: embedded in this program, or built in a checkout with `cargo build`.
//! In a canister that is built for WASI, the calls of WASI are replaced by ones that work on
//! the IC.
//!
//! ```text
//!   cargo build --target wasm32-wasip1 --profile canister
//!     → wasi2ic → target/canisters/NAME.wasm, NAME.stamp
//! ```
//!
//! Cargo detects changes of the sources. The stamp is the hash of the module that cargo built
//! last, so that `wasi2ic` runs only when that changed.
//!
//! Canisters with C sources need a C compiler, which the crate `cc` reads from the environment:
//!
//! ```text
//!   CC_wasm32_wasip1       clang-19, unless the user chose another
//!   AR_wasm32_wasip1       ar
//!   CFLAGS_wasm32_wasip1   -isystem …/wasm32-wasi -include canisters/…/canister.h, quoted for a shell
//! ```

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use stablebench_replica::files::{self, MAX_MODULE, MAX_TEXT};

use super::module::{
    BENCH_BUILDS, BUILDS, Built, Origin, Package, SOURCES, Source, hash, imports_wasi, plain,
};
use super::revision::revision_of;
use stablebench_suite_builds::{NotBuilt, Options};

use crate::builds::{Module, Project, cargo, convert};
use crate::progress::Progress;
use crate::saving;

/// The canisters' modules in gzip by name, and the revision of their sources. The build script
/// writes them with the feature `embed-canisters`; without it there are none.
const EMBEDDED: (&[(&str, &[u8])], Option<&str>) =
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The folder from which this program was built.
const ORIGIN: &str = env!("CARGO_MANIFEST_DIR");
/// The manifest of a canister in a checkout.
const BENCH_SOURCES: &str = "canisters/bench/Cargo.toml";

/// The C compiler. One version, so that everybody gets the same module.
const COMPILER: &str = "clang-19";

/// The folders in which Debian's packages install the headers of WASI's C library.
const HEADERS: [&str; 2] = ["/usr/include/wasm32-wasi", "/usr/include/wasm32-wasip1"];

/// Returns the canister with this name, or the module at this path.
///
/// # Errors
///
/// [`NotBuilt`] if it is `bench_builds` with options for which there is no module.
pub fn find(name: &str, progress: &Progress) -> Result<Built> {
    if let Some(options) = name.strip_prefix(BENCH_BUILDS).and_then(|it| it.strip_prefix('/')) {
        let root = found_checkout()?.context(
            "the suite builds compiles its canister; run this in a checkout of stablebench",
        )?;
        let module = with_options(&root, &options.parse()?, progress)?;
        return Ok(Built { programs: module.programs, ..Built::new(name, module.wasm) });
    }
    match Source::named(name) {
        Some(source) => build(source, progress),
        None if Path::new(name).is_file() => load(Path::new(name), progress),
        None => bail!(
            "no canister {name}; there is {}, or give the path of a wasm file",
            SOURCES.map(|source| source.name).join(", ")
        ),
    }
}

/// Reads a module from a file, plain or in gzip. If it calls functions of WASI, it is converted with a
/// note: no replica accepts it as it is.
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
    let wasm = convert(plain(&wasm).into_owned()).with_context(|| {
        format!("{} calls WASI, and cannot be converted for the IC", path.display())
    })?;
    step.done("");
    progress.note(&format!(
        "{} calls WASI, which the IC does not have; these calls are replaced, as wasi2ic does",
        path.display()
    ));
    Ok(Built::new(&name, wasm))
}

/// Returns the embedded canister, or builds it in the checkout if its sources changed.
pub fn build(source: Source, progress: &Progress) -> Result<Built> {
    match embedded(source) {
        Some(gzip) => Ok(Built::new(source.name, plain(gzip).into_owned())),
        None => build_in(&checkout()?, source, progress),
    }
}

/// Returns the folder for a canister's module files: `target/canisters` of the checkout, or the
/// current folder for an embedded canister.
pub fn output_folder(source: Source) -> Result<PathBuf> {
    match embedded(source) {
        Some(_) => Ok(PathBuf::new()),
        None => Ok(modules(&checkout()?)),
    }
}

/// Returns the revision of the canisters' sources, if git knows it.
pub fn revision() -> Option<String> {
    match EMBEDDED {
        ([], _) => revision_of(&checkout().ok()?),
        (_, revision) => revision.map(str::to_owned),
    }
}

fn embedded(source: Source) -> Option<&'static [u8]> {
    EMBEDDED.0.iter().find(|(name, _)| *name == source.name).map(|(_, gzip)| *gzip)
}

/// Returns the root folder of the checkout to work in.
pub fn checkout() -> Result<PathBuf> {
    found_checkout()?.with_context(|| {
        format!(
            "{} is in no checkout of stablebench, whose canisters this program builds, and the one \
             from which it was installed, {ORIGIN}, is gone; run this in a checkout, or install the \
             program with embedded canisters: `just install` in a checkout",
            env::current_dir().unwrap_or_default().display()
        )
    })
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

fn modules(root: &Path) -> PathBuf {
    root.join("target/canisters")
}

fn build_in(root: &Path, source: Source, progress: &Progress) -> Result<Built> {
    let package = match source.origin {
        Origin::Package(package) => package,
        Origin::File(path) => {
            let built = Built::read(&root.join(path))?;
            return Ok(Built::new(source.name, plain(&built.wasm).into_owned()));
        }
    };
    ensure_target(root, package.target, progress)?;
    let c_compiler = match package.c_header {
        Some(header) => c_environment(root, source.name, package.target, &root.join(header))?,
        None => Vec::new(),
    };
    let compiled = compile(root, source.name, package, c_compiler, progress)?;
    let path = modules(root).join(source.name).with_extension("wasm");
    let stamp = path.with_extension("stamp");
    let input = files::read(&compiled, MAX_MODULE)
        .with_context(|| format!("cargo left no module at {}", compiled.display()))?;
    let hash = hash(&input);
    if !(path.is_file() && files::read_text(&stamp, MAX_TEXT).is_ok_and(|old| old == hash)) {
        let step = progress.spinner(&format!("converting {} for the IC", source.name));
        let wasm = convert(input).with_context(|| format!("converting {}", source.name))?;
        for (path, bytes) in [(&path, &wasm[..]), (&stamp, hash.as_bytes())] {
            saving::save(path, bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        step.done("");
    }
    Built::read(&path)
}

/// Builds the canister `bench_builds` with options.
fn with_options(root: &Path, options: &Options, progress: &Progress) -> Result<Module> {
    ensure_target(root, BUILDS.target, progress)?;
    let project = Project {
        name: format!("canister {BENCH_BUILDS}"),
        package: Some(BUILDS.name.to_owned()),
        folder: root.to_owned(),
        target: BUILDS.target.to_owned(),
        features: Vec::new(),
        flags: Some(remapped_paths(root)?),
        is_own: true,
    };
    project.build(options, progress)
}

/// Adds the target to the toolchain if it is missing.
fn ensure_target(root: &Path, target: &str, progress: &Progress) -> Result<()> {
    let libraries = rustc(root).map(|rustc| rustc.sysroot.join("lib/rustlib").join(target));
    if libraries.is_ok_and(|folder| folder.join("lib").is_dir()) {
        return Ok(());
    }
    let step = progress.spinner(&format!("adding the Rust target {target}"));
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(root)
        .stdout(Stdio::null())
        .output();
    step.done("");
    match added {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => bail!(
            "rustup cannot add the target {target}; run `rustup target add {target}`:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        ),
        Err(error) => bail!(
            "the Rust target {target} is missing and rustup cannot be run ({error}); install the \
             target as your Rust came"
        ),
    }
}

/// Runs cargo and returns the path of the module.
fn compile(
    root: &Path,
    canister: &str,
    package: Package,
    c_compiler: Vec<(String, OsString)>,
    progress: &Progress,
) -> Result<PathBuf> {
    const PROFILE: &str = "canister";
    // Cargo runs in the checkout, but a relative path begins where this program was started.
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(named) => std::path::absolute(named)?,
        None => root.join("target"),
    };
    let mut command = cargo::own();
    command
        .args(["build", "--locked", "--profile", PROFILE])
        .args(["--package", package.name, "--target", package.target])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root)
        // Neither the user's flags for native builds and unstable features nor a wrapper of the
        // compiler nor the location of the sources may change the module.
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_BOOTSTRAP")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_ENCODED_RUSTFLAGS", cargo::encoded(remapped_paths(root)?))
        .envs(c_compiler);
    let name = format!("canister {canister}");
    cargo::build(command, &name, progress).map_err(|error| match error.downcast::<NotBuilt>() {
        Ok(NotBuilt { printed, .. }) => anyhow!("cargo could not build {name}:\n{printed}"),
        Err(error) => error,
    })?;
    let file = format!("{}.wasm", package.name.replace('-', "_"));
    Ok(target.join(package.target).join(PROFILE).join(file))
}

/// Returns the flags that keep this machine's paths out of the module.
fn remapped_paths(root: &Path) -> Result<Vec<OsString>> {
    let mut paths = own_paths(root);
    paths.push(library_sources(root)?);
    let flag = |(from, to): (PathBuf, String)| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(from);
        flag.push("=");
        flag.push(to);
        flag
    };
    Ok(paths.into_iter().map(flag).collect())
}

/// Returns the paths of the checkout and of cargo's home, and their names in modules.
fn own_paths(root: &Path) -> Vec<(PathBuf, String)> {
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let mut paths = vec![(root.to_owned(), "/stablebench".to_owned())];
    paths.extend(cargo_home.map(|home| (home, "/cargo".to_owned())));
    paths
}

/// Returns the path of the standard library's sources, and the name by which rustc calls them
/// without the component `rust-src`. With it, rustc names the files themselves.
fn library_sources(root: &Path) -> Result<(PathBuf, String)> {
    let Rustc { sysroot, commit } = rustc(root)?;
    Ok((sysroot.join("lib/rustlib/src/rust"), format!("/rustc/{commit}")))
}

/// The compiler of the checkout's toolchain.
struct Rustc {
    sysroot: PathBuf,
    commit: String,
}

/// Asks the compiler once for all canisters.
fn rustc(root: &Path) -> Result<&'static Rustc> {
    static FOUND: OnceLock<Rustc> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let sysroot = ask_rustc(root, &["--print", "sysroot"])?;
    let version = ask_rustc(root, &["-vV"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    Ok(FOUND.get_or_init(|| Rustc {
        sysroot: sysroot.trim().into(),
        commit: commit.unwrap_or("unknown").to_owned(),
    }))
}

/// Returns the compiler's output.
fn ask_rustc(root: &Path, arguments: &[&str]) -> Result<String> {
    // Cargo reads the variable too.
    let program = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .context("cannot run rustc; install Rust from https://rustup.rs")?;
    if !output.status.success() {
        bail!(
            "rustc {} failed:\n{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the environment in which cargo builds a canister with C sources.
///
/// # Errors
///
/// If the compiler or the headers are missing; the message names the packages to install.
fn c_environment(
    root: &Path,
    canister: &str,
    target: &str,
    header: &Path,
) -> Result<Vec<(String, OsString)>> {
    let name = |tool: &str| format!("{tool}_{}", target.replace('-', "_"));
    let chosen = |tool: &str| env::var_os(name(tool));
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
            "canister {canister} has C sources, and for them {} {} missing; install them: \
             apt-get install {COMPILER} wasi-libc\n\
             No other canister needs that.",
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
    let text = files::read(header, MAX_TEXT)
        .with_context(|| format!("cannot read {}", header.display()))?;
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
    use std::fs;

    use super::*;

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
}
