//! The calls that read environment variables: `env_var_*`.
//!
//! Variables are ordered by the bytes of their names. The modes that allow each call, the order of
//! the checks and the error messages are from
//! `rs/embedders/src/wasmtime_embedder/system_api.rs` of the replica.

use super::calls::{Call, contract};
use super::message::Mode;
use super::names::SystemCall;
use crate::fault::Fault;
use crate::limits::MAX_ENVIRONMENT_NAME;

impl Call<'_> {
    /// Executes a call that reads environment variables.
    pub(super) fn environment(&mut self, call: SystemCall, args: &[u64]) -> Result<u64, Fault> {
        use SystemCall as C;
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        let variables = &*self.message.environment;
        let name = call.name();
        self.unless(&format!("ic0_{name}"), self.message.mode == Mode::Start)?;
        match call {
            C::EnvVarCount => Ok(variables.len() as u64),
            C::EnvVarNameSize => self.name_at(arg(0)).map(|name| name.len() as u64),
            C::EnvVarNameCopy => {
                let bytes = self.message.environment.keys().nth(index(arg(0)));
                let bytes = bytes.ok_or_else(|| self.no_name_at(arg(0)))?.as_bytes();
                self.copy_out(rest(args, 1), "ic0.env_var_name_copy", "name", bytes)
            }
            C::EnvVarNameExists => {
                let name = self.variable(call, "heap", arg(0), arg(1))?;
                Ok(u64::from(variables.contains_key(name)))
            }
            C::EnvVarValueSize => {
                let name = self.variable(call, "heap", arg(0), arg(1))?;
                variables.get(name).map(|value| value.len() as u64).ok_or_else(|| unknown(name))
            }
            C::EnvVarValueCopy => {
                let name = self.variable(call, "name", arg(0), arg(1))?;
                let value = variables.get(name).ok_or_else(|| unknown(name))?;
                self.copy_out(rest(args, 2), "ic0.env_var_value_copy", "value", value.as_bytes())
            }
            _ => Err(Fault::Engine(format!("ic0.{name} reads no environment variable"))),
        }
    }

    fn name_at(&self, at: u64) -> Result<&str, Fault> {
        let name = self.message.environment.keys().nth(index(at));
        name.map(String::as_str).ok_or_else(|| self.no_name_at(at))
    }

    fn no_name_at(&self, index: u64) -> Fault {
        Fault::EnvironmentIndex { index, count: self.message.environment.len() }
    }

    /// The name of a variable, whether or not there is one of that name. Its length is held
    /// against the limit before anything is read: a canister could ask for its whole heap, and
    /// pays by the call.
    fn variable(&self, call: SystemCall, part: &str, start: u64, size: u64) -> Result<&str, Fault> {
        let call = call.name();
        if size > MAX_ENVIRONMENT_NAME.get() {
            return Err(contract(format!("ic0.{call}: Variable name is too large.")));
        }
        let name = self.heap(&format!("ic0.{call} {part}"), start, size)?;
        std::str::from_utf8(name).map_err(|_| {
            contract(format!("ic0.{call}: Variable name is not a valid UTF-8 string."))
        })
    }
}

fn unknown(name: &str) -> Fault {
    Fault::EnvironmentName(name.to_owned())
}

/// A position in the list of variables.
fn index(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The arguments from `start` on.
fn rest(args: &[u64], start: usize) -> &[u64] {
    args.get(start..).unwrap_or_default()
}
