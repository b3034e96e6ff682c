//! Builds a canister with `cargo build`. In one that is built for WASI, the calls of WASI
//! are replaced by ones that work on the IC.
//!
//! ```text
//!   cargo build --target wasm32-wasip1 --profile canister
//!     → wasi2ic → target/canisters/NAME.wasm, NAME.stamp
//! ```
//!
//! Cargo knows whether the sources changed; the stamp is the hash of what it last left, so
//! that `wasi2ic` runs only when that changed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Built, Source, c_sources, hash, root};
use crate::interrupt;
use crate::progress::Progress;
use crate::saving;

/// How long it may take until Ctrl-C is seen.
const TICK: Duration = Duration::from_millis(50);

/// Builds `source` if it changed.
pub fn build(source: Source, progress: &Progress) -> Result<Built> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    if !root().join("Cargo.toml").is_file() {
        bail!(
            "the sources of canister {} are not at {}; run this from a clone of the repository, \
             built there",
            source.name,
            root().display()
        );
    }
    ensure_target(source.target, progress)?;
    let c_compiler = match source.c_header {
        Some(header) => c_sources::environment(source.name, source.target, &root().join(header))?,
        None => Vec::new(),
    };
    let compiled = compile(&cargo, source, c_compiler, progress)?;
    let path = source.wasm_path();
    let stamp = path.with_extension("stamp");
    let input = fs::read(&compiled)
        .with_context(|| format!("cargo left no module at {}", compiled.display()))?;
    let hash = hash(&input);
    if !(path.is_file() && fs::read_to_string(&stamp).is_ok_and(|old| old == hash)) {
        let step = progress.spinner(&format!("converting {} for the IC", source.name));
        let wasm = convert(input).with_context(|| format!("converting {}", source.name))?;
        write(&path, &wasm)?;
        write(&stamp, hash.as_bytes())?;
        step.done("");
    }
    let mut built = Built::read(&path)?;
    built.candid = fs::read_to_string(source.candid_path())
        .with_context(|| format!("cannot read {}", source.candid_path().display()))?;
    Ok(built)
}

/// Adds the target to the toolchain if it is missing.
fn ensure_target(target: &str, progress: &Progress) -> Result<()> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root())
        .output()
        .context("cannot run rustc; install Rust from https://rustup.rs")?;
    let directory = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && directory.is_dir() {
        return Ok(());
    }
    let step = progress.spinner(&format!("adding the Rust target {target}"));
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(root())
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

/// Runs cargo and answers where the module is.
fn compile(
    cargo: &OsString,
    source: Source,
    c_compiler: Vec<(String, OsString)>,
    progress: &Progress,
) -> Result<PathBuf> {
    const PROFILE: &str = "canister";
    let step = progress.spinner(&format!("building canister {}", source.name));
    let target = target_directory()?;
    let mut child = Command::new(cargo)
        .args(["build", "--locked", "--profile", PROFILE])
        .args(["--package", source.package, "--target", source.target])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root())
        // What a user sets for native builds must not change what is measured,
        // and neither must where the sources are.
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", remapped_paths()?)
        .envs(c_compiler)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo; install Rust from https://rustup.rs")?;
    let said = child.stderr.take().map(lines).transpose()?;
    let mut told = Vec::new();
    while let Some(said) = &said {
        let line = match said.recv_timeout(TICK) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = interrupt::check() {
                    // The signal may have come to this process alone. Compilers that cargo has
                    // started end by themselves.
                    child.kill().and_then(|()| child.wait())?;
                    return Err(interrupted.into());
                }
                continue;
            }
        };
        if told.is_empty() && line.trim_start().starts_with("Compiling") {
            progress.note(&format!("building canister {}", source.name));
        }
        step.at(told.len() as u64, line.trim().to_owned());
        told.push(line);
    }
    let status = child.wait()?;
    step.done("");
    if !status.success() {
        // Ctrl-C ends cargo as well.
        interrupt::check()?;
        bail!("cargo could not build canister {}:\n{}", source.name, told.join("\n"));
    }
    let file = format!("{}.wasm", source.package.replace('-', "_"));
    Ok(target.join(source.target).join(PROFILE).join(file))
}

/// The lines that a program says, read by a thread of its own: programs that it has started may
/// keep this open for longer than it runs.
fn lines(from: ChildStderr) -> Result<Receiver<io::Result<String>>> {
    let (sender, lines) = channel();
    let read = move || {
        // Until nobody hears them any more.
        let _ = BufReader::new(from).lines().try_for_each(|line| sender.send(line));
    };
    thread::Builder::new()
        .spawn(read)
        .context("cannot start a thread that reads what cargo says")?;
    Ok(lines)
}

/// Flags that take this machine's paths out of the module.
fn remapped_paths() -> Result<OsString> {
    let mut paths = own_paths();
    paths.push(library_sources()?);
    let mut flags = OsString::new();
    for (from, to) in paths {
        if !flags.is_empty() {
            flags.push("\x1f");
        }
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push("=");
        flags.push(to);
    }
    Ok(flags)
}

/// The repository and cargo's home, and what they are called in modules.
pub fn own_paths() -> Vec<(PathBuf, String)> {
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let mut paths = vec![(root().to_owned(), "/stablebench".to_owned())];
    paths.extend(cargo_home.map(|home| (home, "/cargo".to_owned())));
    paths
}

/// Where the sources of the standard library are, and what they are called where they are not:
/// with the component `rust-src`, rustc names the files themselves.
fn library_sources() -> Result<(PathBuf, String)> {
    let sysroot = rustc(&["--print", "sysroot"])?;
    let version = rustc(&["-vV"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    Ok((sources, format!("/rustc/{}", commit.unwrap_or("unknown"))))
}

/// What rustc prints, of the toolchain that the repository names.
fn rustc(arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(root())
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

/// Where cargo builds. It is told so, since it runs in the repository, and a relative path
/// begins where this program was started.
fn target_directory() -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(named) => Ok(std::path::absolute(named)?),
        None => Ok(root().join("target")),
    }
}

/// Replaces WASI calls where there are such; what then still imports something else could
/// not be installed.
fn convert(wasm: Vec<u8>) -> Result<Vec<u8>> {
    let mut module = walrus::ModuleConfig::new().generate_name_section(true).parse(&wasm)?;
    if module.imports.iter().all(|import| import.module == "ic0") {
        return Ok(wasm);
    }
    wasi2ic::process_module(&mut module);
    if let Some(import) = module.imports.iter().find(|import| import.module != "ic0") {
        bail!("the module still imports {}::{}", import.module, import.name);
    }
    Ok(module.emit_wasm())
}

/// Writes a file as a whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    saving::save(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
