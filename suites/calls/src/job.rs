use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::SuiteJob;

/// A job of the suite calls: messages of a canister that calls others.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Creates the canister that is called and installs its module: one operation.
    #[serde(rename = "install")]
    Install(Callee),
    /// Nothing: the operation is the message itself.
    #[serde(rename = "message")]
    Message,
    /// Calls, one per operation.
    #[serde(rename = "call")]
    Call(CallOptions),
    /// Waits for at least as many rounds as there are operations, in which the other canister runs
    /// its task.
    #[serde(rename = "rounds")]
    Rounds,
    /// Adds rows with texts of this number of bytes to a map on the heap, one per operation.
    #[serde(rename = "insert")]
    Insert(u32),
}

impl SuiteJob for Calls {
    const SUITE: &'static str = "calls";
}

/// The task of the canister that is called.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Callee {
    /// It has none.
    #[default]
    #[serde(rename = "plain")]
    Plain,
    /// `canister_heartbeat`
    #[serde(rename = "heartbeat")]
    Heartbeat,
    /// `canister_global_timer`, which sets the timer again.
    #[serde(rename = "timer")]
    Timer,
}

/// A call.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOptions {
    /// The canister that is called, and the manner.
    pub to: CallTo,
    /// The bytes that it carries.
    pub size: CallSize,
    /// True if all calls are made before the first of their replies is awaited.
    pub parallel: bool,
    /// True if a composite query makes the calls, which leaves nothing behind.
    pub from_query: bool,
}

/// The canister that is called, and the manner.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTo {
    /// Another canister; the response is guaranteed.
    #[serde(rename = "other")]
    Other,
    /// A query method of another canister.
    #[serde(rename = "query")]
    Query,
    /// Another canister, with cycles that it accepts.
    #[serde(rename = "cycles")]
    WithCycles,
    /// Another canister, with a best-effort response.
    #[serde(rename = "best_effort")]
    BestEffort,
    /// The canister itself.
    #[serde(rename = "itself")]
    Itself,
}

/// The bytes of a call.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSize {
    /// An argument of this number of bytes.
    #[serde(rename = "argument")]
    Argument(u32),
    /// A reply of this number of bytes, besides those that every reply has.
    #[serde(rename = "reply")]
    Reply(u32),
}
