//! A case: a module, calls to it in order, and the recorded answers.
//!
//! ```text
//! name, group
//! wat | wasm        the module, as text or as a file next to the file of cases
//! install           only if the install was rejected
//! calls[]           in order, on one canister:
//!   method, kind    kind: update, query, upgrade, reinstall (with the same module)
//!   arg             hex
//!   expect          the answer, one of
//!     reply         hex; counts: the reply read as little-endian u64s; cycles_charged
//!     reject        code: the replica's error code; message, or its first line; cycles_charged
//! ```
//!
//! `install` and `expect` are missing in a case that has not been recorded.
//!
//! A file of cases is a JSON list, indented by one space, and gzipped, without a time, if its name
//! ends in `.gz`. Reading a file of the recorded cases and writing it again reproduces the text.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{error, fmt, fs};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};
use stablebench_replica::files;

/// A canister and the calls to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Case {
    /// The name in lists of differences.
    pub name: String,
    /// The subject of the case. Groups of a file can be run and recorded alone.
    pub group: String,
    /// The canister's module.
    pub module: Source,
    /// The reject of the install; `None` if it succeeded.
    pub install: Option<Expect>,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// The module of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The module as WebAssembly text.
    Wat(String),
    /// A file, plain or gzipped, by its path relative to the file of cases.
    Wasm(PathBuf),
}

/// A message to the canister.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The method. Ignored by upgrades and reinstalls.
    pub method: String,
    /// The kind of message.
    pub kind: MessageKind,
    /// The argument.
    #[serde(with = "hex")]
    pub arg: Vec<u8>,
    /// The answer; `None` if it has not been recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// Changes are committed.
    Update,
    /// Changes are dropped.
    Query,
    /// The module is installed again; stable memory is kept.
    Upgrade,
    /// The module is installed again; nothing is kept.
    Reinstall,
    /// A message to the management canister about the canister; only in cases of several canisters.
    Management,
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Expect {
    /// A reply.
    Reply {
        /// The reply.
        #[serde(with = "hex")]
        hex: Vec<u8>,
        /// The reply as little-endian u64s, for human readers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<Vec<u64>>,
        /// The decrease of the canister's balance.
        cycles_charged: u128,
    },
    /// A reject.
    Reject {
        /// The name of the replica's error code, such as `CanisterTrapped`.
        code: String,
        /// The message, or its first line.
        message: String,
        /// The decrease of the canister's balance.
        cycles_charged: u128,
    },
}

impl Case {
    /// Returns the module to be uploaded. `directory` is that of the file of cases.
    ///
    /// # Errors
    ///
    /// If the text is not a module, or the file cannot be read.
    pub fn wasm(&self, directory: &Path) -> Result<Vec<u8>, Error> {
        match &self.module {
            Source::Wat(text) => {
                wat::parse_str(text).map_err(|cause| Error::Wat { case: self.name.clone(), cause })
            }
            Source::Wasm(path) => {
                let path = directory.join(path);
                files::read(&path, MAX_FILE).map_err(|cause| Error::Read { path, cause })
            }
        }
    }
}

impl Call {
    /// Creates a call without a recorded answer.
    pub fn new(kind: MessageKind, method: impl Into<String>, arg: impl Into<Vec<u8>>) -> Self {
        Self { method: method.into(), kind, arg: arg.into(), expect: None }
    }

    /// Creates a call from an argument in hex.
    ///
    /// # Errors
    ///
    /// A description of what is wrong with the argument.
    pub fn from_hex(kind: MessageKind, method: &str, arg: &str) -> Result<Self, String> {
        hex::decode(arg).map(|arg| Self::new(kind, method, arg))
    }
}

impl MessageKind {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Query => "query",
            Self::Upgrade => "upgrade",
            Self::Reinstall => "reinstall",
            Self::Management => "management",
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The serialized form of a case.
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
            _ => return Err(format!("case {name} needs either wat or wasm, not both")),
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

/// Bytes as hexadecimal text.
pub(crate) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Encodes bytes.
    pub(crate) fn encode(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Decodes bytes, or returns what is wrong with the text.
    pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(format!("hex needs two digits per byte, but there are {}", digits.len()));
        }
        let digit = |at: usize| {
            char::from(digits[at])
                .to_digit(16)
                .ok_or_else(|| format!("position {at} is not a hex digit"))
        };
        let byte = |at: usize| Ok((digit(at)? * 16 + digit(at + 1)?) as u8);
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    /// For `#[serde(with)]`.
    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    /// For `#[serde(with)]`.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        decode(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// A failure of a target, which ends the run; not a reject.
pub type Failure = Box<dyn error::Error + Send + Sync>;

/// Cases could not be read, written or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// A file could not be written; the existing file is unchanged.
    #[error("{path} could not be written: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// A file does not contain cases.
    #[error("{path} is not a file of cases: {cause}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The parse error.
        cause: serde_json::Error,
    },
    /// The text of a case is not a module.
    #[error("case {case}: {cause}")]
    Wat {
        /// The case.
        case: String,
        /// The parse error.
        cause: wat::Error,
    },
    /// The target of a case failed.
    #[error("case {case}: {cause}")]
    Target {
        /// The case.
        case: String,
        /// The failure.
        cause: Failure,
    },
}

/// Largest file and largest uncompressed content that is read.
pub const MAX_FILE: u64 = 1 << 30;

/// Reads the cases of a file.
///
/// # Errors
///
/// If the file cannot be read, or does not contain cases.
pub fn read(path: &Path) -> Result<Vec<Case>, Error> {
    read_list(path)
}

/// Reads a list of cases of any kind.
pub(crate) fn read_list<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let unread = |cause| Error::Read { path: path.to_owned(), cause };
    let mut bytes = files::read(path, MAX_FILE).map_err(unread)?;
    if is_gzipped(path) {
        bytes = files::read_at_most(GzDecoder::new(bytes.as_slice()), MAX_FILE).map_err(unread)?;
    }
    serde_json::from_slice(&bytes).map_err(|cause| Error::Json { path: path.to_owned(), cause })
}

/// Writes a file of cases atomically.
///
/// # Errors
///
/// If it cannot be written; an existing file is unchanged then.
pub fn write(path: &Path, cases: &[Case]) -> Result<(), Error> {
    write_list(path, cases)
}

/// Writes a list of cases of any kind.
pub(crate) fn write_list<T: Serialize>(path: &Path, cases: &[T]) -> Result<(), Error> {
    persist(path, cases).map_err(|cause| Error::Write { path: path.to_owned(), cause })
}

fn persist<T: Serialize>(path: &Path, cases: &[T]) -> io::Result<()> {
    // In the same folder, so that it can be renamed atomically.
    let mut file = tempfile::NamedTempFile::new_in(directory(path))?;
    let text = text(cases)?;
    if is_gzipped(path) {
        let mut encoder = GzEncoder::new(&mut file, Compression::best());
        encoder.write_all(&text)?;
        encoder.finish()?;
    } else {
        file.write_all(&text)?;
    }
    // Temporary files are private to their owner; this one gets the usual permissions.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_or(0o644, |there| there.permissions().mode());
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn text<T: Serialize>(cases: &[T]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cases.serialize(&mut Serializer::with_formatter(
        &mut text,
        PrettyFormatter::with_indent(b" "),
    ))?;
    Ok(text)
}

/// The cases of a file in which those of `recorded` replace the former ones of their groups. Groups
/// keep their place; new ones come last.
pub fn replaced<T: Clone>(former: Vec<T>, recorded: &[T], group: fn(&T) -> &str) -> Vec<T> {
    let mut cases = former;
    let names: BTreeSet<&str> = recorded.iter().map(group).collect();
    for name in names {
        let at = cases.iter().position(|case| group(case) == name).unwrap_or(cases.len());
        cases.retain(|case| group(case) != name);
        cases.splice(at..at, recorded.iter().filter(|case| group(case) == name).cloned());
    }
    cases
}

/// The folder of a file, to which the paths in it are relative.
pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_gzipped(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

#[cfg(test)]
mod tests {
    use super::hex::{decode, encode};
    use super::replaced;

    #[test]
    fn decoding_reverses_encoding() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Ok(bytes));
        assert_eq!(decode("0Aff"), Ok(vec![10, 255]));
        assert_eq!(decode(""), Ok(Vec::new()));
    }

    #[test]
    fn recorded_groups_replace_those_of_the_same_name() {
        let former = vec!["a 1", "a 2", "b 1", "c 1", "c 2"];
        fn group<'c>(case: &'c &'static str) -> &'c str {
            &case[..1]
        }
        let with = |recorded: &[&'static str]| replaced(former.clone(), recorded, group);
        assert_eq!(with(&["b 2", "b 3"]), ["a 1", "a 2", "b 2", "b 3", "c 1", "c 2"]);
        assert_eq!(with(&["c 3", "a 3", "c 4"]), ["a 3", "b 1", "c 3", "c 4"]);
        assert_eq!(with(&["d 1"]), ["a 1", "a 2", "b 1", "c 1", "c 2", "d 1"]);
        assert_eq!(with(&[]), former);
    }

    #[test]
    fn invalid_hex_is_refused() {
        for text in ["0", "0g", "é0", "+1", " 1"] {
            assert!(decode(text).is_err(), "{text:?}");
        }
    }
}
