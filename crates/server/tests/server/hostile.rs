//! Hostile requests: those that try to exhaust memory or time, mutated ones, and bounded runs of the fuzz
//! targets, which `fuzz/` runs with `cargo fuzz` for any time.

use std::time::{Duration, Instant};

use candid::{Encode, Principal};
use ic_certification::Label;
use ic_management_canister_types::{
    CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, UploadChunkArgs,
};
use ic_transport_types::EnvelopeContent;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::server::{COUNTER, Server, ed25519, in_minutes, number, query, unsigned, update};
use super::targets::{self, bounded};

const MANAGEMENT: Principal = Principal::management_canister();

/// `vec null` of 2^62: few bytes, endless work.
pub const ENDLESS: &[u8] = b"DIDL\x01\x6d\x7f\x01\x00\x80\x80\x80\x80\x80\x80\x80\x80\x40";

/// Calls `raw_rand` with the argument. Replies with `raw_rand`, or with the message of the reject.
pub const ASKS: &str = r#"(module
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "msg_reject_msg_size" (func $text_size (result i32)))
    (import "ic0" "msg_reject_msg_copy" (func $text_copy (param i32 i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (table 2 funcref)
    (elem (i32.const 0) $replied $rejected)
    (data (i32.const 0) "raw_rand")
    (func $replied (param i32)
        (call $append (i32.const 0) (i32.const 8))
        (call $reply))
    (func $rejected (param i32)
        (call $text_copy (i32.const 64) (i32.const 0) (call $text_size))
        (call $append (i32.const 64) (call $text_size))
        (call $reply))
    (func (export "canister_update ask")
        (call $copy (i32.const 64) (i32.const 0) (call $size))
        (call $new (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8)
            (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
        (call $data (i32.const 64) (call $size))
        (drop (call $perform))))"#;

#[tokio::test]
async fn endless_arguments_of_canisters_are_refused_at_once() {
    let (server, id) = Server::with(ASKS).await;
    let began = Instant::now();
    let answer = server.anonymous().update(&id, "ask").with_arg(ENDLESS).call_and_wait().await;
    let answer = String::from_utf8(answer.unwrap()).unwrap();
    assert!(answer.starts_with("Error decoding candid"), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let usual = server.anonymous().update(&id, "ask").with_arg(b"DIDL\0\0").call_and_wait().await;
    assert_eq!(usual.unwrap(), b"raw_rand");
}

fn read_state(paths: Vec<Vec<Label>>) -> Vec<u8> {
    unsigned(EnvelopeContent::ReadState {
        ingress_expiry: in_minutes(4),
        sender: Principal::anonymous(),
        paths,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_of_many_labels_are_refused() {
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
                let (status, _, answer) = server.post(&address, body.clone()).await;
                assert!(matches!(status, 400 | 404), "{first}: {status}");
                assert!(answer.len() < 1_000);
            }
        }
    }
    assert_eq!(number(&query(&server.anonymous(), id, "get").await), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_nesting_is_refused() {
    let (server, id) = Server::with(COUNTER).await;
    // Arrays, maps, tags, byte strings and texts of indefinite length.
    for nested in [&[0x81][..], &[0xa1, 0x01], &[0xd9, 0xd9, 0xf7], &[0x9f], &[0x5f], &[0x7f]] {
        let body = [b"\xd9\xd9\xf7".as_slice(), &nested.repeat(1_000_000)].concat();
        for address in ["call", "query", "read_state"] {
            let path = format!("/api/v3/canister/{id}/{address}");
            let (status, _, answer) = server.post(&path, body.clone()).await;
            assert_eq!(status, 400, "{answer:?}");
        }
    }
    // Candid options: a chain of types, and a recursive type.
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

/// Returns arguments with 2^62 values that occupy no bytes, which would take very long to decode.
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
        // An argument of type 0.
        bytes.extend([1, 0]);
        leb128(&mut bytes, 1 << 62);
        // The same as an unknown field of a record.
        let mut field = b"DIDL".to_vec();
        field.extend([3, 0x6d]);
        field.extend(element);
        field.extend([0x6c, 0, 0x6c, 1, 5, 0, 1, 2]);
        field.extend(&bytes[bytes.len() - 9..]);
        all.extend([bytes, field]);
    }
    all
}

#[tokio::test]
async fn arguments_that_take_too_long_are_refused() {
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
    // The largest valid argument is accepted.
    let chunk = UploadChunkArgs { canister_id: id, chunk: vec![1; 1 << 20] };
    let call = server.anonymous();
    let call = call.update(&MANAGEMENT, "upload_chunk").with_arg(Encode!(&chunk).unwrap());
    call.with_effective_canister_id(id).call_and_wait().await.unwrap();
}

#[tokio::test]
async fn a_module_of_too_many_chunks_is_refused() {
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
async fn the_chunks_of_a_canister_are_limited() {
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
    assert!(refused.to_string().contains("maximum number of entries, 100"), "{refused}");
    // A chunk that exists already can be repeated.
    upload(99).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_do_not_block_other_requests() {
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
            let mut answer = String::new();
            // The server may close the connection before it has read everything.
            let _ = stream.read_to_string(&mut answer).await;
            answer
        });
    }
    // They occupy the memory for large bodies; small bodies need none.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..10 {
        update(&server.anonymous(), id, "add", &[]).await;
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let answers = slow.join_all().await;
    let late = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 408")).count();
    assert!(late > 50, "{late}");
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
}

/// Runs `target` on bounded inputs, and checks that they cover the given cases often enough.
fn run(target: fn(&[u8]), name: &str, inputs: u64, cases: &[(&str, usize)]) {
    bounded::run(target, inputs, 2_000);
    bounded::enough(name, cases);
}

#[test]
fn request_bodies() {
    let cases = [("let in", 100), ("refused", 200), ("not there", 20)];
    run(targets::request_body, "request_body", 200, &cases);
}

#[test]
fn management_arguments() {
    let cases = [("ran", 100), ("not decoded", 100), ("rejected", 50)];
    run(targets::management_argument, "management_argument", 200, &cases);
}

#[test]
fn state_paths() {
    let cases = [("read", 100), ("refused", 100)];
    run(targets::state_path, "state_path", 200, &cases);
}

/// Runs ten times as many other inputs.
#[test]
#[ignore = "some minutes: cargo test --release --test server -- --ignored"]
fn many_more() {
    for number in 10_000..12_000 {
        println!("input {number}");
        let input = bounded::input(number, 2_000);
        targets::request_body(&input);
        targets::management_argument(&input);
        targets::state_path(&input);
    }
}

/// A change of the body of a valid call.
#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    Replace(Vec<u8>),
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), 1_u8..).prop_map(|(at, by)| Change::Flip(at.index(100_000), by)),
        1 => any::<prop::sample::Index>().prop_map(|at| Change::Cut(at.index(100_000))),
        2 => (any::<prop::sample::Index>(), vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Change::Insert(at.index(100_000), bytes)),
        1 => vec(any::<u8>(), 0..200).prop_map(Change::Replace),
    ]
}

impl Change {
    fn apply(self, body: &mut Vec<u8>) {
        let length = body.len().max(1);
        match self {
            Self::Flip(at, by) if !body.is_empty() => body[at % length] ^= by,
            Self::Flip(..) => {}
            Self::Cut(at) => body.truncate(at % length),
            Self::Insert(at, bytes) => {
                let at = (at % length).min(body.len());
                drop(body.splice(at..at, bytes));
            }
            Self::Replace(bytes) => *body = [b"\xd9\xd9\xf7".as_slice(), &bytes].concat(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_bodies_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    // A signed call: a change of any bit invalidates it.
    let agent = server.agent(ed25519(1));
    let call = agent.update(&id, "add").sign().unwrap().signed_update;
    let addresses = [
        format!("/api/v2/canister/{id}/call"),
        format!("/api/v4/canister/{id}/call"),
        format!("/api/v3/canister/{id}/query"),
        format!("/api/v3/canister/{id}/read_state"),
        format!("/api/v2/subnet/{}/read_state", Principal::self_authenticating(&server.root_key)),
    ];
    let handle = tokio::runtime::Handle::current();
    let answered = tokio::task::block_in_place(|| {
        let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
        let seeded = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config, seeded).run(
            &(vec(changes(), 1..4), 0_usize..5),
            |(changes, address)| {
                let mut body = call.clone();
                changes.into_iter().for_each(|change| change.apply(&mut body));
                prop_assume!(body != call);
                let (status, _, answer) = handle.block_on(server.post(&addresses[address], body));
                prop_assert!((400..500).contains(&status), "{status}");
                prop_assert!(!answer.is_empty());
                Ok(())
            },
        )
    });
    answered.unwrap();
    assert_eq!(number(&query(&agent, id, "get").await), 0);
}
