//! Modules that cargo builds, with options that change them.
//!
//! ```text
//!   Project, Options ─→ cargo ─→ WASI replaced ─→ ic-wasm ─→ wasm-opt ─→ module
//! ```
//!
//! The finished module is kept, because the programs that change it are slow. Cargo detects changes of
//! the sources. The stamp of a module names everything that decides about it:
//!
//! ```text
//!   target/wasm32-unknown-unknown/release/NAME.wasm            the last one that cargo built
//!                                         NAME.builds/KEY.wasm
//!                                         NAME.builds/KEY.stamp   the hash of the former, and the
//!                                                                 programs with their versions
//! ```

pub mod toolchain;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use stablebench_protocol::CrateVersion;
use stablebench_replica::files::{self, MAX_MODULE, MAX_TEXT};
use stablebench_suite_builds::{NotBuilt, Options};

use crate::interrupt;
use crate::progress::Progress;
use crate::saving;
use crate::terminal::json;

/// A crate, and the way in which cargo is run for it.
pub struct Project {
    /// Its name in the progress.
    pub name: String,
    pub package: Option<String>,
    /// The folder of its manifest, in which cargo runs.
    pub folder: PathBuf,
    /// Rust's target, unless the options name another.
    pub target: String,
    pub features: Vec<String>,
    /// Flags of rustc in addition to those of the options. Nothing if cargo's configuration decides.
    pub flags: Option<Vec<OsString>>,
    /// True if the toolchain is that of this program, and the lock file may not change.
    pub is_own: bool,
}

/// A finished module, and the versions of the programs that made it.
pub struct Module {
    pub wasm: Vec<u8>,
    pub programs: Vec<CrateVersion>,
}

impl Project {
    /// Returns the module for some options.
    ///
    /// # Errors
    ///
    /// [`NotBuilt`] if there is none.
    pub fn build(&self, options: &Options, progress: &Progress) -> Result<Module> {
        let tools = options.tools();
        let (mut made, mut versions) = (Vec::new(), vec![self.rustc()?]);
        for tool in &tools {
            // A missing program is noticed before anything is compiled.
            let version = version(tool.program, tool.version()?);
            made.push(format!("{}: {}", version.version, tool.command()));
            versions.push(version);
        }
        let label = self.label(options);
        let path = run_cargo(self.cargo(options)?, &label, progress)?.with_context(|| {
            format!("{label} has no module; its Cargo.toml must have crate-type = [\"cdylib\"]")
        })?;
        let input = files::read(&path, MAX_MODULE)
            .with_context(|| format!("cargo left no module at {}", path.display()))?;
        let stamp = format!("{:x}\n{}", Sha256::digest(&input), made.join("\n"));
        let folder = path.with_extension("builds");
        let kept = folder.join(format!("{options}.wasm"));
        let stamped = kept.with_extension("stamp");
        if kept.is_file() && files::read_text(&stamped, MAX_TEXT).is_ok_and(|old| old == stamp) {
            let wasm = files::read(&kept, MAX_MODULE)
                .with_context(|| format!("cannot read {}", kept.display()))?;
            return Ok(Module { wasm, programs: versions });
        }
        let converted = stablebench_wasi::convert(&input).map_err(|error| {
            NotBuilt::because(format!(
                "the module cannot be converted for the IC: {:#}",
                anyhow::Error::new(error)
            ))
        })?;
        let mut wasm = converted.unwrap_or(input);
        for tool in tools {
            let step = progress.spinner(&format!("{}: {}", self.label(options), tool.program));
            wasm = interrupt::abandonable(move || tool.run(&wasm))??;
            step.done("");
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        for (path, bytes) in [(&kept, &wasm[..]), (&stamped, stamp.as_bytes())] {
            saving::save(path, bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Module { wasm, programs: versions })
    }

    /// Returns the version of the compiler.
    fn rustc(&self) -> Result<CrateVersion> {
        let mut rustc = Command::new("rustc");
        if !self.is_own {
            rustc.env_remove("RUSTUP_TOOLCHAIN");
        }
        let output = rustc
            .arg("--version")
            .current_dir(&self.folder)
            .output()
            .context("cannot run rustc; install Rust from https://rustup.rs")?;
        Ok(version("rustc", String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    fn label(&self, options: &Options) -> String {
        format!("{}, {options}", self.name)
    }

    fn cargo(&self, options: &Options) -> Result<Command> {
        let target = options.target().unwrap_or(&self.target);
        let mut command = if self.is_own { toolchain::own() } else { Command::new("cargo") };
        command.current_dir(&self.folder);
        command.args(["build", "--release", "--target", target]);
        if let Some(named) = env::var_os("CARGO_TARGET_DIR") {
            // A relative path begins where this program was started.
            command.arg("--target-dir").arg(path::absolute(named)?);
        }
        if let Some(package) = &self.package {
            command.args(["--package", package]);
        }
        let features = self.features.iter().map(String::as_str).chain(options.features());
        for feature in features {
            command.args(["--features", feature]);
        }
        for line in options.profile() {
            command.args(["--config", &format!("profile.release.{line}")]);
        }
        if self.is_own {
            command.arg("--locked");
            if options.value("lto").is_none() {
                // Cargo's default, which Cargo.toml changes for the program itself.
                command.args(["--config", "profile.release.lto = false"]);
            }
        } else {
            // Those of the toolchain that runs this program.
            for name in ["CARGO", "RUSTUP_TOOLCHAIN"] {
                command.env_remove(name);
            }
        }
        let flags = options.flags();
        match &self.flags {
            Some(own) => {
                let flags = own.iter().cloned().chain(flags.into_iter().map(OsString::from));
                toolchain::isolate(&mut command, flags);
            }
            // Cargo adds them to those of its configuration, but not to those of the environment.
            None if !flags.is_empty() => {
                if let Some(name) = ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"]
                    .into_iter()
                    .find(|name| env::var_os(name).is_some())
                {
                    bail!(
                        "{options} sets flags of rustc, but the environment variable {name} does \
                         too; unset it, and set the flags in .cargo/config.toml"
                    );
                }
                let flags = json(&flags)?;
                command.args(["--config", &format!("target.{target}.rustflags={flags}")]);
            }
            None => {}
        }
        Ok(command)
    }
}

/// Returns the version in the output of a program: its first word that begins with a digit.
fn version(program: &str, printed: String) -> CrateVersion {
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let number = printed.split_whitespace().find(is_number);
    CrateVersion { name: program.to_owned(), version: number.unwrap_or(&printed).to_owned() }
}

/// A package of a workspace.
#[derive(Debug, Deserialize)]
pub struct Package {
    pub name: String,
    manifest_path: PathBuf,
}

/// The output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Package {
    /// Returns the package with this name, or the one of the manifest.
    ///
    /// # Errors
    ///
    /// If there is none, or the manifest is that of a workspace with several.
    pub fn of(manifest: &Path, name: Option<&str>) -> Result<Self> {
        let mut packages = packages(manifest)?;
        let names = packages.iter().map(|package| package.name.clone()).collect::<Vec<_>>();
        let found = match name {
            Some(name) => packages.iter().position(|package| package.name == name),
            None if packages.len() == 1 => Some(0),
            None => packages.iter().position(|package| package.manifest_path == manifest),
        };
        match (found, name) {
            (Some(found), _) => Ok(packages.swap_remove(found)),
            (None, Some(name)) => {
                bail!("{} has no package {name}; it has {}", manifest.display(), names.join(", "))
            }
            (None, None) => bail!(
                "{} is the manifest of a workspace; choose one of its packages with --package: {}",
                manifest.display(),
                names.join(", ")
            ),
        }
    }

    /// Returns the path of a file next to its manifest.
    pub fn file(&self, name: &str) -> PathBuf {
        self.manifest_path.with_file_name(name)
    }
}

/// Returns the packages of the manifest's workspace.
fn packages(manifest: &Path) -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(manifest)
        .current_dir(manifest.parent().unwrap_or(manifest))
        // Those of the toolchain that runs this program.
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo; install Rust from https://rustup.rs")?;
    ensure!(
        output.status.success(),
        "cargo cannot read {}:\n{}",
        manifest.display(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo describes {} in another format", manifest.display()))?;
    Ok(metadata.packages)
}

/// The longest time until Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Runs a `cargo build`, and returns the path of the module, if cargo reports one. The progress shows
/// `name`.
///
/// # Errors
///
/// [`NotBuilt`] if cargo cannot build it.
fn run_cargo(mut cargo: Command, name: &str, progress: &Progress) -> Result<Option<PathBuf>> {
    let step = progress.spinner(&format!("building {name}"));
    let mut child = cargo
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo; install Rust from https://rustup.rs")?;
    let (output, messages) = match (child.stderr.take(), child.stdout.take()) {
        (Some(output), Some(messages)) => (lines(output)?, lines(messages)?),
        _ => bail!("the output of cargo cannot be read"),
    };
    let mut printed = Vec::new();
    loop {
        let line = match output.recv_timeout(TICK) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = interrupt::check() {
                    // The signal may have been sent to this process alone. Compilers that cargo
                    // has started end by themselves.
                    child.kill().and_then(|()| child.wait())?;
                    return Err(interrupted.into());
                }
                continue;
            }
        };
        step.at(printed.len() as u64, line.trim().to_owned());
        printed.push(line);
    }
    let status = child.wait()?;
    step.done("");
    if !status.success() {
        // Ctrl-C ends cargo too.
        interrupt::check()?;
        let printed = printed.join("\n");
        return Err(NotBuilt { reason: reason(&printed), printed }.into());
    }
    let modules = messages.iter().collect::<io::Result<Vec<_>>>()?;
    Ok(modules.iter().filter_map(|message| module_in(message)).next_back())
}

/// Returns the first error of cargo's output, in one line.
fn reason(printed: &str) -> String {
    let error = printed.lines().find(|line| line.starts_with("error"));
    match error.or_else(|| printed.lines().last()) {
        Some(line) => line.trim_start_matches("error: ").to_owned(),
        None => "cargo failed, and printed nothing".to_owned(),
    }
}

/// Returns the path of the module, if a message of cargo reports one.
fn module_in(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message.get("reason")? != "compiler-artifact" {
        return None;
    }
    let files = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
    files.map(PathBuf::from).find(|file| file.extension().is_some_and(|of| of == "wasm"))
}

/// Returns the lines of a pipe. A thread reads them, because programs that cargo has started may keep
/// the pipe open for longer than cargo runs.
fn lines(from: impl Read + Send + 'static) -> Result<Receiver<io::Result<String>>> {
    let (sender, lines) = channel();
    let read = move || {
        // Sending fails once the receiver is gone.
        let _ = BufReader::new(from).lines().try_for_each(|line| sender.send(line));
    };
    thread::Builder::new()
        .spawn(read)
        .context("cannot start a thread that reads the output of cargo")?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_reason_is_the_first_error() {
        let printed = "   Compiling a v0.1.0\nwarning: w\nerror[E0463]: can't find crate for `core`\n\
                       error: could not compile `a` (lib) due to 1 previous error";
        assert_eq!(reason(printed), "error[E0463]: can't find crate for `core`");
        assert_eq!(reason("error: no such package"), "no such package");
        assert_eq!(reason("Killed"), "Killed");
        assert_eq!(reason(""), "cargo failed, and printed nothing");
    }

    #[test]
    fn the_module_is_in_the_messages_of_cargo() {
        let artifact =
            |files: &str| format!(r#"{{"reason":"compiler-artifact","filenames":[{files}]}}"#);
        let module = module_in(&artifact(r#""/t/liba.rlib","/t/a.wasm""#));
        assert_eq!(module.as_deref(), Some(Path::new("/t/a.wasm")));
        assert_eq!(module_in(&artifact(r#""/t/liba.rlib""#)), None);
        assert_eq!(module_in(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(module_in("no JSON"), None);
    }
}
