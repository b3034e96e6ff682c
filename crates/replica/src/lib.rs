//! Runs Internet Computer canisters in this process, with the counts of the real replica.
//!
//! A canister's module is validated, rewritten so that it counts its own instructions, compiled and
//! executed; its memories are files that messages map copy-on-write. The counts, replies and
//! rejects are those of the replica: the conformance suite checks them against recordings of a
//! PocketIC server.
//!
//! ```
//! use stablebench_replica::{Principal, Replica, Rules};
//!
//! let module = br#"(module
//!     (import "ic0" "msg_reply" (func $reply))
//!     (func (export "canister_update hello") (call $reply)))"#;
//! let replica = Replica::new(Rules::today(), None)?;
//! let module = replica.compile(&wat::parse_bytes(module)?)?;
//! let mut canister = replica.create_canister()?;
//! canister.install(&module, Principal::anonymous(), &[])?.outcome?;
//! let execution = canister.update(Principal::anonymous(), "hello", &[])?;
//! assert_eq!(execution.outcome?, b"");
//! // The function and its System API call.
//! assert_eq!(execution.instructions.get(), 1 + 5 + 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`testing`] is for tests of canisters. Messages have the limits of the Internet Computer, so a
//! canister that never returns is stopped. What it costs this process is bounded too (printed
//! texts, names in errors). Modules and saved files may be untrusted. A directory of compiled
//! modules must be trusted, because it contains machine code.
//!
//! Modules of the crate:
//!
//! | | |
//! |---|---|
//! | `validate` | rules for modules, with the error messages of the replica |
//! | `instrument` | prices of operators, and the rewriting that counts them |
//! | `system_api` | functions that canisters can call, and their prices |
//! | `memory` | heaps and stable memories, copy-on-write |
//! | `run`, `instance` | one execution; the instance on which it runs |
//! | `canister`, `saved` | canisters and their resources, with the path of every message and installs; canisters in files |
//! | `subnet` | canisters that call each other |
//! | `state` | the state between messages, and globals |
//! | `profile` | instructions of a message by function |
//! | `testing` | canisters in a developer's own tests |
//! | `difference` | differences between a fork and its base |
//! | `compiler`, `module` | engines, and compiled modules in files; modules in memory |
//! | `files`, `decoding` | files that users name; decoding of Candid |
//! | `rules` | prices, limits and switches: dated sets, and those that all sets share |
//! | `cycles` | cycles that messages and storage cost |
//! | `fault` | errors, with the messages of the replica |
//! | `execution` | the results of a message |

#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read and decode what they have written")
)]

mod backtrace;
mod canister;
mod compiler;
mod cycles;
#[doc(hidden)]
pub mod decoding;
mod difference;
mod execution;
mod fault;
#[doc(hidden)]
pub mod files;
mod instance;
mod instrument;
mod memory;
mod module;
mod profile;
mod replica;
pub mod rules;
mod run;
mod saved;
mod state;
pub mod subnet;
mod system_api;
pub mod testing;
#[doc(hidden)]
pub mod text;
mod units;
mod validate;

/// Files of the cache of compiled modules, and notes about it.
pub mod cache {
    pub use crate::compiler::{MODULE, Note, NoteHandler};
    pub use crate::files::TEMPORARY;
}

/// The example of README.md, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use canister::install::StableMemoryError;
pub use canister::{Canister, EnvironmentError, Settings};
pub use compiler::{Effort, VERSION};
pub use difference::{Difference, DifferingPages};
pub use execution::{
    CallCount, Counts, Execution, FunctionCost, MemoryUse, PageCharges, Reading, Readings,
    ReplyError, StableCalls, SystemCalls, TouchedPages,
};
pub use fault::{ErrorCode, HostError, Reject, RejectCode};
pub use files::{LockError, StateLock};
pub use ic_principal::Principal;
pub use instance::TextError;
pub use memory::NoMappings;
pub use module::Module;
pub use profile::{Frame, FrameKind, Node, Profile, ProfileError, Span};
pub use replica::{EngineError, Replica};
pub use rules::{Rules, SubnetKind};
pub use saved::{LoadError, saved_note};
pub use units::{Bytes, Cycles, Instructions, OsPages, WasmPages};
pub use validate::{CustomSection, EntryPoint, Method, MethodKind, ModuleInfo, Visibility};
