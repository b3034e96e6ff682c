//! The configuration of a project, `canbench.yml`.
//!
//! ```yaml
//! build_cmd: cargo build …           # optional; run by bash
//! wasm_path: target/….wasm           # or .wasm.gz
//! results_path: canbench_results.yml # optional
//! csv_results_path: …csv             # optional
//! init_args:                         # optional
//!   hex: 4449444c…
//! stable_memory:                     # optional; loaded after init
//!   file: memory.bin
//! env_vars:                          # optional; a line each: NAME,VALUE
//!   file: variables.csv
//! ```
//!
//! Paths are relative to the folder in which the command runs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Deserializer};
use stablebench_replica::files;

use super::yaml;

/// The default name of the file.
const FILE: &str = "canbench.yml";
/// The environment variable that names another file.
pub const VARIABLE: &str = "CANBENCH_CFG_FILE";
/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The maximum size of a file for stable memory, in bytes: it is read as a whole.
const MAX_MEMORY_FILE: u64 = 16 << 30;

const KEYS: [&str; 7] = [
    "build_cmd",
    "wasm_path",
    "results_path",
    "csv_results_path",
    "init_args",
    "stable_memory",
    "env_vars",
];

/// A project.
#[derive(Debug, Deserialize)]
pub struct Config {
    build_cmd: Option<String>,
    /// The module, plain or in gzip.
    pub wasm_path: PathBuf,
    results_path: Option<PathBuf>,
    csv_results_path: Option<PathBuf>,
    init_args: Option<InitArgs>,
    stable_memory: Option<InFile>,
    env_vars: Option<InFile>,
}

#[derive(Debug, Deserialize)]
struct InitArgs {
    #[serde(deserialize_with = "bytes")]
    hex: Vec<u8>,
}

#[derive(Debug, Deserialize)]
struct InFile {
    file: PathBuf,
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    hex::decode(&text).map_err(|error| {
        serde::de::Error::custom(format!("these are no hexadecimal digits: {error}"))
    })
}

impl Config {
    /// Reads the file. `note` is called for each unknown key.
    ///
    /// # Errors
    ///
    /// If there is no file, or it is not valid: the message names the line.
    pub fn read(note: impl Fn(&str)) -> Result<Self> {
        let path = std::env::var_os(VARIABLE).map_or_else(|| FILE.into(), PathBuf::from);
        let read = files::read(&path, MAX_FILE);
        let text = read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow!(
                "configuration file not found: '{}'\nRun this in the folder of the project, or \
                 name the file in {VARIABLE}.",
                path.display()
            ),
            _ => anyhow!("Error while opening `{}`: {error}", path.display()),
        })?;
        Self::parse(&text, |key| note(&format!("{}: the key {key} is ignored", path.display())))
            .with_context(|| format!("{} is not valid", path.display()))
    }

    fn parse(text: &[u8], unknown: impl Fn(&str)) -> Result<Self> {
        let text = std::str::from_utf8(text)?;
        let config = yaml::parse(text)?;
        let all: yaml_serde::Mapping = yaml::parse(text)?;
        for key in all.keys().filter_map(yaml_serde::Value::as_str) {
            if !KEYS.contains(&key) {
                unknown(key);
            }
        }
        Ok(config)
    }

    /// Runs the command that builds the module. Its output goes to stderr if stdout is reserved
    /// for a document.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub fn build(&self, document: bool) -> Result<()> {
        let Some(command) = &self.build_cmd else {
            return Ok(());
        };
        let mut bash = Command::new("bash");
        if document {
            bash.stdout(Stdio::from(io::stderr()));
        }
        let status = bash
            .arg("-c")
            .arg(command)
            .status()
            .context("cannot run build_cmd: bash is missing")?;
        if !status.success() {
            bail!("build_cmd failed ({status}): {}", command.trim());
        }
        Ok(())
    }

    /// The path of the results file.
    pub fn results_path(&self) -> &Path {
        self.results_path.as_deref().unwrap_or(Path::new("canbench_results.yml"))
    }

    /// The path of the CSV file.
    pub fn csv_results_path(&self) -> &Path {
        self.csv_results_path.as_deref().unwrap_or(Path::new("canbench_results.csv"))
    }

    /// The argument of `canister_init`.
    pub fn init_args(&self) -> &[u8] {
        self.init_args.as_ref().map_or(&[], |args| &args.hex)
    }

    /// The initial stable memory, if the project has a file for it.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn stable_memory(&self) -> Result<Option<Vec<u8>>> {
        let Some(InFile { file }) = &self.stable_memory else {
            return Ok(None);
        };
        let read = files::read(file, MAX_MEMORY_FILE).map_err(|error| {
            anyhow!("Error reading stable memory file {}\nError: {error}", file.display())
        });
        read.map(Some)
    }

    /// Environment variables.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn environment(&self) -> Result<BTreeMap<String, String>> {
        let Some(InFile { file }) = &self.env_vars else {
            return Ok(BTreeMap::new());
        };
        let bytes = files::read(file, MAX_FILE).map_err(|error| {
            anyhow!("Error reading environment variables file {}\nError: {error}", file.display())
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            anyhow!(
                "Environment variables file {} is not valid UTF-8\nError: {error}",
                file.display()
            )
        })?;
        let mut variables = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let Some((name, value)) = text.split_once(',') else {
                bail!(
                    "Invalid line in environment variables file {}: '{text}'\nLine {line} has no \
                     comma: each is NAME,VALUE.",
                    file.display()
                );
            };
            let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
            if variables.insert(name.clone(), value).is_some() {
                bail!(
                    "Invalid line in environment variables file {}: '{text}'\nLine {line} sets \
                     {name} again.",
                    file.display()
                );
            }
        }
        Ok(variables)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn parse(text: &str) -> Result<Config> {
        Config::parse(text.as_bytes(), |_| {})
    }

    #[test]
    fn paths_have_defaults_and_the_module_may_stand_on_a_line_of_its_own() {
        let config = parse("wasm_path:\n  ./a.wasm").unwrap();
        assert_eq!(config.wasm_path, Path::new("./a.wasm"));
        assert_eq!(config.results_path(), Path::new("canbench_results.yml"));
        assert_eq!(config.csv_results_path(), Path::new("canbench_results.csv"));
        assert!(config.init_args().is_empty() && config.stable_memory().unwrap().is_none());
        let config = parse("wasm_path: a\ninit_args:\n  hex: 4449444C0000\n").unwrap();
        assert_eq!(config.init_args(), b"DIDL\0\0");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("build_cmd: x", "missing field `wasm_path`"),
            ("wasm_path: a\ninit_args:\n  hex: 4g", "line 3"),
            ("wasm_path: a\ninit_args: 44", "line 2"),
            ("wasm_path: a\n b: c", "line 2"),
            ("wasm_path: [a, b]", "line 1"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn unknown_keys_are_reported() {
        let reported = RefCell::new(Vec::new());
        let text = "wasm_path: a\nwasm_paht: b\n";
        Config::parse(text.as_bytes(), |key| reported.borrow_mut().push(key.to_owned())).unwrap();
        assert_eq!(*reported.borrow(), ["wasm_paht"]);
    }
}
