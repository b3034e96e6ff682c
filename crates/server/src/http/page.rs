//! `GET /`: a description for people. The addresses that dfx prints for a canister lead here.
//!
//! ```text
//!   /?canisterId=INTERFACE&id=ID     describes the canister ID
//!   /?canisterId=ID                  describes the canister ID
//!   /                                lists the canisters
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use candid::Principal;
use stablebench_replica::Visibility;
use stablebench_replica::subnet::Status;
use stablebench_replica::text::steers;

use super::api::principal;
use crate::host::{Host, Info};
use crate::wire::Refusal;

/// The most canisters that are listed.
const MAX: usize = 100;

/// Answers `GET /`.
pub async fn page(
    State(host): State<Arc<Host>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = query.unwrap_or_default();
    let named =
        |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let text = match named("id").or_else(|| named("canisterId")) {
        Some(id) => {
            let id = principal(id)?;
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
         -n URL -k ROOT_KEY"
    );
    text
}
