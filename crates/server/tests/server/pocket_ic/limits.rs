//! Limits that neither canisters nor clients of a server can exceed, and loads that it bears.

use std::time::Instant;

use candid::CandidType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::hostile::{ASKS, ENDLESS};
use crate::server::COUNTER;

#[tokio::test(flavor = "multi_thread")]
async fn candid_that_is_endless_is_refused_at_once() {
    #[derive(CandidType)]
    struct HttpResponse {
        status_code: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        upgrade: Option<bool>,
    }
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let began = Instant::now();
    // Arguments by which a message is routed.
    for method in ["provisional_create_canister_with_cycles", "canister_status"] {
        let call = call(MANAGEMENT, json!("None"), method, ENDLESS);
        let (status, error) = instance.post("update/execute_ingress_message", call).await;
        assert_eq!(status, 400, "{method}");
        let error = error["message"].as_str().unwrap();
        assert!(error.contains("Error decoding candid"), "{method}: {error}");
    }
    // Arguments of the management canister.
    let id = instance.with(ASKS).await;
    let answer = instance.update(id, "ask", ENDLESS).await;
    let answer = String::from_utf8(bytes(&answer["Ok"])).unwrap();
    assert!(answer.starts_with("Error decoding candid"), "{answer}");
    assert_eq!(bytes(&instance.update(id, "ask", b"DIDL\0\0").await["Ok"]), b"raw_rand");
    // A reply that a gateway decodes: one more value than it expects.
    let response = HttpResponse { status_code: 200, headers: vec![], body: vec![], upgrade: None };
    let mut reply = encode_args((response, vec![(); 0])).unwrap();
    assert_eq!(reply.pop(), Some(0), "the length of the last value");
    reply.extend(&ENDLESS[9..]);
    let id = instance.with(&answering(&[("http_request", reply)])).await;
    let number: u64 = instance.path.strip_prefix("/instances/").unwrap().parse().unwrap();
    let config = json!({ "forward_to": { "PocketIcInstance": number } });
    let (status, created) = server.post("/http_gateway", &config).await;
    assert_eq!(status, 201, "{created}");
    let port = &created["Created"]["port"];
    let url = format!("http://127.0.0.1:{port}/?canisterId={id}");
    assert_eq!(server.client.get(&url).send().await.unwrap().status(), 502);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_stable_memory_is_not_read_at_once() {
    const GROWS: &str = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (func (export "canister_update grow")
            (drop (call $grow (i64.const 1_638_400)))
            (call $reply)))"#;
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(GROWS).await;
    instance
        .done(
            "update/add_cycles",
            json!({
                "canister_id": base64(id.as_slice()), "amount": 1_000_000_000_000_000_u64,
            }),
        )
        .await;
    let grown = instance.update(id, "grow", &[]).await;
    assert!(grown["Err"].is_null(), "{grown}");
    let asked = json!({ "canister_id": base64(id.as_slice()) });
    let (status, error) = instance.post("read/get_stable_memory", asked).await;
    assert_eq!(
        (status, error["message"].as_str().unwrap()),
        (
            413,
            &*format!(
                "The stable memory of {id} has 107374182400 bytes; at most 4294967296 are read at once. \
             Read it in parts by a query of the canister, or take a canister snapshot and download \
             it."
            )
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_read_from_files_only() {
    use std::process::Command;
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    let upload = async |folder: &std::path::Path| {
        let body = json!({
            "sender": { "principal_id": base64(Principal::anonymous().as_slice()) },
            "canister_id": { "canister_id": base64(id.as_slice()) },
            "replace_snapshot": null,
            "snapshot_dir": folder,
        });
        let sent = instance.post("update/canister_snapshot_upload", body);
        let answered = tokio::time::timeout(Duration::from_secs(30), sent).await;
        let (status, error) = answered.expect("the pipe or the device is read");
        assert_eq!(status, 400, "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let metadata = json!({
        "source": { "metadata_upload": null }, "taken_at_timestamp": 0, "wasm_module_size": 8,
        "globals": [], "wasm_memory_size": 0, "stable_memory_size": 0,
        "wasm_chunk_store": [{ "hash": vec![7; 32] }], "canister_version": 0,
        "certified_data": [], "global_timer": null, "on_low_wasm_memory_hook_status": null,
    });
    let chunk = format!("wasm_chunk_store/{}.bin", "07".repeat(32));
    std::fs::create_dir(at("wasm_chunk_store")).unwrap();
    for (name, content) in [
        ("metadata.json", metadata.to_string()),
        ("wasm_module.bin", "\0asm\u{1}\0\0\0".to_owned()),
        (&*chunk, String::new()),
    ] {
        std::os::unix::fs::symlink("/dev/zero", at(name)).unwrap();
        let error = upload(folder.path()).await;
        assert!(error.contains(name) && error.contains("not a regular file"), "{error}");
        std::fs::remove_file(at(name)).unwrap();
        assert!(Command::new("mkfifo").arg(at(name)).status().unwrap().success());
        let error = upload(folder.path()).await;
        assert!(error.contains(name) && error.contains("not a regular file"), "{error}");
        std::fs::remove_file(at(name)).unwrap();
        std::fs::write(at(name), content).unwrap();
    }
    // A file that is too large is refused as well.
    std::fs::File::create(at(&chunk)).unwrap().set_len((1 << 20) + 1).unwrap();
    assert!(upload(folder.path()).await.contains("larger than 1048576 bytes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_subnets_is_limited() {
    let server = Server::start().await;
    let config =
        |count: usize| json!({ "subnet_config_set": { "application": vec![json!({}); count] } });
    let (status, error) = server.post("/instances", &config(257)).await;
    let message = error["Error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert!(message.contains("There are 257 subnets, an instance has at most 256"), "{message}");
    let instance = server.create(&config(256)).await;
    assert_eq!(instance.topology["subnet_configs"].as_object().unwrap().len(), 256);
    // Nor can one be added for a canister id of the network.
    let outside = Principal::from_slice(&[0, 0, 0, 0, 0, 0x50, 0, 0, 1, 1]);
    let effective = json!({ "CanisterId": base64(outside.as_slice()) });
    let method = "provisional_create_canister_with_cycles";
    let argument = encode_args((ProvisionalCreateCanisterWithCyclesArgs::default(),)).unwrap();
    let create = call(MANAGEMENT, effective, method, &argument);
    let (status, error) = instance.post("update/submit_ingress_message", create).await;
    assert_eq!(status, 400);
    let error = error["message"].as_str().unwrap();
    assert!(error.contains("has had 256 subnets, and cannot have more"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_operations_is_limited() {
    const ENDLESS_QUERY: &str = r#"(module
        (func (export "canister_query spin") (loop $again (br $again))))"#;
    let server = Server::start().await;
    let config = json!({ "subnet_config_set": { "application": [
        { "instruction_config": "Benchmarking" }
    ] } });
    let instance = server.create(&config).await;
    let id = instance.with(ENDLESS_QUERY).await;
    let send = async |path: &str, body: Value| {
        let request = server.client.post(format!("{}{}/{path}", server.url, instance.path));
        let request = request.header("processing-timeout-ms", "0").body(body.to_string());
        request.send().await.unwrap().status().as_u16()
    };
    // The instance is busy, practically for ever.
    assert_eq!(send("read/query", call(id, json!("None"), "spin", &[])).await, 202);
    for number in 1..2_000 {
        assert_eq!(send("update/tick", json!({})).await, 202, "{number}");
    }
    assert_eq!(send("update/tick", json!({})).await, 429);
    // Deleting the instance ends what it executes, and so what waits for it.
    assert_eq!(server.delete(&instance.path).await, 200);
    let began = Instant::now();
    let other = server.create(&one_subnet()).await;
    while other.post("update/tick", json!({})).await.0 != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "operations go on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

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
            let sent = server.request(Method::POST, &path, body.as_bytes().to_vec());
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
    let (status, error) = server.request(Method::POST, &path, large.clone()).await;
    assert_eq!(status, 413);
    assert!(error["message"].as_str().unwrap().contains("at most 16777216"), "{error}");
    let path = format!("{}/api/v2/canister/aaaaa-aa/query", instance.path);
    let (status, error) = server.request(Method::POST, &path, large.clone()).await;
    assert_eq!(status, 413, "{error}");
    // A blob may be as large.
    let (status, hash) = server.request(Method::POST, "/blobstore", large).await;
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
