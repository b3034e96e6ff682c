//! Messages, rounds, balances.
//!
//! Time stands still but for the rounds that messages need. A message of more than
//! 2 G instructions takes several. A canister that changed much of its memory waits
//! for some rounds before its next message (the heap-delta rate limit), and refuses
//! code and snapshots meanwhile; both are waited for.

use std::fmt;
use std::sync::Arc;

use candid::Principal;

use crate::client::{Call, Client, Effective, Outcome};
use crate::error::Error;
use crate::server::Server;

/// Most rounds that a message waits: an install may take 150 slices, and a canister
/// that changed 2 GiB waits 27 more.
const ROUNDS: u32 = 1_000;
/// Rounds between two attempts at what was refused for a rate.
const PAUSE: u32 = 10;

/// One subnet of its own on a server.
pub struct Instance {
    server: Arc<Server>,
    /// `None` once it was ended.
    client: Option<Box<dyn Client>>,
}

impl Instance {
    pub(crate) fn new(server: Arc<Server>, client: Box<dyn Client>) -> Self {
        Self { server, client: Some(client) }
    }

    /// Sends an update and waits for its answer, as many rounds as it takes.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed; the inner one is the canister's reject.
    pub fn update(
        &self,
        canister: Principal,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Outcome, Error> {
        let effective = Effective::Canister(canister);
        self.send(&Call { canister, effective, caller, method, argument })
    }

    /// Asks a query.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed; the inner one is the canister's reject.
    pub fn query(
        &self,
        canister: Principal,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Outcome, Error> {
        let effective = Effective::Canister(canister);
        let call = Call { canister, effective, caller, method, argument };
        self.ask(method, |client| client.query(&call))
    }

    /// The canister's cycles.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn balance(&self, canister: Principal) -> Result<u128, Error> {
        self.ask("a balance", |client| client.balance(canister))
    }

    /// Gives the canister cycles.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn add_cycles(&self, canister: Principal, amount: u128) -> Result<(), Error> {
        self.ask("a gift of cycles", |client| client.add_cycles(canister, amount))
    }

    /// Lets one round pass.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn round(&self) -> Result<(), Error> {
        self.ask("a round", |client| client.round())
    }

    /// Sends a message again and again while it is refused for a rate.
    pub(crate) fn send(&self, call: &Call<'_>) -> Result<Outcome, Error> {
        let mut waited = 0;
        loop {
            let outcome =
                self.ask(call.method, |client| client.update(call, ROUNDS))?.ok_or_else(|| {
                    Error::Unanswered { during: call.method.to_owned(), rounds: ROUNDS }
                })?;
            match outcome {
                Err(reject) if is_rate_limit(&reject.code) && waited < ROUNDS => {
                    for _ in 0..PAUSE {
                        self.round()?;
                    }
                    waited += PAUSE;
                }
                outcome => return Ok(outcome),
            }
        }
    }

    fn ask<T>(&self, what: &str, request: impl FnOnce(&dyn Client) -> T) -> Result<T, Error> {
        match &self.client {
            Some(client) => self.server.ask(what, || request(&**client)),
            None => Err(Error::Failed {
                during: what.to_owned(),
                message: "the instance was ended".to_owned(),
            }),
        }
    }
}

/// Whether it would be taken some rounds later.
fn is_rate_limit(code: &str) -> bool {
    matches!(code, "CanisterInstallCodeRateLimited" | "CanisterHeapDeltaRateLimited")
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // A server that is gone has no instance left to end.
            let _ = self.server.ask("the end of an instance", || client.end());
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("server", &self.server).finish_non_exhaustive()
    }
}
