//! An instance: subnets, their messages, and the operations on them.
//!
//! Operations of an instance are executed one after the other, in the order in which they arrive. Time
//! stands still and rounds are executed by operations, unless the instance makes progress by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candid::{CandidType, Principal};
use ic_management_canister_types::{CanisterIdRecord, ProvisionalCreateCanisterWithCyclesArgs};
use ic_transport_types::RequestId;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use stablebench_replica::decoding::decode_one;
use stablebench_replica::subnet::{Executed, Subnet};
use stablebench_replica::{Bytes, Canister, Cycles, ErrorCode, HostError, Reject, text};
use tokio::sync::Semaphore;

use super::topology::{Replicas, Subnets};
use super::types::{
    CanisterCall, CanisterResult, EffectivePrincipal, Failed, InitialTime, InstanceConfig,
    RawMessageId, RejectResponse, Submitted, Topology, Version,
};
use crate::driver::{self, compile};
use crate::host::{Host, Open, Pace, lock};
use crate::http;
use crate::limits::{MAX_CALL, MAX_INSTANCE_CANISTERS, MAX_STABLE_READ};
use crate::message::{Registered, effective_canister};
use crate::wire::{MINUTE, now};

/// The most rounds in which the answer to a message is awaited.
const MAX_ROUNDS: usize = 100;
/// Nanoseconds for which a message may be executed. A minute later its answer may be dropped.
const LIFE: u64 = 5 * MINUTE;
/// The method of users that creates a canister.
const CREATE: &str = "provisional_create_canister_with_cycles";
/// The first version whose clients create canisters with cycles.
const PAID_CREATION: u32 = 14;
/// Bytes of stable memory that are encoded at once: whole pages, and whole groups of Base64.
const ENCODED_AT_ONCE: u64 = 3 << 18;
/// The time between two rounds of an instance that makes progress by itself.
const PROGRESS: Duration = Duration::from_millis(100);
/// The time with which an instance begins, and the earliest that it may begin with.
const INITIAL_TIME: u64 = 1_620_328_630_000_000_000;

/// An instance.
pub struct Instance {
    /// The subnets and their driver.
    pub host: Arc<Host>,
    /// The Internet Computer's HTTP interface.
    pub interface: Router,
    subnets: Mutex<Subnets>,
    /// Number of messages that were sent.
    sent: AtomicU64,
    /// The time of the next round, if it was set.
    next_time: Mutex<Option<u64>>,
    replicas: Replicas,
    /// The turn of an operation: they are executed one after the other.
    pub turn: Semaphore,
}

impl Instance {
    /// Creates an instance.
    ///
    /// # Errors
    ///
    /// A sentence about what is missing or not supported.
    pub fn new(
        config: InstanceConfig,
        version: &Version,
        replicas: &Replicas,
    ) -> Result<Self, String> {
        let time = match &config.initial_time {
            Some(InitialTime::Timestamp(time)) => time.nanos_since_epoch,
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
        subnet.set_max_canisters(MAX_INSTANCE_CANISTERS);
        if version.major < PAID_CREATION {
            subnet.allow_unpaid_logs();
        }
        subnet.allow_http_requests(true);
        subnet.set_keys(&subnets.keys());
        subnet.set_time(time);
        // As many rounds as a server executes when it creates the subnets.
        for _ in 0..=subnets.count() {
            subnet.tick().map_err(|error| error.to_string())?;
        }
        let verifies = config.disable_ingress_validation != Some(true);
        let host = driver::start(Host::with_keys(
            subnet,
            keys,
            subnets.directory(),
            None,
            Pace::Still,
            verifies,
        ));
        Ok(Self {
            interface: http::router(Arc::clone(&host)),
            host,
            subnets: Mutex::new(subnets),
            sent: AtomicU64::new(0),
            next_time: Mutex::default(),
            replicas: replicas.clone(),
            turn: Semaphore::new(1),
        })
    }

    /// The subnets as PocketIC shows them.
    pub fn topology(&self) -> Topology {
        lock(&self.subnets).topology(self.host.keys.node_id())
    }

    /// Sends a message.
    pub fn submit(&self, call: CanisterCall) -> Result<Submitted, Failed> {
        let part = self.route_call(&call)?;
        if let Some(refused) = self.refuse(&call)? {
            return Ok(Submitted::Err(RejectResponse::new(refused, false)));
        }
        let CanisterCall { sender, canister_id, method, payload, .. } = call;
        if canister_id == Principal::management_canister() {
            self.compile(&method, &payload);
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let hash: [u8; 32] = Sha256::digest([b"message".as_slice(), &number].concat()).into();
        let id = RequestId::new(&hash);
        let sent = self.host.exclusively(|subnet| {
            let now = subnet.time();
            let expiry = now.saturating_add(LIFE);
            if self.host.ingress.register(id, sender, canister_id, expiry, now) == Registered::Full
            {
                return Err(Failed::TooMany("Too many messages have not expired.".to_owned()));
            }
            let sent = subnet.submit_to(part, sender, canister_id, &method, &payload);
            Ok(match sent.map_err(host_failed)? {
                Ok(message) => {
                    self.host.ingress.begin(&id);
                    lock(&self.host.open).insert(message, Open::direct(id));
                    None
                }
                Err(reject) => {
                    self.host.ingress.withdraw(&id);
                    Some(reject)
                }
            })
        });
        Ok(match sent? {
            None => Submitted::Ok(RawMessageId {
                effective_principal: EffectivePrincipal::SubnetId(self.subnet_id(part)),
                message_id: id.to_vec(),
            }),
            Some(reject) => Submitted::Err(RejectResponse::new(reject, false)),
        })
    }

    /// Compiles the module that a message installs, if it does.
    fn compile(&self, method: &str, payload: &[u8]) {
        let Some(target) = effective_canister(method, payload).ok().flatten() else { return };
        let subnet = self.host.subnet();
        let Some(wasm) = subnet.module_to_install(method, payload) else { return };
        let replica = subnet.replica_of(&target).clone();
        drop(subnet);
        compile(&replica, target, &wasm);
    }

    /// Refuses messages that are too large for the network, and canister ids that the management
    /// canister chooses itself.
    fn refuse(&self, call: &CanisterCall) -> Result<Option<Reject>, Failed> {
        let bytes = call.method.len() + call.payload.len();
        if bytes > MAX_CALL {
            return Err(Failed::ingress(format!(
                "Request is too large. Message byte size {bytes} is larger than the max allowed \
                 {MAX_CALL}."
            )));
        }
        if call.canister_id != Principal::management_canister() || call.method != CREATE {
            return Ok(None);
        }
        // An argument that cannot be decoded is rejected later.
        let args = decode::<ProvisionalCreateCanisterWithCyclesArgs>(&call.payload).ok();
        let specified = args.and_then(|args| args.specified_id);
        let refused = specified.filter(|id| lock(&self.subnets).allocates(id));
        Ok(refused.map(|id| Reject {
            code: ErrorCode::InvalidManagementPayload,
            message: format!(
                "The `specified_id` {id} is invalid because it belongs to the canister allocation \
                 ranges of the test environment.\nUse a `specified_id` that matches a canister ID \
                 on the ICP mainnet and a test environment that supports canister creation with \
                 `specified_id` (e.g., PocketIC)."
            ),
        }))
    }

    /// Executes rounds until a message is answered.
    pub fn await_message(&self, id: &RawMessageId) -> Result<CanisterResult, Failed> {
        let id = request_id(&id.message_id)?;
        for _ in 0..MAX_ROUNDS {
            if let Some(answer) = self.host.ingress.outcome(&id) {
                return Ok(CanisterResult::new(answer.map_err(|it| it.reject), true));
            }
            self.tick()?;
        }
        match self.host.ingress.outcome(&id) {
            Some(answer) => Ok(CanisterResult::new(answer.map_err(|it| it.reject), true)),
            None => Err(Failed::ingress(format!(
                "Failed to answer to ingress 0x{} after {MAX_ROUNDS} rounds.",
                hex::encode(id.as_slice())
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
        let id = request_id(&id.message_id)?;
        let Some(answer) = self.host.ingress.outcome(&id) else { return Ok(None) };
        let sender = self.host.ingress.get(&id).map(|call| call.sender);
        if caller.is_some() && caller != sender {
            let text = "The user tries to access Request ID not signed by the caller.";
            return Err(Failed::Forbidden(text.to_owned()));
        }
        Ok(Some(CanisterResult::new(answer.map_err(|it| it.reject), true)))
    }

    /// Executes a query.
    pub fn query(&self, call: &CanisterCall) -> Result<CanisterResult, Failed> {
        self.route_call(call)?;
        let CanisterCall { sender, canister_id, method, payload, .. } = call;
        let called = self
            .host
            .exclusively(|subnet| subnet.query(*sender, *canister_id, method, payload))
            .map_err(host_failed)?;
        show(&called.executions);
        Ok(CanisterResult::new(called.response, false))
    }

    /// Executes a round.
    pub fn tick(&self) -> Result<(), Failed> {
        let (ticked, executions) = self.host.exclusively(|subnet| {
            if let Some(time) = lock(&self.next_time).take() {
                subnet.set_time(time);
            }
            let ticked = subnet.tick();
            (ticked, subnet.take_executions())
        });
        show(&executions);
        ticked.map_err(host_failed)
    }

    /// The time of the last round, or a later one that was set for the next round.
    pub fn time(&self) -> u64 {
        let last = self.host.exclusively(|subnet| subnet.time());
        lock(&self.next_time).unwrap_or_default().max(last)
    }

    /// Sets the time of the next round. Queries see that of the last one.
    pub fn set_time(&self, time: u64) -> Result<(), Failed> {
        let current = self.time();
        if time < current {
            return Err(Failed::Refused(format!("SettingTimeIntoPast(({current}, {time}))")));
        }
        match self.host.pace() {
            Pace::Clock { idle, least, .. } => {
                let ahead = time.saturating_sub(now());
                self.host.set_pace(Pace::Clock { ahead, idle, least });
            }
            Pace::Still => *lock(&self.next_time) = Some(time),
        }
        Ok(())
    }

    /// Sets the time, and executes a round with it if it is later than that of the last one.
    pub fn set_certified_time(&self, time: u64) -> Result<(), Failed> {
        if time == self.time() {
            return Ok(());
        }
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

    /// Returns a copy of the stable memory of a canister as JSON, which is encoded part by part.
    pub fn stable_memory(&self, id: &Principal) -> Result<Vec<u8>, Failed> {
        const BEGIN: &[u8] = br#"{"blob":""#;
        const END: &[u8] = br#""}"#;
        self.read(id, |canister| {
            if canister.module().is_none() {
                return Err(Failed::empty(id));
            }
            let size = Bytes::from(canister.stable_size()).get();
            let refused = |reason: &str| {
                Failed::TooLarge(format!(
                    "The stable memory of {id} has {size} bytes; {reason}. Read it in parts by a \
                     query of the canister, or take a canister snapshot and download it."
                ))
            };
            if size > MAX_STABLE_READ as u64 {
                return Err(refused(&format!("at most {MAX_STABLE_READ} are read at once")));
            }
            let encoded = (size.div_ceil(3) * 4) as usize;
            let mut json = Vec::new();
            json.try_reserve_exact(BEGIN.len() + encoded + END.len())
                .map_err(|_| refused("they do not fit into the memory of this machine"))?;
            json.extend(BEGIN);
            let mut start = 0;
            while start < size {
                let end = size.min(start + ENCODED_AT_ONCE);
                let part = canister.stable_memory_part(start..end).map_err(host_failed)?;
                json.extend(BASE64_STANDARD.encode(part).into_bytes());
                start = end;
            }
            json.extend(END);
            Ok(json)
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
        if member.kind.is_named() || subnets.is_default(number) {
            return Err(Failed::Refused(format!(
                "The subnet {id} cannot be deleted: it is a named subnet, or the one in which \
                 canisters are created by default."
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
        let now = now();
        let time = self.time().max(now);
        self.set_certified_time(time)?;
        // Nobody answers outcalls, so they are refused at once.
        self.host.exclusively(|subnet| subnet.allow_http_requests(false));
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
        self.host.exclusively(|subnet| subnet.allow_http_requests(true));
    }

    /// Ends the instance. Running messages are ended, waiting ones are dropped.
    pub fn end(&self) {
        let now = Instant::now();
        // Nobody waits for a message that does not end.
        let _ = self.host.finish(now, now);
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
        let creates = management && call.method == CREATE;
        let effective = match call.effective_principal {
            EffectivePrincipal::None if creates => {
                let args = decode::<ProvisionalCreateCanisterWithCyclesArgs>(&call.payload)?;
                match args.specified_id {
                    Some(id) => EffectivePrincipal::CanisterId(id),
                    None => EffectivePrincipal::None,
                }
            }
            EffectivePrincipal::None if management => {
                let record = decode::<CanisterIdRecord>(&call.payload)?;
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

/// Decodes an argument of the management canister.
fn decode<T: CandidType + DeserializeOwned>(argument: &[u8]) -> Result<T, Failed> {
    decode_one(argument).map_err(|error| {
        Failed::ingress(format!("Error decoding candid: {}", for_developers(&error)))
    })
}

/// Returns an error as the network's software prints it, but never with a backtrace, which
/// `RUST_BACKTRACE` would add.
fn for_developers(error: &candid::Error) -> String {
    let text = format!("{error:?}");
    match text.split_once("\n\nStack backtrace:\n") {
        Some((before, _)) => format!("{before})"),
        None => text,
    }
}

fn request_id(id: &[u8]) -> Result<RequestId, Failed> {
    let id = id.try_into().map_err(|_| Failed::Refused("Bad message id".to_owned()))?;
    Ok(RequestId::new(&id))
}

/// Prints what canisters print, to stderr as servers do.
fn show(executions: &[Executed]) {
    for executed in executions {
        for text in &executed.execution.printed {
            text::note(&format!("[Canister {}] {text}", executed.canister));
        }
    }
}

/// A failure of this machine.
pub fn host_failed(error: HostError) -> Failed {
    Failed::Machine(error.to_string())
}
