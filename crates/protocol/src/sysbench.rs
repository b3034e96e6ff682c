use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Sysbench {}
