//! Runs on a replica by URL, for which `stablebench serve` is used, and on servers that are none: they
//! lose messages, or do not answer like replicas.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use crate::documents::{commands, help};
use crate::{Server, refused, stderr, succeeds};

/// A key that was made for these tests.
const IDENTITY: &str = include_str!("../../src/replica/network/testdata/ed25519.pem");

const USERS: &[&str] = &[
    "run",
    "users",
    "--sections=insert,transactions,work",
    "--rows=300",
    "--batches=1,20",
    "--at=middle,random",
    "--engines=btree,sqlite,array",
    "--journal-modes=persist",
    "--operations=20",
    "--transaction-rows=30",
    "--transactions=1,30",
    "--per-operation",
];
const SMALL: &[&str] = &[
    "run",
    "users",
    "--rows=200",
    "--batches=1,20",
    "--at=middle",
    "--engines=btree,sqlite",
    "--journal-modes=memory",
];

/// Runs on the embedded replica and with `target`, and requires equal results.
#[track_caller]
fn is_the_same(suite: &[&str], target: &[&str], directory: &Path) -> String {
    succeeds(&[suite, &["--out=embedded.json"]].concat(), directory);
    let output = succeeds(&[suite, target, &["--out=network.json"]].concat(), directory);
    succeeds(&["compare", "embedded.json", "network.json", "--threshold=0%"], directory);
    stderr(&output)
}

#[test]
fn a_network_gives_the_results_of_the_embedded_replica() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench"], directory.path());
    let notes = is_the_same(USERS, &server.target(), directory.path());
    assert!(notes.contains("about ") && notes.contains("on this machine nobody pays"), "{notes}");
    let saved = fs::read_to_string(directory.path().join("network.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(results["replica"]["kind"], "network");
    let command = results["command"].as_str().unwrap();
    let [replica, canister] = &server.target()[..] else { panic!() };
    for option in [replica, canister] {
        assert!(command.contains(&option.replace('=', " ")), "{option}: {command}");
    }
    // Cycles are measured, but not the details inside of the replica.
    for case in results["cases"].as_array().unwrap() {
        let detail = &case["outcome"]["measured"]["detail"];
        let instructions = detail["message_instructions"].as_u64().unwrap();
        let cycles = detail["cost"]["cycles"].as_u64().unwrap();
        assert!(instructions < cycles, "{case}");
        assert!(detail["cost"]["inside"].is_null(), "{case}");
    }
    // A complete run measures and costs nothing.
    let again = [USERS, &server.target(), &["--out=network.json", "--resume"]].concat();
    let notes = stderr(&succeeds(&again, directory.path()));
    assert!(notes.contains(": 0 cycles in 0 messages"), "{notes}");
}

#[test]
fn other_suites_and_canisters_have_equal_results() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench", "bench_vfs"], directory.path());
    for suite in [
        &["run", "keys", "--rows=100", "--watches=10", "--questions=3"][..],
        &["run", "vfs", "--rows=60", "--sizes=1,20"],
        &[
            "run",
            "sql",
            "--builtin=ycsb-a",
            "--transactions=20",
            "--per-message=5",
            "--engines=sqlite/persist,sqlite-vfs",
        ],
        &["run", "mix", "--rows=300", "--indexes=1", "--engines=btree,sqlite/wal,sqlite-vfs"],
    ] {
        is_the_same(suite, &server.target(), directory.path());
    }
}

/// Every message is sent to both replicas, and the answers are compared.
#[test]
fn each_answer_equals_that_of_the_embedded_replica() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench"], directory.path());
    succeeds(&[SMALL, &server.target(), &["--verify-embedded"]].concat(), directory.path());
}

#[test]
fn lost_requests_and_answers_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench"], directory.path());
    let lossy = Proxy::start(server.address);
    let replica = format!("--replica={}", lossy.url());
    let target = [&[&*replica], &server.target()[1..]].concat();
    is_the_same(SMALL, &target, directory.path());
    let lost = lossy.lost();
    assert!(lost.requests >= 3 && lost.answers >= 3, "{lost:?}");
}

#[test]
fn canisters_with_other_modules_are_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let wasm = wat::parse_str(include_str!("../../src/replica/counter.wat")).unwrap();
    fs::write(directory.path().join("counter.wasm"), wasm).unwrap();
    let server = Server::start(&["counter.wasm", "bench"], directory.path());
    let foreign = format!("--canister={}", server.canisters[0]);
    let replica = server.replica();
    let error = refused(&[SMALL, &[&replica, &foreign]].concat(), directory.path());
    for part in
        ["the module of bench that is built here", "others are not touched", "dfx deploy bench"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(error.contains(&format!("the module of {} is", server.canisters[0])), "{error}");
    // It is ignored if there is a canister of ours too.
    let ours = format!("--canister={}", server.canisters[1]);
    succeeds(&[SMALL, &[&replica, &foreign, &ours]].concat(), directory.path());
    // A canister that does not exist.
    let error = refused(
        &[SMALL, &[&replica, "--canister=rrkah-fqaaa-aaaaa-aaaaq-cai"]].concat(),
        directory.path(),
    );
    assert!(error.contains("there is no canister rrkah-fqaaa-aaaaa-aaaaq-cai"), "{error}");
}

#[test]
fn the_caller_must_be_a_controller() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("key.pem"), IDENTITY).unwrap();
    let server = Server::start(&["bench"], directory.path());
    let error =
        refused(&[SMALL, &server.target(), &["--identity=key.pem"]].concat(), directory.path());
    let (_, after) = error.split_once("--add-controller ").unwrap_or_else(|| panic!("{error}"));
    let principal = after.split(',').next().unwrap();
    assert_eq!(principal.len(), 63, "{error}");
    let controller = format!("--controller={principal}");
    let server = Server::start(&["bench", &controller], directory.path());
    succeeds(&[SMALL, &server.target(), &["--identity=key.pem"]].concat(), directory.path());
}

#[test]
fn an_unreachable_replica_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--replica=http://127.0.0.1:1", "--canister=rrkah-fqaaa-aaaaa-aaaaq-cai"];
    let error = refused(&[SMALL, &args].concat(), directory.path());
    assert!(error.contains("no replica answers at http://127.0.0.1:1; is it running?"), "{error}");
}

/// Returns an address of this machine that is not a loopback address.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[test]
fn cycles_on_other_machines_are_spent_with_yes_only() {
    let Some(ip) = outer_address() else {
        eprintln!("this machine has no address but its own");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench", &format!("--listen={ip}")], directory.path());
    let target = server.target();
    let error = refused(&[SMALL, &target].concat(), directory.path());
    assert!(error.contains("does not sign with the expected key"), "{error}");
    let key = format!("--root-key={}", server.root_key);
    // Before each query there is a pause of seconds, so there are few.
    let one = ["run", "users", "--rows=20", "--batches=1", "--at=middle", "--engines=btree"];
    let known = [&one[..], &target, &[&*key]].concat();
    let error = refused(&known, directory.path());
    assert!(error.contains("nothing was spent: http://"), "{error}");
    assert!(error.contains("add --yes to spend them"), "{error}");
    assert!(error.contains("about ") && error.contains("US$ "), "{error}");
    assert!(!directory.path().join("results.json").exists(), "nothing was measured");
    is_the_same(&one, &[&target, &[&*key, "--yes"][..]].concat(), directory.path());
}

/// Returns the words of a command; `$(…)` is one word.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in command.split_whitespace() {
        match words.last_mut().filter(|last| last.contains("$(") && !last.contains(')')) {
            Some(last) => *last += word,
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// The replica is a server instead of dfx, icp or the mainnet.
#[test]
fn the_documented_runs_on_a_network_succeed() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("key.pem"), IDENTITY).unwrap();
    let server = Server::start(&["bench"], directory.path());
    let target = server.target();
    let small = ["run", "users", "--rows=20", "--engines=btree", "--identity=key.pem"];
    let error = refused(&[&small, &target[..]].concat(), directory.path());
    assert!(error.contains("can read the key in key.pem; forbid it: chmod 600 key.pem"), "{error}");
    assert!(error.contains("left out: batches of 10, 50, 100, "), "{error}");
    let (_, after) = error.split_once("--add-controller ").unwrap();
    let controller = format!("--controller={}", after.split(',').next().unwrap());
    let server = Server::start(&["bench", &controller], directory.path());
    let url = format!("http://{}", server.address);

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/networks.md")).unwrap();
    let mut found = commands(&document, "stablebench run users --rows");
    found.extend(commands(&help(&["run", "--help"]), "stablebench run users --rows"));
    assert_eq!(found.len(), 5, "{found:?}");
    let mut ran = Vec::new();
    for command in found {
        let words = words(&command);
        let mut after = "";
        let args: Vec<&str> = words[1..]
            .iter()
            .map(|word| match std::mem::replace(&mut after, word) {
                "--replica" => &url,
                "--canister" => server.canisters[0].as_str(),
                _ => word,
            })
            .filter(|word| *word != "--yes")
            .collect();
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        if !ran.contains(&args) {
            let typed: Vec<&str> = args.iter().map(String::as_str).collect();
            succeeds(&typed, directory.path());
            ran.push(args);
        }
    }
    assert!(!ran.is_empty());
}

/// A proxy in front of a server, which loses some requests and some answers. It runs until the process ends.
struct Proxy {
    address: SocketAddr,
    lost: Arc<Mutex<Lost>>,
}

/// The numbers of lost messages.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    calls: u32,
    /// Calls that did not reach the server.
    requests: u32,
    /// Calls that the server has executed.
    answers: u32,
}

/// The fate of a call.
enum Fate {
    Passes,
    RequestLost,
    AnswerLost,
}

impl Proxy {
    fn start(server: SocketAddr) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a faulty server")]
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lost = Arc::new(Mutex::new(Lost::default()));
        let shared = lost.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let lost = shared.clone();
                // Errors are expected: connections break.
                thread::spawn(move || serve(client, server, &lost));
            }
        });
        Self { address, lost }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn lost(&self) -> Lost {
        *self.lost.lock().unwrap()
    }
}

/// Decides the fate of a request. Every third call loses its request or its answer, in turns.
fn fate(request: &[u8], lost: &Mutex<Lost>) -> Fate {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    if !String::from_utf8_lossy(line).contains("/call") {
        return Fate::Passes;
    }
    let mut lost = lost.lock().unwrap();
    lost.calls += 1;
    match lost.calls % 6 {
        2 => {
            lost.answers += 1;
            Fate::AnswerLost
        }
        5 => {
            lost.requests += 1;
            Fate::RequestLost
        }
        _ => Fate::Passes,
    }
}

fn serve(mut client: TcpStream, server: SocketAddr, lost: &Mutex<Lost>) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    loop {
        let request = message(&mut client)?;
        let fate = fate(&request, lost);
        if matches!(fate, Fate::RequestLost) {
            return Ok(());
        }
        server.write_all(&request)?;
        let answer = message(&mut server)?;
        if matches!(fate, Fate::AnswerLost) {
            return Ok(());
        }
        client.write_all(&answer)?;
    }
}

/// Reads one request or answer, head and body.
fn message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut bytes = Vec::new();
    while !bytes.ends_with(END) {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let begins = bytes.len();
    bytes.resize(begins + length, 0);
    stream.read_exact(&mut bytes[begins..])?;
    Ok(bytes)
}

/// Starts a server that handles each connection with `answer`, and returns its URL.
fn server(answer: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    #[expect(clippy::disallowed_methods, reason = "a hostile server")]
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let _ = client.read(&mut [0; 4_096]);
                answer(client);
            });
        }
    });
    url
}

fn responds(
    head: &'static str,
    body: &'static [u8],
) -> impl Fn(TcpStream) + Clone + Send + 'static {
    move |mut client| {
        let _ = client.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes());
        let _ = client.write_all(body);
    }
}

/// Sends a status that never ends.
fn endless(mut client: TcpStream) {
    let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/cbor\r\n\r\n");
    while client.write_all(&[0xff; 65_536]).is_ok() {}
}

/// Accepts a request and does not answer.
fn silent(client: TcpStream) {
    thread::park();
    drop(client);
}

#[test]
fn no_server_exhausts_memory_or_time() {
    let directory = tempfile::tempdir().unwrap();
    let deep: &[u8] = &[0x81; 100_000];
    let urls = [
        server(endless),
        server(silent),
        server(drop),
        server(responds("200 OK\r\ncontent-length: 3", b"abc")),
        server(responds("200 OK\r\ncontent-length: 100000", deep)),
        server(responds("200 OK\r\ncontent-length: 99999999999", b"")),
        server(responds("302 Found\r\nlocation: /\r\ncontent-length: 0", b"")),
    ];
    let began = Instant::now();
    let errors: Vec<String> = thread::scope(|scope| {
        let directory = directory.path();
        let runs: Vec<_> = urls
            .iter()
            .map(|url| {
                scope.spawn(move || {
                    let replica = format!("--replica={url}");
                    let canister = "--canister=rrkah-fqaaa-aaaaa-aaaaq-cai";
                    let out = format!("--out={}.json", url.rsplit(':').next().unwrap());
                    refused(&[SMALL, &[&replica, canister, &out]].concat(), directory)
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for error in errors {
        assert!(error.contains("no replica answers at "), "{error}");
    }
    assert!(began.elapsed().as_secs() < 200, "{:?}", began.elapsed());
}
