//! The options of builds: a table of names and values, what each changes, and the programs that change
//! a finished module. Those are optional: a build that needs a missing one has no module.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Output, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result};
use stablebench_replica::files::{self, MAX_MODULE};

/// An option, with the values that can be chosen instead of the default.
#[derive(Debug)]
struct Setting {
    name: &'static str,
    values: &'static [&'static str],
}

/// All options, in the order of keys. Those of the profile come first, then those of the compiler, of
/// the crate, and of programs that change the finished module.
const SETTINGS: [Setting; 11] = [
    Setting { name: "opt-level", values: &["1", "2", "3", "s", "z"] },
    Setting { name: "lto", values: &["off", "thin", "fat"] },
    Setting { name: "codegen-units", values: &["1", "16"] },
    Setting { name: "overflow-checks", values: &["on", "off"] },
    Setting { name: "panic", values: &["abort", "unwind"] },
    Setting { name: "bulk-memory", values: &["on", "off"] },
    Setting { name: "simd128", values: &["on", "off"] },
    Setting { name: "memory64", values: &["on"] },
    Setting { name: "allocator", values: &["talc"] },
    Setting { name: "ic-wasm", values: &["shrink", "O2", "O3", "O4", "Os", "Oz"] },
    Setting { name: "wasm-opt", values: &["O2", "O3", "O4", "Os", "Oz"] },
];

/// The key of a build in which nothing is changed.
pub const DEFAULT: &str = "default";

/// The builds that are compared if none are chosen: the options one by one, then some together.
pub const COMPARED: [&str; 31] = [
    DEFAULT,
    "opt-level=1",
    "opt-level=2",
    "opt-level=s",
    "opt-level=z",
    "lto=off",
    "lto=thin",
    "lto=fat",
    "codegen-units=1",
    "overflow-checks=on",
    "panic=abort",
    "panic=unwind",
    "bulk-memory=off",
    "simd128=on",
    "memory64=on",
    "allocator=talc",
    "ic-wasm=shrink",
    "ic-wasm=O3",
    "ic-wasm=Oz",
    "wasm-opt=O2",
    "wasm-opt=O3",
    "wasm-opt=O4",
    "wasm-opt=Os",
    "wasm-opt=Oz",
    "lto=fat,codegen-units=1",
    "lto=fat,codegen-units=1,wasm-opt=O3",
    "lto=fat,codegen-units=1,wasm-opt=O4",
    "opt-level=s,lto=fat,codegen-units=1",
    "opt-level=s,lto=fat,codegen-units=1,wasm-opt=Oz",
    "opt-level=z,lto=fat,codegen-units=1",
    "opt-level=z,lto=fat,codegen-units=1,wasm-opt=Oz",
];

/// The options of a build that differ from the project's own, in the order of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(&'static str, &'static str)>);

/// The reason why a text names no options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("there is no option {name}; the options are {known}")]
    Name { name: String, known: String },
    #[error("{value} is not a value of {name}: it is one of {allowed}")]
    Value { name: &'static str, value: String, allowed: String },
    #[error("{name} is set twice")]
    Twice { name: &'static str },
}

impl FromStr for Options {
    type Err = OptionsError;

    /// Reads a key: `default`, or `opt-level=s,lto=fat`.
    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let mut options = Self::default();
        if text == DEFAULT {
            return Ok(options);
        }
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let setting = SETTINGS.iter().find(|it| it.name == name).ok_or_else(|| {
                let known = SETTINGS.map(|setting| setting.name).join(", ");
                OptionsError::Name { name: name.to_owned(), known }
            })?;
            let value = setting.values.iter().find(|known| **known == value).ok_or_else(|| {
                let allowed = setting.values.join(", ");
                OptionsError::Value { name: setting.name, value: value.to_owned(), allowed }
            })?;
            if options.value(setting.name).is_some() {
                return Err(OptionsError::Twice { name: setting.name });
            }
            options.0.push((setting.name, value));
        }
        let place = |name: &str| SETTINGS.iter().position(|setting| setting.name == name);
        options.0.sort_by_key(|(name, _)| place(name));
        Ok(options)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(DEFAULT);
        }
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

impl Options {
    /// Returns the value that was chosen for an option.
    pub fn value(&self, name: &str) -> Option<&'static str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns the lines of `[profile.release]` in Cargo.toml.
    pub fn profile(&self) -> Vec<String> {
        let line = |(name, value): &(&str, &str)| match (*name, *value) {
            ("opt-level", "s" | "z") | ("lto", _) | ("panic", "abort") => {
                Some(format!("{name} = \"{value}\""))
            }
            ("opt-level" | "codegen-units", number) => Some(format!("{name} = {number}")),
            ("overflow-checks", value) => Some(format!("{name} = {}", value == "on")),
            _ => None,
        };
        self.0.iter().filter_map(line).collect()
    }

    /// Returns the flags of rustc that no profile has.
    pub fn flags(&self) -> Vec<String> {
        let flag = |(name, value): &(&str, &str)| match (*name, *value) {
            ("panic", "unwind") => Some("-Cpanic=unwind".to_owned()),
            // LLVM's feature for copying and filling alone would stay on. rustc passes it on, and warns.
            ("bulk-memory", "off") => {
                Some("-Ctarget-feature=-bulk-memory,-bulk-memory-opt".to_owned())
            }
            ("bulk-memory" | "simd128", value) => {
                let sign = if value == "on" { '+' } else { '-' };
                Some(format!("-Ctarget-feature={sign}{name}"))
            }
            _ => None,
        };
        self.0.iter().filter_map(flag).collect()
    }

    /// Returns the features of the crate.
    pub fn features(&self) -> Vec<&'static str> {
        self.value("allocator").into_iter().collect()
    }

    /// Returns the target, if it is not the project's.
    pub fn target(&self) -> Option<&'static str> {
        self.value("memory64").map(|_| "wasm64-unknown-unknown")
    }

    /// Returns the programs that change the finished module, in their order.
    pub fn tools(&self) -> Vec<Tool> {
        let of = |(name, value): &(&'static str, &'static str)| match *name {
            "ic-wasm" => Some(Tool::ic_wasm(value)),
            "wasm-opt" => Some(Tool::wasm_opt(value)),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }
}

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
    kind: ToolKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolKind {
    /// `wasm-opt -LEVEL`
    WasmOpt(&'static str),
    /// `ic-wasm shrink`
    Shrink,
    /// `ic-wasm optimize LEVEL`
    Optimize(&'static str),
}

impl Tool {
    /// `wasm-opt` of Binaryen with a level such as `O3`.
    fn wasm_opt(level: &'static str) -> Self {
        Self { program: "wasm-opt", kind: ToolKind::WasmOpt(level) }
    }

    /// `ic-wasm shrink`, or `ic-wasm optimize` with a level.
    fn ic_wasm(value: &'static str) -> Self {
        let kind = if value == "shrink" { ToolKind::Shrink } else { ToolKind::Optimize(value) };
        Self { program: "ic-wasm", kind }
    }

    /// Returns the sentence that names the next step if the program is missing.
    fn how_to_install(&self) -> &'static str {
        match self.kind {
            ToolKind::WasmOpt(_) => "wasm-opt is missing; install it: apt-get install binaryen",
            ToolKind::Shrink => "ic-wasm is missing; install it: cargo install ic-wasm",
            ToolKind::Optimize(_) => "ic-wasm is missing; install it: cargo install ic-wasm@0.10.0",
        }
    }

    /// Returns the arguments for the files of a module before and after.
    fn arguments(&self, from: &str, to: &str) -> Vec<String> {
        let words: Vec<&str> = match self.kind {
            ToolKind::WasmOpt(_) => [from, "-o", to].into_iter().chain(PROPOSALS).collect(),
            ToolKind::Shrink => vec![from, "-o", to, "shrink"],
            ToolKind::Optimize(level) => vec![from, "-o", to, "optimize", level],
        };
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if let ToolKind::WasmOpt(level) = self.kind {
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
            if matches!(self.kind, ToolKind::Optimize(_)) && printed.contains("'optimize'") {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_printed() {
        for key in COMPARED {
            assert_eq!(key.parse::<Options>().unwrap().to_string(), key);
        }
        let options: Options = "wasm-opt=O3,lto=fat,opt-level=s".parse().unwrap();
        assert_eq!(options.to_string(), "opt-level=s,lto=fat,wasm-opt=O3");
        for (key, error) in [
            (
                "speed=3",
                "there is no option speed; the options are opt-level, lto, codegen-units, ",
            ),
            ("", "there is no option ; the options are opt-level"),
            ("opt-level=9", "9 is not a value of opt-level: it is one of 1, 2, 3, s, z"),
            ("lto", " is not a value of lto: it is one of off, thin, fat"),
            ("lto=fat,lto=off", "lto is set twice"),
        ] {
            let found = key.parse::<Options>().unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn every_value_changes_something() {
        for setting in &SETTINGS {
            for value in setting.values {
                let options: Options = format!("{}={value}", setting.name).parse().unwrap();
                let changes = options.profile().len()
                    + options.flags().len()
                    + options.features().len()
                    + options.tools().len()
                    + usize::from(options.target().is_some());
                assert_eq!(changes, 1, "{options}");
            }
        }
    }

    #[test]
    fn a_profile_can_be_copied_into_a_manifest() {
        let options: Options =
            "opt-level=3,lto=fat,codegen-units=1,overflow-checks=off,panic=abort,simd128=on"
                .parse()
                .unwrap();
        assert_eq!(
            options.profile(),
            [
                "opt-level = 3",
                "lto = \"fat\"",
                "codegen-units = 1",
                "overflow-checks = false",
                "panic = \"abort\"",
            ]
        );
        assert_eq!(options.flags(), ["-Ctarget-feature=+simd128"]);
    }
}
