//! What browsers get: the answers of canisters, through the HTTP gateway, and a page about them.
//!
//! ```text
//!   http_request               a query of the canister that a request names
//!   http_request_update        an update with the same argument, if the canister asks for that
//!   the method that the        queries for the other parts of a response
//!   response names
//! ```
//!
//! A request names a canister by `http://ID.localhost`, `http://ID.raw.localhost`, `?canisterId=ID`, or a
//! referring page with one of them. The gateway is part of the server, so it does not verify
//! certificates of responses, and the domain `raw` changes nothing. A response in parts ends early if
//! its client leaves.
//!
//! `GET /` is a description for people. The addresses that dfx prints for a canister lead here:
//!
//! ```text
//!   /?id=ID                          describes the canister ID
//!   /?canisterId=INTERFACE&id=ID     the same, if there is no canister INTERFACE here
//!   /?canisterId=ID                  the same, if the canister ID does not answer browsers
//!   /                                lists the canisters
//! ```
//!
//! A host name can name the canister, too.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use candid::types::Label;
use candid::types::value::{IDLArgs, IDLValue};
use candid::{CandidType, Deserialize, Encode, Principal, Reserved};
use hyper::body::Frame;
use ic_transport_types::RequestId;
use sha2::{Digest, Sha256};
use stablebench_replica::Visibility;
use stablebench_replica::decoding::{decode_one, decode_untyped};
use stablebench_replica::subnet::Status;
use stablebench_replica::text::steers;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::{WHOLE, principal, read_at_most};
use crate::driver::{self, Sent};
use crate::host::{Host, Info};
use crate::limits::{MAX_GATEWAY_REQUEST, MAX_GATEWAY_RESPONSE, MAX_PARTS};
use crate::message::{Finished, HTTP_REQUEST, Message, Outcome, Rejected};
use crate::wire::{MINUTE, Refusal};

/// The update that a request becomes if the canister asks for that.
const UPDATE: &str = "http_request_update";
/// Nanoseconds for which an answer is awaited.
const LIFE: u64 = 5 * MINUTE;

/// The canisters that a gateway serves.
pub trait Backend: Clone + Send + 'static {
    /// The host of the canisters.
    fn host(&self) -> &Host;

    /// Executes a query, and returns its reply.
    ///
    /// # Errors
    ///
    /// If the query is rejected, or not executed.
    fn query(&self, message: Message) -> Result<Vec<u8>, Refusal>;

    /// Executes an update, and returns its reply.
    ///
    /// # Errors
    ///
    /// If the update is rejected, or not executed.
    fn update(&self, message: Message) -> Result<Vec<u8>, Refusal>;
}

impl Backend for Arc<Host> {
    fn host(&self) -> &Host {
        self
    }

    fn query(&self, message: Message) -> Result<Vec<u8>, Refusal> {
        let answered = driver::query(self, message, None).map_err(Refusal::too_many)?;
        replied(wait(answered)?)
    }

    fn update(&self, message: Message) -> Result<Vec<u8>, Refusal> {
        static SENT: AtomicU64 = AtomicU64::new(0);
        let number = SENT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let hash: [u8; 32] = Sha256::digest([b"gateway".as_slice(), &number].concat()).into();
        let id = RequestId::new(&hash);
        let expiry = self.now().saturating_add(LIFE);
        let waiting = match driver::call(self, id, expiry, message, None) {
            Sent::Rejected(rejected) => return replied(Err(rejected)),
            Sent::Full(full) => return Err(Refusal::too_many(full)),
            Sent::Waiting(waiting) => waiting,
        };
        match waiting.map(wait).transpose()? {
            Some(Finished::NotAdmitted(rejected)) => replied(Err(rejected)),
            Some(Finished::Certified) | None => match self.ingress.outcome(&id) {
                Some(outcome) => replied(outcome),
                None => Err(bad(&"The reply was dropped.")),
            },
        }
    }
}

/// Waits for an answer on a thread for blocking work.
fn wait<T: Send + 'static>(answered: oneshot::Receiver<T>) -> Result<T, Refusal> {
    let (sender, receiver) = oneshot::channel();
    // The end of the server drops this task, and so ends the thread.
    Handle::current().spawn(async move {
        let answer = tokio::time::timeout(Duration::from_nanos(LIFE), answered).await;
        // The receiver waits.
        let _ = sender.send(answer);
    });
    match receiver.blocking_recv() {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Err(_)) => {
            let text = "The canister has not answered within five minutes.";
            Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, text))
        }
        Ok(Ok(Err(_))) | Err(_) => Err(bad(&"The server ends.")),
    }
}

fn replied(outcome: Outcome) -> Result<Vec<u8>, Refusal> {
    outcome.map_err(|Rejected { reject, .. }| bad(&reject.message))
}

/// The refusal of a request that its canister does not answer.
pub fn bad(what: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(StatusCode::BAD_GATEWAY, what.to_string())
}

/// Lets the canister answer that a request names.
pub async fn answer(backend: impl Backend, request: Request) -> Response {
    match respond(backend, request).await {
        Ok(response) => response,
        Err(Refusal { status, text }) => (status, text + "\n").into_response(),
    }
}

#[derive(CandidType, Deserialize)]
struct HttpRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
    certificate_version: Option<u16>,
}

#[derive(CandidType, Deserialize)]
struct HttpResponse {
    status_code: u16,
    headers: Vec<(String, String)>,
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
    upgrade: Option<bool>,
    streaming_strategy: Option<Reserved>,
}

async fn respond(backend: impl Backend, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let canister = canister(&parts.uri, &parts.headers).ok_or_else(|| {
        let text = "The request names no canister: use http://ID.localhost, or ?canisterId=ID.";
        Refusal::bad_request(text)
    })?;
    if !backend.host().directory().hosts(&canister) {
        return Err(Refusal::new(StatusCode::NOT_FOUND, "404 - canister not found"));
    }
    let place = Arc::clone(&backend.host().gateway_requests).acquire_owned().await;
    let place = place.map_err(|error| bad(&error))?;
    let body = read_at_most(body, MAX_GATEWAY_REQUEST, WHOLE).await?;
    let headers = parts.headers.iter();
    let request = HttpRequest {
        method: parts.method.to_string(),
        url: parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        headers: headers
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect(),
        body,
        certificate_version: Some(2),
    };
    // It is dropped with this future if the client leaves.
    let client = Arc::new(());
    let waiting = Arc::downgrade(&client);
    let asked = tokio::task::spawn_blocking(move || {
        // Kept until the canister has answered, also if the client leaves before.
        let _place = place;
        ask(&backend, canister, &request, &waiting)
    })
    .await;
    drop(client);
    let response = asked.map_err(|error| bad(&error))??;
    // Others say nothing about a response, or are for the connection.
    let status = StatusCode::from_u16(response.status_code).map_err(|error| bad(&error))?;
    if !(200..600).contains(&response.status_code) {
        return Err(bad(&format!("The canister answers with the status {}.", status.as_u16())));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in response.headers {
        let name = HeaderName::try_from(name);
        // The body is sent as a whole, with its own length.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value))
            && name != header::CONTENT_LENGTH
            && name != header::TRANSFER_ENCODING
        {
            headers.append(name, value);
        }
    }
    let body = match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Body::new(Nothing),
        _ => Body::from(response.body),
    };
    Ok((status, headers, body).into_response())
}

/// The body of a response that has none, and therefore no length either: an empty body has the
/// length 0.
struct Nothing;

impl HttpBody for Nothing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }
}

fn ask(
    backend: &impl Backend,
    canister: Principal,
    request: &HttpRequest,
    client: &Weak<()>,
) -> Result<HttpResponse, Refusal> {
    let message = |canister, method: &str, argument| Message {
        sender: Principal::anonymous(),
        canister,
        method: method.to_owned(),
        argument,
    };
    let argument = Encode!(request).map_err(|error| bad(&error))?;
    let reply = backend.query(message(canister, HTTP_REQUEST, argument.clone()))?;
    let decode = |reply: &[u8]| decode_one::<HttpResponse>(reply).map_err(|error| bad(&error));
    let mut response = decode(&reply)?;
    let mut whole = reply;
    if response.upgrade == Some(true) {
        whole = backend.update(message(canister, UPDATE, argument))?;
        response = decode(&whole)?;
    }
    if response.streaming_strategy.is_some() {
        let mut next = strategy(&whole);
        let mut parts = 0;
        while let Some((canister, method, token)) = next {
            if client.strong_count() == 0 {
                return Err(bad(&"The client has left."));
            }
            parts += 1;
            if parts > MAX_PARTS {
                return Err(bad(&format!("The response has more than {MAX_PARTS} parts.")));
            }
            let argument = IDLArgs::new(&[token]).to_bytes().map_err(|error| bad(&error))?;
            let part = backend.query(message(canister, &method, argument))?;
            let (body, token) = streamed(&part).ok_or_else(|| bad(&"A part cannot be decoded."))?;
            response.body.extend(body);
            if response.body.len() > MAX_GATEWAY_RESPONSE {
                return Err(bad(&format!(
                    "The response has more than {MAX_GATEWAY_RESPONSE} bytes."
                )));
            }
            next = token.map(|token| (canister, method, token));
        }
    }
    Ok(response)
}

/// Returns the field of a record.
fn field(value: IDLValue, name: &str) -> Option<IDLValue> {
    let IDLValue::Record(fields) = value else { return None };
    let wanted = Label::Named(name.to_owned());
    fields.into_iter().find(|field| field.id == wanted).map(|field| field.val)
}

fn some(value: IDLValue) -> Option<IDLValue> {
    match value {
        IDLValue::Opt(value) => Some(*value),
        _ => None,
    }
}

/// Returns the query that streams the rest of a response, and its argument.
fn strategy(reply: &[u8]) -> Option<(Principal, String, IDLValue)> {
    let response = decode_untyped(reply).ok()?.args.into_iter().next()?;
    let IDLValue::Variant(strategy) = some(field(response, "streaming_strategy")?)? else {
        return None;
    };
    let callback = strategy.0.val;
    let IDLValue::Func(canister, method) = field(callback.clone(), "callback")? else {
        return None;
    };
    Some((canister, method, field(callback, "token")?))
}

/// Returns a part of a response and the argument for the next one.
fn streamed(reply: &[u8]) -> Option<(Vec<u8>, Option<IDLValue>)> {
    #[derive(CandidType, Deserialize)]
    struct Part {
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    }
    let part = decode_one::<Part>(reply).ok()?;
    let value = decode_untyped(reply).ok()?.args.into_iter().next()?;
    Some((part.body, field(value, "token").and_then(some)))
}

/// Returns the canister that a request names.
pub fn canister(uri: &Uri, headers: &HeaderMap) -> Option<Principal> {
    let from_host = |host: &str| Principal::from_text(host.split('.').next()?).ok();
    let from_query = |query: &str| {
        let named = query.split('&').find_map(|pair| pair.strip_prefix("canisterId="));
        Principal::from_text(named?).ok()
    };
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).or(uri.host()).and_then(from_host);
    let referer = || text(header::REFERER)?.parse::<Uri>().ok();
    host.or_else(|| from_query(uri.query()?))
        .or_else(|| from_host(referer()?.host()?))
        .or_else(|| from_query(referer()?.query()?))
}

/// The most canisters that are listed.
const MAX_LISTED: usize = 100;

/// Answers `GET /`.
pub async fn page(
    State(host): State<Arc<Host>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let described = match described(&uri).or_else(|| parameter(&uri, "canisterId")) {
        Some(id) => Some(principal(id)?),
        None => canister(&uri, &headers),
    };
    let text = match described {
        Some(id) => {
            let info = host.info(&id).ok_or_else(|| {
                Refusal::new(StatusCode::NOT_FOUND, format!("There is no canister {id} here."))
            })?;
            about(&id, &info)
        }
        None => list(&host),
    };
    // Plain text, because a browser must not execute content of a module.
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, text).into_response())
}

/// Returns `true` if this page answers a request that names a canister.
pub fn describes(host: &Host, id: &Principal, uri: &Uri) -> bool {
    uri.path() == "/"
        && match host.info(id) {
            Some(info) => !info.module.as_ref().is_some_and(|module| module.answers_http),
            None => described(uri).is_some(),
        }
}

fn described(uri: &Uri) -> Option<&str> {
    parameter(uri, "id")
}

fn parameter<'a>(uri: &'a Uri, key: &str) -> Option<&'a str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

fn list(host: &Host) -> String {
    let canisters = host.infos();
    let mut text = format!(
        "stablebench serve {}: the Internet Computer's HTTP interface under /api.\n\nCanisters\n",
        env!("CARGO_PKG_VERSION")
    );
    for id in canisters.keys().take(MAX_LISTED) {
        let _ = writeln!(text, "  {id}   /?id={id}");
    }
    if canisters.len() > MAX_LISTED {
        let _ = writeln!(text, "  and {} more", canisters.len() - MAX_LISTED);
    }
    text
}

fn about(id: &Principal, info: &Info) -> String {
    let state = match info.status {
        Status::Running => "running",
        Status::Stopping => "stopping",
        Status::Stopped => "stopped",
    };
    let Some(module) = &info.module else {
        return format!("Canister {id}, {state}, without a module.\n");
    };
    let mut text = format!("Canister {id}, {state}\nModule   {}\n", hex::encode(module.hash));
    let interface = module.sections.get("candid:service");
    if let Some(interface) = interface.filter(|it| it.visibility == Visibility::Public) {
        let interface = String::from_utf8_lossy(&interface.content);
        let shown = interface.chars().filter(|c| !steers(*c) || matches!(c, '\n' | '\t'));
        let _ = writeln!(text, "\nInterface\n\n{}", shown.collect::<String>());
    }
    let _ = writeln!(
        text,
        "\nThere is no page to call it from. Call it with a client, such as dfx or icp:\n\n  \
         dfx canister call --network URL {id} METHOD '(…)'\n  icp canister call {id} METHOD '(…)' \
         -n URL -k fetch"
    );
    text
}
