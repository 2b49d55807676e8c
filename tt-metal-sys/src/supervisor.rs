//! Keeps what runs on a card running: gives up what hangs, starts it anew, and waits longer each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::watchdog::{Watchdog, WatchdogOptions};

/// Pauses between starts. Each failure makes the next one twice as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    pub first: Duration,
    /// A session that has lived so long makes the pauses short again.
    pub most: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_secs(60) }
    }
}

impl BackOff {
    /// After so many failures in a row.
    fn pause(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// The session has been lost in this call, or could not be started, or has refused.
    #[error(transparent)]
    Failed(#[from] Error),
    /// The next start is not due yet.
    #[error("the device is started again in {retry_in:?}; it was lost in '{stage}': {reason}")]
    Waiting { retry_in: Duration, stage: String, reason: String },
}

enum State<S> {
    Idle,
    Running { session: S, since: Instant },
    Down { retry_at: Instant, stage: String, reason: String },
}

/// A session, made by `start` when it is needed: a [`Device`](crate::Device) with whatever the caller keeps on it.
pub struct Supervisor<S, F> {
    start: F,
    back_off: BackOff,
    options: WatchdogOptions,
    watchdogs: BTreeMap<String, Watchdog>,
    state: State<S>,
    failures: u32,
    starts: u64,
}

impl<S, F: FnMut() -> Result<S, Error>> Supervisor<S, F> {
    /// Nothing is started yet.
    pub fn new(start: F, back_off: BackOff, options: WatchdogOptions) -> Self {
        let (watchdogs, state) = (BTreeMap::new(), State::Idle);
        Self { start, back_off, options, watchdogs, state, failures: 0, starts: 0 }
    }

    /// Starts the session if there is none and a start is due.
    pub fn ready(&mut self) -> Result<&mut S, NotReady> {
        if let State::Down { retry_at, stage, reason } = &self.state {
            let retry_in = retry_at.saturating_duration_since(Instant::now());
            if !retry_in.is_zero() {
                let (stage, reason) = (stage.clone(), reason.clone());
                return Err(NotReady::Waiting { retry_in, stage, reason });
            }
        }
        if !self.is_running() {
            match (self.start)() {
                Ok(session) => {
                    self.starts += 1;
                    self.state = State::Running { session, since: Instant::now() };
                }
                Err(error) => {
                    self.down("start", &error);
                    return Err(error.into());
                }
            }
        }
        match &mut self.state {
            State::Running { session, .. } => Ok(session),
            State::Idle | State::Down { .. } => unreachable!("a session was just started"),
        }
    }

    /// Runs a named stage; `work` gets the time after which it has to be given up. Its times make the later limits.
    ///
    /// # Errors
    /// Of `work`. One that [ends the worker](Error::ends_worker) drops the session; a later call starts another one.
    pub fn run<R>(
        &mut self,
        stage: &str,
        work: impl FnOnce(&mut S, Duration) -> Result<R, Error>,
    ) -> Result<R, NotReady> {
        let limit = self.limit(stage);
        let session = self.ready()?;
        let begin = Instant::now();
        match work(session, limit) {
            Ok(result) => {
                self.watchdog(stage).saw(begin.elapsed());
                Ok(result)
            }
            Err(error) => {
                if error.ends_worker() {
                    self.down(stage, &error);
                }
                Err(error.into())
            }
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// How long it is until a lost session may be started again; `None` if it has not been lost.
    pub fn retry_in(&self) -> Option<Duration> {
        match &self.state {
            State::Down { retry_at, .. } => {
                Some(retry_at.saturating_duration_since(Instant::now()))
            }
            State::Idle | State::Running { .. } => None,
        }
    }

    /// How often a session has been started.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// After how long a stage is given up.
    pub fn limit(&mut self, stage: &str) -> Duration {
        self.watchdog(stage).limit()
    }

    /// Ends the session without blame; the next call starts another one.
    pub fn stop(&mut self) {
        self.state = State::Idle;
    }

    fn watchdog(&mut self, stage: &str) -> &mut Watchdog {
        self.watchdogs.entry(stage.to_owned()).or_insert_with(|| Watchdog::new(self.options))
    }

    /// Drops the session and sets the time of the next start.
    fn down(&mut self, stage: &str, error: &Error) {
        if let State::Running { since, .. } = &self.state
            && since.elapsed() >= self.back_off.most
        {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let (stage, reason) = (stage.to_owned(), error.to_string());
        self.state = State::Idle;
        let retry_at = Instant::now() + self.back_off.pause(self.failures);
        self.state = State::Down { retry_at, stage, reason };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::RefusalCode;

    const BACK_OFF: BackOff =
        BackOff { first: Duration::from_millis(40), most: Duration::from_millis(100) };

    fn gone() -> Error {
        Error::Timeout { request: "replay", waited: Duration::ZERO, stderr: String::new() }
    }

    fn refused(code: RefusalCode) -> Error {
        Error::Refused { request: "replay", code, message: String::new() }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = [1, 2, 3, 4, 99].map(|failures| BACK_OFF.pause(failures).as_millis());
        assert_eq!(pauses, [40, 80, 100, 100, 100]);
    }

    #[test]
    fn a_lost_session_is_started_again_after_a_pause() {
        let mut supervisor = Supervisor::new(|| Ok(7), BACK_OFF, WatchdogOptions::default());
        assert_eq!(supervisor.run("a", |session, _| Ok(*session)).ok(), Some(7));
        assert!(matches!(
            supervisor.run("b", |_, _| Err::<(), _>(gone())),
            Err(NotReady::Failed(_))
        ));
        assert!(!supervisor.is_running());
        let waiting = supervisor.run("c", |_, _| Ok(())).expect_err("a pause");
        let NotReady::Waiting { stage, .. } = &waiting else { panic!("{waiting}") };
        assert_eq!(stage, "b");
        std::thread::sleep(BACK_OFF.first);
        assert!(supervisor.run("c", |_, _| Ok(())).is_ok());
        assert_eq!(supervisor.starts(), 2);
    }

    #[test]
    fn a_refusal_costs_the_session_only_if_the_device_has_failed() {
        let mut supervisor = Supervisor::new(|| Ok(()), BACK_OFF, WatchdogOptions::default());
        assert!(supervisor.run("a", |(), _| Err::<(), _>(refused(RefusalCode::State))).is_err());
        assert!(supervisor.is_running());
        assert!(supervisor.run("a", |(), _| Err::<(), _>(refused(RefusalCode::Device))).is_err());
        assert!(!supervisor.is_running());
    }

    #[test]
    fn a_start_that_fails_is_tried_again_later() {
        let mut tries = 0;
        let start = || {
            tries += 1;
            if tries == 1 { Err(gone()) } else { Ok(()) }
        };
        let mut supervisor = Supervisor::new(start, BACK_OFF, WatchdogOptions::default());
        assert!(matches!(supervisor.ready(), Err(NotReady::Failed(_))));
        assert!(matches!(supervisor.ready(), Err(NotReady::Waiting { .. })));
        assert!(supervisor.retry_in().is_some_and(|retry_in| retry_in <= BACK_OFF.first));
        std::thread::sleep(BACK_OFF.first);
        assert!(supervisor.ready().is_ok());
        assert_eq!(supervisor.retry_in(), None);
    }

    #[test]
    fn each_stage_has_its_own_limit() {
        let least = Duration::from_millis(1);
        let options = WatchdogOptions { samples: 1, least, ..Default::default() };
        let mut supervisor = Supervisor::new(|| Ok(()), BACK_OFF, options);
        let work = |(): &mut (), _| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        };
        supervisor.run("slow", work).expect("a run");
        let limit = supervisor.limit("slow");
        assert!(limit >= Duration::from_millis(20) && limit < options.first, "{limit:?}");
        assert_eq!(supervisor.limit("other"), options.first);
    }
}
