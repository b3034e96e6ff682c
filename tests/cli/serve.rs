//! `stablebench serve`: its start, access from web pages at the sockets of all servers, stopping, and
//! refused options.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use candid::Principal;
use ic_agent::Agent;
use ic_management_canister_types::{CanisterInstallMode, InstallCodeArgs};

use crate::environment::unwritable;
use crate::{Server, command, fails, refused, signal, stablebench, stderr, stdout};

/// Counts its updates.
pub const COUNTER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (func $tell (call $append (i32.const 0) (i32.const 4)) (call $reply))
    (func (export "canister_update add")
        (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
        (call $tell))
    (export "canister_query get" (func $tell)))"#;

/// Answers browsers.
const WEBSITE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (func (export "canister_query http_request") (call $reply)))"#;

pub fn module(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), wat::parse_str(text).unwrap()).unwrap();
}

/// Returns the count of a method of the server's only canister.
pub fn count(server: &Server, method: &str) -> u32 {
    u32::from_le_bytes(reply(server, method).try_into().unwrap())
}

/// Returns the reply of a method of the server's first canister; `get` and `tell` are queries.
pub fn reply(server: &Server, method: &str) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let reply = runtime.block_on(async {
        let agent = Agent::builder().with_url(format!("http://{}", server.address));
        let agent = agent.build().unwrap();
        agent.fetch_root_key().await.unwrap();
        let id = Principal::from_text(&server.canisters[0]).unwrap();
        if ["get", "tell"].contains(&method) {
            agent.query(&id, method).call().await
        } else {
            agent.update(&id, method).call_and_wait().await
        }
    });
    reply.unwrap()
}

/// Sends an update to the server's first canister that will not be answered.
pub fn begin(server: &Server, method: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let agent = Agent::builder().with_url(format!("http://{}", server.address));
        let agent = agent.build().unwrap();
        agent.fetch_root_key().await.unwrap();
        let id = Principal::from_text(&server.canisters[0]).unwrap();
        let call = agent.update(&id, method).call_and_wait();
        let answered = tokio::time::timeout(Duration::from_secs(2), call).await;
        assert!(answered.is_err(), "{method} was answered");
    });
}

#[test]
fn a_saved_canister_is_served_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let arguments = ["counter.wasm", "--state=counter.canister"];
    for (end, name) in [(2, "-INT"), (4, "-TERM")] {
        let mut server = Server::start(&arguments, directory);
        assert_eq!(server.canisters, ["lxzze-o7777-77777-aaaaa-cai"]);
        assert_eq!(count(&server, "get"), end - 2);
        assert_eq!(count(&server, "add"), end - 1);
        assert_eq!(count(&server, "add"), end);
        signal(server.id(), name);
        assert_eq!(server.wait(), Some(0));
    }
    fails(
        &["serve", "counter.wasm", "--state=counter.canister", "--port=1", "--listen=256.0.0.1"],
        directory,
    );
    // Another module does not replace it.
    module(directory, "other.wasm", "(module (memory 1))");
    let other =
        stablebench(&["serve", "other.wasm", "--state=counter.canister", "--port=0"], directory);
    assert_eq!((other.status.code(), stdout(&other).as_str()), (Some(2), ""));
    assert!(stderr(&other).contains("contains a canister with another module than other"));
    let server = Server::start(&arguments, directory);
    assert_eq!(count(&server, "get"), 4);
}

#[test]
fn the_start_shows_addresses_what_to_type_and_the_key_once() {
    let directory = tempfile::tempdir().unwrap();
    module(directory.path(), "counter.wasm", COUNTER);
    module(directory.path(), "website.wasm", WEBSITE);
    let server = Server::start(&["counter.wasm", "website.wasm"], directory.path());
    let (url, port) = (format!("http://{}", server.address), server.address.port());
    let [counter, website] = server.canisters.as_slice() else { panic!("{}", server.printed) };
    let calls = [counter, website].map(|id| {
        format!(
            "icp canister call {id} METHOD '(…)' -n {url} -k fetch\n\
             dfx canister call --network {url} --identity anonymous {id} METHOD '(…)'\n"
        )
    });
    let expected = format!(
        "URL       {url}\n\
         counter   {counter}\n\
         website   {website}  http://{website}.localhost:{port}/\n\
         \n{}\n{}\n\
         root key  {}\n",
        calls[0], calls[1], server.root_key
    );
    assert_eq!(server.printed, expected);
    assert_eq!(server.root_key.len(), 266);
}

#[test]
fn clients_of_pocket_ic_are_served_at_a_port_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    module(directory.path(), "counter.wasm", COUNTER);
    let server = Server::start(&["counter.wasm", "--pocket-ic=0"], directory.path());
    // It is announced before the canisters.
    let [pocket_ic, _] = server.canisters.as_slice() else {
        panic!("{:?}", server.canisters);
    };
    let pocket_ic = pocket_ic.strip_prefix("http://").unwrap();
    let create = |address: &str| {
        let config = r#"{"subnet_config_set": {"application": [{}]}}"#;
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "POST /instances HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{config}",
            config.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for number in 0..2 {
        let created = create(pocket_ic);
        assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
        assert!(created.contains(&format!("\"instance_id\":{number}")), "{created}");
    }
    let elsewhere = create(&server.address.to_string());
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
}

#[test]
fn mistakes_are_reported_before_anything_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    module(directory, "argument.wasm", r#"(module (func (export "canister_init") (unreachable)))"#);
    fs::write(directory.join("broken.wasm"), b"\0asm\x01\0\0\0\xff").unwrap();
    #[expect(clippy::disallowed_methods, reason = "it only takes the port")]
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--port={}", taken.local_addr().unwrap().port());
    for (arguments, text) in [
        (&["nonsense", "--port=0"][..], "no canister nonsense; there is bench, bench_vfs"),
        (&["broken.wasm", "--port=0"], "broken cannot be installed: the module was refused"),
        (&["argument.wasm", "--port=0"], "argument cannot be installed"),
        (&["counter.wasm", &port], "choose another --port"),
        (&["counter.wasm", "--port=0", "--state=missing/a"], "choose another --state"),
        (&["counter.wasm", "--port=0", "--allow-origin=example.com"], "an origin is a scheme"),
    ] {
        let error = refused(&[&["serve"], arguments].concat(), directory);
        assert!(error.contains(text), "{arguments:?}: {error}");
    }
}

/// Returns the first line of the response to a request with these lines.
fn first_line(server: &Server, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = [&["GET /api/v2/status HTTP/1.1"], lines, &["connection: close", "", ""]].concat();
    stream.write_all(head.join("\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn pages_and_host_names_are_allowed_by_allow_origin() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let page = ["host: localhost", "origin: https://app.example"];
    let name = ["host: app.example:4943"];
    let other = ["host: localhost", "origin: https://other.example"];
    for (options, of_page, of_name, of_other) in [
        (&[][..], 403, 403, 403),
        (&["--allow-origin=https://app.example"], 200, 200, 403),
        (&["--allow-origin=*"], 200, 200, 200),
    ] {
        let server = Server::start(&[&["counter.wasm"], options].concat(), directory);
        assert!(first_line(&server, &["host: localhost"]).contains(" 200 "));
        for (lines, status) in [(&page[..], of_page), (&name, of_name), (&other, of_other)] {
            let line = first_line(&server, lines);
            assert!(line.contains(&format!(" {status} ")), "{options:?} {lines:?}: {line}");
        }
    }
}

/// A request without its body does not prevent stopping and saving.
#[test]
fn a_client_that_stops_sending_does_not_delay_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let mut server = Server::start(&["counter.wasm", "--state=counter.canister"], directory);
    assert_eq!(count(&server, "add"), 1);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /api/v2/canister/{}/call HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/cbor\r\ncontent-length: 100\r\n\r\n",
        server.canisters[0]
    );
    stream.write_all(head.as_bytes()).unwrap();
    let began = Instant::now();
    signal(server.id(), "-INT");
    assert_eq!(server.wait(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let server = Server::start(&["counter.wasm", "--state=counter.canister"], directory);
    assert_eq!(count(&server, "get"), 1);
}

/// The environment variable with the number of threads that compile a module. Other tests use the
/// other processors.
const COMPILING_THREADS: &str = "RAYON_NUM_THREADS";

/// Returns a module in gzip that takes very long to compile.
fn slow() -> Vec<u8> {
    let functions = format!("(func {})", "(loop)".repeat(40)).repeat(49_000);
    let wasm = wat::parse_str(format!("(module {functions})")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&wasm).unwrap();
    gzip.finish().unwrap()
}

/// The compilation is abandoned, and the state is saved.
#[test]
fn a_compilation_does_not_delay_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let options = ["serve", "counter.wasm", "--port=0", "--quiet", "--state=counter.canister"];
    let mut server = Server::of(command(&options, directory).env(COMPILING_THREADS, "1"));
    assert_eq!(count(&server, "add"), 1);
    let id = Principal::from_text(&server.canisters[0]).unwrap();
    let url = format!("http://{}", server.address);
    let arguments = InstallCodeArgs {
        mode: CanisterInstallMode::Reinstall,
        canister_id: id,
        wasm_module: slow(),
        arg: Vec::new(),
        sender_canister_version: None,
    };
    let install = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let agent = Agent::builder().with_url(url).build().unwrap();
            agent.fetch_root_key().await.unwrap();
            let install = agent.update(&Principal::management_canister(), "install_code");
            let install = install.with_arg(candid::encode_one(arguments).unwrap());
            install.with_effective_canister_id(id).call_and_wait().await
        })
    });
    std::thread::sleep(Duration::from_secs(3));
    assert!(!install.is_finished(), "it is to compile longer than that");
    let began = Instant::now();
    signal(server.id(), "-INT");
    assert_eq!(server.wait(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(install.join().unwrap().is_err());
    let server = Server::start(&["counter.wasm", "--state=counter.canister"], directory);
    assert_eq!(count(&server, "get"), 1);
}

#[test]
fn ctrl_c_stops_the_first_compilation() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::write(directory.join("slow.wasm"), slow()).unwrap();
    for arguments in [&["call", "slow.wasm", "m"][..], &["serve", "slow.wasm", "--port=0"]] {
        let mut command = command(arguments, directory);
        let mut child = command.arg("--no-cache").env(COMPILING_THREADS, "1").spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        assert!(child.try_wait().unwrap().is_none(), "it is to compile longer than that");
        let began = Instant::now();
        signal(child.id(), "-INT");
        assert!(!child.wait().unwrap().success());
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

#[test]
fn the_cache_keeps_its_limit_while_serving() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    // One MiB in GiB.
    let options = ["counter.wasm", "--cache-dir=cache", "--cache-limit=0.0009765625"];
    let server = Server::start(&options, directory);
    let id = Principal::from_text(&server.canisters[0]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let agent = Agent::builder().with_url(format!("http://{}", server.address));
        let agent = agent.build().unwrap();
        agent.fetch_root_key().await.unwrap();
        for version in 0..6 {
            let functions: String = (0..4_000)
                .map(|number| {
                    format!("(func (result i64) (i64.const {}))", version * 4_000 + number)
                })
                .collect();
            let arguments = InstallCodeArgs {
                mode: CanisterInstallMode::Reinstall,
                canister_id: id,
                wasm_module: wat::parse_str(format!("(module {functions})")).unwrap(),
                arg: Vec::new(),
                sender_canister_version: None,
            };
            let install = agent.update(&Principal::management_canister(), "install_code");
            let install = install.with_arg(candid::encode_one(arguments).unwrap());
            install.with_effective_canister_id(id).call_and_wait().await.unwrap();
        }
    });
    let size = || -> u64 {
        let files = fs::read_dir(directory.join("cache")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let began = Instant::now();
    while size() > 1 << 20 {
        assert!(began.elapsed() < Duration::from_secs(20), "{} bytes", size());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_closed_or_full_stderr_does_not_end_the_server() {
    let directory = tempfile::tempdir().unwrap();
    module(directory.path(), "counter.wasm", COUNTER);
    for unwritable in unwritable() {
        let args = ["serve", "--port=0", "counter.wasm", "--state=state"];
        let mut server = Server::of(command(&args, directory.path()).stderr(unwritable));
        assert_eq!(count(&server, "add"), count(&server, "get"));
        signal(server.id(), "-INT");
        assert_eq!(server.wait(), Some(0));
    }
}

/// The first canister of `serve`.
const FIRST: &str = "lxzze-o7777-77777-aaaaa-cai";

/// A server, until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server. Returns it and the address at which it serves PocketIC clients.
fn start(arguments: &[&str], directory: &Path) -> (Running, SocketAddr) {
    let mut command = command(arguments, directory);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let server = Running(child);
    // The last address is that of the server for PocketIC clients.
    let words = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
    let urls: Vec<String> = words
        .filter_map(|line| Some(line.split_once("http://")?.1.to_owned()))
        .take(if arguments[0] == "serve" { 2 } else { 1 })
        .collect();
    (server, urls.last().unwrap().parse().unwrap())
}

/// Returns the addresses at which a process listens.
fn listening(process: u32) -> BTreeSet<SocketAddr> {
    let folder = format!("/proc/{process}/fd");
    let sockets: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut found = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let Ok(table) = fs::read_to_string(format!("/proc/{process}/net/{table}")) else {
            continue;
        };
        for line in table.lines().skip(1) {
            // The second column is the address, the fourth the state, and the tenth the inode.
            let columns: Vec<&str> = line.split_whitespace().collect();
            let listens = columns[3] == "0A" && sockets.contains(columns[9]);
            let (ip, port) = columns[1].split_once(':').unwrap();
            if listens {
                let ip = u32::from_str_radix(ip, 16).expect("no server listens by IPv6 here");
                let port = u16::from_str_radix(port, 16).unwrap();
                found.insert((Ipv4Addr::from(ip.to_ne_bytes()), port).into());
            }
        }
    }
    found
}

/// Sends a request with these lines of its head, and returns the answer.
fn answer(address: SocketAddr, lines: &[&str], body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = format!("content-length: {}", body.len());
    let end = [&*length, "connection: close", "", body];
    stream.write_all([lines, &end].concat().join("\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// All sockets at which the servers listen.
#[test]
fn no_listener_answers_foreign_pages() {
    let directory = tempfile::tempdir().unwrap();
    module(directory.path(), "website.wasm", WEBSITE);
    for (arguments, sockets) in [
        (&["serve", "website.wasm", "--port=0", "--pocket-ic=0"][..], 4),
        (&["pocket-ic", "--port=0"], 3),
    ] {
        let (server, pocket_ic) = start(arguments, directory.path());
        let create = |path: &str, config: &str| {
            let line = format!("POST {path} HTTP/1.1");
            let created = answer(pocket_ic, &[&line, "host: localhost"], config);
            assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
        };
        create(
            "/instances",
            r#"{ "subnet_config_set": { "application": [{}] }, "http_gateway_config": {} }"#,
        );
        create("/http_gateway", r#"{ "forward_to": { "PocketIcInstance": 0 } }"#);
        // The system knows listeners that this test does not.
        let listeners = listening(server.0.id());
        assert_eq!(listeners.len(), sockets, "{arguments:?} {listeners:?}");
        for address in listeners {
            assert!(address.ip().is_loopback(), "{address} is open to the network");
            let port = address.port();
            let get = |path: &str, host: &str, more: &[&str]| {
                let (line, host) = (format!("GET {path} HTTP/1.1"), format!("host: {host}:{port}"));
                answer(address, &[&[&*line, &host], more].concat(), "")
            };
            let canister = format!("/?canisterId={FIRST}");
            for path in ["/api/v2/status", "/status", "/", "/nothing", "/_/topology", &canister] {
                let named = format!("{FIRST}.localhost");
                for host in ["localhost", "127.0.0.1", "[::1]", "x.localhost", &named] {
                    let here = get(path, host, &[]);
                    assert!(!here.starts_with("HTTP/1.1 403 "), "{address} {path} {host}: {here}");
                    let own = get(path, host, &["origin: http://x.localhost:3000"]);
                    assert!(!own.starts_with("HTTP/1.1 403 "), "{address} {path}: {own}");
                }
                for (host, more) in [
                    (&*format!("{FIRST}.rebound.example"), &[][..]),
                    // A page whose name resolves to this machine needs no Origin.
                    ("rebound.example", &[]),
                    ("127.0.0.1.rebound.example", &[]),
                    ("localhost.rebound.example", &[]),
                    ("0.0.0.0", &[]),
                    ("192.168.1.5", &[]),
                    ("rebound.example", &["origin: http://rebound.example"]),
                    ("localhost", &["origin: https://foreign.example"]),
                    ("localhost", &["origin: http://localhost.foreign.example"]),
                    ("localhost", &["origin: null"]),
                ] {
                    let refused = get(path, host, more);
                    let is_refused = refused.starts_with("HTTP/1.1 403 ");
                    assert!(is_refused, "{address} {path} {host} {more:?}: {refused}");
                    assert!(!refused.contains("access-control-allow-origin"), "{refused}");
                }
            }
            let foreign = "origin: https://foreign.example";
            let preflight = ["OPTIONS / HTTP/1.1", "host: localhost", foreign];
            let asked = "access-control-request-method: POST";
            let refused = answer(address, &[&preflight[..], &[asked]].concat(), "");
            assert!(refused.starts_with("HTTP/1.1 403 "), "{address}: {refused}");
            // The name in the first line counts, too.
            let line = "GET http://rebound.example/ HTTP/1.1";
            let refused = answer(address, &[line, "host: localhost"], "");
            assert!(refused.starts_with("HTTP/1.1 403 "), "{address}: {refused}");
        }
    }
}
