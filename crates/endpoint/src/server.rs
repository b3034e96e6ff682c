//! Connections: accepted, bounded in number, and closed where nothing comes.

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

/// Connections at a time; further ones wait. More than requests that may be under way.
const MOST_CONNECTIONS: usize = 2_500;
/// How long the next request's head may take to come, also on a connection that is kept.
const HEAD: Duration = Duration::from_secs(60);
/// Bytes of a request's head.
const MOST_HEAD: usize = 64 << 10;
/// How long to wait where the machine cannot accept connections.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers requests until `stop` comes, and then those that are under way.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
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
        let service = TowerToHyperService::new(router.clone());
        let (mut stopped, ending) = (stopped.clone(), ending.clone());
        tokio::spawn(async move {
            let mut connection = pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD)
                    .max_buf_size(MOST_HEAD)
                    .serve_connection(TokioIo::new(stream), service)
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
