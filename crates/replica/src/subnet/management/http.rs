//! HTTPS outcalls: whoever drives the subnet sees the requests and answers them.

use candid::Principal;
use ic_management_canister_types::{HttpMethod, HttpRequestArgs, HttpRequestResult};

use super::{ManagementCall, invalid};
use crate::cycles;
use crate::fault::{ErrorCode, Reject, RejectCode};
use crate::subnet::Subnet;
use crate::system_api::message::Rejection;

/// Most bytes of a response, unless the request names a lower limit.
const MAX_RESPONSE: u64 = 2_000_000;
/// Most outcalls that wait for an answer.
const MAX_REQUESTS: usize = 3_000;

/// An HTTPS outcall that waits for its answer.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The number of the outcall.
    pub id: u64,
    /// The canister that made it.
    pub canister: Principal,
    /// The request.
    pub request: HttpRequestArgs,
    call: ManagementCall,
}

/// The answer to an HTTPS outcall, or the reason why there is none.
pub type HttpResponse = Result<HttpRequestResult, String>;

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

    /// Answers an HTTPS outcall. A transform function is not called. Returns false if there is no
    /// such outcall.
    pub fn answer_http_request(&mut self, id: u64, response: HttpResponse) -> bool {
        let Some(at) = self.http.iter().position(|request| request.id == id) else {
            return false;
        };
        let HttpRequest { request, call, .. } = self.http.remove(at);
        let most = request.max_response_bytes.unwrap_or(MAX_RESPONSE);
        let response = match response {
            Ok(response) if response.body.len() as u64 > most => Err(Rejection::new(
                RejectCode::SysFatal,
                format!("Http body exceeds size limit of {most} bytes."),
            )),
            Ok(response) => candid::encode_one(response)
                .map_err(|error| Rejection::new(RejectCode::SysFatal, error.to_string())),
            Err(reason) => Err(Rejection::new(RejectCode::SysTransient, reason)),
        };
        self.answer(&call.origin, response, call.cycles, call.cause);
        true
    }

    pub(super) fn http_request(&mut self, call: &mut ManagementCall) -> Result<(), Reject> {
        let request: HttpRequestArgs = call.decode()?;
        if !self.http_allowed {
            let message = format!(
                "The embedded replica makes no HTTPS outcalls; {} was not requested",
                request.url.chars().take(200).collect::<String>()
            );
            return Err(invalid(ErrorCode::CanisterRejectedMessage, message));
        }
        if self.http.len() >= MAX_REQUESTS {
            let message =
                format!("max number ({MAX_REQUESTS}) of http requests in-flight reached.");
            return Err(invalid(ErrorCode::CanisterRejectedMessage, message));
        }
        let most = request.max_response_bytes.unwrap_or(MAX_RESPONSE);
        let fee = cycles::http_request(self.replica.rules(), variable_bytes(&request), most);
        call.pay(fee)?;
        let id = self.next_http;
        self.next_http += 1;
        self.http.push(HttpRequest { id, canister: call.caller(), request, call: call.clone() });
        Ok(())
    }
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

/// The name of a method.
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
