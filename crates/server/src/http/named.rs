//! The canister that a request names.
//!
//! ```text
//!   http://ID.localhost, http://ID.raw.localhost, ?canisterId=ID, or a referring page with one of them
//! ```

use axum::http::{HeaderMap, HeaderName, Uri, header};
use candid::Principal;

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
