//! HTTPS outcalls, which the tests answer.
//!
//! All nodes of a subnet make an outcall, and the response is one that enough of them agree on. A test
//! gives one response for all of them, or one for each.

use ic_management_canister_types::{HttpHeader as Header, HttpMethod, HttpRequestResult};
use stablebench_replica::RejectCode;

use super::failure::Failed;
use super::instance::{Instance, host_failed};
use super::topology::NODES;
use super::types::{
    HttpHeader, HttpReject, HttpReply, HttpRequest, HttpResponse, MockHttpResponse, RawSubnetId,
};

/// Nodes that have to agree: those that are left if as many fail as a subnet tolerates.
const AGREEMENT: usize = NODES - (NODES - 1) / 3;

impl Instance {
    /// Returns the outcalls that wait for an answer.
    pub fn outcalls(&self) -> Vec<HttpRequest> {
        let requests: Vec<_> =
            self.host.exclusively(|subnet| subnet.http_requests().cloned().collect());
        let shown = |waiting: stablebench_replica::subnet::HttpRequest| {
            let request = waiting.request;
            HttpRequest {
                subnet_id: RawSubnetId { subnet_id: self.subnet_for(&waiting.canister) },
                request_id: waiting.id,
                http_method: method(&request.method),
                url: request.url,
                headers: request
                    .headers
                    .into_iter()
                    .map(|Header { name, value }| HttpHeader { name, value })
                    .collect(),
                body: request.body.unwrap_or_default(),
                max_response_bytes: request.max_response_bytes,
                replication: match request.is_replicated {
                    Some(false) => "NonReplicated",
                    _ => "FullyReplicated",
                },
                pricing_version: "Legacy",
            }
        };
        requests.into_iter().map(shown).collect()
    }

    /// Answers an outcall.
    pub fn answer_outcall(&self, mock: MockHttpResponse) -> Result<(), Failed> {
        let MockHttpResponse { subnet_id: RawSubnetId { subnet_id }, request_id: id, .. } = mock;
        let responses: Vec<HttpResponse> = match mock.additional_responses.is_empty() {
            true => vec![mock.response; NODES],
            false => [vec![mock.response], mock.additional_responses].concat(),
        };
        let codes = responses.iter().filter_map(|response| match response {
            HttpResponse::CanisterHttpReject(reject) => Some(reject.reject_code),
            HttpResponse::CanisterHttpReply(_) => None,
        });
        if let Some(code) = codes.into_iter().find(|code| reject_code(*code).is_none()) {
            return Err(Failed::Refused(format!("InvalidRejectCode({code})")));
        }
        // A server looks for the subnet before it looks for the outcall.
        self.public_key(&subnet_id)?;
        let waiting = self.outcalls();
        let found = waiting
            .iter()
            .any(|request| request.request_id == id && request.subnet_id.subnet_id == subnet_id);
        if !found {
            return Err(Failed::Refused(format!(
                "InvalidCanisterHttpRequestId(({subnet_id}, {id}))"
            )));
        }
        if responses.len() != NODES {
            let given = responses.len();
            return Err(Failed::Refused(format!(
                "InvalidMockCanisterHttpResponses(({given}, {NODES}))"
            )));
        }
        let agreed = responses.iter().find(|response| {
            responses.iter().filter(|other| other == response).count() >= AGREEMENT
        });
        let response = match agreed {
            Some(HttpResponse::CanisterHttpReply(reply)) => Ok(result(reply.clone())),
            Some(HttpResponse::CanisterHttpReject(HttpReject { reject_code: code, message })) => {
                Err((reject_code(*code).unwrap_or(RejectCode::SysFatal), message.clone()))
            }
            None => {
                let text = "No consensus could be reached. Replicas had different responses.";
                Err((RejectCode::SysTransient, text.to_owned()))
            }
        };
        self.host
            .exclusively(|subnet| subnet.answer_http_request(id, response))
            .map(drop)
            .map_err(host_failed)
    }
}

fn result(HttpReply { status, headers, body }: HttpReply) -> HttpRequestResult {
    let headers = headers.into_iter().map(|HttpHeader { name, value }| Header { name, value });
    HttpRequestResult { status: status.into(), headers: headers.collect(), body }
}

fn method(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::GET => "GET",
        HttpMethod::HEAD => "HEAD",
        HttpMethod::POST => "POST",
        HttpMethod::PUT => "PUT",
        HttpMethod::DELETE => "DELETE",
        HttpMethod::PATCH => "PATCH",
    }
}

fn reject_code(code: u64) -> Option<RejectCode> {
    Some(match code {
        1 => RejectCode::SysFatal,
        2 => RejectCode::SysTransient,
        3 => RejectCode::DestinationInvalid,
        4 => RejectCode::CanisterReject,
        5 => RejectCode::CanisterError,
        6 => RejectCode::SysUnknown,
        _ => return None,
    })
}
