//! The embedded replica: canisters run in this process.

use anyhow::{Context, Result};
use stablebench_replica::{Execution, Principal, Reject};

use super::{Canister, Cost, Identity, Replica, Reply};

/// Canisters in this process.
#[derive(Clone, Debug)]
pub struct Embedded(stablebench_replica::Replica);

impl Embedded {
    pub fn new(cache: Option<std::path::PathBuf>) -> Result<Self> {
        Ok(Self(stablebench_replica::Replica::new(cache)?))
    }

    /// The replica itself, for what only it can do.
    pub fn inner(&self) -> &stablebench_replica::Replica {
        &self.0
    }
}

impl Replica for Embedded {
    fn identity(&self) -> Identity {
        Identity { kind: "embedded".to_owned(), version: stablebench_replica::VERSION.to_owned() }
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let module = self.0.compile(wasm).context("the module was refused")?;
        let mut canister = self.0.create_canister()?;
        canister
            .install(&module, Principal::anonymous(), &candid::encode_args(())?)?
            .outcome
            .context("installing failed")?;
        Ok(Box::new(canister))
    }
}

impl Canister for stablebench_replica::Canister {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Reply> {
        reply(method, self.update(Principal::anonymous(), method, argument)?)
    }

    fn query(&self, method: &str, argument: &[u8]) -> Result<Reply> {
        reply(method, self.query(Principal::anonymous(), method, argument)?)
    }

    fn fork(&self) -> Result<Box<dyn Canister>> {
        Ok(Box::new(self.fork()))
    }
}

fn reply(method: &str, execution: Execution) -> Result<Reply> {
    let cost = cost(&execution);
    let bytes = execution.outcome.map_err(|reject: Reject| reject).context(method.to_owned())?;
    Ok(Reply { bytes, cost })
}

/// What a message on the embedded replica cost.
pub fn cost(execution: &Execution) -> Cost {
    Cost {
        instructions: execution.instructions.get(),
        charge: execution.charge.get(),
        cycles: u64::try_from(execution.cycles.get()).unwrap_or(u64::MAX),
        heap_pages_changed: execution.memory.heap_changed.get(),
        stable_pages_accessed: execution.memory.stable_accessed.get(),
        stable_pages_written: execution.memory.stable_written.get(),
    }
}
