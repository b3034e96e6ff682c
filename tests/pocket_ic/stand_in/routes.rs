//! Which request means what.
//!
//! ```text
//!   POST   /instances                                 a new instance
//!   DELETE /instances/N                               its end
//!   POST   /instances/N/update/submit_ingress_message
//!   POST   /instances/N/update/tick                   one round
//!   POST   /instances/N/update/await_ingress_message  rounds until it is answered
//!   POST   /instances/N/update/add_cycles
//!   POST   /instances/N/read/ingress_status
//!   POST   /instances/N/read/query
//!   POST   /instances/N/read/get_cycles
//!   GET    /read_graph/STATE/OPERATION                the answer to what had begun
//!   DELETE /prune_graph/STATE/OPERATION
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::fault::Fault;
use super::instance::{FaultState, Instance};
use super::json::{
    AddCycles, Blob, Call, CanisterId, Cycles, IngressStatus, InstanceConfig, MessageId, Reject,
};

/// A status and a body.
pub type Answer = (u16, Value);

/// All instances, and answers that wait to be asked for.
pub struct Routes {
    fault: Arc<FaultState>,
    instances: Mutex<BTreeMap<usize, Arc<Mutex<Instance>>>>,
    begun: Mutex<Begun>,
}

/// Answers to what had begun, and how often each was asked for.
#[derive(Default)]
struct Begun {
    requests: usize,
    answers: BTreeMap<usize, (u32, Answer)>,
}

impl Routes {
    pub fn new(fault: Option<Fault>) -> Self {
        let fault = Arc::new(FaultState { fault, calls: Mutex::default(), failing: false.into() });
        Self { fault, instances: Mutex::default(), begun: Mutex::default() }
    }

    pub fn answer(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match (method, path.as_slice()) {
            ("POST", ["instances"]) => self.create(body),
            ("DELETE", ["instances", id]) => {
                let ended =
                    id.parse().ok().and_then(|id| self.instances.lock().unwrap().remove(&id));
                (if ended.is_some() { 200 } else { 404 }, Value::Null)
            }
            ("POST", ["instances", id, kind, operation]) => {
                let found = id
                    .parse()
                    .ok()
                    .and_then(|id: usize| self.instances.lock().unwrap().get(&id).cloned());
                match found {
                    Some(instance) => self.slowly(|| {
                        let mut instance = instance.lock().unwrap();
                        operate(&mut instance, &format!("{kind}/{operation}"), body)
                    }),
                    None => error(404, "no such instance"),
                }
            }
            ("GET", ["read_graph", _, operation]) => self.read_graph(operation),
            ("DELETE", ["prune_graph", _, operation]) => {
                let operation = operation.parse().unwrap_or_default();
                let pruned = self.begun.lock().unwrap().answers.remove(&operation);
                (if pruned.is_some() { 200 } else { 404 }, Value::Null)
            }
            _ => error(404, &format!("no route {method} {path:?}")),
        }
    }

    fn create(&self, body: &[u8]) -> Answer {
        let config: InstanceConfig = match parsed(body) {
            Ok(config) => config,
            Err(answer) => return answer,
        };
        let subnets = config.subnet_config_set;
        let free = match (subnets.application.len(), subnets.system.len()) {
            (1, 0) => false,
            (0, 1) => true,
            _ => return (400, json!({ "Error": { "message": "one subnet, please" } })),
        };
        let mut instances = self.instances.lock().unwrap();
        let instance = Instance::new(free, Arc::clone(&self.fault));
        let first = Blob(instance.next_id().as_slice().to_vec());
        let instance_id = instances.last_key_value().map_or(0, |(last, _)| last + 1);
        instances.insert(instance_id, Arc::new(Mutex::new(instance)));
        let topology = json!({
            "subnet_configs": {},
            "default_effective_canister_id": { "canister_id": first },
        });
        let created = json!({
            "instance_id": instance_id,
            "topology": topology,
            "http_gateway_info": null,
        });
        (201, json!({ "Created": created }))
    }

    /// Answers at once, or as a server does that has much to do.
    fn slowly(&self, operation: impl FnOnce() -> Answer) -> Answer {
        if self.fault.fault != Some(Fault::Busy) {
            return operation();
        }
        let mut begun = self.begun.lock().unwrap();
        begun.requests += 1;
        let number = begun.requests;
        let started = json!({ "state_label": "AA", "op_id": number.to_string() });
        if number % 2 == 1 {
            return (409, started);
        }
        begun.answers.insert(number, (0, operation()));
        (202, started)
    }

    fn read_graph(&self, operation: &str) -> Answer {
        let mut begun = self.begun.lock().unwrap();
        let operation = operation.parse().unwrap_or_default();
        match begun.answers.get_mut(&operation) {
            Some((asked @ 0, _)) => {
                *asked += 1;
                error(404, "not yet")
            }
            Some((_, answer)) => answer.clone(),
            None => error(404, "no such operation"),
        }
    }
}

fn operate(instance: &mut Instance, operation: &str, body: &[u8]) -> Answer {
    let answered = match operation {
        "update/submit_ingress_message" => parsed(body).map(|call: Call| {
            let effective_principal = call.effective_principal.clone();
            let submitted = instance.submit(call).map(|number| MessageId {
                effective_principal,
                message_id: Blob(number.to_be_bytes().to_vec()),
            });
            ok(&submitted)
        }),
        "update/tick" => {
            Ok(instance.round().map_or_else(|message| error(500, message), |()| ok(&())))
        }
        "update/await_ingress_message" => parsed(body).map(|message: MessageId| {
            loop {
                if let Some(outcome) = instance.answer(number(&message)) {
                    break ok(outcome);
                }
                if let Err(message) = instance.round() {
                    break error(500, message);
                }
            }
        }),
        "update/add_cycles" => parsed(body)
            .map(|AddCycles { canister_id, amount }| balance(instance, &canister_id, amount)),
        "read/get_cycles" => {
            parsed(body).map(|CanisterId { canister_id }| balance(instance, &canister_id, 0))
        }
        "read/ingress_status" => parsed(body)
            .map(|IngressStatus { raw_message_id }| ok(&instance.answer(number(&raw_message_id)))),
        "read/query" => parsed(body).map(|call: Call| ok(&instance.query(&call))),
        _ => Ok(error(404, &format!("no operation {operation}"))),
    };
    answered.unwrap_or_else(|answer| answer)
}

/// Gives a canister cycles, or none, and answers how many it has.
fn balance(instance: &mut Instance, canister: &Blob, amount: u128) -> Answer {
    let canister: Result<_, Reject> = instance.canister(&canister.principal());
    match canister {
        Ok(canister) => {
            canister.add_cycles(amount);
            ok(&Cycles { cycles: canister.balance() })
        }
        Err(reject) => error(400, &format!("{reject:?}")),
    }
}

fn number(message: &MessageId) -> usize {
    message.message_id.0.as_slice().try_into().map_or(usize::MAX, usize::from_be_bytes)
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Answer> {
    serde_json::from_slice(body).map_err(|cause| error(400, &cause.to_string()))
}

fn ok(body: &impl Serialize) -> Answer {
    (200, serde_json::to_value(body).unwrap())
}

fn error(status: u16, message: &str) -> Answer {
    (status, json!({ "message": message }))
}
