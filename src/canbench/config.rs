//! The configuration of a project, `canbench.yml`, and the parser of a project's files.
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
//!
//! The parser of YAML takes a time that grows with the square of the nesting, so nesting that is deeper
//! than any file needs is refused first.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use stablebench_replica::files;

/// The default name of the file.
const FILE: &str = "canbench.yml";
/// The environment variable that names another file.
const VARIABLE: &str = "CANBENCH_CFG_FILE";
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
        let config = parse_yaml(text)?;
        let all: yaml_serde::Mapping = parse_yaml(text)?;
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

/// The deepest nesting of brackets. The parser has the same limit for all values.
const MAX_NESTED: usize = 128;

/// Parses a file in YAML.
///
/// # Errors
///
/// If it is no YAML of that type, or too deeply nested.
#[expect(clippy::disallowed_methods, reason = "the nesting is checked here")]
pub fn parse_yaml<T: DeserializeOwned>(text: &str) -> Result<T> {
    // For the lines of JSON, the bound is far too high. Its parser has the same limit, and needs no bound.
    let nested = nesting(text);
    if nested > MAX_NESTED && serde_json::from_str::<serde_json::Value>(text).is_err() {
        bail!(
            "up to {nested} lists and maps in brackets could be inside of each other, which is more than \
             {MAX_NESTED}; write them without brackets, one entry in a line"
        );
    }
    Ok(yaml_serde::from_str(text)?)
}

/// Returns an upper bound of the nesting of brackets.
///
/// Inside of brackets, a closing bracket is text only in quotes, comments and tags, and quotes can span
/// lines. So a closing bracket counts only if it follows its opening one in a line that has none of
/// these: then both are text, or neither is.
fn nesting(text: &str) -> usize {
    let (mut deepest, mut open) = (0_usize, 0_usize);
    for line in text.lines() {
        let certain = !line.contains(['\'', '"', '#', '!']);
        let before = open;
        for letter in line.bytes() {
            match letter {
                b'[' | b'{' => open += 1,
                b']' | b'}' if certain && open > before => open -= 1,
                _ => {}
            }
            deepest = deepest.max(open);
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::{Duration, Instant};

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

    type Any = yaml_serde::Value;

    /// Each is parsed or refused at once, although the parser alone takes 11 seconds for the first.
    #[test]
    fn nesting_is_refused_before_it_is_parsed() {
        const SIZE: usize = 40 << 10;
        let repeated = |text: &str| text.repeat(SIZE / text.len());
        for (text, refused) in [
            (repeated("["), true),
            (repeated("[\n"), true),
            (repeated("{a: "), true),
            (repeated("[ # ]\n"), true),
            (repeated("[ ']',\n"), true),
            (repeated("[ \"\n]\n\",\n"), true),
            (repeated("[ !a] b,\n"), true),
            (repeated("[]{}"), false),
            (repeated("- [a, {b: [c]}]\n"), false),
            (repeated("- '['\n"), true),
            (repeated("- a]}]\n"), false),
            (format!("[{}]", ["[\"]\", {\"a\": 1}]"; 4_000].join(",")), false),
        ] {
            let began = Instant::now();
            let parsed = parse_yaml::<Any>(&text);
            let error = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            let start: String = text.chars().take(12).collect();
            assert_eq!(error.contains("inside of each other"), refused, "{start:?}: {error}");
            assert!(began.elapsed() < Duration::from_secs(5), "{start:?}: {:?}", began.elapsed());
        }
        // Other nesting takes the parser no longer.
        for text in ["- ", "? ", "a:\n", "&a [*a, ", "- - - !!map\n", "|\n"] {
            let began = Instant::now();
            let _ = parse_yaml::<Any>(&repeated(text));
            assert!(began.elapsed() < Duration::from_secs(5), "{text:?}: {:?}", began.elapsed());
        }
    }

    #[test]
    fn the_nesting_is_never_more_than_the_bound() {
        for (text, bound) in [
            ("a: b", 0),
            ("scopes: {}\nother: []", 1),
            ("a: [b, {c: [d]}]", 3),
            ("a: [\n[\n]\n]", 2),
            ("a: ['[', ']']", 2),
            ("a: \"]]\" [", 1),
        ] {
            assert_eq!(nesting(text), bound, "{text}");
        }
    }
}
