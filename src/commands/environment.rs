//! Environment variables of canisters, and stable memory from a file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use stablebench_replica::{Canister, files};

use crate::cli::{EnvironmentArgs, Variable};

/// Largest file that is read as stable memory, for this process holds it as a whole: 16 GiB.
const LARGEST: u64 = 16 << 30;

/// Environment variables and initial stable memory.
#[derive(Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    stable_memory: Option<Vec<u8>>,
}

impl Environment {
    /// Reads the options, and the file.
    pub fn read(args: &EnvironmentArgs) -> Result<Self> {
        let variables = by_name(&args.variables)?;
        let stable_memory = args.stable_memory.as_deref().map(read_stable_memory).transpose()?;
        Ok(Self { variables, stable_memory })
    }

    /// Sets the variables; those of other names stay.
    pub fn set_variables(&self, canister: &mut Canister) -> Result<()> {
        let mut variables = canister.environment().clone();
        variables.extend(self.variables.clone());
        if variables == *canister.environment() {
            return Ok(());
        }
        canister.set_environment(variables).context("--env cannot be set")
    }

    /// Replaces the stable memory, if there is another.
    pub fn set_stable_memory(&self, canister: &mut Canister) -> Result<()> {
        match &self.stable_memory {
            Some(bytes) => {
                canister.set_stable_memory(bytes).context("--stable-memory cannot be set")
            }
            None => Ok(()),
        }
    }
}

/// Environment variables, values by name.
///
/// # Errors
///
/// If two have one name.
pub fn by_name(variables: &[Variable]) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for Variable { name, value } in variables {
        if values.insert(name.clone(), value.clone()).is_some() {
            bail!("--env {name} is given twice; leave one out");
        }
    }
    Ok(values)
}

/// The bytes of a file that are to be a canister's stable memory.
///
/// # Errors
///
/// If it cannot be read, is no regular file, or is larger than 16 GiB.
pub fn read_stable_memory(path: &Path) -> Result<Vec<u8>> {
    files::read(path, LARGEST)
        .with_context(|| format!("cannot read stable memory from {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_stable_memory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let told = || format!("{:#}", read_stable_memory(&path).unwrap_err());
        assert!(told().contains(path.to_str().unwrap()), "{}", told());
        let file = std::fs::File::create(&path).unwrap();
        assert_eq!(read_stable_memory(&path).unwrap(), b"");
        drop(file);
        std::fs::write(&path, b"some").unwrap();
        assert_eq!(read_stable_memory(&path).unwrap(), b"some");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(told().contains("it is not a regular file"), "{}", told());
    }
}
