//! Requests that would take all memory, all time, or another's canister id.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use candid::{Encode, Principal};
use ic_certification::Label;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs,
    ProvisionalCreateCanisterWithCyclesArgs, UploadChunkArgs,
};
use ic_transport_types::{Envelope, EnvelopeContent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::identities::ed25519;
use super::server::{COUNTER, Server, number, query};

const MANAGEMENT: Principal = Principal::management_canister();

/// Nanoseconds since 1970, in a few minutes.
fn expiry() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_nanos() as u64 + 240_000_000_000
}

fn read_state(paths: Vec<Vec<Label>>) -> Vec<u8> {
    let content = EnvelopeContent::ReadState {
        ingress_expiry: expiry(),
        sender: Principal::anonymous(),
        paths,
    };
    let content = std::borrow::Cow::Owned(content);
    let envelope =
        Envelope { content, sender_pubkey: None, sender_sig: None, sender_delegation: None };
    envelope.encode_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_many_labels_is_none() {
    let (server, id) = Server::with(COUNTER).await;
    let subnet = Principal::self_authenticating(&server.root_key);
    for first in ["subnet", "canister_ranges", "api_boundary_nodes", "request_status", "canister"] {
        for labels in [10_000, 500_000] {
            let path = vec![Label::from(first); 1].into_iter();
            let path = path.chain(vec![Label::from("x"); labels]).collect();
            let body = read_state(vec![path]);
            for address in [
                format!("/api/v2/canister/{id}/read_state"),
                format!("/api/v3/subnet/{subnet}/read_state"),
            ] {
                let (status, _, said) = server.post(&address, body.clone()).await;
                assert!(matches!(status, 400 | 404), "{first}: {status}");
                assert!(said.len() < 1_000);
            }
        }
    }
    assert_eq!(number(&query(&server.anonymous(), id, "get").await), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_without_end_is_refused() {
    let (server, id) = Server::with(COUNTER).await;
    // Arrays, maps, tags, byte strings and texts of unknown length.
    for nested in [&[0x81][..], &[0xa1, 0x01], &[0xd9, 0xd9, 0xf7], &[0x9f], &[0x5f], &[0x7f]] {
        let body = [b"\xd9\xd9\xf7".as_slice(), &nested.repeat(1_000_000)].concat();
        for address in ["call", "query", "read_state"] {
            let path = format!("/api/v3/canister/{id}/{address}");
            let (status, _, said) = server.post(&path, body.clone()).await;
            assert_eq!(status, 400, "{said:?}");
        }
    }
    // In Candid, options: types that are each of the next, and one that is of itself.
    let mut types = b"DIDL".to_vec();
    leb128(&mut types, 100_000);
    for next in 1..100_000 {
        types.push(0x6e);
        leb128(&mut types, next);
    }
    types.extend([0x6e, 0x7f, 1, 0]);
    types.extend([1; 100_000]);
    let mut values = b"DIDL\x01\x6e\x00\x01\x00".to_vec();
    values.extend(vec![1; 1_000_000]);
    for argument in [types, values] {
        for method in ["canister_status", "install_code", "create_canister"] {
            let agent = server.anonymous();
            let call = agent.update(&MANAGEMENT, method).with_arg(argument.clone());
            let refused = call.with_effective_canister_id(id).call_and_wait().await.unwrap_err();
            assert!(refused.to_string().contains("Error decoding candid"), "{method}: {refused}");
        }
    }
}

fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Arguments that would take about forever to decode: 2^40 values that take no bytes.
fn endless() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for element in [
        &[0x7f][..], // null
        &[0x70][..], // reserved
        &[0x01][..], // record {}
    ] {
        let mut bytes = b"DIDL".to_vec();
        // Type 0 is the vector; type 1 the empty record.
        bytes.extend([2, 0x6d]);
        bytes.extend(element);
        bytes.extend([0x6c, 0]);
        // An argument of type 0, with so many values.
        bytes.extend([1, 0]);
        leb128(&mut bytes, 1 << 40);
        // The same, as a field that nobody knows of a record.
        let mut field = b"DIDL".to_vec();
        field.extend([3, 0x6d]);
        field.extend(element);
        field.extend([0x6c, 0, 0x6c, 1, 5, 0, 1, 2]);
        field.extend(&bytes[bytes.len() - 6..]);
        all.extend([bytes, field]);
    }
    all
}

#[tokio::test]
async fn arguments_that_never_end_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let stranger = server.agent(ed25519(7));
    let began = Instant::now();
    for argument in endless() {
        for method in [
            "provisional_create_canister_with_cycles",
            "create_canister",
            "install_code",
            "install_chunked_code",
            "upload_chunk",
            "stored_chunks",
            "canister_status",
            "update_settings",
            "stop_canister",
            "take_canister_snapshot",
            "provisional_top_up_canister",
        ] {
            let call = stranger.update(&MANAGEMENT, method).with_arg(argument.clone());
            let refused = call.with_effective_canister_id(id).call_and_wait().await.unwrap_err();
            assert!(refused.to_string().contains("Error decoding candid"), "{method}: {refused}");
        }
        let call = stranger.query(&MANAGEMENT, "canister_status").with_arg(argument);
        let refused = call.with_effective_canister_id(id).call().await.unwrap_err();
        assert!(refused.to_string().contains("Error decoding candid"), "{refused}");
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    // The largest that means something is not too much.
    let chunk = UploadChunkArgs { canister_id: id, chunk: vec![1; 1 << 20] };
    let call = server.anonymous();
    let call = call.update(&MANAGEMENT, "upload_chunk").with_arg(Encode!(&chunk).unwrap());
    call.with_effective_canister_id(id).call_and_wait().await.unwrap();
}

#[tokio::test]
async fn chunks_are_too_long_together() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let send = async |method: &str, argument: Vec<u8>| {
        let call = agent.update(&MANAGEMENT, method).with_arg(argument);
        call.with_effective_canister_id(id).call_and_wait().await
    };
    let chunk = UploadChunkArgs { canister_id: id, chunk: vec![1; 1 << 20] };
    let stored = send("upload_chunk", Encode!(&chunk).unwrap()).await.unwrap();
    let hash = candid::decode_one::<ChunkHash>(&stored).unwrap();
    let args = InstallChunkedCodeArgs {
        mode: CanisterInstallMode::Reinstall,
        target_canister: id,
        store_canister: None,
        chunk_hashes_list: vec![hash; 20_000],
        wasm_module_hash: vec![0; 32],
        arg: Vec::new(),
        sender_canister_version: None,
    };
    let refused = send("install_chunked_code", Encode!(&args).unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("together have 20971520000 bytes"), "{refused}");
}

#[tokio::test]
async fn a_canister_keeps_so_many_chunks() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let upload = async |number: u8| {
        let chunk = UploadChunkArgs { canister_id: id, chunk: vec![number] };
        let call = agent.update(&MANAGEMENT, "upload_chunk").with_arg(Encode!(&chunk).unwrap());
        call.with_effective_canister_id(id).call_and_wait().await
    };
    for number in 0..100 {
        upload(number).await.unwrap();
    }
    let refused = upload(100).await.unwrap_err();
    assert!(refused.to_string().contains("keeps at most 100 chunks"), "{refused}");
    // One that is there takes no further room.
    upload(99).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_come_are_not_waited_for() {
    let (server, id) = Server::with(COUNTER).await;
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let began = Instant::now();
    let mut slow = JoinSet::new();
    for _ in 0..60 {
        let address = address.clone();
        slow.spawn(async move {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let head = format!(
                "POST /api/v2/canister/{id}/query HTTP/1.1\r\nhost: {address}\r\n\
                 content-type: application/cbor\r\ncontent-length: 5000000\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&[0; 100_000]).await.unwrap();
            let mut said = String::new();
            // The server may close what it did not read.
            let _ = stream.read_to_string(&mut said).await;
            said
        });
    }
    // They take the room of large bodies; small ones need none.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..10 {
        super::server::update(&server.anonymous(), id, "add", &[]).await;
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let said = slow.join_all().await;
    let late = said.iter().filter(|said| said.starts_with("HTTP/1.1 408")).count();
    assert!(late > 50, "{late}");
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_id_is_given_once() {
    let server = Server::start().await;
    let mut created = JoinSet::new();
    for number in 0..240_u64 {
        // Eight callers ask for each.
        let mut id = (0xffff_ffff_ffe0_0000 + number / 8).to_be_bytes().to_vec();
        id.extend([1, 1]);
        let args = ProvisionalCreateCanisterWithCyclesArgs {
            specified_id: Some(Principal::from_slice(&id)),
            ..Default::default()
        };
        let agent = server.agent(ed25519(number as u8));
        created.spawn(async move {
            let call = agent.update(&MANAGEMENT, "provisional_create_canister_with_cycles");
            let call = call.with_arg(Encode!(&args).unwrap());
            let call = call.with_effective_canister_id(Principal::from_slice(&id));
            let reply = call.call_and_wait().await.ok()?;
            Some(candid::decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id)
        });
    }
    let created: Vec<Principal> = created.join_all().await.into_iter().flatten().collect();
    assert_eq!(created.iter().collect::<BTreeSet<_>>().len(), created.len());
    assert_eq!(created.len(), 30);
}

/// As dfx sends it unless told otherwise: to a canister that is nowhere here.
#[tokio::test]
async fn a_canister_is_created_at_any_address() {
    let server = Server::start().await;
    let agent = server.anonymous();
    let foreign = Principal::from_text("rwlgt-iiaaa-aaaaa-aaaaa-cai").unwrap();
    for effective in [foreign, MANAGEMENT, Principal::anonymous()] {
        for version in ["v2", "v3", "v4"] {
            let argument = Encode!(&ProvisionalCreateCanisterWithCyclesArgs::default()).unwrap();
            let create = agent.update(&MANAGEMENT, "provisional_create_canister_with_cycles");
            let create = create.with_effective_canister_id(effective).with_arg(argument);
            let signed = create.sign().unwrap();
            let path = format!("/api/{version}/canister/{effective}/call");
            let (status, _, _) = server.post(&path, signed.signed_update).await;
            assert_eq!(status, if version == "v2" { 202 } else { 200 });
            // Its status is read at the same address.
            let (reply, _) = agent.wait(&signed.request_id, effective).await.unwrap();
            let created = candid::decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id;
            assert_eq!(
                agent.read_state_canister_controllers(created).await.unwrap(),
                [Principal::anonymous()]
            );
        }
    }
    // All else is for canisters of this subnet.
    let refused = agent.update(&foreign, "add").call_and_wait().await.unwrap_err();
    assert!(refused.to_string().contains("canister_not_found"), "{refused}");
    let refused = agent.read_state_canister_module_hash(foreign).await.unwrap_err();
    assert!(refused.to_string().contains("canister_not_found"), "{refused}");
}

#[tokio::test]
async fn the_canister_of_a_refused_module_is_named() {
    let server = Server::start().await;
    server.add(COUNTER);
    let second = server.add(COUNTER);
    let agent = server.anonymous();
    let argument = ic_management_canister_types::InstallCodeArgs {
        mode: CanisterInstallMode::Reinstall,
        canister_id: second,
        wasm_module: b"\0asm\x01\0\0\0\xff".to_vec(),
        arg: Vec::new(),
        sender_canister_version: None,
    };
    let call = agent.update(&MANAGEMENT, "install_code").with_arg(Encode!(&argument).unwrap());
    let refused = call.with_effective_canister_id(second).call_and_wait().await.unwrap_err();
    assert!(refused.to_string().contains(&format!("Error from Canister {second}")), "{refused}");
}

/// As dfx prints it at the end of a deployment.
#[tokio::test]
async fn the_address_of_a_canister_leads_to_what_it_is() {
    let (server, id) = Server::with(COUNTER).await;
    let get = async |path: &str| {
        let answer =
            server.client.clone().get(format!("{}{path}", server.url)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for path in
        [format!("/?canisterId={id}"), format!("/?canisterId=rwlgt-iiaaa-aaaaa-aaaaa-cai&id={id}")]
    {
        let (status, said) = get(&path).await;
        assert_eq!(status, 200, "{said}");
        assert!(said.contains(&format!("Canister {id}, running")), "{said}");
        assert!(said.contains("service : {}") && !said.contains("for controllers"), "{said}");
    }
    let (status, said) = get("/").await;
    assert!(status == 200 && said.contains(&id.to_text()), "{said}");
    assert_eq!(get("/?id=rwlgt-iiaaa-aaaaa-aaaaa-cai").await.0, 404);
    assert_eq!(get("/?id=x").await.0, 400);
}
