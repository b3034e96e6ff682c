use candid::CandidType;
use candid::types::{Serializer, Type, TypeInner};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of an engine; text on the wire.
///
/// Names are short, so that they are copied and compared without a heap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Engine {
    /// The name in UTF-8, filled up with zeros.
    bytes: [u8; Self::MAX_BYTES],
}

impl Engine {
    /// `StableBTreeMap`.
    pub const BTREE: Self = Self::named("btree");
    /// A library with SQLite's interface.
    pub const SQLITE: Self = Self::named("sqlite");
    /// The floor: a log of rows on bare stable memory, in the order written.
    pub const APPEND: Self = Self::named("append");
    /// The floor: an array of slots on bare stable memory, indexed by id.
    pub const ARRAY: Self = Self::named("array");
    /// A cuckoo hash table, which is built once and then read.
    pub const CUCKOO: Self = Self::named("cuckoo");
    /// LevelDB.
    pub const LEVELDB: Self = Self::named("leveldb");

    /// The maximum length of a name, in bytes.
    pub const MAX_BYTES: usize = 24;

    /// Returns the engine with this name.
    ///
    /// # Panics
    ///
    /// If the name is too long. [`str::parse`] returns an error instead.
    pub const fn named(name: &str) -> Self {
        let mut bytes = [0; Self::MAX_BYTES];
        let name = name.as_bytes();
        let mut index = 0;
        while index < name.len() {
            bytes[index] = name[index];
            index += 1;
        }
        Self { bytes }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX_BYTES);
        // The bytes are those of a string.
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

/// A name that is too long for an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not the name of an engine: it is longer than {} bytes", Engine::MAX_BYTES)]
pub struct NameTooLong {
    name: String,
}

impl FromStr for Engine {
    type Err = NameTooLong;

    fn from_str(name: &str) -> Result<Self, NameTooLong> {
        if name.len() > Self::MAX_BYTES {
            return Err(NameTooLong { name: name.to_owned() });
        }
        Ok(Self::named(name))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl CandidType for Engine {
    fn _ty() -> Type {
        TypeInner::Text.into()
    }

    fn idl_serialize<S: Serializer>(&self, serializer: S) -> Result<(), S::Error> {
        serializer.serialize_text(self.name())
    }
}

impl Serialize for Engine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candid::{decode_one, encode_one};

    #[test]
    fn an_engine_is_text_on_the_wire() {
        let longest = "x".repeat(Engine::MAX_BYTES);
        for name in ["", "btree", longest.as_str()] {
            let engine: Engine = name.parse().unwrap();
            assert_eq!((engine.name(), engine.to_string().as_str()), (name, name));
            assert_eq!(encode_one(engine).unwrap(), encode_one(name).unwrap());
            assert_eq!(decode_one::<Engine>(&encode_one(name).unwrap()).unwrap(), engine);
        }
        let too_long = longest + "x";
        assert!(too_long.parse::<Engine>().is_err());
        assert!(decode_one::<Engine>(&encode_one(too_long).unwrap()).is_err());
    }
}
