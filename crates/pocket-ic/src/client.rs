//! The clients of both generations behind one trait.
//!
//! They are blocking and may panic; `guard` is for their callers.

use std::time::Duration;

use candid::Principal;
use tokio::runtime::Runtime;

use crate::error::Reject;
use crate::version::Generation;
use crate::{Error, Subnet};

/// One request may take this long: a round, a query, the creation of an instance.
const REQUEST: Duration = Duration::from_secs(600);

/// What a canister answered.
pub(crate) type Outcome = Result<Vec<u8>, Reject>;

/// A message to a canister.
pub(crate) struct Call<'a> {
    pub canister: Principal,
    pub effective: Effective,
    pub caller: Principal,
    pub method: &'a str,
    pub argument: &'a [u8],
}

/// By which a message finds its subnet.
#[derive(Clone, Copy)]
pub(crate) enum Effective {
    None,
    Canister(Principal),
}

/// An instance of a server, as its generation's client sees it.
pub(crate) trait Client: Send {
    /// Sends an update and lets rounds pass until it is answered, `rounds` at the
    /// most; `None` if it was not.
    fn update(&self, call: &Call<'_>, rounds: u32) -> Option<Outcome>;
    fn query(&self, call: &Call<'_>) -> Outcome;
    fn round(&self);
    fn balance(&self, canister: Principal) -> u128;
    fn add_cycles(&self, canister: Principal, amount: u128);
    /// Ends the instance.
    fn end(self: Box<Self>);
}

/// A new instance on the server at `url`.
pub(crate) fn connect(
    generation: Generation,
    url: &str,
    subnet: Subnet,
) -> Result<Box<dyn Client>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(match generation {
        Generation::V10 => Box::new(v10::Connection::new(runtime, url, subnet)),
        Generation::V16 => Box::new(v16::Connection::new(runtime, url, subnet)),
    })
}

/// The client of one generation. The crates have the same names for the same
/// things, but no types in common.
macro_rules! generation {
    ($module:ident, $pocket_ic:ident) => {
        mod $module {
            use $pocket_ic::common::rest::RawEffectivePrincipal;
            use $pocket_ic::nonblocking::PocketIc;
            use $pocket_ic::{PocketIcBuilder, RejectResponse};

            use super::*;

            pub(super) struct Connection {
                runtime: Runtime,
                client: PocketIc,
            }

            impl Connection {
                pub(super) fn new(runtime: Runtime, url: &str, subnet: Subnet) -> Self {
                    let builder = PocketIcBuilder::new()
                        .with_server_url(url.parse().expect("the server told its port"))
                        .with_max_request_time_ms(Some(REQUEST.as_millis() as u64));
                    let builder = match subnet {
                        Subnet::Application => builder.with_application_subnet(),
                        Subnet::System => builder.with_system_subnet(),
                        Subnet::Benchmarking => builder.with_benchmarking_application_subnet(),
                    };
                    let client = runtime.block_on(builder.build_async());
                    Self { runtime, client }
                }
            }

            impl Client for Connection {
                fn update(&self, call: &Call<'_>, rounds: u32) -> Option<Outcome> {
                    self.runtime.block_on(async {
                        let sent = self.client.submit_call_with_effective_principal(
                            call.canister,
                            effective(call.effective),
                            call.caller,
                            call.method,
                            call.argument.to_vec(),
                        );
                        let sent = match sent.await {
                            Ok(sent) => sent,
                            Err(refused) => return Some(Err(reject(refused))),
                        };
                        for _ in 0..rounds {
                            self.client.tick().await;
                            if let Some(outcome) = self.client.ingress_status(sent.clone()).await {
                                return Some(outcome.map_err(reject));
                            }
                        }
                        None
                    })
                }

                fn query(&self, call: &Call<'_>) -> Outcome {
                    let asked = self.client.query_call_with_effective_principal(
                        call.canister,
                        effective(call.effective),
                        call.caller,
                        call.method,
                        call.argument.to_vec(),
                    );
                    self.runtime.block_on(asked).map_err(reject)
                }

                fn round(&self) {
                    self.runtime.block_on(self.client.tick());
                }

                fn balance(&self, canister: Principal) -> u128 {
                    self.runtime.block_on(self.client.cycle_balance(canister))
                }

                fn add_cycles(&self, canister: Principal, amount: u128) {
                    self.runtime.block_on(self.client.add_cycles(canister, amount));
                }

                fn end(self: Box<Self>) {
                    self.runtime.block_on(self.client.drop());
                }
            }

            fn effective(effective: Effective) -> RawEffectivePrincipal {
                match effective {
                    Effective::None => RawEffectivePrincipal::None,
                    Effective::Canister(id) => {
                        RawEffectivePrincipal::CanisterId(id.as_slice().to_vec())
                    }
                }
            }

            fn reject(response: RejectResponse) -> Reject {
                Reject {
                    code: format!("{:?}", response.error_code),
                    message: response.reject_message,
                }
            }
        }
    };
}

generation!(v10, pocket_ic_10);
generation!(v16, pocket_ic_16);
