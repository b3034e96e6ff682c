//! Bodies of requests: read within a time and within what all of them may take together.
//!
//! ```text
//!   ≤ 64 KiB    read at once: all requests that may be under way have room for it
//!   larger      waits for room for the largest body; the room is given back when the message
//!               has run
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::CBOR;
use crate::refusal::Refusal;
use crate::subnet::{Held, Subnet};

/// The largest body.
const MOST: usize = 5 << 20;
/// The largest body that needs no room.
const SMALL: usize = 64 << 10;
/// How long the next part of a body may take to come.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a whole body may take, room for it included.
const WHOLE: Duration = Duration::from_secs(30);

/// A body of CBOR, and the room that it takes.
pub struct Received {
    /// The body.
    pub bytes: Vec<u8>,
    /// Its room.
    pub held: Held,
}

impl FromRequest<Arc<Subnet>> for Received {
    type Rejection = Refusal;

    async fn from_request(request: Request, subnet: &Arc<Subnet>) -> Result<Self, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind != Some(CBOR.as_bytes()) {
            return Err(Refusal::bad_request(format!("The content-type is not {CBOR}.")));
        }
        let read = read(request.into_body(), &subnet.room, PAUSE);
        timeout(WHOLE, read).await.unwrap_or_else(|_| Err(slow(WHOLE)))
    }
}

async fn read(mut body: Body, room: &Arc<Semaphore>, pause: Duration) -> Result<Received, Refusal> {
    if body.size_hint().lower() > MOST as u64 {
        return Err(too_large());
    }
    let (mut bytes, mut held) = (Vec::new(), Held::None);
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let frame = match timeout(pause, frame).await {
            Err(_) => return Err(slow(pause)),
            Ok(None) => {
                if let Some(held) = &mut held {
                    // What the largest body would have needed more.
                    drop(held.split(MOST - bytes.len()));
                }
                return Ok(Received { bytes, held });
            }
            Ok(Some(Err(error))) => {
                return Err(Refusal::bad_request(format!("Cannot read the body: {error}.")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MOST {
            return Err(too_large());
        }
        if held.is_none() && bytes.len() + data.len() > SMALL {
            held = Some(take(room).await?);
        }
        bytes.extend_from_slice(&data);
    }
}

/// Room for the largest body.
async fn take(room: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(room).acquire_many_owned(MOST as u32).await.map_err(|error| {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, format!("No room for the body: {error}."))
    })
}

fn too_large() -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The body has more than {MOST} bytes."))
}

fn slow(time: Duration) -> Refusal {
    Refusal::new(
        StatusCode::REQUEST_TIMEOUT,
        format!("The body did not come within {} seconds; send it again.", time.as_secs()),
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use axum::body::Bytes;
    use http_body::Frame;

    use super::*;

    /// A body of which so many bytes come, and then nothing, not even its end.
    struct Stalled(usize);

    impl HttpBody for Stalled {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match std::mem::take(&mut self.0) {
                0 => Poll::Pending,
                bytes => Poll::Ready(Some(Ok(Frame::data(vec![0; bytes].into())))),
            }
        }
    }

    const SHORT: Duration = Duration::from_millis(50);

    fn room(bodies: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bodies * MOST))
    }

    async fn status(body: Body, room: &Arc<Semaphore>) -> u16 {
        match read(body, room, SHORT).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_is_not_waited_for() {
        let room = room(2);
        for bytes in [0, 1, SMALL + 1] {
            assert_eq!(status(Body::new(Stalled(bytes)), &room).await, 408, "{bytes}");
            assert_eq!(room.available_permits(), 2 * MOST);
        }
        assert_eq!(status(Body::new(Stalled(MOST + 1)), &room).await, 413);
        assert_eq!(status(Body::from(vec![0; MOST + 1]), &room).await, 413);
        assert_eq!(status(Body::from(vec![0; MOST]), &room).await, 200);
    }

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_small_ones_do_not() {
        let room = room(1);
        let large = || Body::from(vec![0; SMALL + 1]);
        let stalled = Body::new(Stalled(SMALL + 1));
        let reading = read(stalled, &room, Duration::from_secs(60));
        tokio::pin!(reading);
        assert!(timeout(SHORT, reading.as_mut()).await.is_err());
        assert!(timeout(SHORT, read(large(), &room, SHORT)).await.is_err());
        assert_eq!(status(Body::from(vec![0; SMALL]), &room).await, 200);
        drop(timeout(SHORT, reading).await);
        assert_eq!(room.available_permits(), 0);
    }

    #[tokio::test]
    async fn a_message_keeps_the_room_that_it_needs() {
        let room = room(1);
        let received = read(Body::from(vec![0; SMALL + 1]), &room, SHORT).await.ok().unwrap();
        assert_eq!(room.available_permits(), MOST - SMALL - 1);
        drop(received);
        assert_eq!(room.available_permits(), MOST);
        let received = read(Body::from(vec![0; SMALL]), &room, SHORT).await.ok().unwrap();
        assert!(received.held.is_none());
    }
}
