//! The embedded replica, with every message profiled and held against the same message as it
//! is otherwise executed.

use stablebench_conformance::{Answer, Canister, Failure, Installed, Kind, Reject, Target};
use stablebench_replica::{self as replica, Execution, Module, Principal, Replica, Rules, Span};

const CALLER: Principal = Principal::anonymous();

pub struct Profiled(Replica);

impl Profiled {
    pub fn new(rules: Rules) -> Self {
        Self(Replica::new(rules, None).unwrap())
    }
}

impl Target for Profiled {
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
        let refused =
            |reject| Installed::Refused(Answer { outcome: Err(answered(reject)), cycles: None });
        let module = match self.0.compile(wasm) {
            Ok(module) => module,
            Err(reject) => return Ok(refused(reject)),
        };
        let mut canister = self.0.create_canister()?;
        Ok(match canister.install(&module, CALLER, &[])?.outcome {
            Ok(_) => Installed::Canister(Box::new(Installation { canister, module })),
            Err(reject) => refused(reject),
        })
    }
}

struct Installation {
    canister: replica::Canister,
    module: Module,
}

impl Canister for Installation {
    fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        let Self { canister, module } = self;
        let (normal, (execution, profile)) = match kind {
            Kind::Update => (
                canister.fork().update(CALLER, method, arg)?,
                canister.profile_update(CALLER, method, arg, Span::Message)?,
            ),
            Kind::Query => (
                canister.query(CALLER, method, arg)?,
                canister.profile_query(CALLER, method, arg, Span::Message)?,
            ),
            Kind::Upgrade => return Ok(answer(canister.upgrade(module, CALLER, arg)?)),
            Kind::Reinstall => return Ok(answer(canister.install(module, CALLER, arg)?)),
        };
        let told = |execution: &Execution| {
            let Execution { instructions, charge, memory, stable_calls, printed, .. } = execution;
            format!("{instructions} {charge} {memory:?} {stable_calls:?} {printed:?}")
        };
        assert_eq!(told(&execution), told(&normal), "{method}");
        assert_eq!(execution.outcome, normal.outcome, "{method}");
        let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
        assert_eq!(sum, execution.instructions.get(), "{method}");
        Ok(answer(execution))
    }
}

fn answer(execution: Execution) -> Answer {
    let cycles = Some(execution.cycles.get());
    Answer { outcome: execution.outcome.map_err(answered), cycles }
}

fn answered(reject: replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}
