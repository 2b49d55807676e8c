//! Places for connections. When all are taken, whoever has been silent longest gives up its own: first those that never
//! sent a whole request.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::locked::locked;

/// The places of a server.
pub struct Seats {
    free: Arc<Semaphore>,
    silent: Mutex<Silent>,
    /// One more is silent.
    fell_silent: Notify,
}

/// Connections that nothing is done for, in the order in which they leave.
#[derive(Default)]
struct Silent {
    turn: u64,
    seats: BTreeMap<Rank, Arc<Notify>>,
}

/// Whether a connection has sent a whole request, and when it fell silent.
type Rank = (bool, u64);

/// A connection's place, which counts as silent until [`Seat::begin`]; given back when it is dropped.
pub struct Seat {
    seats: Arc<Seats>,
    activity: Mutex<Activity>,
    dismissal: Arc<Notify>,
    _place: OwnedSemaphorePermit,
}

struct Activity {
    /// Requests that are answered.
    requests: usize,
    /// The seat's key among the silent ones.
    rank: Rank,
}

/// A request that is answered: its connection is not silent.
pub struct Busy(Arc<Seat>);

impl Seats {
    pub fn new(places: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(places));
        Arc::new(Self { free, silent: Mutex::default(), fell_silent: Notify::new() })
    }

    /// A place; waits for one if all are taken, and tells the connection that has been silent longest to leave.
    pub async fn take(self: &Arc<Self>) -> Arc<Seat> {
        let mut place = pin!(self.free.clone().acquire_owned());
        let mut told = false;
        let place = loop {
            tokio::select! {
                biased;
                place = &mut place => break place.expect("it is never closed"),
                () = self.dismiss(), if !told => told = true,
            }
        };
        let dismissal = Arc::new(Notify::new());
        let rank = self.fall_silent(false, &dismissal);
        let activity = Mutex::new(Activity { requests: 0, rank });
        Arc::new(Seat { seats: self.clone(), activity, dismissal, _place: place })
    }

    /// Tells the connection that has been silent longest to leave, as soon as there is one.
    async fn dismiss(&self) {
        loop {
            let fell_silent = self.fell_silent.notified();
            if self.dismiss_now() {
                return;
            }
            fell_silent.await;
        }
    }

    /// Tells the connection that has been silent longest to leave; `false` where none is silent.
    pub fn dismiss_now(&self) -> bool {
        let longest = locked(&self.silent).seats.pop_first();
        longest.inspect(|(_, dismissal)| dismissal.notify_one()).is_some()
    }

    fn fall_silent(&self, has_asked: bool, dismissal: &Arc<Notify>) -> Rank {
        let mut silent = locked(&self.silent);
        silent.turn += 1;
        let rank = (has_asked, silent.turn);
        silent.seats.insert(rank, dismissal.clone());
        self.fell_silent.notify_one();
        rank
    }

    fn wake(&self, rank: Rank) {
        locked(&self.silent).seats.remove(&rank);
    }
}

impl Seat {
    /// Something has come: silence begins anew. A request of which a part is missing is no more than that, or as many
    /// halves as there are places would shut others out.
    pub fn touch(&self) {
        let mut activity = locked(&self.activity);
        if activity.requests == 0 {
            self.seats.wake(activity.rank);
            activity.rank = self.seats.fall_silent(activity.rank.0, &self.dismissal);
        }
    }

    /// Marks a whole request until what is returned is dropped.
    pub fn begin(self: &Arc<Self>) -> Busy {
        let mut activity = locked(&self.activity);
        if activity.requests == 0 {
            self.seats.wake(activity.rank);
        }
        activity.requests += 1;
        Busy(self.clone())
    }

    /// Waits until somebody else needs this place more. A request that has begun meanwhile is to be answered first.
    pub async fn dismissed(&self) {
        self.dismissal.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.wake(locked(&self.activity).rank);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut activity = locked(&self.0.activity);
        activity.requests -= 1;
        if activity.requests == 0 {
            activity.rank = self.0.seats.fall_silent(true, &self.0.dismissal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// What is ready needs no time; what is not, never comes.
    async fn ready<T>(work: impl Future<Output = T>) -> Option<T> {
        timeout(Duration::from_millis(20), work).await.ok()
    }

    #[tokio::test]
    async fn the_connection_that_has_been_silent_longest_leaves() {
        let seats = Seats::new(3);
        let [first, second, third] = [seats.take().await, seats.take().await, seats.take().await];
        // It has said something since the second one came.
        first.touch();
        assert!(ready(seats.take()).await.is_none());
        assert!(ready(second.dismissed()).await.is_some());
        assert!(ready(first.dismissed()).await.is_none());
        assert!(ready(third.dismissed()).await.is_none());
        drop(second);
        let fourth = ready(seats.take()).await.expect("the second one's place");
        assert!(ready(third.dismissed()).await.is_none(), "there was a place");
        drop((first, third, fourth));
        assert_eq!(seats.free.available_permits(), 3);
        assert!(locked(&seats.silent).seats.is_empty());
    }

    #[tokio::test]
    async fn those_that_never_asked_leave_first() {
        let seats = Seats::new(2);
        let [client, stranger] = [seats.take().await, seats.take().await];
        drop(client.begin());
        stranger.touch();
        assert!(ready(seats.take()).await.is_none());
        assert!(ready(stranger.dismissed()).await.is_some());
        assert!(ready(client.dismissed()).await.is_none());
    }

    #[tokio::test]
    async fn whoever_has_a_request_stays() {
        let seats = Seats::new(1);
        let only = seats.take().await;
        let (one, other) = (only.begin(), only.begin());
        drop(one);
        let next = tokio::spawn(async move { seats.take().await });
        assert!(ready(only.dismissed()).await.is_none());
        drop(other);
        assert!(ready(only.dismissed()).await.is_some());
        drop(only);
        assert!(ready(next).await.is_some());
    }
}
