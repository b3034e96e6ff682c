//! Environment variables: texts by name that a canister's controllers set and its code reads.
//!
//! They are settings: installing code, upgrades and snapshots leave them as they are.
//!
//! Source: `validate_environment_variables` in `rs/execution_environment/src/canister_manager.rs`
//! of the replica, its limits in `rs/config/src/execution_environment.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ic_principal::Principal;

use crate::canister::Canister;
use crate::limits::MAX_ENVIRONMENT_TEXT;
use crate::rules::Rules;
use crate::units::Bytes;

/// Environment variables that a canister cannot have. The words are the management canister's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// There are too many.
    #[error("Too many environment variables: {count} (max: {most})")]
    TooMany {
        /// Variables that were given.
        count: usize,
        /// The most that a canister may have.
        most: usize,
    },
    /// A name is too long.
    #[error("Environment variable name \"{name}\" exceeds the maximum allowed length of {most}.")]
    NameTooLong {
        /// The name.
        name: String,
        /// The longest name, in bytes.
        most: Bytes,
    },
    /// A value is too long.
    #[error("Environment variable value \"{value}\" exceeds the maximum allowed length of {most}.")]
    ValueTooLong {
        /// The value.
        value: String,
        /// The longest value, in bytes.
        most: Bytes,
    },
}

impl Canister {
    /// The environment variables, values by name.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Replaces all environment variables by these, which makes a new version of the canister.
    /// Without any, it has none from now on.
    ///
    /// A name or a value takes at most 128 bytes of UTF-8. Code can ask for names of at most 100
    /// bytes, and finds longer ones by their index alone.
    ///
    /// # Errors
    ///
    /// If there are more than the rules of its module allow, or the newest rules where it has no
    /// module, or if a name or a value is too long. Then nothing has changed.
    pub fn set_environment(
        &mut self,
        variables: BTreeMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        let settings = self.settings();
        let (controllers, heap_limit) = (settings.controllers.clone(), settings.heap_limit);
        self.configure_with(controllers, heap_limit, variables)
    }

    /// Changes what [`Canister::configure`] and [`Canister::set_environment`] do, all at once:
    /// that makes one new version of the canister.
    ///
    /// # Errors
    ///
    /// Those of [`Canister::set_environment`].
    pub fn configure_with(
        &mut self,
        controllers: Vec<Principal>,
        heap_limit: Bytes,
        variables: BTreeMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        check(&variables, most(self.module().map(crate::Module::rules)))?;
        self.environment = Arc::new(variables);
        self.configure(controllers, heap_limit);
        Ok(())
    }
}

/// Most variables of a canister with a module of these rules, or of one without a module.
pub(crate) fn most(rules: Option<Rules>) -> usize {
    rules.unwrap_or_else(Rules::today).set().environment_variables
}

/// Holds variables against the limits, of which `most` is that on their number.
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
