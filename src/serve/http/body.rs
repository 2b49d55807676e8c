//! Bodies, read within limits of bytes and time.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::error::ApiError;
use crate::serve::room::{Room, Share};

/// Bytes of a body, and their share of what the server holds.
#[derive(Default)]
pub struct Held {
    pub bytes: Vec<u8>,
    share: Share,
}

/// How bodies are read.
#[derive(Clone)]
pub struct Reader {
    /// Bytes of one body.
    limit: usize,
    time: Duration,
    room: Room,
}

impl Reader {
    /// For `held` bytes of all bodies, none larger than `limit`, each of which is there within `time`.
    pub fn new(limit: usize, held: usize, time: Duration) -> Self {
        Self { limit, time, room: Room::new(held) }
    }

    /// Bytes of all bodies that are held.
    pub fn held(&self) -> usize {
        self.room.held()
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
        let mut held = Held::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ApiError::Broken(error.to_string()))?;
            // Trailers say nothing that is wanted.
            let Ok(chunk) = frame.into_data() else { continue };
            if held.bytes.len() + chunk.len() > self.limit {
                return Err(ApiError::TooLarge { limit: self.limit });
            }
            held.share
                .grow(&self.room, chunk.len())
                .map_err(|full| ApiError::Unavailable(full.to_string()))?;
            held.bytes.extend_from_slice(&chunk);
        }
        Ok(held)
    }
}
