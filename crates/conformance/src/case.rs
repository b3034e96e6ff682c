//! A case: a module, calls of it in order, and what was answered to them.
//!
//! ```text
//! name, group
//! wat | wasm        the module, as text or as a file beside the file of cases
//! install           present where installing is answered with a reject
//! calls[]           in order, on one canister:
//!   method, kind    kind: update, query, upgrade, reinstall (with the same module)
//!   arg             hex
//!   expect          what was answered, one of
//!     reply         hex; counts: the reply read as little-endian u64s; cycles_charged
//!     reject        code: the replica's error code; message: its first line; cycles_charged
//! ```
//!
//! `install` and `expect` are missing in a case that was not recorded yet.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stablebench_replica::files;

use crate::file::MOST;
use crate::{Error, hex};

/// A canister of its own and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Case {
    /// By which differences are listed.
    pub name: String,
    /// What the case is about.
    pub group: String,
    /// The canister's module.
    pub module: Source,
    /// The reject with which installing was answered; `None` if it was installed.
    pub install: Option<Expect>,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// Where a case's module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The module as WebAssembly text.
    Wat(String),
    /// A file, plain or gzipped, by its path from the file of cases.
    Wasm(PathBuf),
}

/// A message to the canister.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The method. Not used by upgrades and reinstalls.
    pub method: String,
    /// Which kind of message.
    pub kind: Kind,
    /// The argument.
    #[serde(with = "hex")]
    pub arg: Vec<u8>,
    /// What was answered; `None` before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Changes stay.
    Update,
    /// Changes are dropped.
    Query,
    /// The module is installed again; stable memory stays.
    Upgrade,
    /// The module is installed again; nothing stays.
    Reinstall,
}

/// What was answered to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Expect {
    /// A reply.
    Reply {
        /// The reply.
        #[serde(with = "hex")]
        hex: Vec<u8>,
        /// The reply as little-endian u64s, for readers of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<Vec<u64>>,
        /// What the canister's balance fell by.
        cycles_charged: u128,
    },
    /// A reject.
    Reject {
        /// The replica's error code by name, as `CanisterTrapped`.
        code: String,
        /// The message's first line.
        message: String,
        /// What the canister's balance fell by.
        cycles_charged: u128,
    },
}

impl Case {
    /// The module, as it is to be uploaded. `directory` is that of the file of cases.
    ///
    /// # Errors
    ///
    /// If the text is no module or the file cannot be read.
    pub fn wasm(&self, directory: &Path) -> Result<Vec<u8>, Error> {
        match &self.module {
            Source::Wat(text) => {
                wat::parse_str(text).map_err(|cause| Error::Wat { case: self.name.clone(), cause })
            }
            Source::Wasm(path) => {
                let path = directory.join(path);
                files::read(&path, MOST).map_err(|cause| Error::Read { path, cause })
            }
        }
    }
}

impl Call {
    /// A call that was not recorded yet.
    pub fn new(kind: Kind, method: impl Into<String>, arg: impl Into<Vec<u8>>) -> Self {
        Self { method: method.into(), kind, arg: arg.into(), expect: None }
    }

    /// A call whose argument is written in hex.
    ///
    /// # Errors
    ///
    /// What is wrong with the argument.
    pub fn from_hex(kind: Kind, method: &str, arg: &str) -> Result<Self, String> {
        hex::decode(arg).map(|arg| Self::new(kind, method, arg))
    }
}

impl Kind {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Query => "query",
            Self::Upgrade => "upgrade",
            Self::Reinstall => "reinstall",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A case as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    group: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wasm: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    install: Option<Expect>,
    calls: Vec<Call>,
}

impl TryFrom<Written> for Case {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { name, group, wat, wasm, install, calls } = written;
        let module = match (wat, wasm) {
            (Some(text), None) => Source::Wat(text),
            (None, Some(file)) => Source::Wasm(file),
            _ => return Err(format!("case {name} needs a wat or a wasm, and not both")),
        };
        Ok(Self { name, group, module, install, calls })
    }
}

impl From<Case> for Written {
    fn from(case: Case) -> Self {
        let Case { name, group, module, install, calls } = case;
        let (wat, wasm) = match module {
            Source::Wat(text) => (Some(text), None),
            Source::Wasm(file) => (None, Some(file)),
        };
        Self { name, group, wat, wasm, install, calls }
    }
}
