//! Bodies, read within limits of bytes and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error::ApiError;

/// Bytes of a body, and their share of what the server holds.
pub struct Held {
    pub bytes: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
}

/// Where bodies are held.
#[derive(Clone)]
pub struct Room {
    /// Bytes of one body.
    limit: usize,
    time: Duration,
    free: Arc<Semaphore>,
    /// Bytes of all bodies.
    room: usize,
}

impl Room {
    /// For `held` bytes of all bodies, none larger than `limit`, each of which is there within `time`.
    pub fn new(limit: usize, held: usize, time: Duration) -> Self {
        let held = held.min(Semaphore::MAX_PERMITS);
        Self { limit, time, free: Arc::new(Semaphore::new(held)), room: held }
    }

    /// Bytes of all bodies that are held.
    pub fn held(&self) -> usize {
        self.room - self.free.available_permits()
    }

    /// Reads a body. Memory is taken as bytes come, not as they are announced.
    ///
    /// # Errors
    /// A body that is too large, too slow, or broken off; no room among the other bodies.
    pub async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Held, ApiError> {
        let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if announced
            .and_then(|length| length.parse().ok())
            .is_some_and(|length: usize| length > self.limit)
        {
            return Err(ApiError::TooLarge { limit: self.limit });
        }
        match timeout(self.time, self.read_all(body)).await {
            Ok(read) => read,
            Err(_) => Err(ApiError::Slow(self.time)),
        }
    }

    async fn read_all(&self, mut body: Body) -> Result<Held, ApiError> {
        let mut held = Held { bytes: Vec::new(), share: None };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ApiError::Broken(error.to_string()))?;
            // Trailers say nothing that is wanted.
            let Ok(chunk) = frame.into_data() else { continue };
            if held.bytes.len() + chunk.len() > self.limit {
                return Err(ApiError::TooLarge { limit: self.limit });
            }
            // A chunk is as large as the connection's buffer at most.
            let share =
                self.free.clone().try_acquire_many_owned(chunk.len() as u32).map_err(|_| {
                    ApiError::Unavailable(
                        "the server holds too many bodies; try again later".to_owned(),
                    )
                })?;
            match &mut held.share {
                Some(all) => all.merge(share),
                none => *none = Some(share),
            }
            held.bytes.extend_from_slice(&chunk);
        }
        Ok(held)
    }
}
