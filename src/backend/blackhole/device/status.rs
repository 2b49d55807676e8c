//! What is known of a device while it works, for whoever watches it from another thread.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tt_metal_sys::protocol::Telemetry;
use tt_metal_sys::{Device, Error};

use super::options::{DeviceKind, DeviceOptions};
use crate::locked::locked;

/// Where a device stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Nothing has been asked of it yet.
    Closed,
    /// A session begins; the part that it is at.
    Starting {
        part: &'static str,
        since: Instant,
    },
    Ready,
    Lost(Loss),
}

/// How a session was lost, or could not be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    pub stage: String,
    pub reason: String,
    /// The end of what the worker wrote; empty if it wrote nothing.
    pub last_words: String,
    /// No other session is started sooner.
    pub retry_at: Instant,
}

/// A session: a worker with an open device.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    pub worker_pid: u32,
    /// Columns and rows of the cores that programs may use.
    pub grid: [u32; 2],
    pub dram_banks: u32,
    /// L1 of a core that may be allocated.
    pub l1_bytes: u64,
    /// Weights in DRAM; 0 before they are there.
    pub arena_bytes: u64,
    /// Whether compiled kernels lay in the cache already.
    pub warm_cache: bool,
}

/// The latest run of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageFacts {
    pub name: &'static str,
    /// As the worker saw it.
    pub took: Duration,
    /// After which it would have been given up.
    pub limit: Duration,
}

/// What is known of a device.
#[derive(Clone, Debug)]
pub struct DeviceStatus {
    pub kind: DeviceKind,
    pub device_id: u32,
    pub phase: Phase,
    /// Sessions that have begun since the policy was loaded.
    pub sessions: u64,
    /// Sessions that were lost or could not be started.
    pub losses: u64,
    /// The newest session that has come so far as to open the device.
    pub session: Option<SessionFacts>,
    pub stages: Vec<StageFacts>,
    pub telemetry: Option<Telemetry>,
    pub latest_loss: Option<Loss>,
}

/// Where the thread that has the device writes its status, and others read it.
#[derive(Clone, Debug)]
pub struct StatusBoard(Arc<Mutex<DeviceStatus>>);

impl StatusBoard {
    pub(super) fn new(options: &DeviceOptions) -> Self {
        Self(Arc::new(Mutex::new(DeviceStatus {
            kind: options.kind,
            device_id: options.device_id,
            phase: Phase::Closed,
            sessions: 0,
            losses: 0,
            session: None,
            stages: Vec::new(),
            telemetry: None,
            latest_loss: None,
        })))
    }

    pub fn read(&self) -> DeviceStatus {
        self.lock().clone()
    }

    /// Sessions that have begun since the policy was loaded.
    pub fn sessions(&self) -> u64 {
        self.lock().sessions
    }

    /// A session begins, with this part of its start.
    pub(super) fn session_begins(&self, part: &'static str) {
        let mut status = self.lock();
        status.sessions += 1;
        status.session = None;
        status.stages.clear();
        status.telemetry = None;
        status.phase = Phase::Starting { part, since: Instant::now() };
    }

    /// The start of a session has come to its next part.
    pub(super) fn starts_with(&self, next: &'static str) {
        if let Phase::Starting { part, .. } = &mut self.lock().phase {
            *part = next;
        }
    }

    pub(super) fn opened(&self, device: &Device, warm_cache: bool) {
        let opened = device.opened();
        self.lock().session = Some(SessionFacts {
            worker_pid: device.worker_pid(),
            grid: [opened.grid.columns, opened.grid.rows],
            dram_banks: opened.dram_banks,
            l1_bytes: opened.l1_bytes,
            arena_bytes: 0,
            warm_cache,
        });
    }

    pub(super) fn has_arena(&self, bytes: u64) {
        if let Some(session) = &mut self.lock().session {
            session.arena_bytes = bytes;
        }
    }

    pub(super) fn ready(&self) {
        self.lock().phase = Phase::Ready;
    }

    pub(super) fn ran(&self, stage: StageFacts) {
        let mut status = self.lock();
        match status.stages.iter_mut().find(|known| known.name == stage.name) {
            Some(known) => *known = stage,
            None => status.stages.push(stage),
        }
    }

    pub(super) fn measured(&self, telemetry: Telemetry) {
        self.lock().telemetry = Some(telemetry);
    }

    /// The stage that a start which fails now has failed in; `None` if none is under way.
    pub(super) fn start_stage(&self) -> Option<String> {
        match self.lock().phase {
            Phase::Starting { part, .. } => Some(format!("start: {part}")),
            _ => None,
        }
    }

    pub(super) fn lost(&self, stage: &str, error: &Error, retry_in: Duration) {
        let loss = Loss {
            stage: stage.to_owned(),
            reason: error.sentence(),
            last_words: error.last_words().unwrap_or_default().to_owned(),
            retry_at: Instant::now() + retry_in,
        };
        let mut status = self.lock();
        status.losses += 1;
        status.latest_loss = Some(loss.clone());
        status.phase = Phase::Lost(loss);
    }

    fn lock(&self) -> MutexGuard<'_, DeviceStatus> {
        locked(&self.0)
    }
}

/// Whether a directory for compiled kernels has any: tt-metal gives each build of itself a folder there, beside its logs.
pub(super) fn is_warm(compiled: &Path) -> bool {
    const LOGS: &str = "generated";
    let entries = std::fs::read_dir(compiled).into_iter().flatten().flatten();
    let mut folders = entries.filter(|entry| entry.path().is_dir() && entry.file_name() != LOGS);
    folders.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> StatusBoard {
        StatusBoard::new(&DeviceOptions::new(DeviceKind::Card))
    }

    #[test]
    fn a_start_that_fails_is_named_by_its_part() {
        let board = board();
        assert_eq!((board.start_stage(), board.read().phase), (None, Phase::Closed));
        board.session_begins("open");
        board.starts_with("weights");
        let stage = board.start_stage().expect("a start");
        assert_eq!(stage, "start: weights");
        let gone = Error::Timeout {
            request: "upload",
            waited: Duration::ZERO,
            stderr: "TT_FATAL".to_owned(),
        };
        board.lost(&stage, &gone, Duration::from_secs(2));
        let status = board.read();
        let Phase::Lost(loss) = &status.phase else { panic!("{status:?}") };
        assert_eq!((loss.stage.as_str(), loss.last_words.as_str()), ("start: weights", "TT_FATAL"));
        assert!(loss.reason.contains("'upload'") && !loss.reason.contains("TT_FATAL"), "{loss:?}");
        assert_eq!((status.sessions, status.losses, board.start_stage()), (1, 1, None));
    }

    #[test]
    fn the_latest_run_of_each_stage_counts_until_the_next_session() {
        let board = board();
        let run = |name, ms| StageFacts {
            name,
            took: Duration::from_millis(ms),
            limit: Duration::from_secs(30),
        };
        board.session_begins("open");
        for stage in [run("llm", 3), run("denoise", 4), run("llm", 5)] {
            board.ran(stage);
        }
        assert_eq!(board.read().stages, [run("llm", 5), run("denoise", 4)]);
        board.session_begins("open");
        assert!(board.read().stages.is_empty());
    }

    #[test]
    fn logs_do_not_make_a_cache_warm() {
        let dir = tempfile::tempdir().expect("a folder");
        let compiled = dir.path().join("compiled");
        assert!(!is_warm(&compiled));
        std::fs::create_dir_all(compiled.join("generated/inspector")).expect("a folder");
        assert!(!is_warm(&compiled));
        std::fs::create_dir(compiled.join("0a1b2c")).expect("a folder");
        assert!(is_warm(&compiled));
    }
}
