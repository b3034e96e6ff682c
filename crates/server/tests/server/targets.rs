//! The fuzz targets of the server, for `cargo fuzz` and for the tests.
//!
//! ```text
//!   request_body          bytes → requests of every kind, valid and damaged → every address
//!   management_argument   bytes → Candid, valid and damaged → every management method
//!   state_path            bytes → paths of the state tree → read_state
//! ```
//!
//! A target panics if a check fails. It ignores bytes that are too short for an input. The server of an
//! input has a canister that anybody controls, and a witness that no request may change.

#[path = "../../../replica/tests/replica/fuzzing/bounded.rs"]
#[allow(dead_code, reason = "the replica's tests use the rest")]
pub mod bounded;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arbitrary::{Result, Unstructured};
use candid::{Encode, Nat, Principal};
use ic_certification::{Certificate, Label, LookupResult};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, CanisterSettings, ChunkHash, CreateCanisterArgs,
    DeleteCanisterSnapshotArgs, EnvironmentVariable, FetchCanisterLogsArgs, InstallChunkedCodeArgs,
    InstallCodeArgs, LoadCanisterSnapshotArgs, ProvisionalCreateCanisterWithCyclesArgs,
    ProvisionalTopUpCanisterArgs, TakeCanisterSnapshotArgs, UpdateSettingsArgs, UploadChunkArgs,
};
use ic_transport_types::{
    Delegation, Envelope, EnvelopeContent, QueryResponse, ReadStateResponse, SignedDelegation,
};
use serde_cbor_2::Value;
use tokio::runtime::Runtime;

use crate::server::{
    CLOSED, COUNTER, Server, anonymous_query, call, in_minutes, number, unsigned, wasm,
};
use bounded::{bounded_memory, damaged, met};

const REQUEST_BODY: &str = "request_body";
const MANAGEMENT_ARGUMENT: &str = "management_argument";
const STATE_PATH: &str = "state_path";

const KINDS: [&str; 3] = ["call", "query", "read_state"];

/// Sends requests of every kind, made from `bytes`, to every address.
pub fn request_body(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    test(async |subject| {
        for _ in 0..4 {
            let Ok((path, kind, body)) = any_request(subject, &mut input) else { return };
            let Some(answer) = subject.send(&path, kind, body).await else { continue };
            met(REQUEST_BODY, if answer.status < 400 { "let in" } else { "refused" });
            if answer.status == 404 {
                met(REQUEST_BODY, "not there");
            }
        }
    });
}

type Request = (String, &'static str, Option<Vec<u8>>);

fn any_request(of: &Subject, input: &mut Unstructured<'_>) -> Result<Request> {
    // Half of them are sent to an address of their kind.
    let what = *input.choose(&KINDS)?;
    let path = if input.arbitrary()? {
        let version = *input.choose(&["v2", "v3"])?;
        let version = if what == "call" { "v4" } else { version };
        format!("/api/{version}/canister/{}/{what}", of.id)
    } else {
        address(of, input)?
    };
    let types = ["", "application/json", "application/cbor; charset=utf-8", "text/plain"];
    let kind = if input.ratio(1, 16)? { *input.choose(&types)? } else { "application/cbor" };
    let body = match input.int_in_range(0..=15)? {
        0 => None,
        1 => Some(input.bytes(input.len().min(64))?.to_vec()),
        2..=3 => Some(cbor(input)?),
        4..=7 => {
            let whole = request(of, what, input)?;
            Some(damaged(&whole, 0, input)?)
        }
        _ => Some(request(of, what, input)?),
    };
    Ok((path, kind, body))
}

fn address(of: &Subject, input: &mut Unstructured<'_>) -> Result<String> {
    let canister = |of: &Subject, input: &mut Unstructured<'_>| -> Result<Principal> {
        if input.arbitrary()? { Ok(of.id) } else { principal(of, input) }
    };
    let version = |input: &mut Unstructured<'_>| input.choose(&["v2", "v3", "v4"]).copied();
    Ok(match input.int_in_range(0..=15)? {
        0 => format!("/{}", input.arbitrary::<&str>()?),
        1 => format!("/api/{}/canister/{}/call", version(input)?, input.arbitrary::<&str>()?),
        2 => format!("/?{}={}", input.choose(&["id", "canisterId"])?, canister(of, input)?),
        3 => format!("/?id={}", input.arbitrary::<&str>()?),
        4 => "/api/v2/status".to_owned(),
        5..=6 => {
            let what = *input.choose(&["call", "read_state"])?;
            format!("/api/{}/subnet/{}/{what}", version(input)?, of.subnet())
        }
        _ => {
            let what = *input.choose(&["call", "query", "read_state", "status"])?;
            format!("/api/{}/canister/{}/{what}", version(input)?, canister(of, input)?)
        }
    })
}

/// Calls methods of the management canister with `bytes` as arguments.
pub fn management_argument(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    test(async |subject| {
        for _ in 0..4 {
            let Ok((path, body)) = management_request(subject, &mut input) else { return };
            let answer = subject.post(&path, body).await;
            let has = |text: &[u8]| answer.body.windows(text.len()).any(|here| here == text);
            met(
                MANAGEMENT_ARGUMENT,
                match answer.status {
                    400.. => "refused",
                    _ if has(b"Error decoding candid") => "not decoded",
                    _ if has(b"certificate") => "ran",
                    _ => "rejected",
                },
            );
        }
    });
}

fn management_request(of: &Subject, input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let method = *input.choose(METHODS)?;
    let canister = if input.ratio(1, 8)? { principal(of, input)? } else { of.id };
    let argument = match input.int_in_range(0..=7)? {
        0 => input.bytes(input.len().min(64))?.to_vec(),
        1 => any_candid(input)?,
        2 => argument(input.choose(METHODS)?, canister, input)?,
        3..=4 => damaged(&argument(method, canister, input)?, 0, input)?,
        _ => argument(method, canister, input)?,
    };
    let (management, id) = (Principal::management_canister(), of.id);
    Ok(if input.ratio(1, 5)? {
        let content = anonymous_query(management, method, argument);
        (format!("/api/v3/canister/{id}/query"), unsigned(content))
    } else {
        let sender = Principal::anonymous();
        let content = call(sender, management, method, argument, in_minutes(4));
        (format!("/api/v3/canister/{id}/call"), unsigned(content))
    })
}

/// Reads paths made from `bytes`, and checks that private sections are not shown.
pub fn state_path(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    test(async |subject| {
        for _ in 0..4 {
            let Ok((address, body)) = read_request(subject, &mut input) else { break };
            let answer = subject.post(&address, body).await;
            if answer.status != 200 {
                met(STATE_PATH, "refused");
                continue;
            }
            let read: ReadStateResponse =
                serde_cbor_2::from_slice(&answer.body).expect("an answer");
            let read: Certificate = serde_cbor_2::from_slice(&read.certificate).expect("certified");
            let time = [b"time"];
            assert!(matches!(read.tree.lookup_path(&time), LookupResult::Found(_)));
            let secret = [&b"canister"[..], subject.witness.as_slice(), b"metadata", b"plan"];
            let found = read.tree.lookup_path(&secret);
            assert!(!matches!(found, LookupResult::Found(_)), "{found:?}");
            met(STATE_PATH, "read");
        }
        assert_eq!(subject.count(subject.id).await, 0);
    });
}

fn read_request(of: &Subject, input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let id = if input.ratio(1, 8)? { of.witness } else { principal(of, input)? };
    let address = match input.int_in_range(0..=3)? {
        0 => format!("/api/v3/subnet/{}/read_state", of.subnet()),
        1 => format!("/api/v3/canister/{id}/read_state"),
        _ => format!("/api/v2/canister/{id}/read_state"),
    };
    let mut paths: Vec<Vec<Label>> = Vec::new();
    for _ in 0..input.int_in_range(0..=4)? {
        paths.push(path(of, input)?);
    }
    if input.ratio(1, 32)? {
        let times = *input.choose(&[10, 250, 251, 5_000])?;
        paths = vec![paths; times].concat();
    }
    let body = unsigned(EnvelopeContent::ReadState {
        ingress_expiry: in_minutes(4),
        sender: Principal::anonymous(),
        paths,
    });
    Ok((address, body))
}

/// The time limit of an answer. A synchronous call waits for ten seconds.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The size limit of an answer, more than the largest, which contains a canister's metadata.
const SIZE_LIMIT: usize = 1 << 20;

struct Subject {
    server: Server,
    /// The tested canister, which the anonymous principal controls.
    id: Principal,
    /// A canister that no sender controls.
    witness: Principal,
}

/// The answer to a request.
struct Answer {
    status: u16,
    body: Vec<u8>,
}

/// Sends requests to a server, and checks that it still works.
fn test(requests: impl AsyncFnOnce(&Subject)) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        count_panics();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("a runtime")
    });
    runtime.block_on(async {
        let subject = Subject::new().await;
        requests(&subject).await;
        subject.check().await;
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a thread panicked");
    bounded_memory();
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics, which the server's threads catch.
fn count_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
}

impl Subject {
    async fn new() -> Self {
        let (server, id) = Server::with(COUNTER).await;
        let witness = server.add_with(COUNTER, vec![Principal::management_canister()]);
        Self { server, id, witness }
    }

    fn subnet(&self) -> Principal {
        Principal::self_authenticating(&self.server.root_key)
    }

    /// Sends a request. Returns `None` if the address is not a valid URL.
    async fn send(&self, path: &str, kind: &str, body: Option<Vec<u8>>) -> Option<Answer> {
        let url = reqwest::Url::parse(&format!("{}{path}", self.server.url)).ok()?;
        let request = match body {
            Some(body) => self.server.client.post(url).body(body),
            None => self.server.client.get(url),
        };
        let request = request.header("content-type", kind).build().ok()?;
        let began = Instant::now();
        let answer = self.server.client.execute(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.bytes().await.expect("a whole answer").to_vec();
        assert!(began.elapsed() < TIME_LIMIT, "{path}: {:?}", began.elapsed());
        let expected = [200, 202, 400, 403, 404, 405, 408, 413, 429];
        let text = || String::from_utf8_lossy(&body);
        assert!(expected.contains(&status), "{path}: {status} {}", text());
        assert!(body.len() < SIZE_LIMIT, "{path}: {} bytes", body.len());
        assert!(status < 400 || status == 405 || !body.is_empty(), "{path}: {status}");
        Some(Answer { status, body })
    }

    /// Sends a CBOR body.
    async fn post(&self, path: &str, body: Vec<u8>) -> Answer {
        let answer = self.send(path, "application/cbor", Some(body)).await;
        answer.unwrap_or_else(|| panic!("{path} is not a valid address"))
    }

    /// Returns a canister's count.
    async fn count(&self, id: Principal) -> u64 {
        let content = anonymous_query(id, "get", Vec::new());
        let path = format!("/api/v3/canister/{id}/query");
        let answer = self.post(&path, unsigned(content)).await;
        match serde_cbor_2::from_slice(&answer.body) {
            Ok(QueryResponse::Replied { reply, .. }) => number(&reply.arg),
            other => panic!("{other:?}"),
        }
    }

    /// Checks that the witness is unchanged and executes calls.
    async fn check(&self) {
        assert_eq!(self.count(self.witness).await, 0);
        let content = call(Principal::anonymous(), self.witness, "add", Vec::new(), in_minutes(4));
        let path = format!("/api/v3/canister/{}/call", self.witness);
        let answer = self.post(&path, unsigned(content)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(self.count(self.witness).await, 1);
    }
}

const TAG: &[u8] = b"\xd9\xd9\xf7";

/// Generates a call, query or read of the state, sometimes with invalid signatures.
fn request(of: &Subject, kind: &str, input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let content = content(of, kind, input)?;
    let maybe = |input: &mut Unstructured<'_>| -> Result<Option<Vec<u8>>> {
        Ok(if input.ratio(1, 8)? { Some(input.arbitrary()?) } else { None })
    };
    let sender_delegation = if input.ratio(1, 8)? {
        let delegation = Delegation {
            pubkey: input.arbitrary()?,
            expiration: input.arbitrary()?,
            targets: if input.arbitrary()? { Some(vec![principal(of, input)?]) } else { None },
            permissions: None,
        };
        let signed = SignedDelegation { delegation, signature: input.arbitrary()? };
        Some(vec![signed; input.int_in_range(0..=25)?])
    } else {
        None
    };
    let envelope = Envelope {
        content: Cow::Owned(content),
        sender_pubkey: maybe(input)?,
        sender_sig: maybe(input)?,
        sender_delegation,
    };
    Ok(envelope.encode_bytes())
}

fn content(of: &Subject, kind: &str, input: &mut Unstructured<'_>) -> Result<EnvelopeContent> {
    let ingress_expiry = if input.ratio(1, 8)? { input.arbitrary()? } else { in_minutes(4) };
    let anonymous = Principal::anonymous();
    let sender = if input.ratio(1, 8)? { principal(of, input)? } else { anonymous };
    if kind == "read_state" {
        let paths = (0..input.int_in_range(0..=4)?).map(|_| path(of, input)).collect::<Result<_>>();
        return Ok(EnvelopeContent::ReadState { ingress_expiry, sender, paths: paths? });
    }
    let canister_id = if input.ratio(1, 4)? { principal(of, input)? } else { of.id };
    let known = ["add", "get", "now", "whoami", "echo", "no", "trap", "silent", "missing", ""];
    let method_name = match input.int_in_range(0..=7)? {
        0 => input.arbitrary()?,
        1 => (*input.choose(METHODS)?).to_owned(),
        _ => (*input.choose(&known)?).to_owned(),
    };
    let arg = input.arbitrary()?;
    let nonce = match input.int_in_range(0..=7)? {
        0 => Some(input.arbitrary()?),
        1..=4 => Some(input.arbitrary::<[u8; 8]>()?.to_vec()),
        _ => None,
    };
    Ok(if kind == "call" {
        EnvelopeContent::Call {
            nonce,
            ingress_expiry,
            sender,
            canister_id,
            method_name,
            arg,
            sender_info: None,
        }
    } else {
        EnvelopeContent::Query {
            ingress_expiry,
            sender,
            canister_id,
            method_name,
            arg,
            nonce,
            sender_info: None,
        }
    })
}

/// Generates the id of the tested canister, of a missing one, or any other id, but not that of the
/// witness, which everybody may call.
fn principal(of: &Subject, input: &mut Unstructured<'_>) -> Result<Principal> {
    Ok(match input.int_in_range(0..=15)? {
        0 => Principal::management_canister(),
        1 => Principal::anonymous(),
        2 => of.subnet(),
        3 => {
            let length = input.int_in_range(0..=29)?;
            let id = Principal::from_slice(input.bytes(length)?);
            if id == of.witness { of.id } else { id }
        }
        _ => of.id,
    })
}

/// Generates a path from labels of the state tree and any others.
fn path<L: From<Vec<u8>>>(of: &Subject, input: &mut Unstructured<'_>) -> Result<Vec<L>> {
    const LABELS: &[&str] = &[
        "time",
        "canister",
        "subnet",
        "request_status",
        "canister_ranges",
        "api_boundary_nodes",
        "controllers",
        "module_hash",
        "metadata",
        "candid:service",
        "plan",
        "public_key",
        "node",
        "type",
        "metrics",
        "status",
        "reply",
        "reject_code",
        "reject_message",
        "error_code",
        "",
    ];
    let subnet = of.subnet();
    let whole: &[&[&[u8]]] = &[
        &[b"canister", of.id.as_slice(), b"metadata", b"candid:service"],
        &[b"canister", of.id.as_slice(), b"metadata", b"plan"],
        &[b"canister", of.witness.as_slice(), b"metadata", b"plan"],
        &[b"canister", of.id.as_slice(), b"module_hash"],
        &[b"canister", of.id.as_slice(), b"controllers"],
        &[b"request_status", &[7; 32], b"reply"],
        &[b"subnet", subnet.as_slice(), b"node"],
    ];
    let mut labels: Vec<Vec<u8>> = match input.arbitrary()? {
        true => input.choose(whole)?.iter().map(|label| label.to_vec()).collect(),
        false => Vec::new(),
    };
    if !labels.is_empty() && input.arbitrary()? {
        return Ok(labels.into_iter().map(L::from).collect());
    }
    for _ in 0..input.int_in_range(0..=6)? {
        let label = match input.int_in_range(0..=5)? {
            0 => input.arbitrary()?,
            1 => principal(of, input)?.as_slice().to_vec(),
            2 => vec![input.arbitrary()?; 32],
            _ => input.choose(LABELS)?.as_bytes().to_vec(),
        };
        let at = input.int_in_range(0..=labels.len())?;
        labels.insert(at, label);
    }
    Ok(labels.into_iter().map(L::from).collect())
}

/// Generates a CBOR value with the keys of requests and any values.
fn cbor(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let value = value(input, 5)?;
    let body = serde_cbor_2::to_vec(&value).expect("writing to memory");
    Ok([TAG, &body].concat())
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    const KEYS: &[&str] = &[
        "content",
        "sender_pubkey",
        "sender_sig",
        "sender_delegation",
        "request_type",
        "sender",
        "canister_id",
        "method_name",
        "arg",
        "paths",
        "ingress_expiry",
        "nonce",
        "delegation",
        "signature",
        "pubkey",
        "expiration",
        "targets",
        "sender_info",
    ];
    const KINDS: &[&str] = &["call", "query", "read_state", "status", "add", "get", "time"];
    let most = if depth == 0 { 7 } else { 11 };
    Ok(match input.int_in_range(0..=most)? {
        0 => Value::Null,
        1 => Value::Bool(input.arbitrary()?),
        2 => Value::Integer(i128::from(input.arbitrary::<u64>()?)),
        3 => Value::Integer(i128::from(in_minutes(4))),
        4 => Value::Float(input.arbitrary()?),
        5 => Value::Bytes(input.arbitrary()?),
        6 => Value::Text(input.arbitrary()?),
        7 => Value::Text((*input.choose(KINDS)?).to_owned()),
        8 => {
            let values = (0..input.int_in_range(0..=4)?).map(|_| value(input, depth - 1));
            Value::Array(values.collect::<Result<_>>()?)
        }
        _ => {
            let mut map = BTreeMap::new();
            for _ in 0..input.int_in_range(0..=8)? {
                let key = Value::Text((*input.choose(KEYS)?).to_owned());
                map.insert(key, value(input, depth - 1)?);
            }
            Value::Map(map)
        }
    })
}

/// All methods of this management canister, and some that it has on the IC only.
pub const METHODS: &[&str] = &[
    "install_code",
    "install_chunked_code",
    "upload_chunk",
    "stored_chunks",
    "clear_chunk_store",
    "canister_status",
    "update_settings",
    "start_canister",
    "stop_canister",
    "delete_canister",
    "take_canister_snapshot",
    "load_canister_snapshot",
    "list_canister_snapshots",
    "delete_canister_snapshot",
    "fetch_canister_logs",
    "provisional_top_up_canister",
    "create_canister",
    "provisional_create_canister_with_cycles",
    "uninstall_code",
    "raw_rand",
];

/// Generates a valid argument of the method for the canister.
fn argument(method: &str, canister_id: Principal, input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let sender_canister_version = None;
    let snapshot_id: Vec<u8> = input.arbitrary()?;
    let encoded = match method {
        "install_code" => {
            let wasm_module = match input.int_in_range(0..=2)? {
                0 => input.arbitrary()?,
                1 => b"\0asm\x01\0\0\0".to_vec(),
                _ => wasm(CLOSED),
            };
            let modes = [CanisterInstallMode::Install, CanisterInstallMode::Reinstall];
            let mode = *input.choose(&modes)?;
            let arg = input.arbitrary()?;
            Encode!(&InstallCodeArgs {
                mode,
                canister_id,
                wasm_module,
                arg,
                sender_canister_version
            })
        }
        "install_chunked_code" => {
            let hash = ChunkHash { hash: input.arbitrary()? };
            Encode!(&InstallChunkedCodeArgs {
                mode: CanisterInstallMode::Reinstall,
                target_canister: canister_id,
                store_canister: if input.arbitrary()? { Some(canister_id) } else { None },
                chunk_hashes_list: vec![hash; input.int_in_range(0..=200)?],
                wasm_module_hash: input.arbitrary()?,
                arg: input.arbitrary()?,
                sender_canister_version,
            })
        }
        "upload_chunk" => Encode!(&UploadChunkArgs { canister_id, chunk: input.arbitrary()? }),
        "update_settings" => {
            let settings = settings(input)?;
            Encode!(&UpdateSettingsArgs { canister_id, settings, sender_canister_version })
        }
        "take_canister_snapshot" => Encode!(&TakeCanisterSnapshotArgs {
            canister_id,
            replace_snapshot: if input.arbitrary()? { Some(snapshot_id) } else { None },
            uninstall_code: None,
            sender_canister_version,
        }),
        "load_canister_snapshot" => {
            Encode!(&LoadCanisterSnapshotArgs { canister_id, snapshot_id, sender_canister_version })
        }
        "delete_canister_snapshot" => {
            Encode!(&DeleteCanisterSnapshotArgs { canister_id, snapshot_id })
        }
        "fetch_canister_logs" => Encode!(&FetchCanisterLogsArgs { canister_id, filter: None }),
        "provisional_top_up_canister" => {
            Encode!(&ProvisionalTopUpCanisterArgs { canister_id, amount: nat(input)? })
        }
        "create_canister" => {
            let settings = Some(settings(input)?);
            Encode!(&CreateCanisterArgs { settings, sender_canister_version })
        }
        "provisional_create_canister_with_cycles" => {
            Encode!(&ProvisionalCreateCanisterWithCyclesArgs {
                amount: Some(nat(input)?),
                settings: None,
                specified_id: if input.arbitrary()? { Some(canister_id) } else { None },
                sender_canister_version,
            })
        }
        _ => Encode!(&CanisterIdRecord { canister_id }),
    };
    Ok(encoded.expect("the argument can be encoded"))
}

fn settings(input: &mut Unstructured<'_>) -> Result<CanisterSettings> {
    let maybe = |input: &mut Unstructured<'_>| -> Result<Option<Nat>> {
        Ok(if input.ratio(1, 4)? { Some(nat(input)?) } else { None })
    };
    let controllers = vec![Principal::anonymous(); input.int_in_range(0..=12)?];
    Ok(CanisterSettings {
        controllers: if input.arbitrary()? { Some(controllers) } else { None },
        compute_allocation: maybe(input)?,
        memory_allocation: maybe(input)?,
        freezing_threshold: maybe(input)?,
        reserved_cycles_limit: maybe(input)?,
        wasm_memory_limit: maybe(input)?,
        wasm_memory_threshold: maybe(input)?,
        environment_variables: if input.ratio(1, 4)? { Some(variables(input)?) } else { None },
        ..CanisterSettings::default()
    })
}

/// Generates environment variables, including too many and too long ones.
fn variables(input: &mut Unstructured<'_>) -> Result<Vec<EnvironmentVariable>> {
    let count = input.int_in_range(0..=40)?;
    let variable =
        |_| Ok(EnvironmentVariable { name: input.arbitrary()?, value: input.arbitrary()? });
    (0..count).map(variable).collect()
}

/// Generates a number, which may exceed 128 bits.
fn nat(input: &mut Unstructured<'_>) -> Result<Nat> {
    let number = Nat::from(input.arbitrary::<u128>()?);
    Ok(if input.ratio(1, 4)? { number.clone() * number } else { number })
}

/// Generates a table of types that refer to each other, followed by values of any types.
fn any_candid(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut bytes = b"DIDL".to_vec();
    let types = input.int_in_range(0..=5)?;
    leb128(&mut bytes, types);
    for _ in 0..types {
        // opt, vec, record, variant, func, service
        let constructor = input.int_in_range(0x69..=0x6e)?;
        bytes.push(constructor);
        match constructor {
            0x6d | 0x6e => bytes.push(reference(types, input)?),
            0x6b | 0x6c => {
                let fields = input.int_in_range(0..=3)?;
                leb128(&mut bytes, fields);
                for field in 0..fields {
                    leb128(&mut bytes, field * input.int_in_range(1..=2_000_000_000)?);
                    bytes.push(reference(types, input)?);
                }
            }
            _ => bytes.extend([0, 0, 0]),
        }
    }
    let arguments = input.int_in_range(0..=2)?;
    leb128(&mut bytes, arguments);
    for _ in 0..arguments {
        bytes.push(reference(types, input)?);
    }
    if input.ratio(1, 4)? {
        leb128(&mut bytes, input.arbitrary()?);
    }
    bytes.extend(input.bytes(input.len().min(40))?);
    Ok(bytes)
}

/// Generates a reference to a type of the table or to a primitive type.
fn reference(types: u64, input: &mut Unstructured<'_>) -> Result<u8> {
    if types > 0 && input.arbitrary()? {
        return Ok(input.int_in_range(0..=types - 1)? as u8);
    }
    // Types from null to empty, or principal.
    Ok(if input.ratio(1, 8)? { 0x68 } else { input.int_in_range(0x6f..=0x7f)? })
}

fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
