//! Runs canisters on a PocketIC server: the real replica's code on this machine.
//!
//! The `pocket-ic` clients panic when something goes wrong, and each works only with servers of
//! its own major version. This crate puts one set of types in front of the clients of two
//! generations. Every failure is an [`Error`] that names the next step.
//!
//! ```text
//!   Server      a process, named by POCKET_IC_BIN or downloaded
//!    └ Instance   one subnet; messages execute round by round
//!       └ client    the generation that fits the server's version
//! ```
//!
//! ```no_run
//! use stablebench_pocket_ic::{Instance, Mode, Principal, Server, Subnet};
//!
//! let instance = Instance::create(&Server::start()?, Subnet::Application)?;
//! let caller = Principal::anonymous();
//! let canister = instance.create_canister(caller)?;
//! let wasm = std::fs::read("canister.wasm")?;
//! instance.install(canister, caller, Mode::Install, &wasm, &[])??;
//! let reply = instance.update(canister, caller, "hello", b"DIDL\0\0")??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `instance` | messages, rounds, balances, code and snapshots |
//! | `server` | the server process: find, start, monitor, stop; failures |
//! | `client` | versions, and the clients of both generations behind one trait |
//! | `detect` | detection of the rules by which a server charges |

#![forbid(unsafe_code)]

mod client;
mod detect;
mod instance;
mod server;

pub use candid::Principal;
pub use client::{HttpAnswer, Reject, Subnet, Version};
pub use detect::{Undetected, UnknownRules, detect};
pub use instance::{Instance, Mode, Snapshot};
pub use server::{BINARY, Error, Server};
