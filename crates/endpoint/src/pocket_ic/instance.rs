//! An instance: subnets, their messages, and the operations on them.
//!
//! Operations of an instance are executed one after the other, in the order in which they arrive. Time
//! stands still and rounds are executed by operations, unless the instance makes progress by itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use candid::{Decode, Principal};
use ic_management_canister_types::{CanisterIdRecord, ProvisionalCreateCanisterWithCyclesArgs};
use stablebench_replica::subnet::{MessageId, Subnet};
use stablebench_replica::{Canister, Cycles, HostError, Reject};

use super::topology::Subnets;
use super::types::{
    CanisterCall, CanisterResult, EffectivePrincipal, InstanceConfig, RawMessageId, Submitted,
    Topology,
};
use super::{Failed, Replicas, Version};
use crate::clock;
use crate::host::{Host, Pace, lock};

/// The most rounds in which the answer to a message is awaited.
const MAX_ROUNDS: usize = 100;
/// The most answered messages whose answers are kept.
const MAX_ANSWERS: usize = 10_000;
/// The most bytes of answers that are kept.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The most canisters of an instance.
const MAX_CANISTERS: usize = 10_000;
/// The time between two rounds of an instance that makes progress by itself.
const PROGRESS: Duration = Duration::from_millis(100);
/// The time with which an instance begins, and the earliest that it may begin with.
const INITIAL_TIME: u64 = 1_620_328_630_000_000_000;

/// A message that was sent.
struct Message {
    id: MessageId,
    caller: Principal,
    answer: Option<Result<Vec<u8>, Reject>>,
}

/// The messages by number. The oldest answers are dropped at a limit.
#[derive(Default)]
struct Messages {
    sent: BTreeMap<u64, Message>,
    answered: VecDeque<(u64, usize)>,
    bytes: usize,
    next: u64,
}

impl Messages {
    fn add(&mut self, id: MessageId, caller: Principal) -> u64 {
        let number = self.next;
        self.next += 1;
        self.sent.insert(number, Message { id, caller, answer: None });
        number
    }

    fn set_answer(&mut self, number: u64, answer: Result<Vec<u8>, Reject>) {
        let Some(message) = self.sent.get_mut(&number) else { return };
        let bytes = answer.as_ref().map_or_else(|reject| reject.message.len(), Vec::len);
        message.answer = Some(answer);
        self.answered.push_back((number, bytes));
        self.bytes += bytes;
        while (self.answered.len() > MAX_ANSWERS || self.bytes > MAX_ANSWER_BYTES)
            && self.answered.len() > 1
            && let Some((oldest, bytes)) = self.answered.pop_front()
        {
            self.sent.remove(&oldest);
            self.bytes -= bytes;
        }
    }
}

/// An instance.
pub struct Instance {
    /// The subnets and their driver.
    pub host: Arc<Host>,
    subnets: Mutex<Subnets>,
    messages: Mutex<Messages>,
    replicas: Replicas,
}

impl Instance {
    /// Creates an instance.
    ///
    /// # Errors
    ///
    /// A sentence about what is missing or not supported.
    pub fn new(
        config: InstanceConfig,
        version: Version,
        replicas: &Replicas,
    ) -> Result<Self, String> {
        let time = match &config.initial_time {
            Some(super::types::InitialTime::Timestamp(time)) => time.nanos_since_epoch,
            _ => INITIAL_TIME,
        };
        if time < INITIAL_TIME {
            return Err(format!(
                "The initial timestamp (unix timestamp in nanoseconds) must be no earlier than \
                 {INITIAL_TIME} (provided {time})."
            ));
        }
        let (mut subnets, mut parts, keys) =
            Subnets::new(config.subnet_config_set, version, replicas)?;
        if config.mainnet_nns_subnet_id == Some(true) {
            subnets.use_mainnet_root();
        }
        let first = parts.remove(0);
        let mut subnet = Subnet::with_parts(first, parts);
        subnet.set_max_canisters(MAX_CANISTERS);
        subnet.allow_http_requests(true);
        subnet.set_time(time);
        // As many rounds as a server executes when it creates the subnets.
        for _ in 0..=subnets.count() {
            subnet.tick().map_err(|error| error.to_string())?;
        }
        let host = Host::start(subnet, keys, subnets.directory(), None, Pace::Still);
        Ok(Self {
            host,
            subnets: Mutex::new(subnets),
            messages: Mutex::default(),
            replicas: replicas.clone(),
        })
    }

    /// The subnets as PocketIC shows them.
    pub fn topology(&self) -> Topology {
        lock(&self.subnets).topology(self.host.keys.node_id())
    }

    /// Sends a message.
    pub fn submit(&self, call: CanisterCall) -> Result<Submitted, Failed> {
        let part = self.route_call(&call)?;
        let CanisterCall { sender, canister_id, method, payload, .. } = call;
        let sent = self
            .host
            .exclusively(|subnet| subnet.submit_to(part, sender, canister_id, &method, &payload));
        Ok(match sent.map_err(host_failed)? {
            Ok(id) => {
                let number = lock(&self.messages).add(id, sender);
                Submitted::Ok(RawMessageId {
                    effective_principal: EffectivePrincipal::SubnetId(self.subnet_id(part)),
                    message_id: message_id(number),
                })
            }
            Err(reject) => Submitted::Err(super::types::RejectResponse::new(reject, false)),
        })
    }

    /// Executes rounds until a message is answered.
    pub fn await_message(&self, id: &RawMessageId) -> Result<CanisterResult, Failed> {
        let number = message_number(&id.message_id)?;
        for _ in 0..MAX_ROUNDS {
            if let Some((_, answer)) = self.answer(number) {
                return Ok(CanisterResult::new(answer, true));
            }
            self.tick()?;
        }
        match self.answer(number) {
            Some((_, answer)) => Ok(CanisterResult::new(answer, true)),
            None => Err(Failed::ingress(format!(
                "Failed to answer to ingress 0x{} after {MAX_ROUNDS} rounds.",
                hex::encode(&id.message_id)
            ))),
        }
    }

    /// Sends a message and executes rounds until it is answered.
    pub fn execute(&self, call: CanisterCall) -> Result<CanisterResult, Failed> {
        match self.submit(call)? {
            Submitted::Ok(id) => self.await_message(&id),
            Submitted::Err(reject) => Ok(CanisterResult::Err(reject)),
        }
    }

    /// Returns the answer to a message, if it has one.
    pub fn status(
        &self,
        id: &RawMessageId,
        caller: Option<Principal>,
    ) -> Result<Option<CanisterResult>, Failed> {
        let number = message_number(&id.message_id)?;
        let sender = lock(&self.messages).sent.get(&number).map(|message| message.caller);
        if let (Some(caller), Some(sender)) = (caller, sender)
            && caller != sender
        {
            let text = "The user tries to access Request ID not signed by the caller.";
            return Err(Failed::Forbidden(text.to_owned()));
        }
        Ok(self.answer(number).map(|(_, answer)| CanisterResult::new(answer, true)))
    }

    fn answer(&self, number: u64) -> Option<(Principal, Result<Vec<u8>, Reject>)> {
        let mut messages = lock(&self.messages);
        let message = messages.sent.get(&number)?;
        let (id, caller) = (message.id, message.caller);
        if let Some(answer) = &message.answer {
            return Some((caller, answer.clone()));
        }
        let answer = self.host.take_answer(id)?;
        messages.set_answer(number, answer.clone());
        Some((caller, answer))
    }

    /// Executes a query.
    pub fn query(&self, call: &CanisterCall) -> Result<CanisterResult, Failed> {
        self.route_call(call)?;
        let CanisterCall { sender, canister_id, method, payload, .. } = call;
        let called = self
            .host
            .exclusively(|subnet| subnet.query(*sender, *canister_id, method, payload))
            .map_err(host_failed)?;
        Ok(CanisterResult::new(called.response, false))
    }

    /// Executes a round.
    pub fn tick(&self) -> Result<(), Failed> {
        self.host.exclusively(Subnet::tick).map_err(host_failed)
    }

    /// The time of the next round.
    pub fn time(&self) -> u64 {
        self.host.exclusively(|subnet| subnet.time())
    }

    /// Sets the time of the next round.
    pub fn set_time(&self, time: u64) -> Result<(), Failed> {
        self.host.exclusively(|subnet| {
            let current = subnet.time();
            if time < current {
                return Err(Failed::Refused(format!("SettingTimeIntoPast(({current}, {time}))")));
            }
            subnet.set_time(time);
            Ok(())
        })
    }

    /// Sets the time, and executes a round with it.
    pub fn set_certified_time(&self, time: u64) -> Result<(), Failed> {
        self.set_time(time)?;
        self.tick()
    }

    /// Reads something of a canister.
    pub fn read<T>(
        &self,
        id: &Principal,
        read: impl FnOnce(&Canister) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.host.exclusively(|subnet| {
            let canister = subnet.canister(id).ok_or_else(|| Failed::no_canister(id))?;
            read(canister)
        })
    }

    /// Adds cycles to a canister, and returns its balance.
    pub fn add_cycles(&self, id: &Principal, amount: u128) -> Result<u128, Failed> {
        self.host.exclusively(|subnet| {
            let canister = subnet.canister_mut(id).ok_or_else(|| Failed::no_canister(id))?;
            canister.add_cycles(Cycles(amount));
            Ok(canister.balance().get())
        })
    }

    /// Replaces the stable memory of a canister.
    pub fn set_stable_memory(&self, id: &Principal, bytes: &[u8]) -> Result<(), Failed> {
        self.host.exclusively(|subnet| {
            let canister = subnet.canister_mut(id).ok_or_else(|| Failed::no_canister(id))?;
            if canister.module().is_none() {
                return Err(Failed::empty(id));
            }
            canister.set_stable_memory(bytes).map_err(|error| Failed::Refused(error.to_string()))
        })
    }

    /// Returns a copy of the stable memory of a canister.
    pub fn stable_memory(&self, id: &Principal) -> Result<Vec<u8>, Failed> {
        self.read(id, |canister| match canister.module() {
            None => Err(Failed::empty(id)),
            Some(_) => canister.stable_memory().map_err(host_failed),
        })
    }

    /// Returns the id of the subnet on which a canister is, if the canister exists.
    pub fn subnet_of(&self, id: &Principal) -> Option<Principal> {
        if !self.host.exclusively(|subnet| subnet.exists(id)) {
            return None;
        }
        Some(lock(&self.subnets).hosting(id)?.1.listed.id)
    }

    /// Returns the public key of a subnet.
    pub fn public_key(&self, id: &Principal) -> Result<Vec<u8>, Failed> {
        let subnets = lock(&self.subnets);
        let (_, member) = subnets.find(id).ok_or_else(|| Failed::no_subnet(id))?;
        Ok(member.listed.key.clone())
    }

    /// Deletes a subnet with its canisters.
    pub fn delete_subnet(&self, id: &Principal) -> Result<(), Failed> {
        let mut subnets = lock(&self.subnets);
        let (number, member) = subnets.find(id).ok_or_else(|| Failed::no_subnet(id))?;
        if member.kind.is_named() || subnets.count() == 1 {
            return Err(Failed::Refused(format!(
                "The subnet {id} cannot be deleted: it is a named subnet or the only one."
            )));
        }
        if number == 0 {
            return Err(Failed::Refused(format!(
                "The subnet {id} cannot be deleted: its key is the root key of the instance."
            )));
        }
        self.host.exclusively(|subnet| subnet.empty_part(number));
        subnets.remove(number);
        self.host.set_directory(subnets.directory());
        Ok(())
    }

    /// Lets the instance make progress by itself.
    pub fn start_progress(&self, delay: Option<u64>) -> Result<(), Failed> {
        if self.makes_progress() {
            let text = "Auto progress mode has already been enabled.";
            return Err(Failed::Refused(text.to_owned()));
        }
        let now = clock::now();
        let time = self.time().max(now);
        self.set_certified_time(time)?;
        let least = Duration::from_millis(delay.unwrap_or_default());
        self.host.set_pace(Pace::Clock {
            ahead: time.saturating_sub(now),
            idle: PROGRESS.max(least),
            least,
        });
        Ok(())
    }

    /// Returns `true` if the instance makes progress by itself.
    pub fn makes_progress(&self) -> bool {
        self.host.pace() != Pace::Still
    }

    /// Stops the instance's own progress. Its time stays.
    pub fn stop_progress(&self) {
        self.host.set_pace(Pace::Still);
    }

    /// Ends the instance. Running messages are finished, waiting ones are dropped.
    pub fn end(&self) {
        self.host.finish(Instant::now());
    }

    /// Returns the id of the subnet with the canister that made an outcall.
    pub fn subnet_for(&self, canister: &Principal) -> Principal {
        let subnets = lock(&self.subnets);
        subnets.hosting(canister).map_or(Principal::management_canister(), |(_, it)| it.listed.id)
    }

    fn subnet_id(&self, part: usize) -> Principal {
        let subnets = lock(&self.subnets);
        let found = subnets.existing().find(|(number, _)| *number == part);
        found.map_or(Principal::management_canister(), |(_, member)| member.listed.id)
    }

    /// Returns the number of the part to which a call is routed.
    fn route_call(&self, call: &CanisterCall) -> Result<usize, Failed> {
        if call.sender_info.is_some() {
            return Err(Failed::Refused(
                "This server cannot pass on sender_info: the embedded replica has no such System \
                 API call yet."
                    .to_owned(),
            ));
        }
        let management = call.canister_id == Principal::management_canister();
        let creates = management && call.method == "provisional_create_canister_with_cycles";
        let decoding =
            |error: candid::Error| Failed::ingress(format!("Error decoding candid: {error:?}"));
        let effective = match call.effective_principal {
            EffectivePrincipal::None if creates => {
                let args = Decode!(&call.payload, ProvisionalCreateCanisterWithCyclesArgs);
                match args.map_err(decoding)?.specified_id {
                    Some(id) => EffectivePrincipal::CanisterId(id),
                    None => EffectivePrincipal::None,
                }
            }
            EffectivePrincipal::None if management => {
                let record = Decode!(&call.payload, CanisterIdRecord).map_err(decoding)?;
                EffectivePrincipal::CanisterId(record.canister_id)
            }
            EffectivePrincipal::None => EffectivePrincipal::CanisterId(call.canister_id),
            named => named,
        };
        self.route(effective, creates)
    }

    fn route(&self, effective: EffectivePrincipal, creates: bool) -> Result<usize, Failed> {
        let mut subnets = lock(&self.subnets);
        match effective {
            EffectivePrincipal::SubnetId(id) => match subnets.find(&id) {
                Some((part, _)) => Ok(part),
                None => Err(Failed::ingress(format!("Subnet with ID {id} not found"))),
            },
            EffectivePrincipal::CanisterId(id) => {
                if let Some((part, _)) = subnets.hosting(&id) {
                    return Ok(part);
                }
                if !creates {
                    return Err(Failed::ingress(format!(
                        "Canister {id} does not belong to any subnet."
                    )));
                }
                if id == Principal::management_canister() {
                    return Ok(subnets.default_part());
                }
                let part = subnets.add_for(&id, &self.replicas).map_err(Failed::ingress)?;
                let number = self.host.exclusively(|subnet| subnet.add_part(part));
                self.host.set_directory(subnets.directory());
                Ok(number)
            }
            EffectivePrincipal::None => Ok(subnets.default_part()),
        }
    }
}

/// The bytes of a message's id.
fn message_id(number: u64) -> Vec<u8> {
    let mut id = vec![0; 24];
    id.extend(number.to_be_bytes());
    id
}

fn message_number(id: &[u8]) -> Result<u64, Failed> {
    match id.split_last_chunk::<8>() {
        Some((zeros, number)) if zeros == [0; 24] => Ok(u64::from_be_bytes(*number)),
        _ => Err(Failed::Refused("Bad message id".to_owned())),
    }
}

/// A failure of this machine.
pub fn host_failed(error: HostError) -> Failed {
    Failed::Machine(error.to_string())
}
