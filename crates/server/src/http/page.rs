//! `GET /`: a description for people. The addresses that dfx prints for a canister lead here.
//!
//! ```text
//!   /?id=ID                          describes the canister ID
//!   /?canisterId=INTERFACE&id=ID     the same, if there is no canister INTERFACE here
//!   /?canisterId=ID                  the same, if the canister ID does not answer browsers
//!   /                                lists the canisters
//! ```
//!
//! A host name can name the canister, too.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use candid::Principal;
use stablebench_replica::Visibility;
use stablebench_replica::subnet::Status;
use stablebench_replica::text::steers;

use super::api::principal;
use super::named::canister;
use crate::host::{Host, Info};
use crate::wire::Refusal;

/// The most canisters that are listed.
const MAX: usize = 100;

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
    for id in canisters.keys().take(MAX) {
        let _ = writeln!(text, "  {id}   /?id={id}");
    }
    if canisters.len() > MAX {
        let _ = writeln!(text, "  and {} more", canisters.len() - MAX);
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
