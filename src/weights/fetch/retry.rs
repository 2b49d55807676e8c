//! How often and when a request is tried again.

use std::time::Duration;

/// Patience with a hub.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Attempts without progress before it is given up, at least one.
    pub attempts: u32,
    /// Wait before the second attempt; it doubles with every further one.
    pub first: Duration,
    /// Longest wait that is not the server's wish.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 6, first: Duration::from_secs(1), longest: Duration::from_secs(30) }
    }
}

impl Retry {
    /// How long to wait after so many attempts in vain. A server's wish is granted.
    pub fn wait(&self, failed: u32, wish: Option<Duration>) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        wish.unwrap_or_else(|| self.first.saturating_mul(doubled).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let retry = Retry::default();
        let waits: Vec<u64> = (1..=7).map(|failed| retry.wait(failed, None).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        let wish = Duration::from_secs(90);
        assert_eq!(retry.wait(1, Some(wish)), wish);
        assert_eq!(retry.wait(u32::MAX, None), retry.longest);
    }
}
