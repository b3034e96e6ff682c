//! `candid_parser` is used here to read texts, and only its binding generator needs `toml`, for its
//! configuration. This has the same interface, and parses nothing.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A table. It can only be empty.
#[derive(Clone, Default)]
pub struct Table(BTreeMap<String, Value>);

/// A value in a table.
#[derive(Clone)]
pub enum Value {
    Boolean(bool),
    Table(Table),
}

impl Table {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub fn insert(&mut self, key: String, value: Value) -> Option<Value> {
        self.0.insert(key, value)
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    pub fn try_into<T>(self) -> Result<T, de::Error> {
        Err(de::Error)
    }
}

impl IntoIterator for Table {
    type Item = (String, Value);
    type IntoIter = std::collections::btree_map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromStr for Table {
    type Err = de::Error;

    fn from_str(_: &str) -> Result<Self, de::Error> {
        Err(de::Error)
    }
}

pub mod de {
    /// The only result of parsing.
    #[derive(Debug)]
    pub struct Error;

    impl std::fmt::Display for Error {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("this program is built without a parser for TOML")
        }
    }

    impl std::error::Error for Error {}
}
