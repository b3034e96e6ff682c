//! A subnet: canisters that call each other, in rounds.
//!
//! ```text
//!   submit ──→ tick, tick, … ──→ answer          update: all three
//!   query                                        without a round; composite queries call others
//!   set_time ──→ tick                            timers
//! ```
//!
//! | module | |
//! |---|---|
//! | `subnet_state` | the state of a subnet, and calls of users |
//! | `round` | rounds, and delivering messages |
//! | `borrow` | canisters that execute outside of the subnet |
//! | `member` | a canister with its messages, calls and tasks |
//! | `execute` | messages, callbacks and tasks |
//! | `funds` | what a canister pays for, and when it freezes |
//! | `contexts` | calls that are not finished, and callbacks |
//! | `queues` | messages between canisters, and their order |
//! | `query` | queries that call queries |
//! | `management` | the management canister |
//! | `ingress` | messages of users, and their answers |
//! | `send` | calls that a message makes |
//! | `parts`, `routing` | ranges of canister ids, with their rules |
//! | `remote` | calls to canisters that are not on the subnet |
//! | `managed` | what it keeps of a canister: history, log, chunks, snapshots |
//! | `saved` | subnets in files |
//! | `trace` | the executions, and what caused each |
//!
//! Execution is deterministic: equal calls at equal times give equal executions.

mod borrow;
mod contexts;
mod execute;
mod funds;
mod ingress;
mod managed;
mod management;
mod member;
mod parts;
mod query;
mod queues;
mod remote;
mod round;
mod routing;
mod saved;
mod send;
mod subnet_state;
mod trace;

pub use crate::system_api::message::{Halt, Status};

pub use borrow::Borrowed;
pub use ingress::{Answered, Call, CallError, MessageId};
pub use management::metadata::{Global, GlobalTimer, HookStatus, SnapshotMetadata};
pub use management::types::SnapshotSource;
pub use management::{HttpRequest, HttpResponse, effective_canister};
pub use parts::{Part, canister_id};
pub use remote::RemoteCall;
pub use subnet_state::{Subnet, Taken};
pub use trace::{Executed, Function};
