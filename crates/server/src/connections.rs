//! Connections: their number is limited, idle ones are closed, and a guard checks all requests.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::access::{Access, Guard};
use crate::limits::MAX_CONNECTIONS;
use crate::wire::Refusal;

/// A socket that listens. Its requests reach a router only if [`Access`] allows them.
///
/// There is no other way to listen in this project, so that no listener is open to foreign web
/// pages by mistake.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    guard: Arc<Guard>,
}

impl Listener {
    /// Listens at an address, for requests that `access` allows. The port 0 stands for any that is
    /// free.
    ///
    /// # Errors
    ///
    /// If this machine cannot listen there.
    pub fn bind(address: SocketAddr, access: Access) -> io::Result<Self> {
        Self::guarded(address, Guard::new(access, address.ip()))
    }

    /// Listens at an address, for requests that pass `guard`.
    pub(crate) fn guarded(address: SocketAddr, guard: Guard) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "the one place, which has a guard")]
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, guard: Arc::new(guard) })
    }

    /// The address, with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The check of its requests.
    pub(crate) fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }
}

/// The limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Simultaneous connections; further ones wait.
    pub connections: usize,
    /// The time limit for the head of the next request, also on a connection that is kept open.
    pub head: Duration,
    /// The time for which a client may read nothing of its answer.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        // More connections than concurrent requests.
        Self { connections: MAX_CONNECTIONS, head: minute, answer: minute }
    }
}

/// The size limit of a request's head, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(200);

async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    guard.check(request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

/// Answers requests until `stop` resolves, then finishes those in progress.
///
/// # Errors
///
/// If the runtime cannot use the socket.
pub async fn serve(
    listener: Listener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let router = router.layer(middleware::from_fn_with_state(listener.guard, check));
    let listener = tokio::net::TcpListener::from_std(listener.socket)?;
    let places = Arc::new(Semaphore::new(limits.connections));
    // Dropping `stopping` notifies the connections; each drops its `ending` when it is done.
    let (stopping, stopped) = watch::channel(());
    let (ended, ending) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        // The client has left already, or there are no more file descriptors.
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
                    .max_buf_size(MAX_HEAD)
                    .serve_connection(TokioIo::new(Box::pin(stream)), service)
            );
            tokio::select! {
                // The client notices an error of the connection by itself.
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    /// More than the system buffers of an answer that is not read.
    const LONG: usize = 64 << 20;
    const SHORT: Duration = Duration::from_millis(300);
    const LIMITS: Limits = Limits { connections: 2, head: SHORT, answer: SHORT };
    const PATIENT: Duration = Duration::from_secs(60);

    async fn start(limits: Limits) -> SocketAddr {
        let router = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/long", get(|| async { vec![7; LONG] }));
        let local = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(local, Access::default()).unwrap();
        let address = listener.address();
        tokio::spawn(serve(listener, router, limits, std::future::pending()));
        address
    }

    async fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Reads until the other side closes the connection, and returns the number of bytes.
    async fn rest(mut stream: TcpStream) -> usize {
        let mut bytes = Vec::new();
        // The connection may end with an error.
        let _ = timeout(PATIENT, stream.read_to_end(&mut bytes))
            .await
            .expect("the connection is not closed");
        bytes.len()
    }

    #[tokio::test]
    async fn a_connection_without_a_request_is_closed() {
        let address = start(LIMITS).await;
        for part in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: local"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(part.as_bytes()).await.unwrap();
            let began = Instant::now();
            rest(stream).await;
            assert!(began.elapsed() >= SHORT / 2, "{part}");
        }
        // So is a connection without a next request.
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
        assert!(timeout(SHORT, third.read(&mut byte)).await.is_err(), "two connections are open");
        drop(first);
        assert_eq!(timeout(PATIENT, third.read(&mut byte)).await.unwrap().unwrap(), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_does_not_read_is_disconnected() {
        let address = start(Limits { connections: 1, ..LIMITS }).await;
        let silent = ask(address, "/long").await;
        // Then its place is free for another connection.
        assert!(rest(ask(address, "/").await).await > 4);
        assert!(rest(silent).await < LONG);
        assert!(
            rest(ask(address, "/long").await).await > LONG,
            "a client that reads gets the whole answer"
        );
    }
}
