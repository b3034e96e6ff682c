//! What can be typed after `serve`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use stablebench_endpoint::{NoOrigin, Origin};
use stablebench_replica::Principal;

use super::{EnvironmentArgs, ReplicaArgs};

/// Whose pages may call.
#[derive(Clone, Debug)]
pub enum AllowedOrigin {
    All,
    One(Origin),
}

impl FromStr for AllowedOrigin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        if text == "*" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// The port at which dfx looks for a local network.
pub const PORT: u16 = 4943;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Canisters to install: `bench`, `bench_vfs`, `bench_leveldb`, `bench_doltlite`, or paths of
    /// wasm files.
    #[arg(default_value = "bench", value_name = "CANISTER")]
    pub canisters: Vec<String>,
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = PORT)]
    pub port: u16,
    /// The address to listen at. Programs that can reach it can call, create and change canisters.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub listen: IpAddr,
    /// Begin with the one canister as this file has it, if the file is there, and save it there:
    /// at first, in the end, and in between.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Save to --state about so often, where something has changed.
    #[arg(
        long,
        default_value_t = 60,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub save_every: u64,
    /// Who may manage the canisters, beside the anonymous principal.
    #[arg(long = "controller", value_name = "PRINCIPAL")]
    pub controllers: Vec<Principal>,
    /// Pages of this origin may call too, such as https://example.com, and the server may be
    /// called by that host's name; * for all. Without it, only pages of this machine may.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<AllowedOrigin>,
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}
