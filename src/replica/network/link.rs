//! A connection to a replica by its URL: the agent, made blocking.
//!
//! The agent verifies every certificate by the root key, and signatures of queries where the
//! replica is not on this machine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use candid::Principal;
use ic_agent::agent::{CallResponse, RequestStatusResponse};
use ic_agent::export::reqwest;
use ic_agent::hash_tree::Label;
use ic_agent::{Agent, AgentError, Identity, NonceFactory};
use tokio::runtime::Runtime;

use super::address::Address;
use super::call::{Again, Call, now, rising};
use super::error::NetworkError;
use super::reject_code::reject;
use super::sending::{self, EXPIRY, Outcome, Signed, Submitted, Wire, is_passing, submitted};
use crate::interrupt;

/// How often a query is asked whose answer does not come.
const QUERIES: u32 = 5;
/// How long it may take until a replica tells its status.
const STATUS: Duration = Duration::from_secs(30);
/// How long one request may take: more than a replica lets a query take. Executing a call may take
/// longer, but is asked about again and again.
const REQUEST: Duration = Duration::from_secs(180);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(20);
/// Bytes of the largest response: more than the largest reply and its certificate.
const MOST: usize = 16 << 20;
/// On other machines a query may be answered by a node that is this far behind the one that
/// executed the last update.
const BEHIND: Duration = Duration::from_secs(3);

/// A replica, and who calls.
pub(super) struct Link {
    runtime: Runtime,
    agent: Agent,
    address: Address,
    caller: Principal,
}

impl Link {
    /// Connects, and answers the replica's version too, where it tells it.
    ///
    /// The root key is `root_key`, else fetched from a replica on this machine, else the
    /// mainnet's.
    pub fn connect(
        address: Address,
        identity: Arc<dyn Identity>,
        root_key: Option<&[u8]>,
    ) -> Result<(Self, Option<String>)> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let caller = identity.sender().map_err(AgentError::SigningError)?;
        let agent = {
            let _inside = runtime.enter();
            Agent::builder()
                .with_url(address.url())
                .with_arc_identity(identity)
                // Each request expires at a time of its own, which tells it from others: bytes of a
                // nonce would be paid for.
                .with_nonce_factory(NonceFactory::empty())
                .with_verify_query_signatures(!address.is_local())
                .with_http_client(client()?)
                .with_max_response_body_size(MOST)
                .build()?
        };
        let link = Self { runtime, agent, address, caller };
        let asked = async { tokio::time::timeout(STATUS, link.agent.status()).await };
        let answered = link.runtime.block_on(asked);
        let answered = answered.unwrap_or(Err(AgentError::TimeoutWaitingForResponse()));
        let status = answered.map_err(|source| NetworkError::Unreachable {
            url: link.address.to_string(),
            source,
        })?;
        match (root_key, status.root_key) {
            (Some(key), _) => link.agent.set_root_key(key.to_vec()),
            (None, Some(key)) if link.is_local() => link.agent.set_root_key(key),
            (None, None) if link.is_local() => {
                return Err(NetworkError::NoRootKey { url: link.address.to_string() }.into());
            }
            (None, _) => {}
        }
        Ok((link, status.impl_version))
    }

    pub fn is_local(&self) -> bool {
        self.address.is_local()
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn caller(&self) -> Principal {
        self.caller
    }

    /// Sends an update and waits for its answer.
    pub fn update(&self, call: &Call<'_>, again: Again) -> Result<Outcome> {
        judged(sending::send(self, call, again)?, call.effective, self.caller)
    }

    /// Asks a query.
    pub fn query(&self, call: &Call<'_>) -> Result<Outcome> {
        let mut asked = 0;
        loop {
            let query = self
                .agent
                .query(&call.canister, call.method)
                .with_effective_canister_id(call.effective)
                .with_arg(call.argument);
            let answer = match self.runtime.block_on(query.call()) {
                Ok(reply) => Ok(reply),
                Err(
                    AgentError::UncertifiedReject { reject: response, .. }
                    | AgentError::CertifiedReject { reject: response, .. },
                ) => Err(reject(response)),
                Err(error) if is_passing(&error) && asked < QUERIES => {
                    asked += 1;
                    self.check()?;
                    self.pause(Duration::from_millis(200) * asked);
                    continue;
                }
                Err(source) => {
                    let (method, url) = (call.method.to_owned(), self.address.to_string());
                    return Err(NetworkError::Failed { method, url, source }.into());
                }
            };
            return judged(answer, call.effective, self.caller);
        }
    }

    /// Lets nodes that are behind catch up with the last update, before queries.
    pub fn settle(&self) {
        if !self.is_local() {
            self.pause(BEHIND);
        }
    }

    /// The certified hash of the canister's module; nothing where there is none.
    pub fn module_hash(&self, canister: Principal) -> Result<Option<Vec<u8>>> {
        self.certified(canister, || self.agent.read_state_canister_module_hash(canister))
    }

    /// The certified controllers of the canister; nothing where there is no such canister.
    pub fn controllers(&self, canister: Principal) -> Result<Option<Vec<Principal>>> {
        self.certified(canister, || self.agent.read_state_canister_controllers(canister))
    }

    /// The id of the canister's subnet, where the replica has more than one.
    pub fn subnet(&self, canister: Principal) -> Result<Option<Principal>> {
        let path = || vec![vec![Label::from("time")]];
        let read = || self.agent.read_state_raw(path(), canister);
        let delegation = self.certified(canister, read)?.and_then(|found| found.delegation);
        Ok(delegation.map(|found| Principal::try_from_slice(&found.subnet_id)).transpose()?)
    }

    /// Reads what is certified; nothing where there is none.
    fn certified<T, F: Future<Output = Result<T, AgentError>>>(
        &self,
        canister: Principal,
        read: impl Fn() -> F,
    ) -> Result<Option<T>> {
        let url = self.address.to_string();
        let mut asked = 0;
        loop {
            let error = match self.runtime.block_on(read()) {
                Ok(found) => return Ok(Some(found)),
                Err(AgentError::LookupPathAbsent(_)) => return Ok(None),
                Err(error) => error,
            };
            if !is_passing(&error) || asked >= QUERIES {
                return Err(match error {
                    source @ AgentError::CertificateVerificationFailed() => {
                        NetworkError::ForeignKey { url, source }
                    }
                    // No subnet of the replica has that id.
                    source
                    @ (AgentError::CertificateNotAuthorized() | AgentError::HttpError(_)) => {
                        NetworkError::NoCanister { canister, url, source: Some(source) }
                    }
                    source => NetworkError::Failed { method: "read_state".to_owned(), url, source },
                }
                .into());
            }
            asked += 1;
            self.check()?;
            self.pause(Duration::from_millis(200) * asked);
        }
    }
}

/// What requests are sent with: it waits for nothing without limit.
fn client() -> Result<reqwest::Client> {
    let client = reqwest::Client::builder().use_rustls_tls();
    Ok(client.connect_timeout(CONNECT).timeout(REQUEST).build()?)
}

impl Wire for Link {
    fn sign(&self, call: &Call<'_>) -> Result<Signed, AgentError> {
        let mut update = self
            .agent
            .update(&call.canister, call.method)
            .with_effective_canister_id(call.effective)
            .with_arg(call.argument);
        let expiry = rising() + u64::try_from(EXPIRY.as_nanos()).unwrap_or_default();
        update.ingress_expiry_datetime = Some(expiry);
        let signed = update.sign()?;
        Ok(Signed {
            id: signed.request_id,
            bytes: signed.signed_update,
            effective: call.effective,
            expiry,
        })
    }

    fn submit(&self, signed: &Signed) -> Result<Submitted, AgentError> {
        let sent = self.agent.update_signed(signed.effective, signed.bytes.clone());
        match self.runtime.block_on(sent) {
            Ok(CallResponse::Response(reply)) => Ok(Submitted::Answered(Ok(reply))),
            Ok(CallResponse::Poll(_)) => Ok(Submitted::Taken),
            Err(error) => submitted(error),
        }
    }

    fn status(&self, signed: &Signed) -> Result<RequestStatusResponse, AgentError> {
        let status = self.agent.request_status_raw(&signed.id, signed.effective);
        Ok(self.runtime.block_on(status)?.0)
    }

    fn now(&self) -> u64 {
        now()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn check(&self) -> Result<()> {
        Ok(interrupt::check()?)
    }

    fn url(&self) -> &str {
        self.address.url()
    }
}

/// A refusal that every further message would meet ends the run.
fn judged(outcome: Outcome, canister: Principal, caller: Principal) -> Result<Outcome> {
    let Err(reject) = &outcome else {
        return Ok(outcome);
    };
    Err(match reject.code.as_str() {
        "CanisterOutOfCycles" => NetworkError::OutOfCycles { canister },
        "CanisterStopped" | "CanisterStopping" => NetworkError::Stopped { canister },
        "CanisterInvalidController" | "CanisterStatusAccessDenied" => {
            NetworkError::NotController { canister, caller }
        }
        _ => return Ok(outcome),
    }
    .into())
}
