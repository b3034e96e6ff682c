//! Pages in a browser, and names of this machine that are somebody else's.

use std::time::Duration;

use reqwest::Method;
use stablebench_endpoint::Access;

use super::server::{COUNTER, Server};

/// Status code, and whom the browser may show the answer to.
async fn ask(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Option<String>) {
    let mut request = server.client.clone().request(method, format!("{}{path}", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.timeout(Duration::from_secs(10)).send().await.unwrap();
    let shown = answer.headers().get("access-control-allow-origin");
    (answer.status().as_u16(), shown.map(|shown| shown.to_str().unwrap().to_owned()))
}

async fn page(server: &Server, origin: &str) -> [(u16, Option<String>); 2] {
    let preflight = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    [
        ask(server, Method::OPTIONS, "/api/v3/canister/x/call", &preflight).await,
        ask(server, Method::GET, "/api/v2/status", &[("origin", origin)]).await,
    ]
}

#[tokio::test]
async fn only_pages_of_this_machine_may_call() {
    let (server, id) = Server::with(COUNTER).await;
    let here = "http://localhost:3000";
    assert_eq!(page(&server, here).await, [(200, Some(here.into())), (200, Some(here.into()))]);
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        assert_eq!(page(&server, origin).await, [(403, None), (403, None)], "{origin}");
    }
    // Nothing of a foreign page's call is looked at.
    let path = format!("/api/v2/canister/{id}/call");
    let foreign = [("origin", "https://evil.example"), ("content-type", "application/cbor")];
    assert_eq!(ask(&server, Method::POST, &path, &foreign).await.0, 403);
}

#[tokio::test]
async fn a_name_that_leads_here_is_no_name_of_this_machine() {
    let (server, _) = Server::with(COUNTER).await;
    for (host, status) in [("evil.example:4943", 403), ("localhost", 200), ("x.localhost:1", 200)] {
        for path in ["/api/v2/status", "/"] {
            let asked = ask(&server, Method::GET, path, &[("host", host)]).await;
            assert_eq!(asked.0, status, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn who_is_let_in_may_call() {
    let app = "https://app.example";
    let access = Access { origins: vec![app.parse().unwrap()], ..Access::default() };
    let server = Server::open_to(access).await;
    assert_eq!(page(&server, app).await, [(200, Some(app.into())), (200, Some(app.into()))]);
    assert_eq!(page(&server, "https://evil.example").await, [(403, None), (403, None)]);
    let host = [("host", "app.example:4943")];
    assert_eq!(ask(&server, Method::GET, "/api/v2/status", &host).await.0, 200);
    let server = Server::open_to(Access { open: true, ..Access::default() }).await;
    assert_eq!(page(&server, app).await[1], (200, Some(app.into())));
    let host = [("host", "anything.example")];
    assert_eq!(ask(&server, Method::GET, "/api/v2/status", &host).await.0, 200);
}
