//! Cases of several canisters that call each other, in rounds.
//!
//! ```text
//! name, group
//! canisters[]          the modules as text, in order of creation
//! keys                 true if a subnet beside this one holds threshold keys
//! ids[]                the ids of the canisters
//! balances[]           their balances before the first step
//! steps[]              in order:
//!   to, method, kind   a call of the canister number `to`; kind: update or query; management for a
//!                      call of the management canister about it
//!   arg[]              parts: hex, <n> for the id of canister number n, or @path for the bytes of a
//!                      file, from the folder of the cases
//!   outcalls[]         the answers to the HTTPS outcalls that the call makes: status, headers, body
//!                      (hex), or reject: code, message
//!   expect             the answer: reply (hex), or reject: code, message
//!   tick, advance_ns   instead of a call: this number of rounds, each after advancing the time
//!   balances_fell[]    the decrease of each canister's balance during the step
//! ```
//!
//! `ids`, `expect` and `balances_fell` are missing in a case that has not been recorded.
//!
//! Rejects are compared as in cases of one canister. Balances are compared if those before the first
//! step were recorded too; otherwise not over rounds without a call, because the age of the
//! canisters, which decides on the charges for storage, is not known then.

use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use stablebench_replica::Principal;

use crate::case::{self, Error, MessageKind, hex};

/// Canisters and what is done with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetCase {
    /// The name in lists of differences.
    pub name: String,
    /// The subject of the case. Groups of a file can be run and recorded alone.
    pub group: String,
    /// The modules, as WebAssembly text.
    pub canisters: Vec<String>,
    /// True if a subnet beside this one holds threshold keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keys: bool,
    /// The ids of the canisters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Principal>,
    /// Their balances before the first step.
    #[serde(default, with = "amounts", skip_serializing_if = "Vec::is_empty")]
    pub balances: Vec<i128>,
    /// The steps, in order.
    pub steps: Vec<SubnetStep>,
}

/// A call, or rounds without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SubnetStep {
    /// A call.
    Call(SubnetCall),
    /// Rounds.
    Tick(Ticks),
}

/// A call of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetCall {
    /// The argument.
    pub arg: Vec<ArgumentPart>,
    /// The decrease of each balance.
    #[serde(default, with = "amounts", skip_serializing_if = "Vec::is_empty")]
    pub balances_fell: Vec<i128>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
    /// The kind of message: update, query or management.
    pub kind: MessageKind,
    /// The method.
    pub method: String,
    /// Answers to the HTTPS outcalls that the call makes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcalls: Vec<Outcall>,
    /// The number of the canister.
    pub to: usize,
}

/// Rounds without a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticks {
    /// Nanoseconds by which the time is advanced before each round.
    pub advance_ns: u64,
    /// The decrease of each balance.
    #[serde(default, with = "amounts", skip_serializing_if = "Vec::is_empty")]
    pub balances_fell: Vec<i128>,
    /// The number of rounds.
    pub tick: u32,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ArgumentPart {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The id of a canister, by its number.
    Id(usize),
    /// The bytes of a file, by its path from the folder of the cases.
    File(String),
}

impl TryFrom<String> for ArgumentPart {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Self::File(path.to_owned()));
        }
        match text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            Some(number) => number
                .parse()
                .map(Self::Id)
                .map_err(|_| format!("{text} is not the number of a canister")),
            None => hex::decode(&text).map(Self::Bytes),
        }
    }
}

impl From<ArgumentPart> for String {
    fn from(part: ArgumentPart) -> Self {
        match part {
            ArgumentPart::Bytes(bytes) => hex::encode(&bytes),
            ArgumentPart::Id(number) => format!("<{number}>"),
            ArgumentPart::File(path) => format!("@{path}"),
        }
    }
}

/// The answer to an HTTPS outcall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Outcall {
    /// A response.
    Response {
        /// The HTTP status code.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body.
        #[serde(with = "hex")]
        body: Vec<u8>,
    },
    /// No response.
    Reject {
        /// The reject code.
        code: u16,
        /// The reason.
        message: String,
    },
}

/// An expected answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Expected {
    /// A reply.
    Reply(#[serde(with = "hex")] Vec<u8>),
    /// A reject.
    Reject {
        /// The name of the error code.
        code: String,
        /// The message.
        message: String,
    },
}

/// Amounts of cycles as text, because they do not fit into the numbers of JSON.
mod amounts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(amounts: &[i128], to: S) -> Result<S::Ok, S::Error> {
        amounts.iter().map(ToString::to_string).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i128>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
}

/// Returns true if a file has such cases.
///
/// # Errors
///
/// If the file cannot be read, or is not a list of objects.
pub fn is_file_of_subnets(path: &Path) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Shape {
        canisters: Option<IgnoredAny>,
    }
    let shapes: Vec<Shape> = case::read_list(path)?;
    Ok(shapes.first().is_some_and(|shape| shape.canisters.is_some()))
}

/// Reads a file of such cases.
///
/// # Errors
///
/// If the file cannot be read, or does not contain such cases.
pub fn read(path: &Path) -> Result<Vec<SubnetCase>, Error> {
    case::read_list(path)
}

/// Writes a file of such cases.
///
/// # Errors
///
/// If it cannot be written; an existing file is unchanged then.
pub fn write(path: &Path, cases: &[SubnetCase]) -> Result<(), Error> {
    case::write_list(path, cases)
}
