//! The embedded replica: canisters run in this process.

use anyhow::{Context, Result};
use stablebench_replica::{Execution, Principal};

use super::{Answer, Canister, Cost, Identity, Inside, Messages, Reject, Replica};

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
        Identity {
            kind: "embedded".to_owned(),
            version: stablebench_replica::VERSION.to_owned(),
            subnet: "application".to_owned(),
        }
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

impl Messages for stablebench_replica::Canister {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer(self.update(Principal::anonymous(), method, argument)?))
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer(Self::query(self, Principal::anonymous(), method, argument)?))
    }
}

impl Canister for stablebench_replica::Canister {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Self::fork(self)))
    }
}

fn answer(execution: Execution) -> Answer {
    let cost = Cost { cycles: cycles(&execution), inside: Some(inside(&execution)) };
    let outcome = execution
        .outcome
        .map_err(|reject| Reject { code: reject.code.name().to_owned(), message: reject.message });
    Answer { outcome, cost }
}

/// Cycles that a message on the embedded replica cost.
pub fn cycles(execution: &Execution) -> u64 {
    u64::try_from(execution.cycles.get()).unwrap_or(u64::MAX)
}

/// What a message on the embedded replica did.
pub fn inside(execution: &Execution) -> Inside {
    Inside {
        instructions: execution.instructions.get(),
        charge: execution.charge.get(),
        heap_pages_changed: execution.memory.heap_changed.get(),
        stable_pages_accessed: execution.memory.stable_accessed.get(),
        stable_pages_written: execution.memory.stable_written.get(),
    }
}
