//! Services of the subnet: HTTPS outcalls and threshold signatures.

use candid::types::reference::Func;
use candid::{CandidType, Principal};
use ic_management_canister_types::{
    Bip341, EcdsaCurve, EcdsaKeyId, EcdsaPublicKeyArgs, HttpHeader, HttpMethod, HttpRequestArgs,
    SchnorrAlgorithm, SchnorrAux, SchnorrKeyId, SchnorrPublicKeyArgs, SignWithEcdsaArgs,
    SignWithSchnorrArgs, TransformContext, TransformFunc,
};
use stablebench_conformance::MessageKind;
use stablebench_conformance::subnet::{Outcall, SubnetCase};

use super::script::{Case, candid, id, of_group, without_heartbeat};

/// A module whose `fetch` sends its argument as an HTTPS outcall with 1 T cycles, and `poorly` with
/// 1 M. Both return the response, or code and text of the reject, and the refunded cycles. `forget`
/// replies before there is a response, and `last` returns that response. The queries are functions
/// that transform responses.
const FETCHER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_reject_code" (func $reject_code (result i32)))
    (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
    (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
    (import "ic0" "msg_caller_size" (func $caller_size (result i32)))
    (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
    (import "ic0" "msg_cycles_refunded128" (func $refunded (param i32)))
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_cycles_add128" (func $cycles (param i64 i64)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (memory 40)
    (table 4 funcref) (elem (i32.const 0) $answered $rejected $kept $kept_reject)
    (data (i32.const 64) "http_requestno transformtransformed")
    (global $last (mut i32) (i32.const 0))
    (func $send (param $cycles i64) (param $reply i32) (param $reject i32)
        (call $new (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 12)
            (local.get $reply) (i32.const 0) (local.get $reject) (i32.const 0))
        (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size))
        (call $data (i32.const 1024) (call $arg_size))
        (call $cycles (i64.const 0) (local.get $cycles))
        (drop (call $perform)))
    (func $done
        (call $refunded (i32.const 0)) (call $append (i32.const 0) (i32.const 16))
        (i64.store (i32.const 0) (call $counter (i32.const 1)))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func $answered (param i32)
        (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size))
        (call $append (i32.const 1024) (call $arg_size)) (call $done))
    (func $rejected (param i32)
        (i32.store (i32.const 0) (call $reject_code)) (call $append (i32.const 0) (i32.const 4))
        (call $reject_copy (i32.const 1024) (i32.const 0) (call $reject_size))
        (call $append (i32.const 1024) (call $reject_size)) (call $done))
    (func $kept (param i32)
        (global.set $last (call $arg_size))
        (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size)))
    (func $kept_reject (param i32)
        (global.set $last (call $reject_size))
        (call $reject_copy (i32.const 1024) (i32.const 0) (call $reject_size)))
    (func (export "canister_update fetch")
        (call $send (i64.const 1000000000000) (i32.const 0) (i32.const 1)))
    (func (export "canister_update poorly")
        (call $send (i64.const 1000000) (i32.const 0) (i32.const 1)))
    (func (export "canister_update forget")
        (call $send (i64.const 1000000000000) (i32.const 2) (i32.const 3)) (call $reply))
    (func (export "canister_query last")
        (call $append (i32.const 1024) (global.get $last)) (call $reply))
    (func (export "canister_query transform")
        (call $append (i32.const 88) (i32.const 11))
        (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size))
        (call $append (i32.const 1024) (call $arg_size)) (call $reply))
    (func (export "canister_query caller")
        (call $caller_copy (i32.const 1024) (i32.const 0) (call $caller_size))
        (call $append (i32.const 1024) (call $caller_size)) (call $reply))
    (func (export "canister_query refuse") (call $reject (i32.const 76) (i32.const 12)))
    (func (export "canister_query fail") (call $trap (i32.const 76) (i32.const 12)))
    (func (export "canister_query silent")))"#;

/// All cases.
pub fn cases() -> Vec<SubnetCase> {
    let cases = vec![
        outcalls(),
        outcalls_refused(),
        transforms(),
        outcalls_of_users(),
        public_keys(),
        signatures(),
    ];
    of_group("services", cases)
}

fn request() -> HttpRequestArgs {
    HttpRequestArgs {
        url: "https://example.com/a?b=c".to_owned(),
        method: HttpMethod::GET,
        ..HttpRequestArgs::default()
    }
}

fn header(name: &str, value: &str) -> HttpHeader {
    HttpHeader { name: name.to_owned(), value: value.to_owned() }
}

fn response(status: u16, body: &[u8]) -> Outcall {
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    Outcall::Response { status, headers, body: body.to_vec() }
}

/// Canister 1 sends an outcall.
fn fetch(case: &mut Case, request: impl CandidType, outcalls: Vec<Outcall>) {
    case.method(MessageKind::Update, 1, "fetch", &candid((request,)));
    case.answered_by(outcalls);
}

fn fetching(case: Case, name: &str) -> SubnetCase {
    case.of(name, vec![without_heartbeat(), FETCHER.to_owned()])
}

fn outcalls() -> SubnetCase {
    let mut case = Case::default();
    fetch(&mut case, request(), vec![response(200, b"hello")]);
    fetch(&mut case, request(), vec![response(404, &[])]);
    for most in [0, 100, 1_000, 2_000_000] {
        let request = HttpRequestArgs { max_response_bytes: Some(most), ..request() };
        fetch(&mut case, request, vec![Outcall::Reject { code: 1, message: "no".to_owned() }]);
    }
    for code in 1..6 {
        let message = format!("rejected with {code}");
        fetch(&mut case, request(), vec![Outcall::Reject { code, message }]);
    }
    let post = HttpRequestArgs {
        method: HttpMethod::POST,
        headers: vec![header("a", "b"), header("content-type", "text/plain")],
        body: Some(vec![b'x'; 10_000]),
        max_response_bytes: Some(5_000),
        ..request()
    };
    fetch(&mut case, post, vec![response(201, &[b'y'; 5_000])]);
    let head = HttpRequestArgs { method: HttpMethod::HEAD, ..request() };
    fetch(&mut case, head, vec![response(200, &[])]);
    let headers = (0..65).map(|number| (number.to_string(), "v".to_owned())).collect();
    let crowded = Outcall::Response { status: 200, headers, body: Vec::new() };
    fetch(&mut case, request(), vec![crowded]);
    let headers = vec![("h".to_owned(), "v".repeat(8_193))];
    let long = Outcall::Response { status: 200, headers, body: Vec::new() };
    fetch(&mut case, request(), vec![long]);
    let unreplicated = HttpRequestArgs { is_replicated: Some(true), ..request() };
    fetch(&mut case, unreplicated, vec![response(200, b"hello")]);
    case.method(MessageKind::Update, 1, "forget", &candid((request(),)));
    case.method(MessageKind::Query, 1, "last", &[]);
    // An outcall expires after a minute.
    case.rounds_after(2, 29);
    case.method(MessageKind::Query, 1, "last", &[]);
    case.rounds_after(1, 2);
    case.method(MessageKind::Query, 1, "last", &[]);
    case.rounds(2);
    case.method(MessageKind::Query, 1, "last", &[]);
    fetching(case, "outcalls")
}

fn outcalls_refused() -> SubnetCase {
    let mut case = Case::default();
    case.method(MessageKind::Update, 1, "poorly", &candid((request(),)));
    case.method(MessageKind::Update, 1, "poorly", b"no candid");
    let long_url = HttpRequestArgs { url: "u".repeat(8_193), ..request() };
    fetch(&mut case, long_url, vec![]);
    let too_much = HttpRequestArgs { max_response_bytes: Some(2_000_001), ..request() };
    fetch(&mut case, too_much, vec![]);
    let headers = |headers: Vec<HttpHeader>| HttpRequestArgs { headers, ..request() };
    fetch(&mut case, headers(vec![header("a", "b"); 65]), vec![]);
    fetch(&mut case, headers(vec![header(&"a".repeat(8_193), "b")]), vec![]);
    fetch(&mut case, headers(vec![header("a", &"b".repeat(8_193))]), vec![]);
    fetch(&mut case, headers(vec![header("a", &"b".repeat(8_000)); 7]), vec![]);
    let body = HttpRequestArgs { body: Some(vec![0; 2_000_001]), ..request() };
    fetch(&mut case, body, vec![]);
    fetching(case, "outcalls_refused")
}

fn transforms() -> SubnetCase {
    let mut case = Case::default();
    let transformed = |method: &str, principal: Principal| HttpRequestArgs {
        transform: Some(TransformContext {
            function: TransformFunc(Func { principal, method: method.to_owned() }),
            context: vec![1, 2, 3],
        }),
        max_response_bytes: Some(600),
        ..request()
    };
    for method in ["transform", "caller", "refuse", "fail", "silent", "missing", "fetch", ""] {
        fetch(&mut case, transformed(method, id(1)), vec![response(200, b"hello")]);
    }
    fetch(&mut case, transformed("transform", id(1)), vec![response(200, &[b'x'; 550])]);
    let short = HttpRequestArgs { max_response_bytes: Some(200), ..transformed("fail", id(1)) };
    fetch(&mut case, short, vec![response(200, b"hello")]);
    fetch(&mut case, transformed("transform", id(0)), vec![]);
    let reject = Outcall::Reject { code: 2, message: "not transformed".to_owned() };
    fetch(&mut case, transformed("transform", id(1)), vec![reject]);
    fetching(case, "transforms")
}

fn outcalls_of_users() -> SubnetCase {
    let mut case = Case::default();
    case.user(1, "http_request", (request(),));
    case.manage_with(1_000_000_000_000, "http_request", (request(),));
    case.answered_by(vec![response(200, b"hello")]);
    fetching(case, "outcalls_of_users")
}

/// Cycles for signatures with any key.
const ENOUGH: u64 = 30_000_000_000;
/// Names of keys, the last of which does not exist.
const NAMES: [&str; 4] = ["key_1", "test_key_1", "dfx_test_key", "other"];

fn ecdsa(name: &str) -> EcdsaKeyId {
    EcdsaKeyId { curve: EcdsaCurve::Secp256k1, name: name.to_owned() }
}

fn schnorr(algorithm: SchnorrAlgorithm, name: &str) -> SchnorrKeyId {
    SchnorrKeyId { algorithm, name: name.to_owned() }
}

const ALGORITHMS: [SchnorrAlgorithm; 2] =
    [SchnorrAlgorithm::Bip340secp256k1, SchnorrAlgorithm::Ed25519];

fn public_keys() -> SubnetCase {
    let mut case = Case::default().with_keys();
    let paths = [vec![], vec![vec![]], vec![vec![1, 2], vec![3; 40]]];
    for name in NAMES {
        for derivation_path in paths.clone() {
            for canister_id in [None, Some(id(1))] {
                let (key_id, derivation_path) = (ecdsa(name), derivation_path.clone());
                let args = EcdsaPublicKeyArgs { canister_id, derivation_path, key_id };
                case.manage("ecdsa_public_key", (args,));
            }
            for algorithm in ALGORITHMS {
                let (key_id, derivation_path) = (schnorr(algorithm, name), derivation_path.clone());
                let args = SchnorrPublicKeyArgs { canister_id: None, derivation_path, key_id };
                case.manage("schnorr_public_key", (args,));
            }
        }
    }
    let args = |parts: usize| EcdsaPublicKeyArgs {
        canister_id: None,
        derivation_path: vec![vec![1]; parts],
        key_id: ecdsa("key_1"),
    };
    case.manage("ecdsa_public_key", (args(254),));
    case.manage("ecdsa_public_key", (args(255),));
    case.manage("ecdsa_public_key", (args(256),));
    case.user(0, "ecdsa_public_key", (args(0),));
    case.named("public_keys")
}

fn signatures() -> SubnetCase {
    let mut case = Case::default().with_keys();
    let ecdsa = |name: &str, hash: usize, parts: usize| SignWithEcdsaArgs {
        message_hash: vec![7; hash],
        derivation_path: vec![vec![1, 2]; parts],
        key_id: ecdsa(name),
    };
    let schnorr = |name: &str, algorithm, aux| SignWithSchnorrArgs {
        message: b"a message".to_vec(),
        derivation_path: vec![vec![1, 2]],
        key_id: schnorr(algorithm, name),
        aux,
    };
    // The fee depends on the size of the subnet that holds the key, which the network has as well.
    for name in ["key_1", "other"] {
        case.manage_with(ENOUGH, "sign_with_ecdsa", (ecdsa(name, 32, 1),));
        for algorithm in ALGORITHMS {
            let args = schnorr(name, algorithm, None);
            case.manage_with(ENOUGH, "sign_with_schnorr", (args,));
        }
    }
    for cycles in [0, 26_153_846_152, 26_153_846_153, 26_153_846_154] {
        case.manage_with(cycles, "sign_with_ecdsa", (ecdsa("key_1", 32, 0),));
        let args = schnorr("key_1", SchnorrAlgorithm::Ed25519, None);
        case.manage_with(cycles, "sign_with_schnorr", (args,));
    }
    for (hash, parts) in [(0, 1), (31, 1), (33, 1), (32, 255), (32, 256)] {
        case.manage_with(ENOUGH, "sign_with_ecdsa", (ecdsa("key_1", hash, parts),));
    }
    for algorithm in ALGORITHMS {
        for root in [0, 31, 32] {
            let aux = SchnorrAux::Bip341(Bip341 { merkle_root_hash: vec![9; root] });
            let args = schnorr("key_1", algorithm, Some(aux));
            case.manage_with(ENOUGH, "sign_with_schnorr", (args,));
        }
    }
    case.user(0, "sign_with_ecdsa", (ecdsa("key_1", 32, 0),));
    case.named("signatures")
}
