//! What the service manager is told: that the program serves, that it lives, that it ends.
//!
//! The protocol is that of systemd's `sd_notify(3)`. Where no manager listens (`NOTIFY_SOCKET` is not set), nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;
use tracing::warn;

/// The program now does what it was started for; a manager that waited for that starts its watchdog.
pub fn ready() {
    send(&NotifyState::Ready);
}

/// The program ends, because it was told to or because it cannot go on.
pub fn stopping() {
    send(&NotifyState::Stopping);
}

/// Says that the program lives, twice in the time after which the manager would end it, for as long as `alive` answers
/// `true`. An `alive` that does not answer says nothing, and the manager acts. Returns at once if no watchdog is asked for.
pub async fn keep_alive<F>(mut alive: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else {
        return;
    };
    let mut beat = tokio::time::interval(period(limit));
    loop {
        beat.tick().await;
        if !alive().await {
            return;
        }
        send(&NotifyState::Watchdog);
    }
}

/// Time between two signs of life; never zero, which no interval may be.
fn period(limit: Duration) -> Duration {
    (limit / 2).max(Duration::from_millis(1))
}

fn send(state: &NotifyState) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        warn!("the service manager does not hear '{}': {error}", state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_twice_in_the_limit() {
        assert_eq!(period(Duration::from_secs(30)), Duration::from_secs(15));
        assert_eq!(period(Duration::from_nanos(1)), Duration::from_millis(1));
    }
}
