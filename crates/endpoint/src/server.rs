//! Connections: accepted, bounded in number, and closed where nothing comes, or nothing is taken.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; further ones wait.
    pub connections: usize,
    /// How long the next request's head may take to come, also on a connection that is kept.
    pub head: Duration,
    /// How long a client may take none of its answer.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        // More connections than requests that may be under way.
        Self { connections: 2_500, head: minute, answer: minute }
    }
}

/// Bytes of a request's head.
const MOST_HEAD: usize = 64 << 10;
/// How long to wait where the machine cannot accept connections.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers requests until `stop` comes, and then those that are under way.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    // Connections are told by the end of the first, and tell by the end of the second.
    let (stopping, stopped) = watch::channel(());
    let (ended, ending) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            // Nobody closes it.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        // A client that has left already, or no more file descriptors.
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.answer));
        let service = TowerToHyperService::new(router.clone());
        let (mut stopped, ending) = (stopped.clone(), ending.clone());
        tokio::spawn(async move {
            let mut connection = pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits.head)
                    .max_buf_size(MOST_HEAD)
                    .serve_connection(TokioIo::new(Box::pin(stream)), service)
            );
            tokio::select! {
                // Whatever is wrong with a connection, its client knows.
                _ = connection.as_mut() => {}
                _ = stopped.changed() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop((place, ending));
        });
    }
    drop((listener, stopping, ending));
    ended.closed().await;
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    /// More than what systems keep of an answer that is not read.
    const LONG: usize = 64 << 20;
    const SHORT: Duration = Duration::from_millis(300);
    const LIMITS: Limits = Limits { connections: 2, head: SHORT, answer: SHORT };
    const PATIENT: Duration = Duration::from_secs(60);

    async fn start(limits: Limits) -> SocketAddr {
        let router = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/long", get(|| async { vec![7; LONG] }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, router, limits, std::future::pending()));
        address
    }

    async fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Reads until the other side ends; answers how much there was.
    async fn rest(mut stream: TcpStream) -> usize {
        let mut bytes = Vec::new();
        // It may end with an error.
        let _ = timeout(PATIENT, stream.read_to_end(&mut bytes)).await.expect("it is not closed");
        bytes.len()
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_is_not_waited_for() {
        let address = start(LIMITS).await;
        for part in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: local"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(part.as_bytes()).await.unwrap();
            let began = Instant::now();
            rest(stream).await;
            assert!(began.elapsed() >= SHORT / 2, "{part}");
        }
        // Nor is the next one on a connection that is kept.
        assert!(rest(ask(address, "/").await).await > 4);
    }

    #[tokio::test]
    async fn further_connections_wait() {
        let address = start(Limits { head: PATIENT, ..LIMITS }).await;
        let first = ask(address, "/").await;
        let second = ask(address, "/").await;
        let mut third = ask(address, "/").await;
        for answered in [&first, &second] {
            timeout(PATIENT, answered.readable()).await.unwrap().unwrap();
        }
        let mut byte = [0];
        assert!(timeout(SHORT, third.read(&mut byte)).await.is_err(), "there are two already");
        drop(first);
        assert_eq!(timeout(PATIENT, third.read(&mut byte)).await.unwrap().unwrap(), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_does_not_read_its_answer_is_left() {
        let address = start(Limits { connections: 1, ..LIMITS }).await;
        let silent = ask(address, "/long").await;
        // Its place is another's after that.
        assert!(rest(ask(address, "/").await).await > 4);
        assert!(rest(silent).await < LONG);
        assert!(rest(ask(address, "/long").await).await > LONG, "who reads has all of it");
    }
}
