//! Command-line definitions.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use stablebench_conformance::{Call, Kind};

const EXAMPLES: &str = "\
Examples:
  recorder generate random --seed 7 --count 100 -o random.json.gz
  POCKET_IC_BIN=./pocket-ic recorder record random.json.gz -o recorded.json.gz
  POCKET_IC_BIN=./pocket-ic recorder record my.wasm --call update:set:00 -o my.json
  POCKET_IC_BIN=./newer/pocket-ic conformance verify recorded.json.gz my.json

`conformance check` runs the recorded cases on the embedded replica.

Exit codes: 0 no differences, 1 differences, 2 failure.";

/// Generates cases, records the answers of a PocketIC server, and verifies servers by them
#[derive(Debug, Parser)]
#[command(name = "recorder", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs cases on a PocketIC server and records the answers
    Record(Record),
    /// Runs recorded cases on a PocketIC server and lists differences
    Verify(Verify),
    /// Generates cases to record
    Generate(Generate),
}

#[derive(Debug, Args)]
#[command(long_about = "Runs cases on a PocketIC server and records the answers.\n\n\
        The server is the one that POCKET_IC_BIN names. Each case runs on a new instance with its \
        canisters. Inputs are files of cases, recorded or not, and modules (.wat, .wasm, .wasm.gz): \
        each exported update and query of a module is called once with an empty argument, unless \
        --call is given. OUT is written when everything is recorded; if the server fails, the \
        cases recorded so far are kept in a file next to it.")]
pub struct Record {
    /// Files of cases, and modules
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<PathBuf>,
    /// The file to write, gzipped if its name ends in .gz
    #[arg(short, long)]
    pub out: PathBuf,
    /// A call to the modules, instead of calls to all their methods; may be repeated
    #[arg(long = "call", value_name = "KIND:METHOD:HEX", value_parser = call)]
    pub calls: Vec<Call>,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
#[command(long_about = "Runs recorded cases on a PocketIC server and lists differences.\n\n\
        The server is the one that POCKET_IC_BIN names. First a canister detects the rules by which \
        the server charges. Without files, all cases of this project that were recorded under \
        those rules are run: this qualifies a new version of the server.")]
pub struct Verify {
    /// Files of recorded cases, plain or gzipped; by default those of this project that were
    /// recorded under the server's rules
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Clone, Copy, Debug, Args)]
pub struct Server {
    /// The subnet of each instance; the cases were recorded on an application subnet
    #[arg(long, value_enum, default_value_t = Subnet::Application)]
    pub subnet: Subnet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subnet {
    /// 13 nodes, production limits
    Application,
    /// Production limits; nothing is charged
    System,
    /// An application subnet with very high instruction limits
    Benchmarking,
}

#[derive(Debug, Args)]
#[command(
    long_about = "Generates cases to record.\n\nThe same seed generates the same file. The cases \
        have no expected answers: record them on a PocketIC server, then check them."
)]
pub struct Generate {
    /// The kind of cases
    #[arg(value_enum)]
    pub what: What,
    /// The seed of the random numbers
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// modules: number of measurements of everything; random: programs; canister: sequences of
    /// calls; calls: subnets [default: 1, 100, 10, 100]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub count: Option<u16>,
    /// canister: the module of the bench canister (`stablebench module` writes it)
    #[arg(long, value_name = "FILE", required_if_eq("what", "canister"))]
    pub wasm: Option<PathBuf>,
    /// The file to write, gzipped if its name ends in .gz
    #[arg(short, long)]
    pub out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Each operator and each System API call between two readings of the counter
    Modules,
    /// Random programs
    Random,
    /// Random calls to the bench canister
    Canister,
    /// Random calls between canisters
    Calls,
    /// Calls of the management canister, which are not random
    Management,
    /// Settings of canisters and what they do, which is not random
    Settings,
    /// Motoko's actors, which are not random
    Motoko,
    /// HTTPS outcalls and threshold signatures, which are not random
    Services,
    /// Snapshots that are read and uploaded, which is not random
    Snapshots,
}

/// Parses `update:METHOD:HEX`.
fn call(text: &str) -> Result<Call, String> {
    let mut parts = text.splitn(3, ':');
    let (kind, method) = (parts.next().unwrap_or_default(), parts.next());
    let kind = [Kind::Update, Kind::Query, Kind::Upgrade, Kind::Reinstall]
        .into_iter()
        .find(|one| one.name() == kind)
        .ok_or("must start with update:, query:, upgrade: or reinstall:")?;
    let method = method.ok_or("needs a method, as in update:METHOD:HEX")?;
    Call::from_hex(kind, method, parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn calls_are_parsed() {
        assert_eq!(call("update:set:00ff"), Ok(Call::new(Kind::Update, "set", [0, 255])));
        assert_eq!(call("query:get"), Ok(Call::new(Kind::Query, "get", [])));
        assert_eq!(call("upgrade::"), Ok(Call::new(Kind::Upgrade, "", [])));
        for wrong in ["", "set", "update", "update:set:0", "update:set:zz", "Update:set:"] {
            assert!(call(wrong).is_err(), "{wrong:?}");
        }
    }
}
