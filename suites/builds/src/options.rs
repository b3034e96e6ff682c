//! The options of builds: a table of names and values, and what each changes.

use std::fmt;
use std::str::FromStr;

use crate::tools::Tool;

/// An option, with the values that can be chosen instead of the default.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub values: &'static [&'static str],
}

/// All options, in the order of keys. Those of the profile come first, then those of the compiler, of
/// the crate, and of programs that change the finished module.
pub const SETTINGS: [Setting; 11] = [
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
