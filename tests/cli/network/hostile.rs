//! Replicas that do not answer as replicas do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use super::{SMALL, fails};

/// A server that does that with each connection; answers its URL.
fn server(answer: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
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

fn says(head: &'static str, body: &'static [u8]) -> impl Fn(TcpStream) + Clone + Send + 'static {
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

/// Takes the request and says nothing.
fn silent(client: TcpStream) {
    thread::park();
    drop(client);
}

#[test]
fn no_replica_takes_all_memory_or_all_time() {
    let directory = tempfile::tempdir().unwrap();
    let deep: &[u8] = &[0x81; 100_000];
    let urls = [
        server(endless),
        server(silent),
        server(drop),
        server(says("200 OK\r\ncontent-length: 3", b"abc")),
        server(says("200 OK\r\ncontent-length: 100000", deep)),
        server(says("200 OK\r\ncontent-length: 99999999999", b"")),
        server(says("302 Found\r\nlocation: /\r\ncontent-length: 0", b"")),
    ];
    let began = Instant::now();
    let told: Vec<String> = thread::scope(|scope| {
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
    for told in told {
        assert!(told.contains("no replica answers at "), "{told}");
    }
    assert!(began.elapsed().as_secs() < 200, "{:?}", began.elapsed());
}
