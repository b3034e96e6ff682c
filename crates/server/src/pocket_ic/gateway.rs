//! HTTP gateways of instances, and requests that go on to an instance.
//!
//! ```text
//!   /api/…                     the Internet Computer's HTTP interface of the instance
//!   /_/{topology, dashboard}   as below the instance
//!   anything else              the answer of a canister
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use candid::Principal;
use tokio::sync::oneshot;
use tower::ServiceExt;

use super::instance::Instance;
use super::operations::read;
use super::shared::Shared;
use super::types::{
    CanisterCall, CanisterResult, EffectivePrincipal, Failed, GatewayBackend, GatewayConfig,
    GatewayInfo, InstanceGatewayConfig,
};
use crate::connections::{self, Guard, Listener};
use crate::host::Host;
use crate::http::gateway::{Backend, answer, bad};
use crate::limits::MAX_FORWARDED;
use crate::message::Message;
use crate::wire::Refusal;

/// Starts a gateway.
///
/// # Errors
///
/// Those of [`bind`] and [`serve`].
pub fn start(
    shared: &Arc<Shared>,
    guard: &Guard,
    config: GatewayConfig,
) -> Result<GatewayInfo, String> {
    let number = match &config.forward_to {
        GatewayBackend::PocketIcInstance(number) => *number,
        GatewayBackend::Replica(url) => {
            return Err(format!(
                "This server has no gateway to {url}: it serves its own instances only."
            ));
        }
    };
    shared.instance(&number.to_string()).map_err(|failed| failed.into_parts().1)?;
    let listener = bind(&config.other, guard)?;
    serve(shared, number, config, listener)
}

/// Binds the socket of a gateway that a client of the listener with `guard` asks for.
///
/// # Errors
///
/// If it cannot or must not listen at that address, or is asked for what this server does not have.
pub fn bind(config: &InstanceGatewayConfig, guard: &Guard) -> Result<Listener, String> {
    let is_set = |value: &Option<serde_json::Value>| value.as_ref().is_some_and(|it| !it.is_null());
    if is_set(&config.https_config) {
        return Err(
            "TLS config could not be created: this server has no HTTPS gateway, because it \
                    contains no TLS server. Leave out https_config."
                .to_owned(),
        );
    }
    if is_set(&config.domain_custom_provider_local_file) {
        return Err("This server has no custom domains: name the canister in the host name or in \
                    the query canisterId."
            .to_owned());
    }
    let ip = config.ip_addr.as_deref().unwrap_or("127.0.0.1");
    let port = config.port.unwrap_or_default();
    let failed =
        |error: &dyn std::fmt::Display| format!("Failed to bind to address {ip}:{port}: {error}");
    let address = SocketAddr::new(ip.parse().map_err(|error| failed(&error))?, port);
    let domains = config.domains.as_deref().unwrap_or_default();
    let guard = guard.for_gateway(address.ip(), domains).map_err(|error| failed(&error))?;
    Listener::guarded(address, guard).map_err(|error| failed(&error))
}

/// Serves an instance.
///
/// # Errors
///
/// If there are too many gateways.
pub fn serve(
    shared: &Arc<Shared>,
    number: usize,
    config: GatewayConfig,
    listener: Listener,
) -> Result<GatewayInfo, String> {
    let (stop, stopped) = oneshot::channel::<()>();
    let info = shared.gateways.add(number, config, listener.address().port(), stop)?;
    let served = Served { shared: Arc::clone(shared), number };
    let router = Router::new().fallback(handle).with_state(served);
    tokio::spawn(connections::serve(listener, router, connections::Limits::default(), async {
        let _ = stopped.await;
    }));
    Ok(info)
}

/// The instance behind a gateway.
#[derive(Clone)]
struct Served {
    shared: Arc<Shared>,
    number: usize,
}

async fn handle(State(served): State<Served>, request: Request) -> Response {
    let instance = match served.shared.instance(&served.number.to_string()) {
        Ok(instance) => instance,
        Err(failed) => return failed.into_response(),
    };
    match request.uri().path() {
        "/_/topology" => Json(instance.topology()).into_response(),
        "/_/dashboard" => forward(&instance, "/", request).await,
        path if path.starts_with("/api/") => {
            let path = path.to_owned();
            forward(&instance, &path, request).await
        }
        _ => answer(instance, request).await,
    }
}

impl Backend for Arc<Instance> {
    fn host(&self) -> &Host {
        &self.host
    }

    fn query(&self, message: Message) -> Result<Vec<u8>, Refusal> {
        replied(Instance::query(self, &call(message)))
    }

    fn update(&self, message: Message) -> Result<Vec<u8>, Refusal> {
        replied(self.execute(call(message)))
    }
}

fn call(message: Message) -> CanisterCall {
    let Message { sender, canister, method, argument } = message;
    CanisterCall {
        sender,
        canister_id: canister,
        effective_principal: EffectivePrincipal::CanisterId(canister),
        method,
        payload: argument,
        sender_info: None,
    }
}

fn replied(result: Result<CanisterResult, Failed>) -> Result<Vec<u8>, Refusal> {
    match result {
        Ok(CanisterResult::Ok(reply)) => Ok(reply),
        Ok(CanisterResult::Err(reject)) => Err(bad(&reject.text())),
        Err(failed) => {
            let (status, text) = failed.into_parts();
            Err(Refusal::new(status, text))
        }
    }
}

/// Passes a request on to the Internet Computer's HTTP interface of an instance.
pub async fn forward(instance: &Instance, path: &str, request: Request) -> Response {
    if let Some(refused) = unknown(instance, path) {
        return (StatusCode::BAD_REQUEST, refused).into_response();
    }
    let (parts, body) = request.into_parts();
    let body = match read(body, MAX_FORWARDED).await {
        Ok(body) => body,
        Err(Failed::TooLarge(_)) => {
            let text = format!(
                "error: payload_too_large\ndetails: Payload is too large: maximum body size is \
                 {MAX_FORWARDED} bytes."
            );
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
        Err(failed) => return failed.into_response(),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("{path}{query}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    instance.interface.clone().oneshot(request).await.into_response()
}

/// Returns the refusal of an address that names no canister or subnet of the instance, in the words of
/// the network's boundary.
fn unknown(instance: &Instance, path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ["api", _, kind, id, _] = parts.as_slice() else { return None };
    let id = Principal::from_text(id).ok()?;
    let directory = instance.host.directory();
    let known = match *kind {
        "canister" => id == Principal::management_canister() || directory.hosts(&id),
        "subnet" => directory.contains(&id),
        _ => true,
    };
    match *kind {
        _ if known => None,
        "canister" => {
            Some("error: canister_not_found\ndetails: The specified canister does not exist.")
        }
        _ => Some("error: subnet_not_found\ndetails: The specified subnet cannot be found."),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use axum::http::Request as Head;
    use candid::{CandidType, Encode, Func, define_function};
    use ic_management_canister_types::{
        CanisterInstallMode, InstallCodeArgs, ProvisionalCreateCanisterWithCyclesArgs,
    };
    use serde_json::json;
    use stablebench_replica::subnet::Subnet;
    use stablebench_replica::{Canister, Replica, Rules};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    use super::*;
    use crate::connections::Access;
    use crate::limits::MAX_GATEWAY_REQUESTS;
    use crate::pocket_ic::{PocketIc, Replicas, Version, router};

    define_function!(Callback : (u64) -> () query);

    #[derive(CandidType)]
    enum Streaming {
        Callback { callback: Callback, token: u64 },
    }

    #[derive(CandidType)]
    struct Response {
        status_code: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        streaming_strategy: Option<Streaming>,
    }

    #[derive(CandidType)]
    struct Part {
        body: Vec<u8>,
        token: Option<u64>,
    }

    fn manage(instance: &Instance, method: &str, payload: Vec<u8>, of: Principal) -> Vec<u8> {
        let effective_principal = match of == Principal::management_canister() {
            true => EffectivePrincipal::None,
            false => EffectivePrincipal::CanisterId(of),
        };
        let call = CanisterCall {
            sender: Principal::anonymous(),
            canister_id: Principal::management_canister(),
            effective_principal,
            method: method.to_owned(),
            payload,
            sender_info: None,
        };
        match instance.execute(call).unwrap() {
            CanisterResult::Ok(reply) => reply,
            CanisterResult::Err(reject) => panic!("{method}: {}", reject.text()),
        }
    }

    /// A canister whose response has parts without end. Each takes the replica a while.
    fn endless(id: Principal) -> Vec<u8> {
        let callback = Callback(Func { principal: id, method: "part".to_owned() });
        let response = Response {
            status_code: 200,
            headers: Vec::new(),
            body: Vec::new(),
            streaming_strategy: Some(Streaming::Callback { callback, token: 1 }),
        };
        let replies = [Encode!(&response), Encode!(&Part { body: vec![7], token: Some(1) })];
        let [response, part] = replies.map(|reply| {
            let reply = reply.unwrap();
            (reply.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>(), reply.len())
        });
        let wat = format!(
            r#"(module
                (import "ic0" "msg_reply" (func $reply))
                (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
                (memory 1)
                (data (i32.const 0) "{}")
                (data (i32.const 4096) "{}")
                (func (export "canister_query http_request")
                    (call $append (i32.const 0) (i32.const {}))
                    (call $reply))
                (func (export "canister_query part") (local $left i32)
                    (local.set $left (i32.const 200000000))
                    (loop $again
                        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
                        (br_if $again (local.get $left)))
                    (call $append (i32.const 4096) (i32.const {}))
                    (call $reply)))"#,
            response.0, part.0, response.1, part.1
        );
        wat::parse_str(wat).unwrap()
    }

    /// Waits until a condition holds.
    async fn until(what: &str, condition: impl Fn() -> bool) {
        let began = Instant::now();
        while !condition() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn parts_are_not_asked_for_when_the_client_has_left() {
        let source =
            |kind| Replica::new(Rules::today().on(kind), None).map_err(|error| error.to_string());
        let server = PocketIc::new(Version::default(), Replicas::new(source));
        let local = "127.0.0.1".parse().unwrap();
        let router = router(Arc::clone(&server.0), Arc::new(Guard::new(Access::default(), local)));
        let config = json!({
            "subnet_config_set": { "application": [{}] },
            "http_gateway_config": { "port": 0 },
        });
        let create = Head::post("/instances").body(Body::from(config.to_string())).unwrap();
        let created = router.oneshot(create).await.unwrap();
        assert_eq!(created.status(), StatusCode::CREATED);
        let port = server.0.gateways.list()[0].port;
        let instance = server.0.instance("0").unwrap();
        let installed = Arc::clone(&instance);
        let id = tokio::task::spawn_blocking(move || {
            let none = Principal::management_canister();
            let method = "provisional_create_canister_with_cycles";
            let args = ProvisionalCreateCanisterWithCyclesArgs::default();
            manage(&installed, method, Encode!(&args).unwrap(), none);
            let first = |subnet: &mut Subnet| subnet.canisters().map(Canister::id).next();
            let canister_id = installed.host.exclusively(first).unwrap();
            let args = InstallCodeArgs {
                mode: CanisterInstallMode::Install,
                canister_id,
                wasm_module: endless(canister_id),
                arg: Vec::new(),
                sender_canister_version: None,
            };
            manage(&installed, "install_code", Encode!(&args).unwrap(), canister_id);
            canister_id
        });
        let id = id.await.unwrap();
        let idle = Arc::strong_count(&instance);
        let mut client = TcpStream::connect((local, port)).await.unwrap();
        let head = format!("GET /?canisterId={id} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        until("no part is asked for", || Arc::strong_count(&instance) > idle).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(Arc::strong_count(&instance) > idle, "the response has ended");
        let places = || instance.host.gateway_requests.available_permits();
        assert_eq!(places(), MAX_GATEWAY_REQUESTS - 1);
        drop(client);
        until("parts are asked for", || Arc::strong_count(&instance) == idle).await;
        until("its place is free", || places() == MAX_GATEWAY_REQUESTS).await;
    }
}
