//! Servers that do not answer like replicas.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use super::{SMALL, fails};

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
                    fails(&[SMALL, &[&replica, canister, &out]].concat(), directory)
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
