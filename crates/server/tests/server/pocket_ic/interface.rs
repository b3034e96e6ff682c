use super::super::server::COUNTER;
use super::*;
use candid::Encode;
use ic_agent::Agent;
use ic_agent::identity::AnonymousIdentity;
use ic_management_canister_types::{
    CanisterInfoArgs, CanisterInfoResult, HttpHeader, HttpMethod, HttpRequestArgs,
    HttpRequestResult, LoadCanisterSnapshotArgs, Snapshot, TakeCanisterSnapshotArgs,
};

#[tokio::test(flavor = "multi_thread")]
async fn subnets_have_ids_and_ranges_of_their_own() {
    let server = Server::start().await;
    let spec = json!({ "state_config": "New", "dts_flag": "Enabled", "new_key": 1 });
    let free = json!({ "cost_schedule": "Free", "instruction_config": "Benchmarking" });
    let instance = server
        .create(&json!({
            "subnet_config_set": {
                "nns": spec, "ii": spec, "system": [spec], "application": [spec, free],
                "cloud_engine": [{ "cost_schedule": "Free" }],
            },
            "unknown": { "key": true },
        }))
        .await;
    let subnets = instance.topology["subnet_configs"].as_object().unwrap();
    assert_eq!(subnets.len(), 6);
    for (id, config) in subnets {
        let id = Principal::from_text(id).unwrap();
        let canister = instance.create_canister(Some(id)).await;
        let found = json!({ "canister_id": base64(canister.as_slice()) });
        let subnet = instance.done("read/get_subnet", found).await;
        assert_eq!(bytes(&subnet["subnet_id"]), id.as_slice(), "{config}");
        let hosts = |range: &Value| {
            let end = |name: &str| bytes(&range[name]["canister_id"]);
            (end("start")..=end("end")).contains(&canister.as_slice().to_vec())
        };
        let ranges = config["canister_ranges"].as_array().unwrap();
        assert_eq!(ranges.iter().filter(|range| hosts(range)).count(), 1, "{config}");
        let key = json!({ "subnet_id": base64(id.as_slice()) });
        let key = instance.done("read/pub_key", key).await;
        assert_eq!(key.as_array().unwrap().len(), 133);
        // Nothing is charged on system subnets and free ones.
        instance.install(canister, COUNTER).await;
        let balance = json!({ "canister_id": base64(canister.as_slice()) });
        let before = instance.done("read/get_cycles", balance.clone()).await;
        assert_eq!(number(&instance.update(canister, "add", &[]).await), 1);
        let after = instance.done("read/get_cycles", balance).await;
        let charged = config["subnet_kind"] == "Application" && config["cost_schedule"] == "Normal";
        assert_eq!(before != after, charged, "{config}");
    }
    let default = instance.create_canister(None).await;
    let found = json!({ "canister_id": base64(default.as_slice()) });
    let subnet = instance.done("read/get_subnet", found).await;
    let subnet = Principal::from_slice(&bytes(&subnet["subnet_id"])).to_text();
    assert_eq!(subnets[&subnet]["subnet_kind"], "Application");
}

/// Replies with the number of nodes, which it asks for at its installation.
const NODE_COUNT: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "subnet_self_node_count" (func $nodes (result i32)))
    (memory 1)
    (func (export "canister_init") (i32.store (i32.const 0) (call $nodes)))
    (func (export "canister_query nodes")
        (if (i32.ne (i32.load (i32.const 0)) (call $nodes)) (then (unreachable)))
        (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#;

/// Executes 6 G instructions, more than a query may.
const LONG_QUERY: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (func (export "canister_query long") (local $left i64)
        (local.set $left (i64.const 1000000000))
        (loop $again
            (local.set $left (i64.sub (local.get $left) (i64.const 1)))
            (br_if $again (i64.ne (local.get $left) (i64.const 0))))
        (call $reply)))"#;

#[tokio::test(flavor = "multi_thread")]
async fn benchmarking_subnets_have_no_practical_limits() {
    let server = Server::start().await;
    let benchmarking = json!({ "instruction_config": "Benchmarking" });
    let config = json!({ "subnet_config_set": { "application": [benchmarking] } });
    for (config, works) in [(config, true), (one_subnet(), false)] {
        let instance = server.create(&config).await;
        let id = instance.with(LONG_QUERY).await;
        let result = instance.query(id, "long").await;
        assert_eq!(result["Err"].is_null(), works, "{result}");
        if !works {
            assert_eq!(result["Err"]["error_code"], "CanisterInstructionLimitExceeded");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_passes_in_rounds() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    let start = instance.time().await;
    instance.done("update/tick", json!({})).await;
    assert_eq!(instance.time().await, start + 1);
    let set = |time: u64| json!({ "nanos_since_epoch": time });
    instance.done("update/set_time", set(start + 1_000)).await;
    assert_eq!(instance.time().await, start + 1_000);
    // Queries see the time of the last round.
    assert_eq!(number(&instance.query(id, "now").await), start + 1);
    instance.done("update/tick", json!({ "blockmakers": null })).await;
    assert_eq!(number(&instance.query(id, "now").await), start + 1_000);
    instance.done("update/set_certified_time", set(start + 2_000)).await;
    assert_eq!(number(&instance.query(id, "now").await), start + 2_000);
    // The same time again needs no round.
    instance.done("update/set_certified_time", set(start + 2_000)).await;
    assert_eq!(instance.time().await, start + 2_000);
    let (status, error) = instance.post("update/set_time", set(start)).await;
    assert_eq!(status, 400);
    let text = format!("SettingTimeIntoPast(({}, {start}))", start + 2_000);
    assert_eq!(error["message"], text);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_answered_by_rounds() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    let sent = instance.done("update/submit_ingress_message", call(id, json!("None"), "add", &[]));
    let sent = sent.await["Ok"].clone();
    let status = |caller: Value| {
        instance
            .post("read/ingress_status", json!({ "raw_message_id": sent, "raw_caller": caller }))
    };
    let stranger = json!({ "principal_id": base64([7]) });
    assert_eq!(status(stranger.clone()).await, (200, Value::Null));
    instance.done("update/tick", json!({})).await;
    assert_eq!(number(&status(Value::Null).await.1), 1);
    assert_eq!(status(stranger).await.0, 403);
    // Clients of version 9 send the id alone, and the answer stays.
    assert_eq!(number(&instance.done("read/ingress_status", sent.clone()).await), 1);
    assert_eq!(number(&instance.done("update/await_ingress_message", sent).await), 1);
    let rejected = instance.update(id, "no", &[]).await;
    assert_eq!(rejected["Err"]["reject_code"], "CanisterReject");
    assert_eq!(rejected["Err"]["error_code"], "CanisterRejectedMessage");
    assert_eq!(rejected["Err"]["certified"], true);
    let missing = instance.update(id, "nothing", &[]).await;
    assert_eq!(missing["Err"]["error_code"], "CanisterMethodNotFound");
    // A message that was never sent is awaited for a hundred rounds.
    let never = json!({ "effective_principal": "None", "message_id": base64([9; 32]) });
    let (status, error) = instance.post("update/await_ingress_message", never).await;
    assert_eq!(status, 400);
    assert!(error["message"].as_str().unwrap().contains("after 100 rounds"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stable_memory_comes_from_blobs() {
    use std::io::Write;
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    let content = vec![7_u8; 100_000];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&content).unwrap();
    for (body, encoding) in [(content.clone(), None), (gzip.finish().unwrap(), Some("gzip"))] {
        let mut request = server.client.post(format!("{}/blobstore/", server.url)).body(body);
        if let Some(encoding) = encoding {
            request = request.header("content-encoding", encoding);
        }
        let blob = request.send().await.unwrap().text().await.unwrap();
        let blob = base64(hex::decode(blob).unwrap());
        let id = base64(id.as_slice());
        let set = json!({ "canister_id": id, "blob_id": blob });
        instance.done("update/set_stable_memory", set).await;
        let read = instance.done("read/get_stable_memory", json!({ "canister_id": id })).await;
        let read = bytes(&read["blob"]);
        assert_eq!(read.len(), 2 * 65_536);
        assert_eq!((&read[..100_000], &read[100_000..]), (&*content, &[0; 31_072][..]));
    }
    let unknown = json!({ "canister_id": base64(id.as_slice()), "blob_id": base64([1; 32]) });
    assert_eq!(instance.post("update/set_stable_memory", unknown).await.0, 400);
    let empty = instance.create_canister(None).await;
    let empty = json!({ "canister_id": base64(empty.as_slice()) });
    let (status, error) = instance.post("read/get_stable_memory", empty).await;
    assert_eq!(status, 400);
    assert!(error["message"].as_str().unwrap().starts_with("CanisterIsEmpty("), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_move_through_folders() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    instance.update(id, "add", &[]).await;
    let effective = json!({ "CanisterId": base64(id.as_slice()) });
    let args = TakeCanisterSnapshotArgs {
        canister_id: id,
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    let taken = instance.manage(effective, "take_canister_snapshot", (args,)).await;
    let taken: Snapshot = candid::decode_one(&taken).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a/snapshot");
    let download = |snapshot: &[u8], folder: &std::path::Path| {
        json!({
            "sender": { "principal_id": base64(Principal::anonymous().as_slice()) },
            "canister_id": { "canister_id": base64(id.as_slice()) },
            "snapshot_id": base64(snapshot),
            "snapshot_dir": folder,
        })
    };
    // A download that fails leaves nothing behind.
    let path = "update/canister_snapshot_download";
    assert_eq!(instance.post(path, download(&[1; 18], &folder)).await.0, 400);
    assert!(!folder.exists());
    for outside in ["relative", "/tmp/../tmp/snapshot"] {
        let (status, error) = instance.post(path, download(&taken.id, outside.as_ref())).await;
        assert_eq!(status, 400);
        assert!(error["message"].as_str().unwrap().contains("not an absolute path"), "{error}");
    }
    instance.done(path, download(&taken.id, &folder)).await;
    let (status, error) = instance.post(path, download(&taken.id, &folder)).await;
    assert_eq!(status, 400);
    assert!(error["message"].as_str().unwrap().contains("is not empty"), "{error}");

    let other = instance.create_canister(None).await;
    let uploaded = instance
        .done(
            "update/canister_snapshot_upload",
            json!({
                "sender": { "principal_id": base64(Principal::anonymous().as_slice()) },
                "canister_id": { "canister_id": base64(other.as_slice()) },
                "replace_snapshot": null,
                "snapshot_dir": folder,
            }),
        )
        .await;
    let args = LoadCanisterSnapshotArgs {
        canister_id: other,
        snapshot_id: bytes(&uploaded["snapshot_id"]),
        sender_canister_version: None,
    };
    let effective = json!({ "CanisterId": base64(other.as_slice()) });
    instance.manage(effective, "load_canister_snapshot", (args,)).await;
    // The counter, a global, has come along.
    assert_eq!(number(&instance.update(other, "add", &[]).await), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_call_instances_that_make_progress() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(COUNTER).await;
    instance.done("auto_progress", json!({ "artificial_delay_ms": null })).await;
    assert_eq!(server.get(&format!("{}/auto_progress", instance.path)).await.1, true);
    let (status, error) = instance.post("auto_progress", json!({})).await;
    assert_eq!(status, 400, "{error}");
    let agent = Agent::builder()
        .with_url(format!("{}{}/", server.url, instance.path))
        .with_identity(AnonymousIdentity)
        .build()
        .unwrap();
    agent.fetch_root_key().await.unwrap();
    let reply = agent.update(&id, "add").call_and_wait().await.unwrap();
    assert_eq!(reply, 1_u64.to_le_bytes());
    assert_eq!(agent.query(&id, "get").call().await.unwrap(), 1_u64.to_le_bytes());
    // The instance's own operations go on.
    assert_eq!(number(&instance.update(id, "add", &[]).await), 2);
    instance.done("stop_progress", json!("")).await;
    let time = instance.time().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(instance.time().await, time);
}

/// Passes calls on to the canister that the argument names.
const RELAY: &str = include_str!("../../../../replica/tests/relay.wat");

/// A call of [`RELAY`] that makes an HTTPS outcall.
fn outcall(relay: Principal) -> Value {
    let request = HttpRequestArgs {
        url: "https://example.com/".to_owned(),
        max_response_bytes: Some(1_000),
        method: HttpMethod::GET,
        headers: vec![HttpHeader { name: "a".to_owned(), value: "b".to_owned() }],
        ..HttpRequestArgs::default()
    };
    let cycles = 1_000_000_000_000_u64.to_le_bytes();
    // The id of the management canister has no bytes.
    let argument =
        [&cycles, [0].as_slice(), b"http_request ", &Encode!(&request).unwrap()].concat();
    let effective = json!({ "CanisterId": base64(relay.as_slice()) });
    call(relay, effective, "relay", &argument)
}

fn response(body: &str) -> Value {
    json!({ "CanisterHttpReply": { "status": 201, "headers": [], "body": base64(body) } })
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_answer_outcalls_of_canisters() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let relay = instance.with(RELAY).await;
    let waiting = async || {
        let path = format!("{}/read/get_canister_http", instance.path);
        server.get(&path).await.1.as_array().unwrap().clone()
    };
    // The responses of the other nodes; none means that all have the first.
    let cases = [
        (Vec::new(), Ok(b"first".as_slice())),
        ([vec!["first"; 8], vec!["other"; 4]].concat(), Ok(b"first")),
        ([vec!["first"; 3], vec!["other"; 9]].concat(), Ok(b"other")),
        ([vec!["first"; 7], vec!["other"; 5]].concat(), Err("No consensus")),
    ];
    for (others, expected) in cases {
        let sent = instance.done("update/submit_ingress_message", outcall(relay)).await;
        // One round for the message, one for its call.
        instance.done("update/tick", json!({})).await;
        instance.done("update/tick", json!({})).await;
        let outcalls = waiting().await;
        assert_eq!(outcalls.len(), 1);
        let found = &outcalls[0];
        assert_eq!(
            (&found["url"], &found["http_method"]),
            (&json!("https://example.com/"), &json!("GET"))
        );
        assert_eq!(found["headers"], json!([{ "name": "a", "value": "b" }]));
        let mock = |others: &[&str]| {
            let others: Vec<Value> = others.iter().map(|body| response(body)).collect();
            json!({
                "subnet_id": found["subnet_id"], "request_id": found["request_id"],
                "response": response("first"), "additional_responses": others,
            })
        };
        let (status, error) = instance.post("update/mock_canister_http", mock(&["one"])).await;
        assert_eq!(status, 400);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("InvalidMockCanisterHttpResponses((2, 13))"), "{message}");
        instance.done("update/mock_canister_http", mock(&others)).await;
        let result = instance.done("update/await_ingress_message", sent["Ok"].clone()).await;
        match expected {
            Ok(body) => {
                let reply = bytes(&result["Ok"]);
                let reply: HttpRequestResult = candid::decode_one(&reply).unwrap();
                assert_eq!((reply.status, &*reply.body), (201_u64.into(), body));
            }
            Err(words) => {
                let message = result["Err"]["reject_message"].as_str().unwrap();
                assert!(message.contains(words), "{message}");
            }
        }
        assert_eq!(waiting().await, [] as [Value; 0]);
    }
    // An instance that makes progress by itself asks nobody.
    instance.done("auto_progress", json!({ "artificial_delay_ms": null })).await;
    let result = instance.done("update/execute_ingress_message", outcall(relay)).await;
    assert!(result["Err"]["reject_message"].is_string(), "{result}");
    instance.done("stop_progress", json!("")).await;
    instance.done("update/submit_ingress_message", outcall(relay)).await;
    instance.done("update/tick", json!({})).await;
    instance.done("update/tick", json!({})).await;
    assert_eq!(waiting().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_canister_is_a_query() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let canister_id = instance.with(LONG_QUERY).await;
    let args = CanisterInfoArgs { canister_id, num_requested_changes: Some(9) };
    let effective = json!({ "CanisterId": base64(canister_id.as_slice()) });
    let argument = candid::encode_one(args).unwrap();
    let body = call(MANAGEMENT, effective, "canister_info", &argument);
    let result = instance.done("read/query", body).await;
    let info = candid::decode_one::<CanisterInfoResult>(&bytes(&result["Ok"])).unwrap();
    assert_eq!(info.recent_changes.len() as u64, info.total_num_changes);
}

#[tokio::test(flavor = "multi_thread")]
async fn canisters_know_the_number_of_nodes_of_their_subnet() {
    let server = Server::start().await;
    let spec = json!({ "state_config": "New", "dts_flag": "Enabled" });
    let set = json!({ "subnet_config_set": { "fiduciary": spec, "application": [spec] } });
    let instance = server.create(&set).await;
    let subnets = instance.topology["subnet_configs"].as_object().unwrap();
    for (id, config) in subnets {
        let id = instance.create_canister(Some(Principal::from_text(id).unwrap())).await;
        instance.install(id, NODE_COUNT).await;
        let expected = if config["subnet_kind"] == "Fiduciary" { 34 } else { 13 };
        assert_eq!(number(&instance.query(id, "nodes").await), expected, "{config}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_operations_are_read_later() {
    let server = Server::start().await;
    let config = json!({ "subnet_config_set": { "application": [
        { "instruction_config": "Benchmarking" }
    ] } });
    let instance = server.create(&config).await;
    let id = instance.with(LONG_QUERY).await;
    let path = format!("{}{}/read/query", server.url, instance.path);
    let body = call(id, json!("None"), "long", &[]).to_string();
    let request = server.client.post(path).header("processing-timeout-ms", "0").body(body);
    let started = request.send().await.unwrap();
    assert_eq!(started.status(), 202);
    let started: Value = serde_json::from_str(&started.text().await.unwrap()).unwrap();
    let name = format!(
        "{}/{}",
        started["state_label"].as_str().unwrap(),
        started["op_id"].as_str().unwrap()
    );
    let result = loop {
        match server.get(&format!("/read_graph/{name}")).await {
            (404, _) => tokio::time::sleep(Duration::from_millis(20)).await,
            (status, result) => break (status, result),
        }
    };
    assert_eq!(result, (200, json!({ "Ok": "" })));
    assert_eq!(server.delete(&format!("/prune_graph/{name}")).await, 200);
    assert_eq!(server.get(&format!("/read_graph/{name}")).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_refused_in_a_sentence() {
    let server = Server::start().await;
    let config = |key: &str, value: Value| {
        let mut config = one_subnet();
        config[key] = value;
        config
    };
    for (config, words) in [
        (config("icp_features", json!({ "registry": "DefaultConfig" })), "no ICP feature registry"),
        (config("state_dir", json!("/tmp/../etc")), "keeps no state in files"),
        (config("bitcoind_addr", json!(["127.0.0.1:18444"])), "no adapters"),
        (config("log_level", json!("loud")), "Failed to parse log level"),
        (config("initial_time", json!({ "Timestamp": { "nanos_since_epoch": 1 } })), "no earlier"),
        (json!({ "subnet_config_set": {} }), "at least one subnet"),
        (
            json!({ "subnet_config_set": { "application": [{ "state_config": { "FromPath": "/" } }] } }),
            "state of a subnet",
        ),
        (
            json!({ "subnet_config_set": { "nns": { "cost_schedule": "Free" } } }),
            "Non-default cost",
        ),
        (json!({ "subnet_config_set": { "cloud_engine": [{}] } }), "must have cost schedule"),
        (json!({ "subnet_config_set": 7 }), "not the JSON"),
    ] {
        let (status, error) = server.post("/instances", &config).await;
        assert_eq!(status, 400, "{error}");
        let message = error["Error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(server.get("/instances").await.1, json!([]));
    let instance = server.create(&config("icp_features", json!({ "registry": null }))).await;
    for (path, body, status, words) in [
        ("update/mock_flexible_canister_http", json!({}), 400, "no flexible outcalls"),
        ("update/tick", json!({ "blockmakers": [1] }), 400, "no block makers"),
        ("update/nothing", json!({}), 404, "no POST /update/nothing"),
        ("read/get_cycles", json!({ "canister_id": base64([1]) }), 400, "CanisterNotFound("),
    ] {
        let (found, error) = instance.post(path, body).await;
        let message = error["message"].as_str().unwrap();
        assert!(found == status && message.contains(words), "{path}: {found} {message}");
    }
    for (path, words) in
        [("/instances/9/read/get_time", "not found"), ("/nothing", "no GET /nothing")]
    {
        let (_, error) = server.get(path).await;
        assert!(error["message"].as_str().unwrap().contains(words), "{path}: {error}");
    }
    assert_eq!(server.delete(&instance.path).await, 200);
    let (status, error) = server.get(&format!("{}/read/get_time", instance.path)).await;
    assert_eq!((status, error["message"].as_str()), (400, Some("Instance was deleted")));
    assert_eq!(server.get("/instances").await.1, json!(["Deleted"]));
}
