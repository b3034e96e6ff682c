//! A connection that loses some requests and some answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A proxy in front of a server. It runs until the process ends.
pub struct Proxy {
    address: SocketAddr,
    lost: Arc<Mutex<Lost>>,
}

/// The numbers of lost messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    calls: u32,
    /// Calls that did not reach the server.
    pub requests: u32,
    /// Calls that the server has executed.
    pub answers: u32,
}

/// The fate of a call.
enum Fate {
    Passes,
    RequestLost,
    AnswerLost,
}

impl Proxy {
    pub fn start(server: SocketAddr) -> Self {
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

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn lost(&self) -> Lost {
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
