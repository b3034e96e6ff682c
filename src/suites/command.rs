//! Commands that repeat runs: everything that decides what is measured, and nothing that
//! only says where results go.

use clap::ValueEnum;

use crate::cli::{ReplicaArg, RunArgs, SubnetKind};

/// A command under way.
pub struct Command(String);

impl Command {
    /// Runs a suite.
    pub fn new(suite: &str) -> Self {
        Self(format!("stablebench run {suite}"))
    }

    /// Adds what every suite can be told, and is complete.
    pub fn run(mut self, args: &RunArgs) -> String {
        self.value("--seed", args.seed);
        self.value("--nodes", args.prices.nodes);
        self.value("--usd-per-trillion-cycles", args.prices.usd_per_trillion_cycles);
        if args.replica.subnet != SubnetKind::Application {
            self.value("--subnet", typed(&args.replica.subnet));
        }
        let target = &args.target;
        match &target.replica {
            ReplicaArg::Embedded => self.value("--rules", args.replica.rules()),
            ReplicaArg::PocketIc => {
                self.value("--replica", &target.replica);
            }
            // Whose key it was is no matter.
            ReplicaArg::At(address) => {
                self.value("--replica", address);
                for canister in &target.canister {
                    self.value("--canister", canister);
                }
            }
        }
        self.0
    }

    /// `--name`
    pub fn flag(&mut self, name: &str) {
        self.0 += " ";
        self.0 += name;
    }

    /// `--name value`
    pub fn value(&mut self, name: &str, value: impl ToString) {
        self.flag(name);
        self.flag(&value.to_string());
    }

    /// `--name value,value`
    pub fn values<T: ToString>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        self.value(name, values.join(","));
    }
}

/// As it is typed.
pub fn typed(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
