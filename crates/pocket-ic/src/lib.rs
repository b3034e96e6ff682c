//! Runs canisters on a PocketIC server: the real replica's code on this machine.
//!
//! The `pocket-ic` clients panic where something goes wrong and speak to servers of
//! their own major version alone. Here one set of types stands before the clients
//! of two generations, and whatever fails is an [`Error`] that names the next step.
//!
//! ```text
//!   Server      a process, found by POCKET_IC_BIN or downloaded
//!    └ Instance   one subnet of its own; messages run round by round
//!       └ client    the generation that fits the server's version
//! ```
//!
//! ```no_run
//! use stablebench_pocket_ic::{Mode, Principal, Server, Subnet};
//!
//! let instance = Server::start()?.instance(Subnet::Application)?;
//! let caller = Principal::anonymous();
//! let canister = instance.create_canister(caller)?;
//! let wasm = std::fs::read("canister.wasm")?;
//! instance.install(canister, caller, Mode::Install, &wasm, &[])??;
//! let reply = instance.update(canister, caller, "hello", b"DIDL\0\0")??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | | |
//! |---|---|
//! | `server` | the process: found, started, watched, ended |
//! | `version` | which client a server needs |
//! | `instance` | messages, rounds, balances |
//! | `management` | calls of the management canister: code, snapshots |
//! | `client` | the clients of both generations behind one trait |
//! | `guard` | panics of the clients as errors |

#![forbid(unsafe_code)]

mod client;
mod download;
mod error;
mod guard;
mod instance;
mod management;
mod server;
mod version;

pub use candid::Principal;
pub use error::{Error, Reject};
pub use instance::Instance;
pub use management::{Mode, Snapshot};
pub use server::{BINARY, Server};
pub use version::Version;

/// The kind of subnet that an instance has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnet {
    /// 13 nodes, production limits: what the embedded replica follows.
    #[default]
    Application,
    /// Production limits; nothing is paid for.
    System,
    /// An application subnet with very high instruction limits.
    Benchmarking,
}
