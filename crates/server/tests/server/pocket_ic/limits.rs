//! Limits that neither canisters nor clients of a server can exceed.

use std::time::Instant;

use candid::CandidType;

use super::super::hostile::{ASKS, ENDLESS};
use super::super::server::COUNTER;
use super::*;

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
