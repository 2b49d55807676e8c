//! Memory for what clients send: all requests of a server together take no more than it has.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a request that are made room for before they have come. Memory that nothing is written to is none.
pub const AHEAD_BYTES: usize = 1 << 20;

/// Bytes of all requests that a server holds at a time.
#[derive(Clone)]
pub struct Room {
    free: Arc<Semaphore>,
    bytes: usize,
}

/// A request's part of the room; given back with it.
#[derive(Default)]
pub struct Share(Option<OwnedSemaphorePermit>);

/// Other requests take all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server holds too many requests; try again later")]
pub struct NoRoom;

impl Room {
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(bytes)), bytes }
    }

    /// Bytes that are taken.
    pub fn held(&self) -> usize {
        self.bytes - self.free.available_permits()
    }
}

impl Share {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// There are not as many.
    pub fn grow(&mut self, room: &Room, bytes: usize) -> Result<(), NoRoom> {
        let more = u32::try_from(bytes).map_err(|_| NoRoom)?;
        let more = room.free.clone().try_acquire_many_owned(more).map_err(|_| NoRoom)?;
        match &mut self.0 {
            Some(all) => all.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let room = Room::new(10);
        let (mut one, mut other) = (Share::default(), Share::default());
        one.grow(&room, 4).unwrap();
        one.grow(&room, 3).unwrap();
        assert_eq!(other.grow(&room, 4), Err(NoRoom));
        other.grow(&room, 3).unwrap();
        assert_eq!(room.held(), 10);
        drop(one);
        assert_eq!(room.held(), 3);
    }
}
