//! Listeners: their connections, and the web pages that may use them.
//!
//! The number of connections is limited, and idle ones are closed. A browser lets any page send
//! requests to this machine. Its requests name the origin of the page (`Origin`) and the name of this
//! machine (`Host`). The page can choose a name that resolves to this machine, so both are checked, by
//! the [`Guard`] that each listener has.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::limits::MAX_CONNECTIONS;
use crate::wire::Refusal;

/// The origin of web pages: a scheme, a host, and a port unless it is the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    text: String,
    host: String,
}

/// The error of a text that is not an origin.
#[derive(Debug, thiserror::Error)]
#[error("an origin is a scheme, a host and a port, such as http://example.com:3000")]
pub struct NoOrigin;

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let text = text.to_ascii_lowercase();
        let uri: Uri = text.parse().map_err(|_| NoOrigin)?;
        let host = uri.host().ok_or(NoOrigin)?.to_owned();
        let scheme = uri.scheme_str().ok_or(NoOrigin)?;
        let authority = uri.authority().map(|authority| format!("{scheme}://{authority}"));
        if host.is_empty() || authority.as_deref() != Some(text.as_str()) || text.contains('@') {
            return Err(NoOrigin);
        }
        Ok(Self { text, host })
    }
}

/// The origins and host names that are allowed.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Allowed origins besides those of this machine. Their host names are allowed too.
    pub origins: Vec<Origin>,
    /// Allows all origins and host names.
    pub open: bool,
}

/// The check of all requests to a listener.
#[derive(Clone, Debug)]
pub struct Guard {
    access: Access,
    /// The address of the listener.
    address: IpAddr,
    /// The domains of an HTTP gateway: they and all names below them are allowed, as names and as
    /// origins.
    domains: Option<Vec<String>>,
}

impl Guard {
    /// Creates the guard of a listener at `address`.
    pub fn new(access: Access, address: IpAddr) -> Self {
        Self { access, address, domains: None }
    }

    /// Returns the guard of an HTTP gateway at `address` that a client of this listener starts.
    ///
    /// # Errors
    ///
    /// If other machines could call the gateway, but not this listener, or a domain is no host
    /// name.
    pub fn for_gateway(&self, address: IpAddr, domains: &[String]) -> Result<Self, String> {
        let other = self.address;
        // An unspecified IPv6 address can be reached by IPv4, too.
        let all = other.is_unspecified() && (other.is_ipv6() || address.is_ipv4());
        if !all && other != address && !address.to_canonical().is_loopback() {
            return Err(format!(
                "the server listens at {other} only, and a gateway is not more open. Leave out \
                 ip_addr, or start the server with --ip-addr {address} (stablebench pocket-ic) or \
                 --listen {address} (stablebench serve)"
            ));
        }
        let is_name = |domain: &str| {
            let valid = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            };
            domain.split('.').all(valid)
        };
        let domains = domains.iter().map(|domain| match is_name(domain) {
            true => Ok(domain.to_ascii_lowercase()),
            false => Err(format!("the domain {domain:?} is no host name, such as example.com")),
        });
        let domains = Some(domains.collect::<Result<_, _>>()?);
        Ok(Self { access: self.access.clone(), address, domains })
    }

    /// Checks the origin and the host name of a request.
    ///
    /// # Errors
    ///
    /// 403 with the option that would allow the request, or 400 without exactly one `Host`.
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.access.open {
            return Ok(());
        }
        let domain = self.domains.as_ref().map_or("", |_| "add it to the gateway's domains, or ");
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::bad_request("A request has one Host header."));
        };
        let host = host.to_str().ok().and_then(|host| host.parse::<Uri>().ok());
        let host = host.as_ref().and_then(Uri::host).unwrap_or_default();
        for name in [Some(host), uri.host()].into_iter().flatten() {
            if !self.allows_name(name) {
                return Err(Refusal::forbidden(format!(
                    "The Host {name} is not this machine. Call http://localhost, or {domain}allow \
                     it: serve --allow-origin http://{name}"
                )));
            }
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if !self.allows_origin(origin) => {
                let origin = origin.to_str().unwrap_or("unreadable");
                Err(Refusal::forbidden(format!(
                    "Pages of the origin {origin} are not allowed to call. To allow them, \
                     {domain}serve with --allow-origin {origin}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` for origins of this machine, of the domains, and allowed origins.
    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().ok().and_then(|text| text.parse::<Origin>().ok());
        origin.is_some_and(|origin| {
            is_loopback(&origin.host)
                || self.is_below_domain(&origin.host)
                || self.access.origins.contains(&origin)
        })
    }

    /// Returns `true` if requests may use that host name. An IP address is allowed if the listener
    /// is open to other machines: unlike a name, no page can make it resolve to this machine.
    fn allows_name(&self, name: &str) -> bool {
        is_loopback(name)
            || (!self.address.is_loopback() && ip(name).is_some())
            || self.is_below_domain(name)
            || self.access.origins.iter().any(|origin| origin.host.eq_ignore_ascii_case(name))
    }

    fn is_below_domain(&self, host: &str) -> bool {
        let name = host.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        self.domains.iter().flatten().any(|domain| {
            name.strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }
}

fn ip(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

/// Returns `true` if every machine resolves the host to itself.
fn is_loopback(host: &str) -> bool {
    let name = host.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    name == "localhost"
        || name.ends_with(".localhost")
        || ip(name).is_some_and(|ip| ip.to_canonical().is_loopback())
}

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

    use axum::http::HeaderName;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    fn status(access: &Access, listens: &str, host: &str, origin: Option<&str>) -> u16 {
        guarded(&Guard::new(access.clone(), listens.parse().unwrap()), host, origin)
    }

    fn guarded(guard: &Guard, host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let uri = Uri::from_static("/api/v2/status");
        let checked = guard.check(&uri, &headers);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_names_of_this_machine_are_allowed() {
        let closed = Access::default();
        for (host, expected) in [
            ("127.0.0.1:4943", 200),
            ("127.9.9.9", 200),
            ("localhost", 200),
            ("LocalHost.:4943", 200),
            ("lxzze-o7777-77777-aaaaa-cai.localhost:4943", 200),
            ("[::1]:4943", 200),
            ("[::ffff:127.0.0.1]:4943", 200),
            ("evil.example:4943", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("evillocalhost", 403),
            ("192.168.1.5:4943", 403),
            ("0.0.0.0:4943", 403),
            ("[::2]", 403),
            ("", 403),
        ] {
            assert_eq!(status(&closed, "127.0.0.1", host, None), expected, "{host}");
        }
        // Other machines use an address; a name could be chosen by anybody.
        assert_eq!(status(&closed, "0.0.0.0", "192.168.1.5:4943", None), 200);
        assert_eq!(status(&closed, "192.168.1.5", "192.168.1.5:4943", None), 200);
        assert_eq!(status(&closed, "0.0.0.0", "evil.example:4943", None), 403);
        let guard = Guard::new(closed, "127.0.0.1".parse().unwrap());
        let headers = HeaderMap::new();
        let uri = Uri::from_static("http://localhost/");
        assert!(guard.check(&uri, &headers).is_err());
        let two = [("localhost", header::HOST), ("evil.example", header::HOST)];
        let mut headers = HeaderMap::new();
        for (value, name) in two {
            headers.append::<HeaderName>(name, value.parse().unwrap());
        }
        assert!(guard.check(&uri, &headers).is_err());
    }

    #[test]
    fn gateways_have_domains() {
        let server = Guard::new(Access::default(), "127.0.0.1".parse().unwrap());
        let domains = ["App.example", "intern"].map(str::to_owned);
        let gateway = server.for_gateway("127.0.0.1".parse().unwrap(), &domains).unwrap();
        let id = "lxzze-o7777-77777-aaaaa-cai";
        for (name, expected) in [
            ("localhost", 200),
            (&*format!("{id}.localhost"), 200),
            (&*format!("{id}.raw.localhost"), 200),
            ("127.0.0.1", 200),
            ("[::1]", 200),
            ("app.example", 200),
            ("APP.example.", 200),
            (&*format!("{id}.app.example"), 200),
            ("intern", 200),
            ("evil.example", 403),
            ("evilapp.example", 403),
            ("app.example.evil.example", 403),
            ("example", 403),
            ("192.168.1.5", 403),
        ] {
            assert_eq!(guarded(&gateway, &format!("{name}:8000"), None), expected, "{name}");
            let page = format!("http://{name}:8000");
            let page = page.trim_end_matches(".:8000");
            assert_eq!(guarded(&gateway, "localhost", Some(page)), expected, "{page}");
        }
        for domain in ["", ".", "a..b", "*.example", "http://a.example", "a.example:80", "é"] {
            let domains = [domain.to_owned()];
            let refused = server.for_gateway("127.0.0.1".parse().unwrap(), &domains);
            assert!(refused.unwrap_err().contains("is no host name"), "{domain}");
        }
    }

    #[test]
    fn gateways_are_no_more_open_than_their_server() {
        for (server, gateway, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", true),
            ("127.0.0.1", "::1", true),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("127.0.0.1", "0.0.0.0", false),
            ("127.0.0.1", "::", false),
            ("127.0.0.1", "192.168.1.5", false),
            ("::1", "::", false),
            ("192.168.1.5", "192.168.1.5", true),
            ("192.168.1.5", "192.168.1.6", false),
            ("192.168.1.5", "0.0.0.0", false),
            ("0.0.0.0", "192.168.1.5", true),
            ("0.0.0.0", "0.0.0.0", true),
            ("0.0.0.0", "::", false),
            ("::", "0.0.0.0", true),
        ] {
            let guard = Guard::new(Access::default(), server.parse().unwrap());
            let started = guard.for_gateway(gateway.parse().unwrap(), &[]);
            assert_eq!(started.is_ok(), expected, "{server} {gateway}");
        }
    }

    #[test]
    fn only_pages_of_this_machine_and_allowed_origins_may_call() {
        let closed = Access::default();
        let some =
            Access { origins: vec!["https://app.example".parse().unwrap()], ..Access::default() };
        let open = Access { open: true, ..Access::default() };
        for (origin, of_closed, of_some) in [
            ("http://localhost:3000", 200, 200),
            ("http://127.0.0.1", 200, 200),
            ("https://app.example", 403, 200),
            ("http://app.example", 403, 403),
            ("https://app.example:444", 403, 403),
            ("https://evil.example", 403, 403),
            ("http://localhost.evil.example", 403, 403),
            ("http://localhost@evil.example", 403, 403),
            ("null", 403, 403),
        ] {
            let status = |access| status(access, "127.0.0.1", "127.0.0.1:4943", Some(origin));
            assert_eq!(
                (status(&closed), status(&some), status(&open)),
                (of_closed, of_some, 200),
                "{origin}"
            );
        }
        assert_eq!(status(&some, "0.0.0.0", "app.example:4943", None), 200);
        assert_eq!(status(&open, "127.0.0.1", "evil.example", None), 200);
    }

    #[test]
    fn other_texts_are_not_origins() {
        for text in ["", "*", "example.com", "http://", "http://a/b", "http://a/", "http://u@a"] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
        let same: [Origin; 2] =
            ["http://A.example", "http://a.example"].map(|t| t.parse().unwrap());
        assert_eq!(same[0], same[1]);
    }

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
