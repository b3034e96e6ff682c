//! The toolchain of a checkout, and the flags with which it builds the same module everywhere.
//!
//! The program builds the canister of the suite builds with it, `cargo xtask modules` the others; both
//! include this file.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// Returns the toolchain's cargo: the one that runs this program, if it does.
pub fn own() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Joins flags of rustc for `CARGO_ENCODED_RUSTFLAGS`.
pub fn encoded(flags: impl IntoIterator<Item = OsString>) -> OsString {
    let mut encoded = OsString::new();
    for flag in flags {
        if !encoded.is_empty() {
            encoded.push("\x1f");
        }
        encoded.push(flag);
    }
    encoded
}

/// Hides from cargo what would change a module: the user's flags for native builds and unstable
/// features, a wrapper of the compiler, and the location of the sources.
pub fn isolate(cargo: &mut Command, flags: impl IntoIterator<Item = OsString>) {
    cargo
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_BOOTSTRAP")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_ENCODED_RUSTFLAGS", encoded(flags));
}

/// Adds the target to the toolchain if it is missing.
pub fn ensure_target(root: &Path, target: &str) -> Result<()> {
    let libraries = rustc(root).map(|rustc| rustc.sysroot.join("lib/rustlib").join(target));
    if libraries.is_ok_and(|folder| folder.join("lib").is_dir()) {
        return Ok(());
    }
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(root)
        .stdout(Stdio::null())
        .output();
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

/// Returns the flags that keep this machine's paths out of the module.
pub fn remapped_paths(root: &Path) -> Result<Vec<OsString>> {
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
pub fn own_paths(root: &Path) -> Vec<(PathBuf, String)> {
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
