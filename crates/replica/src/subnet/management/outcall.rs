//! HTTPS outcalls that wait for an answer.

use candid::Principal;
use ic_management_canister_types::{HttpRequestArgs, HttpRequestResult};

use super::call::ManagementCall;
use crate::fault::RejectCode;

/// An HTTPS outcall that waits for its answer.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The number of the outcall.
    pub id: u64,
    /// The canister that made it.
    pub canister: Principal,
    /// The request.
    pub request: HttpRequestArgs,
    pub(super) call: ManagementCall,
    /// The time of the request, in nanoseconds since 1970.
    pub(super) since: u64,
}

/// The answer to an HTTPS outcall, or the code and the text of a reject.
pub type HttpResponse = Result<HttpRequestResult, (RejectCode, String)>;
