//! A crate that cargo builds to a module, with options.
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

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{self, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use stablebench_protocol::CrateVersion;
use stablebench_replica::files::{self, MAX_MODULE, MAX_TEXT};

use stablebench_suite_builds::{NotBuilt, Options};

use super::{cargo, toolchain};
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
        let path = cargo::build(self.cargo(options)?, &label, progress)?.with_context(|| {
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
