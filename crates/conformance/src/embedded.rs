//! The embedded replica as a target of cases.

use stablebench_replica::{
    self as replica, ErrorCode, Execution, Module, Principal, Replica, Rules,
};
use tempfile::TempDir;

use crate::case::Kind;
use crate::error::Failure;
use crate::subnet::{self, RunningSubnet, SubnetCase};
use crate::target::{Answer, Canister, Installed, Reject, Target};

const CALLER: Principal = Principal::anonymous();

/// The embedded replica. Cases that share a module compile it once.
pub struct Embedded {
    replica: Replica,
    /// The folder of compiled modules; `None` if no folder could be created.
    _cache: Option<TempDir>,
}

impl Embedded {
    /// Starts a replica with the given rules.
    ///
    /// # Errors
    ///
    /// If the engine does not support this machine.
    pub fn new(rules: Rules) -> Result<Self, Failure> {
        let cache = tempfile::tempdir().ok();
        let folder = cache.as_ref().map(|cache| cache.path().to_owned());
        let replica = Replica::new(rules, folder)?;
        Ok(Self { replica, _cache: cache })
    }
}

impl Target for Embedded {
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
        let module = match self.replica.compile(wasm) {
            Ok(module) => module,
            Err(reject) => return Ok(refused(reject)),
        };
        let mut canister = self.replica.create_canister()?;
        // An image that is too large for this machine is refused like on the network.
        let outcome = match canister.install(&module, CALLER, &[]) {
            Ok(execution) => execution.outcome,
            Err(error) => Err(replica::Reject {
                code: ErrorCode::CanisterOutOfMemory,
                message: error.to_string(),
            }),
        };
        Ok(match outcome {
            Ok(_) => Installed::Canister(Box::new(Installation { canister, module })),
            Err(reject) => refused(reject),
        })
    }

    fn create(
        &mut self,
        case: &SubnetCase,
        modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        Ok(Box::new(subnet::embedded(&self.replica, case, modules)?))
    }
}

/// The error of a case of one canister that calls the management canister.
pub const ONLY_ON_SUBNETS: &str =
    "only cases of several canisters have calls of the management canister";

struct Installation {
    canister: replica::Canister,
    module: Module,
}

impl Canister for Installation {
    fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        let Self { canister, module } = self;
        let Execution { outcome, cycles, .. } = match kind {
            Kind::Update => canister.update(CALLER, method, arg)?,
            Kind::Query => canister.query(CALLER, method, arg)?,
            Kind::Upgrade => canister.upgrade(module, CALLER, arg)?,
            Kind::Reinstall => canister.install(module, CALLER, arg)?,
            Kind::Management => return Err(ONLY_ON_SUBNETS.into()),
        };
        Ok(Answer { outcome: outcome.map_err(reject), cycles: Some(cycles.get()) })
    }
}

fn refused(refusal: replica::Reject) -> Installed {
    Installed::Refused(Answer { outcome: Err(reject(refusal)), cycles: None })
}

fn reject(reject: replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}
