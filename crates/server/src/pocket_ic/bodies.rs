//! Bodies of requests: large ones wait for memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::failure::Failed;
use crate::limits::MAX_JSON;
use crate::queue::MemoryPermit;

/// The bytes of JSON that needs no permit.
const SMALL: usize = 64 << 10;
/// The most bytes of a refused body that are read.
const MAX_DROPPED: usize = 1 << 30;
/// The time limit for the next part of a body.
const PAUSE: Duration = Duration::from_secs(30);

/// JSON and its memory permit.
pub struct Received {
    pub bytes: Vec<u8>,
    pub memory: MemoryPermit,
}

/// Reads JSON. If it is large, it waits until there is memory for the largest, and keeps as much as it
/// needs.
pub async fn read_json(body: Body, available: &Arc<Semaphore>) -> Result<Received, Failed> {
    let mut memory = MemoryPermit::None;
    let bytes = read_with(body, MAX_JSON, async || {
        let acquired = Arc::clone(available).acquire_many_owned(MAX_JSON as u32).await;
        memory = Some(acquired.map_err(|error| Failed::TooMany(format!("No memory: {error}.")))?);
        Ok(())
    });
    let bytes = bytes.await?;
    if let Some(permit) = &mut memory {
        drop(permit.split(MAX_JSON - bytes.len()));
    }
    Ok(Received { bytes, memory })
}

/// Reads a body.
pub async fn read(body: Body, most: usize) -> Result<Vec<u8>, Failed> {
    read_with(body, most, async || Ok(())).await
}

/// Reads a body, and calls `grow` before it becomes large. One that is too large is read to its end and
/// dropped, so that the client sees the refusal.
async fn read_with(
    mut body: Body,
    most: usize,
    grow: impl AsyncFnOnce() -> Result<(), Failed>,
) -> Result<Vec<u8>, Failed> {
    let (mut bytes, mut all) = (Vec::new(), 0_usize);
    let mut grow = Some(grow);
    let too_large = |all| {
        Failed::TooLarge(format!("The body has {all} bytes or more, at most {most} are accepted."))
    };
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let frame = match timeout(PAUSE, frame).await {
            Err(_) => {
                let seconds = PAUSE.as_secs();
                let text = format!("The body paused for {seconds} seconds; send it again.");
                return Err(Failed::Refused(text));
            }
            Ok(None) if all > most => return Err(too_large(all)),
            Ok(None) => return Ok(bytes),
            Ok(Some(Err(error))) => {
                return Err(Failed::Refused(format!("Cannot read the body: {error}.")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        all = all.saturating_add(data.len());
        if all <= most {
            if all > SMALL
                && let Some(grow) = grow.take()
            {
                grow().await?;
            }
            bytes.try_reserve(data.len()).map_err(|error| Failed::Machine(error.to_string()))?;
            bytes.extend_from_slice(&data);
        } else if all > most.saturating_add(MAX_DROPPED) {
            return Err(too_large(all));
        } else {
            bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn large_json_keeps_its_memory_until_its_operation_is_done() {
        let available = Arc::new(Semaphore::new(MAX_JSON));
        let read = async |bytes: usize| {
            let body = Body::from(vec![b' '; bytes]);
            timeout(SHORT, read_json(body, &available)).await.ok()?.ok()
        };
        let first = read(SMALL + 1).await.unwrap();
        assert_eq!(available.available_permits(), MAX_JSON - SMALL - 1);
        // Another one waits, because it may be as large as any. Small ones do not.
        assert!(read(SMALL + 1).await.is_none());
        assert!(read(SMALL).await.unwrap().memory.is_none());
        drop(first);
        assert!(read(SMALL + 1).await.is_some());
        assert!(read(MAX_JSON + 1).await.is_none());
        assert_eq!(available.available_permits(), MAX_JSON);
    }
}
