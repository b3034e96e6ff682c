//! Environment variables: texts by name that a canister's controllers set and its code reads.
//!
//! They are settings: installing code, upgrades and snapshots leave them as they are.
//!
//! Source: `validate_environment_variables` in `rs/execution_environment/src/canister_manager.rs`
//! of the replica, its limits in `rs/config/src/execution_environment.rs`.

use std::collections::BTreeMap;

use crate::limits::MAX_ENVIRONMENT_TEXT;
use crate::rules::Rules;
use crate::units::Bytes;

/// Invalid environment variables. The messages are those of the management canister.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// There are too many.
    #[error("Too many environment variables: {count} (max: {most})")]
    TooMany {
        /// Number of variables.
        count: usize,
        /// Largest number of variables of a canister.
        most: usize,
    },
    /// A name is too long.
    #[error("Environment variable name \"{name}\" exceeds the maximum allowed length of {most}.")]
    NameTooLong {
        /// The name.
        name: String,
        /// Largest size of a name.
        most: Bytes,
    },
    /// A value is too long.
    #[error("Environment variable value \"{value}\" exceeds the maximum allowed length of {most}.")]
    ValueTooLong {
        /// The value.
        value: String,
        /// Largest size of a value.
        most: Bytes,
    },
}

/// Largest number of variables of a canister with a module of these rules, or without a module.
pub(crate) fn max_variables(rules: Option<Rules>) -> usize {
    rules.unwrap_or_else(Rules::today).set().environment_variables
}

/// Checks variables against the limits, of which `most` is the limit of their number.
pub(crate) fn check(
    variables: &BTreeMap<String, String>,
    most: usize,
) -> Result<(), EnvironmentError> {
    if variables.len() > most {
        return Err(EnvironmentError::TooMany { count: variables.len(), most });
    }
    let most = MAX_ENVIRONMENT_TEXT;
    let too_long = |text: &str| text.len() as u64 > most.get();
    for (name, value) in variables {
        if too_long(name) {
            return Err(EnvironmentError::NameTooLong { name: name.clone(), most });
        }
        if too_long(value) {
            return Err(EnvironmentError::ValueTooLong { value: value.clone(), most });
        }
    }
    Ok(())
}
