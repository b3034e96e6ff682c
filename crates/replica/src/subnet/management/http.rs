//! HTTPS outcalls: whoever drives the subnet sees the requests and answers them.
//!
//! Source: `rs/types/types/src/canister_http.rs`, `rs/execution_environment/src/
//! execution_environment.rs`, `rs/https_outcalls/{client,consensus}` of the replica.

use candid::{CandidType, Principal};
use ic_management_canister_types::{
    HttpHeader, HttpMethod, HttpRequestArgs, HttpRequestResult, TransformArgs, TransformContext,
};
use serde::Deserialize;

use super::call::{Bounded, HttpRequest, HttpResponse, ManagementCall, invalid};
use crate::cycles;
use crate::fault::{ErrorCode, HostError, Reject, RejectCode};
use crate::subnet::subnet_state::Subnet;
use crate::system_api::message::Rejection;
use crate::units::SECOND;

/// Most bytes of a response, unless the request names a lower limit.
const MAX_RESPONSE: u64 = 2_000_000;
/// Most bytes of headers and body.
const MAX_REQUEST: usize = 2_000_000;
/// Most bytes of a URL.
const MAX_URL: usize = 8_192;
/// Most headers.
const MAX_HEADERS: usize = 64;
/// Most bytes of the name or the value of a header.
const MAX_HEADER: usize = 8 << 10;
/// Most bytes of all headers.
const MAX_HEADER_BYTES: usize = 48 << 10;
/// Most outcalls that wait for an answer.
const MAX_REQUESTS: usize = 3_000;
/// Nanoseconds that an outcall waits for its answer.
const TIMEOUT: u64 = 60 * SECOND;

impl Subnet {
    /// Keeps HTTPS outcalls until [`Subnet::answer_http_request`] answers them. Otherwise they are
    /// rejected.
    pub fn allow_http_requests(&mut self, allow: bool) {
        self.http_allowed = allow;
    }

    /// Returns the HTTPS outcalls that wait for an answer, in order.
    pub fn http_requests(&self) -> impl Iterator<Item = &HttpRequest> {
        self.http.iter()
    }

    /// Answers an HTTPS outcall, after the canister's transform function if it has one. Returns
    /// false if there is no such outcall.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn answer_http_request(
        &mut self,
        id: u64,
        response: HttpResponse,
    ) -> Result<bool, HostError> {
        let Some(at) = self.http.iter().position(|request| request.id == id) else {
            return Ok(false);
        };
        let HttpRequest { request, call, canister, .. } = self.http.remove(at);
        let most = request.max_response_bytes.unwrap_or(MAX_RESPONSE);
        let response = match response {
            Ok(response) => self.checked(canister, request.transform, most, response)?,
            Err((code, reason)) => Err(Rejection::new(code, reason)),
        };
        self.answer(&call.origin, response, call.cycles, call.cause);
        Ok(true)
    }

    /// Checks a response and transforms it.
    fn checked(
        &self,
        canister: Principal,
        transform: Option<TransformContext>,
        most: u64,
        response: HttpRequestResult,
    ) -> Result<Result<Vec<u8>, Rejection>, HostError> {
        let fatal = |text| Ok(Err(Rejection::new(RejectCode::SysFatal, text)));
        if response.body.len() as u64 > most {
            return fatal(format!("Http body exceeds size limit of {most} bytes."));
        }
        if let Err(text) = check_headers_and_body(&response.headers, response.body.len()) {
            return fatal(text);
        }
        let Some(TransformContext { function, context }) = transform else {
            return candid::encode_one(response).map(Ok).or_else(|error| fatal(error.to_string()));
        };
        let argument = match candid::encode_one(TransformArgs { response, context }) {
            Ok(argument) => argument,
            Err(error) => return fatal(error.to_string()),
        };
        let caller = Principal::management_canister();
        let transformed = self.query_in_full(caller, canister, &function.0.method, &argument)?;
        let bytes = match &transformed {
            Ok(reply) => reply.len(),
            Err(reject) => reject.message.len(),
        };
        if bytes as u64 > most {
            return fatal(format!("Transformed http response exceeds limit: {most}"));
        }
        Ok(transformed.map_err(|Reject { code, message }| {
            let message = match code {
                // The canister's own words.
                ErrorCode::CanisterRejectedMessage => message,
                _ => format!("IC{:04}: {message}", code.number()),
            };
            Rejection::new(code.reject_code(), message)
        }))
    }

    /// Rejects the outcalls that have waited too long.
    pub(in crate::subnet) fn expire_http_requests(&mut self) {
        let now = self.time;
        let expired = self.http.extract_if(.., |request| request.since + TIMEOUT < now);
        for HttpRequest { call, .. } in expired.collect::<Vec<_>>() {
            let text = "Canister http request timed out".to_owned();
            let reject = Rejection::new(RejectCode::SysTransient, text);
            self.answer(&call.origin, Err(reject), call.cycles, call.cause);
        }
    }

    pub(super) fn http_request(&mut self, call: &mut ManagementCall) -> Result<(), Reject> {
        let request = HttpRequestArgs::from(call.decode::<Request>()?);
        let refused = |message| invalid(ErrorCode::CanisterRejectedMessage, message);
        if !self.http_allowed {
            return Err(refused(format!(
                "The embedded replica makes no HTTPS outcalls; {} was not requested",
                request.url.chars().take(200).collect::<String>()
            )));
        }
        check(&request, call.caller()).map_err(refused)?;
        if self.http.len() >= MAX_REQUESTS {
            return Err(refused(format!(
                "max number ({MAX_REQUESTS}) of http requests in-flight reached."
            )));
        }
        let most = request.max_response_bytes.unwrap_or(MAX_RESPONSE);
        let rules = self.replica_of(&call.caller()).rules();
        let fee = cycles::http_request(rules, variable_bytes(&request), most);
        call.pay(fee)?;
        let id = self.next_http;
        self.next_http += 1;
        let (canister, since) = (call.caller(), self.time);
        self.http.push(HttpRequest { id, canister, request, call: call.clone(), since });
        Ok(())
    }
}

/// The argument of `http_request`, whose headers are bounded when it is decoded.
#[derive(CandidType, Deserialize)]
struct Request {
    url: String,
    max_response_bytes: Option<u64>,
    method: HttpMethod,
    headers: Bounded<HttpHeader, MAX_HEADERS, MAX_HEADER_BYTES>,
    body: Option<Vec<u8>>,
    transform: Option<TransformContext>,
    is_replicated: Option<bool>,
    pricing_version: Option<u32>,
}

impl From<Request> for HttpRequestArgs {
    fn from(request: Request) -> Self {
        Self {
            url: request.url,
            max_response_bytes: request.max_response_bytes,
            method: request.method,
            headers: request.headers.0,
            body: request.body,
            transform: request.transform,
            is_replicated: request.is_replicated,
            pricing_version: request.pricing_version,
        }
    }
}

/// Checks a request. The error is the replica's.
fn check(request: &HttpRequestArgs, caller: Principal) -> Result<(), String> {
    if let Some(TransformContext { function, .. }) = &request.transform
        && function.0.principal != caller
    {
        let other = function.0.principal;
        return Err(format!("transform principal id expected to be {caller}, got {other}"));
    }
    if let Some(most) = request.max_response_bytes
        && most > MAX_RESPONSE
    {
        return Err(format!(
            "max_response_bytes expected to be in the range [0..{MAX_RESPONSE}], got {most}"
        ));
    }
    let url = request.url.len();
    if url > MAX_URL {
        return Err(format!("url size {url} exceeds {MAX_URL}"));
    }
    check_headers_and_body(&request.headers, request.body.as_ref().map_or(0, Vec::len))
}

fn check_headers_and_body(headers: &[HttpHeader], body: usize) -> Result<(), String> {
    let count = headers.len();
    if count > MAX_HEADERS {
        return Err(format!("number of all http headers {count} exceeds {MAX_HEADERS}"));
    }
    let longest = |part: fn(&HttpHeader) -> &String| {
        headers.iter().map(|header| part(header).len()).max().unwrap_or(0)
    };
    let lengths =
        [("name", longest(|header| &header.name)), ("value", longest(|header| &header.value))];
    for (part, length) in lengths {
        if length > MAX_HEADER {
            return Err(format!(
                "number of bytes to represent some http header {part} {length} exceeds {MAX_HEADER}"
            ));
        }
    }
    let bytes: usize = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(format!(
            "total number of bytes to represent all http header names and values {bytes} exceeds \
             {MAX_HEADER_BYTES}"
        ));
    }
    let bytes = bytes + body;
    if bytes > MAX_REQUEST {
        return Err(format!(
            "total number of bytes to represent all http header names and values and http body \
             {bytes} exceeds {MAX_REQUEST}"
        ));
    }
    Ok(())
}

/// Bytes of a request that its fee depends on.
fn variable_bytes(request: &HttpRequestArgs) -> u64 {
    let headers: usize =
        request.headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    let body = request.body.as_ref().map_or(0, Vec::len);
    let transform = request
        .transform
        .as_ref()
        .map_or(0, |transform| transform.function.0.method.len() + transform.context.len());
    (request.url.len() + headers + body + transform) as u64
}

impl HttpRequest {
    /// `GET`, `HEAD` or `POST`.
    pub fn method(&self) -> &'static str {
        match self.request.method {
            HttpMethod::GET => "GET",
            HttpMethod::HEAD => "HEAD",
            HttpMethod::POST => "POST",
            _ => "another method",
        }
    }
}
