//! The clients of both generations behind one trait.
//!
//! The clients block, and panic on failure. Call them through [`guarded`], which turns panics
//! into errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::slice::Iter;
use std::sync::Once;
use std::time::Duration;
use std::{fmt, io};

use candid::Principal;
use tokio::runtime::Runtime;

/// The time limit of one request: a round, a query, the creation of an instance.
const REQUEST: Duration = Duration::from_secs(600);

/// The version of a server, as printed by `--version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Servers and clients of one major version are compatible.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The patch version.
    pub patch: u64,
}

/// A generation of servers, with a client of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    V10,
    V16,
}

impl Version {
    /// Parses a line such as `pocket-ic-server 10.0.0`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let numbers = line.trim().strip_prefix("pocket-ic-server ")?;
        let mut numbers = numbers.split('.').map(|number| number.parse().ok());
        let version =
            Self { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
        numbers.next().is_none().then_some(version)
    }

    pub(crate) fn generation(self) -> Option<Generation> {
        match self.major {
            10 => Some(Generation::V10),
            16 => Some(Generation::V16),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The kind of subnet that an instance has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnet {
    /// 13 nodes, production limits. The embedded replica models this kind.
    #[default]
    Application,
    /// Production limits; nothing is charged.
    System,
    /// An application subnet with very high instruction limits.
    Benchmarking,
    /// An application subnet beside one that holds threshold keys.
    WithKeys,
}

/// The answer to an HTTPS outcall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpAnswer {
    /// A response.
    Response {
        /// The HTTP status code.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// No response.
    Reject {
        /// The reject code.
        code: u64,
        /// The reason.
        message: String,
    },
}

/// The reject of a message by a canister, or by the replica on its behalf.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Reject {
    /// The name of the replica's error code, such as `CanisterCalledTrap`.
    pub code: String,
    /// The message.
    pub message: String,
}

/// The reply to a message, or its reject.
pub(crate) type Outcome = Result<Vec<u8>, Reject>;

/// A message to a canister.
pub(crate) struct MethodCall<'a> {
    pub canister: Principal,
    pub effective: Effective,
    pub caller: Principal,
    pub method: &'a str,
    pub argument: &'a [u8],
    /// Answers to the HTTPS outcalls that the message makes, in order.
    pub outcalls: &'a [HttpAnswer],
}

/// The effective principal, by which the server finds a message's subnet.
#[derive(Clone, Copy)]
pub(crate) enum Effective {
    None,
    Canister(Principal),
}

/// An instance of a server, as its generation's client sees it.
pub(crate) trait Client: Send {
    /// Sends an update and executes rounds until it is answered. Returns `None` if it is not
    /// answered within `rounds` rounds.
    fn update(&self, call: &MethodCall<'_>, rounds: u32) -> Option<Outcome>;
    fn query(&self, call: &MethodCall<'_>) -> Outcome;
    fn round(&self);
    /// Advances the time of the next round.
    fn advance(&self, by: Duration);
    /// Nanoseconds since 1970.
    fn time(&self) -> u64;
    fn balance(&self, canister: Principal) -> u128;
    fn add_cycles(&self, canister: Principal, amount: u128);
    /// Deletes the instance.
    fn delete(self: Box<Self>);
}

/// Creates an instance on the server at `url`.
pub(crate) fn connect(
    generation: Generation,
    url: &str,
    subnet: Subnet,
) -> io::Result<Box<dyn Client>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(match generation {
        Generation::V10 => Box::new(v10::Connection::new(runtime, url, subnet)?),
        Generation::V16 => Box::new(v16::Connection::new(runtime, url, subnet)?),
    })
}

/// The client of one generation. The crates use the same names, but share no types.
macro_rules! generation {
    ($module:ident, $pocket_ic:ident) => {
        mod $module {
            use $pocket_ic::common::rest::{
                CanisterHttpHeader, CanisterHttpReject, CanisterHttpReply, CanisterHttpResponse,
                MockCanisterHttpResponse, RawEffectivePrincipal,
            };
            use $pocket_ic::nonblocking::PocketIc;
            use $pocket_ic::{PocketIcBuilder, RejectResponse};

            use super::*;

            pub(super) struct Connection {
                runtime: Runtime,
                client: PocketIc,
            }

            impl Connection {
                pub(super) fn new(runtime: Runtime, url: &str, subnet: Subnet) -> io::Result<Self> {
                    let url = url.parse().map_err(io::Error::other)?;
                    let builder = PocketIcBuilder::new()
                        .with_server_url(url)
                        .with_max_request_time_ms(Some(REQUEST.as_millis() as u64));
                    let builder = match subnet {
                        Subnet::Application => builder.with_application_subnet(),
                        Subnet::System => builder.with_system_subnet(),
                        Subnet::Benchmarking => builder.with_benchmarking_application_subnet(),
                        Subnet::WithKeys => builder.with_application_subnet().with_ii_subnet(),
                    };
                    let client = runtime.block_on(builder.build_async());
                    Ok(Self { runtime, client })
                }

                /// Answers the HTTPS outcalls that wait, as long as there are answers.
                async fn answer_outcalls(&self, answers: &mut Iter<'_, HttpAnswer>) {
                    if answers.len() == 0 {
                        return;
                    }
                    for (request, answer) in
                        self.client.get_canister_http().await.into_iter().zip(answers)
                    {
                        let response = MockCanisterHttpResponse {
                            subnet_id: request.subnet_id,
                            request_id: request.request_id,
                            response: http_response(answer),
                            additional_responses: Vec::new(),
                        };
                        self.client.mock_canister_http_response(response).await;
                    }
                }
            }

            impl Client for Connection {
                fn update(&self, call: &MethodCall<'_>, rounds: u32) -> Option<Outcome> {
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
                            Err(rejected) => return Some(Err(reject(rejected))),
                        };
                        let mut outcalls = call.outcalls.iter();
                        for _ in 0..rounds {
                            self.client.tick().await;
                            self.answer_outcalls(&mut outcalls).await;
                            if let Some(outcome) = self.client.ingress_status(sent.clone()).await {
                                return Some(outcome.map_err(reject));
                            }
                        }
                        None
                    })
                }

                fn query(&self, call: &MethodCall<'_>) -> Outcome {
                    let query = self.client.query_call_with_effective_principal(
                        call.canister,
                        effective(call.effective),
                        call.caller,
                        call.method,
                        call.argument.to_vec(),
                    );
                    self.runtime.block_on(query).map_err(reject)
                }

                fn round(&self) {
                    self.runtime.block_on(self.client.tick());
                }

                fn advance(&self, by: Duration) {
                    self.runtime.block_on(self.client.advance_time(by));
                }

                fn time(&self) -> u64 {
                    let time = self.runtime.block_on(self.client.get_time());
                    time.as_nanos_since_unix_epoch()
                }

                fn balance(&self, canister: Principal) -> u128 {
                    self.runtime.block_on(self.client.cycle_balance(canister))
                }

                fn add_cycles(&self, canister: Principal, amount: u128) {
                    self.runtime.block_on(self.client.add_cycles(canister, amount));
                }

                fn delete(self: Box<Self>) {
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

            fn http_response(answer: &HttpAnswer) -> CanisterHttpResponse {
                match answer.clone() {
                    HttpAnswer::Response { status, headers, body } => {
                        let header = |(name, value)| CanisterHttpHeader { name, value };
                        CanisterHttpResponse::CanisterHttpReply(CanisterHttpReply {
                            status,
                            headers: headers.into_iter().map(header).collect(),
                            body,
                        })
                    }
                    HttpAnswer::Reject { code, message } => {
                        let reject = CanisterHttpReject { reject_code: code, message };
                        CanisterHttpResponse::CanisterHttpReject(reject)
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

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// Runs `request` and returns the message of a panic as the error. The panic is not printed.
pub(crate) fn guarded<T>(request: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    // A request changes state in another process only, so a panic leaves nothing inconsistent.
    let result = panic::catch_unwind(AssertUnwindSafe(request));
    GUARDED.set(outer);
    result.map_err(|payload| message(&*payload))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_version_line_of_a_server() {
        let version = Version::parse("pocket-ic-server 16.1.0\n").unwrap();
        assert_eq!(version.to_string(), "16.1.0");
        assert_eq!(version.generation(), Some(Generation::V16));
        let recorded = Version::parse("pocket-ic-server 10.0.0").unwrap();
        assert_eq!(recorded.generation(), Some(Generation::V10));
    }

    #[test]
    fn rejects_lines_of_other_programs() {
        for line in ["", "pocket-ic 16.0.0", "pocket-ic-server 16", "pocket-ic-server 1.2.3.4"] {
            assert_eq!(Version::parse(line), None, "{line:?}");
        }
        assert_eq!(Version::parse("pocket-ic-server 13.0.0").unwrap().generation(), None);
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(guarded(|| 1), Ok(1));
        assert_eq!(guarded(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        assert_eq!(guarded(|| panic!("with {}", 1)), Err::<(), _>("with 1".to_owned()));
    }
}
