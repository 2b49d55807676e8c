//! What the tasks of the node measure and the diagnostics tell.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::runtime::{Shared, locked};
use super::settings::Settings;
use super::stats::{EngineStats, InputStats};
use crate::history::{Input, Moment, Reading, Timeline};

/// Statistics of a configured policy. Where the sensors are needed as well, they are locked first.
pub struct Monitor {
    cameras: Vec<Mutex<InputStats>>,
    states: Vec<Mutex<InputStats>>,
    transforms: Mutex<InputStats>,
    engine: Mutex<EngineStats>,
    /// Pictures that were made for `~/debug/image`.
    pub debug_images: AtomicU64,
}

impl Monitor {
    pub fn new(settings: &Settings) -> Self {
        Self {
            cameras: settings.cameras.iter().map(|_| Mutex::default()).collect(),
            states: settings.states.iter().map(|_| Mutex::default()).collect(),
            transforms: Mutex::default(),
            engine: Mutex::default(),
            debug_images: AtomicU64::new(0),
        }
    }

    /// The topics are subscribed to anew; what they have sent before does not count.
    pub fn begin(&self) {
        self.inputs().for_each(|stats| *locked(stats) = InputStats::default());
    }

    /// The clock has jumped.
    pub fn clock_jumped(&self) {
        self.inputs().for_each(|stats| locked(stats).forget_stamps());
        self.engine().seams.interrupt();
    }

    /// The statistics of a camera or a source of states of the settings.
    pub fn input(&self, input: Input) -> MutexGuard<'_, InputStats> {
        match input {
            Input::Camera(number) => locked(&self.cameras[number]),
            Input::State(number) => locked(&self.states[number]),
        }
    }

    /// Those of `/tf` and `/tf_static`.
    pub fn transforms(&self) -> MutexGuard<'_, InputStats> {
        locked(&self.transforms)
    }

    pub fn engine(&self) -> MutexGuard<'_, EngineStats> {
        locked(&self.engine)
    }

    /// A message that was received at `at` is in the history now; `header_ns` is its stamp, if it has one.
    pub fn taken(&self, input: Input, header_ns: Option<i64>, at: Moment, shared: &Shared) {
        let header_ns = header_ns.filter(|stamp_ns| *stamp_ns != 0);
        let stamp_ns = match shared.settings.timeline {
            Timeline::Stamp => header_ns.unwrap_or(at.ros_ns),
            Timeline::Receive => at.ros_ns,
        };
        let took_ns = shared.clock.steady_ns(Instant::now()) - at.steady_ns;
        let took = Duration::from_nanos(u64::try_from(took_ns).unwrap_or(0));
        self.input(input).taken(header_ns, stamp_ns, at.steady_ns, took);
    }

    /// How long the newest frame among the readings took from its receipt into the history; `None` without frames.
    pub fn intake_of_newest_frame(
        &self,
        readings: &[Reading],
        settings: &Settings,
    ) -> Option<Duration> {
        let frames = readings.iter().filter_map(|reading| {
            let number = settings.cameras.iter().position(|camera| camera.key == reading.input)?;
            Some((reading.stamp_ns, number))
        });
        let (stamp_ns, number) = frames.max()?;
        self.input(Input::Camera(number)).intake(stamp_ns)
    }

    fn inputs(&self) -> impl Iterator<Item = &Mutex<InputStats>> {
        self.cameras.iter().chain(&self.states).chain([&self.transforms])
    }
}
