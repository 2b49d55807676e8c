//! Writes an observation recording beside a policy, which never waits for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{info, warn};

use super::file::{Identity, Job, RecordingFile};
use crate::bag::BagError;
use crate::bag::limits::RESERVED_DISK_BYTES;
use crate::contract::{ActionChunk, Noise, Observation, PredictOptions, Version};
use crate::disk::free_bytes;
use crate::locked::locked;

/// Predictions that may wait to be written; each holds on to its frames.
const QUEUE: usize = 8;

/// How many predictions were recorded, and how many were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub recorded: u64,
    /// Left out, because the disk did not keep up or the recording had ended.
    pub dropped: u64,
    /// Why the recording has ended before its time, if it has.
    pub ended: Option<String>,
}

/// A recording in progress. [`Recorder::record`] hands predictions over to a thread of its own. Dropping the recorder closes the
/// recording as [`Recorder::finish`] does: both wait until what was handed over is written.
pub struct Recorder {
    queue: Option<SyncSender<Job>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    version: Version,
}

#[derive(Default)]
struct Shared {
    recorded: AtomicU64,
    dropped: AtomicU64,
    ended: Mutex<Option<String>>,
    /// Time of the newest job, nanoseconds.
    newest_ns: AtomicU64,
}

impl Shared {
    fn end(&self, reason: String) {
        warn!("the recording of observations has ended: {reason}");
        *locked(&self.ended) = Some(reason);
    }

    fn counts(&self) -> Counts {
        Counts {
            recorded: self.recorded.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            ended: locked(&self.ended).clone(),
        }
    }

    /// The wall clock, or a nanosecond after the job before: the order of a recording is that of its times.
    fn next_time(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let later = |newest: u64| Some(now.max(newest + 1));
        let newest = self.newest_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        now.max(newest.map_or(now, |newest| newest + 1))
    }
}

impl Recorder {
    /// Begins a recording at `directory`, which must not exist; it ends by itself when it has `max_bytes`, or when its disk has
    /// less than [`RESERVED_DISK_BYTES`] left.
    ///
    /// # Errors
    /// A directory that exists or cannot be made, or no thread.
    pub fn create(directory: &Path, identity: Identity, max_bytes: u64) -> Result<Self, BagError> {
        let version = identity.version;
        let file = RecordingFile::create(directory, identity)?;
        let shared = Arc::new(Shared::default());
        let (queue, jobs) = sync_channel(QUEUE);
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("observations".to_owned())
            .spawn(move || work(file, max_bytes, &jobs, &of_thread))
            .map_err(|error| BagError::Io { path: directory.into(), error })?;
        Ok(Self { queue: Some(queue), shared, thread: Some(thread), version })
    }

    /// Hands over a prediction, made with `options`: its chunk, or why there is none. Never waits: if the disk does not keep up, or
    /// the recording has ended, the prediction is left out and counted.
    pub fn record(
        &self,
        observation: &Arc<Observation>,
        options: &PredictOptions,
        outcome: Result<&ActionChunk, String>,
    ) {
        let default = || Noise::Seed(self.version.default_seed());
        let job = Job {
            log_time_ns: self.shared.next_time(),
            observation: Arc::clone(observation),
            noise: options.noise.clone().unwrap_or_else(default),
            outcome: outcome.map(|chunk| (chunk.horizon, chunk.groups.clone())),
        };
        let sent = self.queue.as_ref().map(|queue| queue.try_send(job));
        let full = match sent {
            Some(Ok(())) => return,
            Some(Err(TrySendError::Full(_))) => true,
            Some(Err(TrySendError::Disconnected(_))) | None => false,
        };
        let dropped = self.shared.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        // Once for each power of two: a slow disk must not fill the log either.
        if full && dropped.is_power_of_two() {
            warn!(
                "{dropped} prediction(s) are not in the recording of observations: the disk is too slow"
            );
        }
    }

    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Writes what waits and closes the recording.
    pub fn finish(mut self) -> Counts {
        self.close();
        self.counts()
    }

    fn close(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            self.shared.end("its thread has panicked".into());
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

/// `wanted` itself if nothing is there, else the first of `wanted_2`, `wanted_3` and so on that is free: a policy that is configured
/// anew begins a recording of its own.
pub fn free_directory(wanted: &Path) -> PathBuf {
    let mut numbers = 2..;
    let mut directory = wanted.to_owned();
    while directory.exists() {
        let mut name = wanted.file_name().unwrap_or_default().to_owned();
        name.push(format!("_{}", numbers.next().unwrap_or(u64::MAX)));
        directory = wanted.with_file_name(name);
    }
    directory
}

/// Writes until there are no more jobs or something ends the recording; what comes after that counts as dropped.
fn work(mut file: RecordingFile, max_bytes: u64, jobs: &Receiver<Job>, shared: &Shared) {
    let directory = file.directory().display().to_string();
    let mut end = None;
    for job in jobs {
        match room(&file, max_bytes).and_then(|()| file.write(&job).map_err(Stop::from)) {
            Ok(()) => {
                shared.recorded.fetch_add(1, Ordering::Relaxed);
            }
            Err(Stop::One(reason)) => {
                shared.dropped.fetch_add(1, Ordering::Relaxed);
                warn!("a prediction is not in the recording of observations: {reason}");
            }
            Err(Stop::Recording(reason)) => {
                shared.dropped.fetch_add(1, Ordering::Relaxed);
                end = Some(reason);
                break;
            }
        }
    }
    let closed = file.finish().map_err(|error| describe(&error)).err();
    match end.or(closed) {
        Some(reason) => shared.end(format!("{directory}: {reason}")),
        None => info!("the recording of observations is complete: {directory}"),
    }
    for _ in jobs {
        shared.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why a prediction is not written.
enum Stop {
    /// It cannot be written; others can.
    One(String),
    /// Nothing more can.
    Recording(String),
}

impl From<BagError> for Stop {
    fn from(error: BagError) -> Self {
        match error {
            BagError::Message(reason) => Stop::One(reason.to_string()),
            error => Stop::Recording(describe(&error)),
        }
    }
}

/// An error with its causes, on one line.
fn describe(error: &BagError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Whether one more prediction may be written.
fn room(file: &RecordingFile, max_bytes: u64) -> Result<(), Stop> {
    let bytes = file.bytes();
    if bytes >= max_bytes {
        let reason = format!("it has {bytes} bytes and may have {max_bytes}");
        return Err(Stop::Recording(reason));
    }
    let free = free_bytes(file.directory()).map_err(|error| Stop::Recording(error.to_string()))?;
    if free < RESERVED_DISK_BYTES {
        return Err(Stop::Recording(format!("its disk has only {free} bytes left")));
    }
    Ok(())
}
