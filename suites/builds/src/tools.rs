//! Programs that change a finished module. They are optional: a build that needs a missing one has no
//! module.

use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use stablebench_replica::files::{self, MAX_MODULE};

/// The reason why there is no module: the project's, or a program that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotBuilt {
    pub reason: String,
    /// Everything that the failed program has printed.
    pub printed: String,
}

impl NotBuilt {
    /// A reason without further output.
    pub fn because(reason: String) -> Self {
        Self { reason, printed: String::new() }
    }
}

/// Proposals that the IC supports; without them, `wasm-opt` refuses modules of rustc.
const PROPOSALS: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-simd",
];

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub program: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `wasm-opt -LEVEL`
    WasmOpt(&'static str),
    /// `ic-wasm shrink`
    Shrink,
    /// `ic-wasm optimize LEVEL`
    Optimize(&'static str),
}

impl Tool {
    /// `wasm-opt` of Binaryen with a level such as `O3`.
    pub fn wasm_opt(level: &'static str) -> Self {
        Self { program: "wasm-opt", kind: Kind::WasmOpt(level) }
    }

    /// `ic-wasm shrink`, or `ic-wasm optimize` with a level.
    pub fn ic_wasm(value: &'static str) -> Self {
        let kind = if value == "shrink" { Kind::Shrink } else { Kind::Optimize(value) };
        Self { program: "ic-wasm", kind }
    }

    /// Returns the sentence that names the next step if the program is missing.
    fn how_to_install(&self) -> &'static str {
        match self.kind {
            Kind::WasmOpt(_) => "wasm-opt is missing; install it: apt-get install binaryen",
            Kind::Shrink => "ic-wasm is missing; install it: cargo install ic-wasm",
            Kind::Optimize(_) => "ic-wasm is missing; install it: cargo install ic-wasm@0.10.0",
        }
    }

    /// Returns the arguments for the files of a module before and after.
    fn arguments(&self, from: &str, to: &str) -> Vec<String> {
        let words: Vec<&str> = match self.kind {
            Kind::WasmOpt(_) => [from, "-o", to].into_iter().chain(PROPOSALS).collect(),
            Kind::Shrink => vec![from, "-o", to, "shrink"],
            Kind::Optimize(level) => vec![from, "-o", to, "optimize", level],
        };
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if let Kind::WasmOpt(level) = self.kind {
            words.push(format!("-{level}"));
        }
        words
    }

    /// Returns the command without files, for stamps and docs.
    pub fn command(&self) -> String {
        format!("{} {}", self.program, self.arguments("IN", "OUT").join(" "))
    }

    /// Returns the first line that the program prints of its version.
    ///
    /// # Errors
    ///
    /// [`NotBuilt`] if it is missing.
    pub fn version(&self) -> Result<String> {
        let output = self.output(&["--version".to_owned()])?;
        let printed = String::from_utf8_lossy(&output.stdout);
        Ok(printed.lines().next().unwrap_or_default().trim().to_owned())
    }

    fn output(&self, arguments: &[String]) -> Result<Output> {
        match Command::new(self.program).args(arguments).stdin(Stdio::null()).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(NotBuilt::because(self.how_to_install().to_owned()).into())
            }
            output => output.with_context(|| format!("cannot run {}", self.program)),
        }
    }

    /// Changes a module.
    ///
    /// # Errors
    ///
    /// [`NotBuilt`] if the program is missing or fails.
    pub fn run(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        let folder = tempfile::tempdir().context("there is no room for temporary files")?;
        let [from, to] = ["in.wasm", "out.wasm"].map(|name| folder.path().join(name));
        fs::write(&from, wasm).with_context(|| format!("cannot write {}", from.display()))?;
        let output =
            self.output(&self.arguments(&from.to_string_lossy(), &to.to_string_lossy()))?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            if matches!(self.kind, Kind::Optimize(_)) && printed.contains("'optimize'") {
                let reason = "ic-wasm has no command optimize since 0.11; install an earlier one: \
                              cargo install ic-wasm@0.10.0";
                return Err(NotBuilt { reason: reason.to_owned(), printed }.into());
            }
            let first = printed.lines().next().unwrap_or_default();
            let reason = format!("{} failed: {first}", self.program);
            return Err(NotBuilt { reason, printed }.into());
        }
        files::read(&to, MAX_MODULE)
            .with_context(|| format!("{} left no module at {}", self.program, to.display()))
    }
}
