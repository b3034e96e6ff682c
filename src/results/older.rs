//! Older formats, read as the newest.
//!
//! Formats 3 and 4 had one canister for all columns; what 4 holds more than 3 may be left
//! out.
//!
//! Formats 1 and 2 knew the users suite alone: rows added to one populated table, at one place, in
//! one message. Each of their settings becomes a column and a store, each insertion a
//! case of the section `insert`. What they did not hold is left open where the format
//! allows that; the rest follows from what the tool was then.

use anyhow::{Context, Result};
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stablebench_protocol::{Digest, Engine, JournalMode, SqliteConfig, SqliteSettings};

use super::file::{json, strict};
use super::{
    CanisterInfo, Case, Column, Detail, FORMAT, Held, Measured, Outcome, Populate, Prices, Results,
    State, Store,
};
use crate::replica::{Cost, Identity, Inside};
use crate::report::number::Grouped;

/// Every run was one of these: an application subnet of 13 nodes. The price is the one
/// that format 3 began with.
const SUBNET: &str = "application";
const RULES: &str = "2025-10";
const PRICES: Prices = Prices { nodes: 13, usd_per_trillion_cycles: 1.36 };

/// Both formats; what differs between them is optional here and checked afterwards.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Old<I, P, M> {
    format: u32,
    stablebench: String,
    revision: Option<String>,
    suite: String,
    command: String,
    as_published: bool,
    replica: I,
    canister: CanisterInfo,
    rows: u64,
    payload: u32,
    settings: Vec<OldSetting<P>>,
    cases: Vec<OldCase<M>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct OldSetting<P> {
    key: String,
    sqlite: Option<SqliteSettings>,
    populate: P,
    stored_bytes: u64,
    heap_pages: u64,
    stable_pages: u64,
    digest: Digest,
    wall_milliseconds: u64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct OldCase<M> {
    setting: String,
    at: Place,
    rows: u64,
    measurement: OldMeasurement,
    message: M,
    digest: Digest,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Middle,
    End,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct OldMeasurement {
    instructions: u64,
    counter_overhead: u64,
    message_instructions: u64,
    rows: u64,
    heap_pages_before: u64,
    heap_pages_after: u64,
    stable_pages_before: u64,
    stable_pages_after: u64,
}

/// Format 1 had one replica, and so no subnet.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Identity1 {
    kind: String,
    version: String,
}

/// Format 1: the embedded replica always tells the charge.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Populate1 {
    messages: u64,
    instructions: u64,
    charge: u64,
    cycles: u64,
}

/// Format 1: likewise.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Cost1 {
    instructions: u64,
    charge: u64,
    cycles: u64,
    heap_pages_changed: u64,
    stable_pages_accessed: u64,
    stable_pages_written: u64,
}

/// Format 2.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Cost2 {
    cycles: u64,
    inside: Option<Inside2>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Inside2 {
    instructions: u64,
    charge: u64,
    heap_pages_changed: u64,
    stable_pages_accessed: u64,
    stable_pages_written: u64,
}

/// Reads the text of a file of an older format.
pub fn parse(format: u32, text: &str) -> Result<Results> {
    match format {
        1 => strict::<Old<Identity1, Populate1, Cost1>>(text)?.convert(),
        2 => strict::<Old<Identity, Populate, Cost2>>(text)?.convert(),
        5 => Ok(Results { format: FORMAT, ..strict(text)? }),
        _ => one_canister(json(text)?),
    }
}

/// Formats 3 and 4.
fn one_canister(mut text: Value) -> Result<Results> {
    let fields = text.as_object_mut().context("no object")?;
    fields.insert("format".to_owned(), FORMAT.into());
    let canister = fields.remove("canister").context("no canister")?;
    let name = canister["name"].clone();
    fields.insert("canisters".to_owned(), Value::Array(vec![canister]));
    let columns = fields.get_mut("columns").and_then(Value::as_array_mut).into_iter().flatten();
    for column in columns.filter_map(Value::as_object_mut) {
        column.insert("canister".to_owned(), name.clone());
    }
    strict(&text.to_string())
}

impl<I: Into<Identity>, P: Into<Populate>, M: Into<Cost>> Old<I, P, M> {
    fn convert(self) -> Result<Results> {
        let (rows, payload) = (self.rows, self.payload);
        let name = self.canister.name.clone();
        Ok(Results {
            format: FORMAT,
            stablebench: self.stablebench,
            revision: self.revision,
            suite: self.suite,
            command: self.command,
            published: self.as_published.then(|| "users".to_owned()),
            // Nothing was chosen at random.
            seed: 0,
            prices: PRICES,
            replica: self.replica.into(),
            canisters: vec![self.canister],
            columns: self
                .settings
                .iter()
                .map(|setting| column(&setting.key, &name))
                .collect::<Result<_>>()?,
            stores: self.settings.into_iter().map(|old| old.convert(rows, payload)).collect(),
            cases: self.cases.into_iter().map(|old| old.convert(rows, payload)).collect(),
            harness: Vec::new(),
        })
    }
}

/// `btree`, `sqlite/delete`: the journal mode was the one thing that was asked for.
fn column(key: &str, canister: &str) -> Result<Column> {
    let (engine, mode) = match key.split_once('/') {
        Some((engine, mode)) => (engine, Some(mode)),
        None => (key, None),
    };
    let unknown = || format!("there was no setting called {key}");
    let engine = Engine::deserialize(named(engine)).with_context(unknown)?;
    let sqlite = mode
        .map(|mode| JournalMode::deserialize(named(mode)).with_context(unknown))
        .transpose()?
        .map(|mode| SqliteConfig { journal_mode: Some(mode), ..SqliteConfig::default() });
    Ok(Column { key: key.to_owned(), canister: canister.to_owned(), engine, sqlite, leveldb: None })
}

/// Names on the wire are the types' own.
fn named(name: &str) -> StrDeserializer<'_, ValueError> {
    name.into_deserializer()
}

impl<P: Into<Populate>> OldSetting<P> {
    fn convert(self, rows: u64, payload: u32) -> Store {
        let held = Held {
            sqlite: self.sqlite,
            populate: self.populate.into(),
            stored_bytes: self.stored_bytes,
            virtual_bytes: None,
            cache_bytes: None,
            heap_pages: self.heap_pages,
            stable_pages: self.stable_pages,
            digest: self.digest,
            wall_milliseconds: Some(self.wall_milliseconds),
        };
        Store {
            column: self.key,
            name: String::new(),
            rows,
            payload,
            outcome: Outcome::Measured(held),
        }
    }
}

impl<M: Into<Cost>> OldCase<M> {
    fn convert(self, rows: u64, payload: u32) -> Case {
        let place = match self.at {
            Place::Middle => "middle",
            Place::End => "end",
        };
        let old = self.measurement;
        let detail = Detail {
            messages: 1,
            counter_overhead: old.counter_overhead,
            message_instructions: old.message_instructions,
            rows: old.rows,
            bytes: None,
            heap_pages_before: old.heap_pages_before,
            heap_pages_after: old.heap_pages_after,
            stable_pages_before: old.stable_pages_before,
            stable_pages_after: old.stable_pages_after,
            cost: self.message.into(),
            pages: None,
            digest: Some(self.digest),
            stored: None,
        };
        Case {
            section: "insert".to_owned(),
            name: format!("{place} {}", Grouped(self.rows)),
            column: self.setting,
            rows,
            payload,
            state: State::Warm,
            outcome: Outcome::Measured(Measured {
                instructions: old.instructions,
                operations: self.rows,
                capacity: None,
                detail: Some(detail),
                each: None,
                phases: None,
            }),
        }
    }
}

impl From<Identity1> for Identity {
    fn from(old: Identity1) -> Self {
        Self {
            kind: old.kind,
            version: old.version,
            subnet: SUBNET.to_owned(),
            rules: RULES.to_owned(),
        }
    }
}

impl From<Populate1> for Populate {
    fn from(old: Populate1) -> Self {
        let Populate1 { messages, instructions, charge, cycles } = old;
        Self { messages, instructions, charge: Some(charge), cycles }
    }
}

impl From<Cost1> for Cost {
    fn from(old: Cost1) -> Self {
        let inside = Inside2 {
            instructions: old.instructions,
            charge: old.charge,
            heap_pages_changed: old.heap_pages_changed,
            stable_pages_accessed: old.stable_pages_accessed,
            stable_pages_written: old.stable_pages_written,
        };
        Cost2 { cycles: old.cycles, inside: Some(inside) }.into()
    }
}

impl From<Cost2> for Cost {
    fn from(old: Cost2) -> Self {
        let inside = old.inside.map(|inside| Inside {
            instructions: inside.instructions,
            charge: inside.charge,
            heap_pages_changed: inside.heap_pages_changed,
            stable_pages_accessed: inside.stable_pages_accessed,
            stable_pages_written: inside.stable_pages_written,
            stable_calls: None,
            pages: None,
        });
        Self { cycles: old.cycles, inside }
    }
}
