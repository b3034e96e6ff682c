//! Environment variables of canisters, and stable memory from a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use stablebench_replica::{Canister, files};

/// Environment variables and stable memory of a canister.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvironmentArgs {
    /// Set an environment variable of each canister before it is installed. Repeat it for other
    /// names. Other variables of a saved canister stay.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<Variable>,
    /// Replace the stable memory of each canister by the content of this file after it is
    /// installed.
    #[arg(long, value_name = "FILE")]
    pub stable_memory: Option<PathBuf>,
}

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

/// Parses `NAME=VALUE`. The first `=` ends the name; the value may be empty.
///
/// # Errors
///
/// If the `=` or the name is missing.
pub fn variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        None => Err("a variable is NAME=VALUE, where VALUE may be empty".to_owned()),
        Some(("", _)) => Err("a variable has a name: NAME=VALUE".to_owned()),
        Some((name, value)) => Ok(Variable { name: name.to_owned(), value: value.to_owned() }),
    }
}

/// The maximum size of a file for stable memory in bytes: it is read as a whole.
const MAX_FILE: u64 = 16 << 30;

/// Environment variables and initial stable memory.
#[derive(Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    stable_memory: Option<Vec<u8>>,
}

impl Environment {
    /// Converts the options, and reads the file.
    pub fn read(args: &EnvironmentArgs) -> Result<Self> {
        let variables = by_name(&args.variables)?;
        let stable_memory = args.stable_memory.as_deref().map(read_stable_memory).transpose()?;
        Ok(Self { variables, stable_memory })
    }

    /// Sets the variables. Variables with other names stay.
    pub fn set_variables(&self, canister: &mut Canister) -> Result<()> {
        let mut variables = canister.environment().clone();
        variables.extend(self.variables.clone());
        if variables == *canister.environment() {
            return Ok(());
        }
        canister.set_environment(variables).context("--env cannot be set")
    }

    /// Replaces the stable memory, if there is a file.
    pub fn set_stable_memory(&self, canister: &mut Canister) -> Result<()> {
        match &self.stable_memory {
            Some(bytes) => {
                canister.set_stable_memory(bytes).context("--stable-memory cannot be set")
            }
            None => Ok(()),
        }
    }
}

/// Returns the values by name.
///
/// # Errors
///
/// If two variables have the same name.
pub fn by_name(variables: &[Variable]) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for Variable { name, value } in variables {
        if values.insert(name.clone(), value.clone()).is_some() {
            bail!("--env {name} is given twice; leave one out");
        }
    }
    Ok(values)
}

/// Reads a file for stable memory.
///
/// # Errors
///
/// If it cannot be read, is no regular file, or is larger than 16 GiB.
pub fn read_stable_memory(path: &Path) -> Result<Vec<u8>> {
    files::read(path, MAX_FILE)
        .with_context(|| format!("cannot read stable memory from {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_ends_the_name() {
        for (text, name, value) in
            [("a=b", "a", "b"), ("a=", "a", ""), ("a=b=c", "a", "b=c"), (" a = b ", " a ", " b ")]
        {
            let expected = Variable { name: name.to_owned(), value: value.to_owned() };
            assert_eq!(variable(text), Ok(expected));
        }
        for text in ["", "a", "=", "=b"] {
            assert!(variable(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_name_the_file_for_stable_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let error = || format!("{:#}", read_stable_memory(&path).unwrap_err());
        assert!(error().contains(path.to_str().unwrap()), "{}", error());
        let file = std::fs::File::create_new(&path).unwrap();
        assert_eq!(read_stable_memory(&path).unwrap(), b"");
        drop(file);
        std::fs::write(&path, b"some").unwrap();
        assert_eq!(read_stable_memory(&path).unwrap(), b"some");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(error().contains("it is not a regular file"), "{}", error());
    }
}
