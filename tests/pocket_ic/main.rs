//! Canisters on a PocketIC server, as developers test theirs, beside the embedded replica.
//!
//! The same scenarios run on each replica, one test a replica and scenario:
//!
//! ```text
//!   embedded::NAME      the embedded replica: always
//!   pocket_ic::NAME     the server that POCKET_IC_BIN names; ignored, with a line that
//!                       says why, where there is none or the feature `pocket-ic` is off
//!   stand_in_10::NAME   this program as a server of either generation: tests our side
//!   stand_in_16::NAME   of the connection, and says nothing of PocketIC
//!   failures::NAME      what the tool says of servers that are none, or that fail
//! ```
//!
//! `docs/testing-with-pocket-ic.md` says how to run them and where a server comes from.

mod bench;
mod beside;
mod canister;
mod embedded;
mod modules;
mod scenarios;
mod tool;
mod trials;

#[cfg(feature = "pocket-ic")]
#[path = "../../examples/pocket_ic.rs"]
mod example;
#[cfg(feature = "pocket-ic")]
mod failures;
#[cfg(feature = "pocket-ic")]
mod server;
#[cfg(feature = "pocket-ic")]
mod stand_in;
#[cfg(not(feature = "pocket-ic"))]
mod without;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "pocket-ic")]
    if let Some(asked) = stand_in::asked() {
        return stand_in::main(&asked);
    }
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = trials::all(&arguments);
    // Servers end with the last trial, which `run` takes.
    libtest_mimic::run(&arguments, trials).exit_code()
}
