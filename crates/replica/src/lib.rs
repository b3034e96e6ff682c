//! Runs Internet Computer canisters in this process and counts what the IC counts.
//!
//! A canister's module is validated, rewritten so that it counts its own
//! instructions, compiled and executed; its memories are files that messages map
//! copy-on-write. The counts, replies and rejects are those of the replica: the
//! conformance suite holds them against recordings of a PocketIC server.
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
//! // The function and its call of the System API.
//! assert_eq!(execution.instructions.get(), 1 + 5 + 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same as a program: `examples/hello.rs`. What a message may use is limited as on the
//! IC, so that a canister that never ends does end; what it may cost this process is
//! bounded beside that (texts that are printed, names that are told back). Modules and saved
//! files may come from anyone, a directory of compiled modules may not: it holds machine code.
//!
//! Where to find what:
//!
//! | | |
//! |---|---|
//! | `validate` | which modules are refused, in which words |
//! | `instrument` | what operators cost and how the module counts them |
//! | `system_api` | what canisters can ask of the replica, and what that costs |
//! | `memory` | heaps and stable memories, copied only where written |
//! | `run`, `live` | one message; the instance that it runs on |
//! | `canister`, `install`, `manage`, `saved` | a canister's messages; its modules; its settings; canisters in files |
//! | `environment`, `stable` | what code finds that it did not write: variables, stable memory from outside |
//! | `profile` | where the instructions of a message go, by function |
//! | `difference` | how a fork differs from what it was forked from |
//! | `cache` | compiled modules, in memory and in files |
//! | `files` | which files are read, and where writing leads |
//! | `rules` | dated sets of prices, limits and switches |
//! | `limits`, `cycles` | limits that all sets share; what messages cost |

#![deny(unsafe_code)]

pub mod cache;
mod canister;
mod cycles;
mod difference;
mod engine;
mod environment;
mod execution;
mod fault;
pub mod files;
mod install;
mod instrument;
mod limits;
mod live;
mod manage;
mod memory;
mod module;
mod profile;
mod reject;
mod replica;
pub mod rules;
mod run;
mod saved;
mod stable;
mod state;
mod system_api;
pub mod text;
mod units;
mod validate;

/// Version of this crate. Which server it counts as is up to the [rules](rules::Rules).
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub use canister::{Canister, HostError, Settings};
pub use difference::Difference;
pub use environment::EnvironmentError;
pub use execution::{
    CallCount, Execution, MemoryUse, PageCharges, Reading, StableCalls, SystemCalls, TouchedPages,
};
pub use ic_principal::Principal;
pub use module::Module;
pub use profile::{Frame, FrameKind, Node, Profile, ProfileError, Span};
pub use reject::{ErrorCode, Reject};
pub use replica::{EngineError, Replica};
pub use rules::{Rules, SubnetKind};
pub use saved::{LoadError, LockError, STATE_STAMP, StateLock, saved_note};
pub use stable::StableMemoryError;
pub use units::{Bytes, Cycles, Instructions, OsPages, WasmPages};
pub use validate::{CustomSection, EntryPoint, Method, MethodKind, ModuleInfo, Visibility};
