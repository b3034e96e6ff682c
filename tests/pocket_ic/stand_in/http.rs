//! Requests and answers, on threads; and the process' end.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use tiny_http::{Header, Request, Response, Server};

use super::fault::Fault;
use super::routes::Routes;

const THREADS: usize = 4;

/// Serves until nobody has asked for anything for a while.
#[expect(clippy::disallowed_methods, reason = "its threads wait for requests for ever")]
pub fn serve(port_file: &Path, ttl: Duration) -> ExitCode {
    let fault = Fault::asked();
    if fault == Some(Fault::Exit) {
        eprintln!("stand-in: told to exit");
        eprintln!("stand-in: and so it does");
        return ExitCode::from(3);
    }
    let server = Server::http("127.0.0.1:0").unwrap();
    let port = server.server_addr().to_ip().unwrap().port();
    let routes = Routes::new(fault);
    let used = Mutex::new(Instant::now());
    // Whoever waits for the file must not read half of a line.
    let beside = port_file.with_extension("new");
    fs::write(&beside, format!("{port}\n")).unwrap();
    fs::rename(&beside, port_file).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Ok(request) = server.recv() {
                    *used.lock().unwrap() = Instant::now();
                    answer(&routes, request);
                    *used.lock().unwrap() = Instant::now();
                }
            });
        }
        // A message takes seconds, the shortest time to live is a minute.
        while used.lock().unwrap().elapsed() < ttl {
            thread::sleep(Duration::from_millis(500));
        }
        std::process::exit(0)
    })
}

fn answer(routes: &Routes, mut request: Request) {
    let mut body = Vec::new();
    let (status, answer) = match request.as_reader().read_to_end(&mut body) {
        Ok(_) => routes.answer(request.method().as_str(), request.url(), &body),
        Err(_) => return,
    };
    let json = Header::from_bytes("Content-Type", "application/json").unwrap();
    let response = Response::from_string(answer.to_string()).with_status_code(status);
    // Whoever asked may be gone.
    let _ = request.respond(response.with_header(json));
}
