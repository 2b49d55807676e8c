//! Some threads that work through a list and stop together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::FetchError;
use crate::locked::locked;

/// Longest time between two looks at the flag.
const LOOK: Duration = Duration::from_millis(100);

/// Tells threads to stop.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// It was told to stop.
    pub fn check(&self) -> Result<(), FetchError> {
        if self.0.load(Ordering::Relaxed) { Err(FetchError::Stopped) } else { Ok(()) }
    }

    /// # Errors
    /// It was told to stop meanwhile.
    pub fn sleep(&self, time: Duration) -> Result<(), FetchError> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }
}

/// Works on all items with `threads` threads; results in the order of the items. After the first error the others stop as soon
/// as they look.
///
/// # Errors
/// The first error.
pub fn for_all<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    stop: &Stop,
    work: impl Fn(&T) -> Result<R, FetchError> + Sync,
) -> Result<Vec<R>, FetchError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..items.len()).map(|_| None).collect::<Vec<Option<R>>>());
    let first_error = Mutex::new(None);
    let run = || {
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            match stop.check().and_then(|()| work(item)) {
                Ok(result) => locked(&results)[at] = Some(result),
                Err(error) => {
                    if !matches!(error, FetchError::Stopped) {
                        locked(&first_error).get_or_insert(error);
                    }
                    stop.set();
                    return;
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(run);
        }
    });
    match first_error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => {
            let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
            results.into_iter().collect::<Option<Vec<R>>>().ok_or(FetchError::Stopped)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..20).collect();
        let results = for_all(4, &items, &Stop::default(), |item| Ok(item * 2)).expect("all");
        assert_eq!(results, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(for_all(4, &[] as &[u64], &Stop::default(), |_| Ok(())).expect("none").is_empty());
    }

    #[test]
    fn the_first_error_stops_the_others() {
        let stop = Stop::default();
        let work = |item: &u64| match item {
            0 => Err(FetchError::DiskFull { path: "x".into() }),
            _ => stop.sleep(Duration::from_secs(60)),
        };
        let start = Instant::now();
        let error = for_all(2, &[1, 0], &stop, work).expect_err("full");
        assert!(matches!(error, FetchError::DiskFull { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
