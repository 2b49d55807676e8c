//! Bodies, read within limits of bytes and time.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

use super::error::ApiError;
use crate::locked::locked;
use crate::serve::room::{AHEAD_BYTES, Room, Share};

/// For the rest of a body that nobody wants.
const SKIP_TIME: Duration = Duration::from_secs(5);
/// Bytes of it, as a multiple of what a body may have: one that is refused for its size has more.
const SKIPPED: usize = 4;

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
        let announced: usize = announced.and_then(|length| length.parse().ok()).unwrap_or(0);
        if announced > self.limit {
            return Err(ApiError::TooLarge { limit: self.limit });
        }
        match timeout(self.time, self.read_all(body, announced)).await {
            Ok(read) => read,
            Err(_) => Err(ApiError::Slow(self.time)),
        }
    }

    /// Reads and forgets the rest of a body, for a moment and up to a few times what one may have.
    pub async fn skip(&self, mut rest: Shared) {
        let most = SKIPPED.saturating_mul(self.limit);
        if rest.size_hint().lower() > most as u64 {
            return;
        }
        let skip = async {
            let mut skipped = 0;
            while let Some(Ok(frame)) = rest.frame().await {
                skipped += frame.data_ref().map_or(0, Bytes::len);
                if skipped > most {
                    break;
                }
            }
        };
        // Whoever takes longer may miss the answer.
        let _ = timeout(SKIP_TIME.min(self.time), skip).await;
    }

    async fn read_all(&self, mut body: Body, announced: usize) -> Result<Held, ApiError> {
        let mut held = Held::default();
        held.bytes.reserve(announced.min(AHEAD_BYTES));
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

/// A body that can be read on by somebody else, when its reader has lost interest.
pub struct Shared(Arc<Mutex<Body>>);

impl Shared {
    /// Two handles to one body.
    pub fn of(body: Body) -> (Self, Self) {
        let body = Arc::new(Mutex::new(body));
        (Self(body.clone()), Self(body))
    }

    fn with<R>(&self, work: impl FnOnce(Pin<&mut Body>) -> R) -> R {
        // The handles are used one after the other; a panic leaves the body as it was.
        let mut body = locked(&self.0);
        work(Pin::new(&mut *body))
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|body| body.poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.with(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|body| body.size_hint())
    }
}
