//! Which device is used, and how.

use std::env;
use std::fmt;
use std::path::PathBuf;

use tt_metal_sys::{Deadlines, OpenOptions, WatchdogOptions, WorkerCommand};

use super::DeviceError;
use crate::backend::blackhole::grid::L1_BYTES;

/// Names the library of a simulator; tt-metal heeds it as well.
pub const SIMULATOR: &str = "TT_METAL_SIMULATOR";
/// Names the Python that has the pinned `ttnn` wheel.
pub const PYTHON: &str = "GR00T_DEVICE_PYTHON";
/// Bytes of DRAM that are kept for traces.
const TRACE_REGION_BYTES: u64 = 128 << 20;
/// A simulator is so much slower than a card.
const SIMULATOR_PATIENCE: u32 = 20;

/// A card or a simulator of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    Card,
    /// The library that `TT_METAL_SIMULATOR` names.
    Simulator,
}

impl DeviceKind {
    pub const ALL: [Self; 2] = [Self::Card, Self::Simulator];

    /// As backends are called.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Card => "blackhole",
            DeviceKind::Simulator => "sim",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a device is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOptions {
    pub kind: DeviceKind,
    /// Number of the card, from 0.
    pub device_id: u32,
    /// The Python that has the pinned `ttnn` wheel.
    pub python: PathBuf,
    /// A stage that takes so many times as long as 99 of 100 before it is given up, and the worker with it.
    pub watchdog_factor: f64,
    /// For unpacked kernels, and for compiled ones; `None`: a directory for this process alone.
    pub cache_dir: Option<PathBuf>,
}

impl DeviceOptions {
    pub const DEFAULT_WATCHDOG_FACTOR: f64 = 10.0;

    /// With the Python that [`PYTHON`] names, or the first on the path.
    pub fn new(kind: DeviceKind) -> Self {
        let python = env::var_os(PYTHON).filter(|value| !value.is_empty());
        Self {
            kind,
            device_id: 0,
            python: python.map_or_else(|| PathBuf::from("python3"), PathBuf::from),
            watchdog_factor: Self::DEFAULT_WATCHDOG_FACTOR,
            cache_dir: None,
        }
    }

    /// That the environment has a simulator just where one is asked for.
    pub fn check(&self) -> Result<(), DeviceError> {
        let simulator = env::var_os(SIMULATOR).filter(|value| !value.is_empty());
        match (self.kind, simulator) {
            (DeviceKind::Simulator, None) => Err(DeviceError::NoSimulator),
            (DeviceKind::Simulator, Some(path)) if !PathBuf::from(&path).exists() => {
                Err(DeviceError::SimulatorMissing { path: path.into() })
            }
            (DeviceKind::Card, Some(path)) => {
                Err(DeviceError::SimulatorForCard { path: path.into() })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn command(&self, package: &std::path::Path) -> WorkerCommand {
        let mut command = WorkerCommand::ttnn_wheel(&self.python);
        command.env.push(("PYTHONPATH".into(), package.into()));
        command
    }

    pub(super) fn open(&self, cache_dir: PathBuf) -> OpenOptions {
        let deadlines = Deadlines::default().scaled(self.patience());
        OpenOptions {
            device_id: self.device_id,
            worker_l1_size: Some(L1_BYTES),
            trace_region_size: TRACE_REGION_BYTES,
            queues: 2,
            cache_dir: Some(cache_dir),
            deadlines,
            ..OpenOptions::default()
        }
    }

    pub(super) fn watchdog(&self) -> WatchdogOptions {
        let default = WatchdogOptions::default();
        let first = default.first * self.patience();
        WatchdogOptions { factor: self.watchdog_factor, first, ..default }
    }

    fn patience(&self) -> u32 {
        match self.kind {
            DeviceKind::Card => 1,
            DeviceKind::Simulator => SIMULATOR_PATIENCE,
        }
    }
}
