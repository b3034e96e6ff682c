//! Jobs of the suite on the wire.

use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, SuiteJob};

/// A job of the suite collections: a task on a map from numbers to numbers. Each key is its own value.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collections {
    /// The map.
    pub engine: Engine,
    /// The number of entries that it is created for.
    pub entries: u64,
    /// The task.
    pub task: CollectionsTask,
}

impl SuiteJob for Collections {
    const SUITE: &'static str = "collections";
}

/// A task on a map. Its operations follow one of the two sequences of keys.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionsTask {
    /// Adds the generated keys.
    #[serde(rename = "generate")]
    Generate,
    /// Looks up other keys, of which few exist.
    #[serde(rename = "get")]
    Get,
    /// Looks up generated keys.
    #[serde(rename = "get_existing")]
    GetExisting,
    /// Adds other keys.
    #[serde(rename = "put")]
    Put,
    /// Removes generated keys.
    #[serde(rename = "remove")]
    Remove,
}

impl CollectionsTask {
    /// Returns `true` if it changes the map.
    pub fn writes(self) -> bool {
        match self {
            Self::Generate | Self::Put | Self::Remove => true,
            Self::Get | Self::GetExisting => false,
        }
    }
}
