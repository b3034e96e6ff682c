//! Command-line definitions of environment variables and initial stable memory.

use std::path::PathBuf;

use clap::Args;

/// Environment variables and stable memory of a canister.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvironmentArgs {
    /// Set an environment variable of each canister, before it is installed; any number of
    /// times, each with another name. Of a saved canister, variables with other names stay.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<Variable>,
    /// Replace the stable memory of each canister by the bytes of this file, after it was
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

/// `NAME=VALUE`, where the first `=` ends the name; the value may be empty.
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
}
