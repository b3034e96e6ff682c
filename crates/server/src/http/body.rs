//! Request bodies, read within a time limit and a common memory limit.
//!
//! ```text
//!   ≤ 64 KiB    read at once; the limit of concurrent requests bounds their memory
//!   larger      waits for a permit for the largest body; the permit is released when the message
//!               has run
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::host::{Host, MemoryPermit};
use crate::limits::MAX_BODY as MAX;
use crate::wire::Refusal;

/// The content type of requests and answers.
pub const CBOR: &str = "application/cbor";

/// The size of the largest body that needs no permit, in bytes.
const SMALL: usize = 64 << 10;
/// The time limit for the next part of a body.
const PAUSE: Duration = Duration::from_secs(10);
/// The time limit for a whole body, including the wait for a permit.
pub const WHOLE: Duration = Duration::from_secs(30);

/// A CBOR body and its memory permit.
pub struct Received {
    /// The body.
    pub bytes: Vec<u8>,
    /// The permit, if the body is large.
    pub memory: MemoryPermit,
}

impl FromRequest<Arc<Host>> for Received {
    type Rejection = Refusal;

    async fn from_request(request: Request, host: &Arc<Host>) -> Result<Self, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind != Some(CBOR.as_bytes()) {
            return Err(Refusal::bad_request(format!("The content-type is not {CBOR}.")));
        }
        let read = read(request.into_body(), &host.memory, PAUSE);
        timeout(WHOLE, read).await.unwrap_or_else(|_| Err(slow(WHOLE)))
    }
}

/// Reads a body whose memory is limited by the caller.
pub async fn read_at_most(mut body: Body, most: usize, time: Duration) -> Result<Vec<u8>, Refusal> {
    let read = async {
        let mut bytes = Vec::new();
        while let Some(data) = next(&mut body).await? {
            if bytes.len() + data.len() > most {
                return Err(too_large(most));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    };
    timeout(time, read).await.unwrap_or_else(|_| Err(slow(time)))
}

/// Returns the next part of a body, or `None` at its end.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame
            .map_err(|error| Refusal::bad_request(format!("Cannot read the body: {error}.")))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn read(
    mut body: Body,
    available: &Arc<Semaphore>,
    pause: Duration,
) -> Result<Received, Refusal> {
    if body.size_hint().lower() > MAX as u64 {
        return Err(too_large(MAX));
    }
    let (mut bytes, mut memory) = (Vec::new(), MemoryPermit::None);
    loop {
        let Some(data) = timeout(pause, next(&mut body)).await.map_err(|_| slow(pause))?? else {
            if let Some(permit) = &mut memory {
                // Release the memory that the largest body would have needed.
                drop(permit.split(MAX - bytes.len()));
            }
            return Ok(Received { bytes, memory });
        };
        if bytes.len() + data.len() > MAX {
            return Err(too_large(MAX));
        }
        if memory.is_none() && bytes.len() + data.len() > SMALL {
            memory = Some(acquire(available).await?);
        }
        bytes.extend_from_slice(&data);
    }
}

/// Acquires a permit for the largest body.
async fn acquire(available: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(available)
        .acquire_many_owned(MAX as u32)
        .await
        .map_err(|error| Refusal::too_many(format!("No room for the body: {error}.")))
}

fn too_large(most: usize) -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The body has more than {most} bytes."))
}

fn slow(time: Duration) -> Refusal {
    Refusal::new(
        StatusCode::REQUEST_TIMEOUT,
        format!("The body did not arrive within {} seconds; send it again.", time.as_secs()),
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;

    /// A body that stalls after some bytes, without an end.
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

    fn memory(bodies: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bodies * MAX))
    }

    async fn status(body: Body, available: &Arc<Semaphore>) -> u16 {
        match read(body, available, SHORT).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[tokio::test]
    async fn a_stalled_body_is_refused() {
        let available = memory(2);
        for bytes in [0, 1, SMALL + 1] {
            assert_eq!(status(Body::new(Stalled(bytes)), &available).await, 408, "{bytes}");
            assert_eq!(available.available_permits(), 2 * MAX);
        }
        assert_eq!(status(Body::new(Stalled(MAX + 1)), &available).await, 413);
        assert_eq!(status(Body::from(vec![0; MAX + 1]), &available).await, 413);
        assert_eq!(status(Body::from(vec![0; MAX]), &available).await, 200);
    }

    #[tokio::test]
    async fn a_stalled_body_of_a_gateway_is_refused() {
        let status = async |body: Body| match read_at_most(body, MAX, SHORT).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status.as_u16(),
        };
        for bytes in [0, 1] {
            assert_eq!(status(Body::new(Stalled(bytes))).await, 408, "{bytes}");
        }
        assert_eq!(status(Body::from(vec![0; MAX + 1])).await, 413);
        assert_eq!(status(Body::from(vec![0; MAX])).await, 200);
    }

    #[tokio::test]
    async fn only_large_bodies_wait_for_memory() {
        let available = memory(1);
        let large = || Body::from(vec![0; SMALL + 1]);
        let stalled = Body::new(Stalled(SMALL + 1));
        let reading = read(stalled, &available, Duration::from_secs(60));
        tokio::pin!(reading);
        assert!(timeout(SHORT, reading.as_mut()).await.is_err());
        assert!(timeout(SHORT, read(large(), &available, SHORT)).await.is_err());
        assert_eq!(status(Body::from(vec![0; SMALL]), &available).await, 200);
        drop(timeout(SHORT, reading).await);
        assert_eq!(available.available_permits(), 0);
    }

    #[tokio::test]
    async fn a_message_keeps_a_permit_of_its_size() {
        let available = memory(1);
        let received = read(Body::from(vec![0; SMALL + 1]), &available, SHORT).await.ok().unwrap();
        assert_eq!(available.available_permits(), MAX - SMALL - 1);
        drop(received);
        assert_eq!(available.available_permits(), MAX);
        let received = read(Body::from(vec![0; SMALL]), &available, SHORT).await.ok().unwrap();
        assert!(received.memory.is_none());
    }
}
