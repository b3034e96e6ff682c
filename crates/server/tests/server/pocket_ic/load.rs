use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::server::COUNTER;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_instances_at_a_time() {
    let server = Server::start().await;
    let used = (0..64_u64).map(|number| {
        let server = &server;
        async move {
            let instance = server.create(&one_subnet()).await;
            let id = instance.with(COUNTER).await;
            for count in 1..=1 + number % 4 {
                assert_eq!(super::number(&instance.update(id, "add", &[]).await), count);
            }
            assert_eq!(super::number(&instance.query(id, "get").await), 1 + number % 4);
            instance.path
        }
    });
    let paths = join_all(used.collect()).await;
    for path in &paths {
        assert_eq!(server.delete(path).await, 200);
    }
    let states = server.get("/instances").await.1;
    assert_eq!(states, json!(vec!["Deleted"; 64]));
}

/// Awaits futures that run at the same time.
async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(done) = future.as_mut().poll(context)
            {
                *result = Some(done);
            }
        }
        match results.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_calls_of_sixteen_clients() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    let clients = (0..16).map(|_| async {
        let mut counts = Vec::new();
        for _ in 0..125 {
            counts.push(number(&instance.update(id, "add", &[]).await));
        }
        counts
    });
    let mut counts = join_all(clients.collect()).await.concat();
    counts.sort_unstable();
    assert_eq!(counts, (1..=2_000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_instances_is_limited() {
    let server = Server::start().await;
    let mut last = None;
    for _ in 0..256 {
        last = Some(server.create(&one_subnet()).await.path);
    }
    let (status, error) = server.post("/instances", &one_subnet()).await;
    assert_eq!(status, 400);
    let message = error["Error"]["message"].as_str().unwrap();
    assert_eq!(message, "There are 256 instances already; delete one.");
    assert_eq!(server.delete(&last.unwrap()).await, 200);
    server.create(&one_subnet()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_disconnect() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let path = format!("{}/update/execute_ingress_message", instance.path);
    let body = call(id, json!("None"), "add", &[]).to_string();
    let head = |bytes: usize| {
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {bytes}\r\n\r\n")
    };
    // In the middle of the request: it is dropped.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all((head(body.len()) + &body[..20]).as_bytes()).await.unwrap();
    drop(stream);
    // Before the answer: the call may be executed, once.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all((head(body.len()) + &body).as_bytes()).await.unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let count = number(&instance.update(id, "add", &[]).await);
    assert!(count == 1 || count == 2, "{count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bodies_are_refused() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    for body in ["", "{", "[]", "null", "\u{0}", r#"{"sender":"!"}"#, "\"text\""] {
        for path in [
            "read/query",
            "read/get_cycles",
            "read/ingress_status",
            "update/submit_ingress_message",
            "update/await_ingress_message",
            "update/set_time",
            "update/add_cycles",
            "update/set_stable_memory",
            "update/mock_canister_http",
            "update/canister_snapshot_upload",
        ] {
            let path = format!("{}/{path}", instance.path);
            let sent = server.request(reqwest::Method::POST, &path, body.as_bytes().to_vec());
            let (status, error) = sent.await;
            assert_eq!(status, 400, "{path} {body:?}: {error}");
            assert!(error["message"].as_str().unwrap().contains("not the JSON"), "{error}");
        }
    }
    instance.done("update/tick", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_100_megabytes() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let large = vec![b'7'; 100_000_000];
    let path = format!("{}/update/submit_ingress_message", instance.path);
    let (status, error) = server.request(reqwest::Method::POST, &path, large.clone()).await;
    assert_eq!(status, 413);
    assert!(error["message"].as_str().unwrap().contains("at most 16777216"), "{error}");
    let path = format!("{}/api/v2/canister/aaaaa-aa/query", instance.path);
    let (status, error) = server.request(reqwest::Method::POST, &path, large.clone()).await;
    assert_eq!(status, 413, "{error}");
    // A blob may be as large.
    let (status, hash) = server.request(reqwest::Method::POST, "/blobstore", large).await;
    assert_eq!((status, hash.as_str().unwrap().len()), (200, 64));
    instance.done("update/tick", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_are_refused() {
    let server = Server::start().await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST /instances HTTP/1.1\r\nhost: localhost\r\norigin: https://example.com\r\n\
                   content-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}
