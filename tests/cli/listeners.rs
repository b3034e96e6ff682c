//! All sockets at which the servers listen: none answers foreign web pages.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::command;
use crate::serve::{WEBSITE, module};

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
    let sockets: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut found = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let Ok(table) = std::fs::read_to_string(format!("/proc/{process}/net/{table}")) else {
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
