//! This program as a server: it speaks the part of PocketIC's REST interface that
//! `crates/pocket-ic` uses, over the embedded replica.
//!
//! It tests our side of the connection where there is no server: that both clients are
//! used rightly, rounds are waited for, refusals for a rate are tried again, large
//! modules go in chunks, snapshots are taken and loaded, and a server that fails ends in
//! one message. **It proves nothing about counts**: what it counts is what the embedded
//! replica counts.
//!
//! It is started as a server is, `--port-file PATH --ttl SECONDS`, and asked for its
//! version by `--version`. Two variables say what it is:
//!
//! | variable | value | |
//! |---|---|---|
//! | `STAND_IN_VERSION` | `16.1.0` | the version it has, and so its rules; this one where it is not set |
//! | `STAND_IN_FAULT` | see [`Fault`](fault::Fault) | how it misbehaves |
//!
//! ```text
//!   http        requests and answers, on threads
//!    └ routes      which request means what
//!       └ instance    canisters and messages; one round after the other
//!          ├ management   calls of the management canister
//!          └ hosted       a canister, its chunks and snapshots
//!   json        the forms of requests and answers
//!   fault       how it misbehaves
//! ```

pub mod fault;
mod hosted;
mod http;
mod instance;
mod json;
mod management;
mod routes;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use stablebench_replica::Rules;

const VERSION: &str = "STAND_IN_VERSION";
const NEWEST: &str = "16.1.0";

/// What it is started for.
pub enum Asked {
    Version,
    Serve { port_file: PathBuf, ttl: Duration },
}

/// Whether this process is to be a server.
pub fn asked() -> Option<Asked> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        return Some(Asked::Version);
    }
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let port_file = after("--port-file")?.into();
    let ttl = after("--ttl").and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    Some(Asked::Serve { port_file, ttl: Duration::from_secs(ttl) })
}

/// With which this program is a server of that version.
pub fn environment(version: &str) -> Vec<(&'static str, String)> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    vec![(stablebench_pocket_ic::BINARY, program), (VERSION, version.to_owned())]
}

fn version() -> String {
    std::env::var(VERSION).unwrap_or_else(|_| NEWEST.to_owned())
}

fn rules() -> Rules {
    rules_of(&version())
}

/// The rules by which a stand-in of that version charges: those of its time.
pub fn rules_of(version: &str) -> Rules {
    if version.starts_with("10.") { Rules::of_2025_10() } else { Rules::of_2026_08() }
}

/// Is a server.
pub fn main(asked: &Asked) -> ExitCode {
    match asked {
        Asked::Version => {
            println!("pocket-ic-server {}", version());
            ExitCode::SUCCESS
        }
        Asked::Serve { port_file, ttl } => http::serve(port_file, *ttl),
    }
}
