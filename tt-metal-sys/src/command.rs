//! Which worker is started, and for what.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::deadlines::Deadlines;
use crate::protocol;

/// The one version of tt-metal that this project was written for and tested with.
pub const TT_METAL_VERSION: &str = "0.81.1";

/// What a worker has to be. Versions are compared letter by letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub worker: String,
    pub tt_metal: String,
}

impl Expected {
    /// A worker of this kind on [`TT_METAL_VERSION`].
    fn of(worker: &str) -> Self {
        Self { worker: worker.to_owned(), tt_metal: TT_METAL_VERSION.to_owned() }
    }
}

/// How a worker is started; `--socket PATH` is put behind its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Besides the environment of this process.
    pub env: Vec<(OsString, OsString)>,
    pub expected: Expected,
}

/// How the card is opened. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    pub device_id: u32,
    /// L1 of a core that may be allocated; `None` for tt-metal's own.
    pub worker_l1_size: Option<u32>,
    pub l1_small_size: u32,
    pub trace_region_size: u64,
    /// 1 or 2.
    pub queues: u8,
    /// A multiple of 4096, at most [`OpenOptions::MAX_STAGING_BYTES`].
    pub staging_bytes: usize,
    /// For compiled kernels; `None` for tt-metal's own.
    pub cache_dir: Option<PathBuf>,
    /// Where the lock of the card lies: the same for all that share a card. `None` for what nobody shares, as a simulator,
    /// which each process has for itself.
    pub lock_dir: Option<PathBuf>,
    /// Whether a card is opened that a program which does not take our lock has open too: a monitor that only reads sensors
    /// does no harm, another user of tt-metal makes both hang.
    pub beside_others: bool,
    pub deadlines: Deadlines,
}

impl OpenOptions {
    pub const MAX_STAGING_BYTES: usize = 1 << 30;
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            device_id: 0,
            worker_l1_size: None,
            l1_small_size: 0,
            trace_region_size: 0,
            queues: 2,
            staging_bytes: 64 << 20,
            cache_dir: None,
            lock_dir: Some(PathBuf::from("/run/lock")),
            beside_others: false,
            deadlines: Deadlines::default(),
        }
    }
}

impl WorkerCommand {
    /// The worker of `device/` on the pinned wheel, run by the Python that has it; the package is found on `PYTHONPATH` or
    /// in that Python.
    pub fn ttnn_wheel(python: impl Into<PathBuf>) -> Self {
        let args = ["-m", "gr00t_device_worker"].map(OsString::from).to_vec();
        Self { program: python.into(), args, env: Vec::new(), expected: Expected::of("ttnn-wheel") }
    }

    /// The worker of `device/cpp`, built for an installed TT-Metalium.
    pub fn metalium(program: impl Into<PathBuf>) -> Self {
        let expected = Expected::of("metalium-cpp");
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), expected }
    }

    /// The worker of `device/cpp` that was built with this crate.
    #[cfg(feature = "metalium")]
    pub fn built_metalium() -> Self {
        Self::metalium(env!("GR00T_METALIUM_WORKER"))
    }

    pub(crate) fn open_request<'a>(
        &'a self,
        options: &'a OpenOptions,
    ) -> protocol::OpenRequest<'a> {
        protocol::OpenRequest {
            protocol: protocol::VERSION,
            worker: &self.expected.worker,
            tt_metal: &self.expected.tt_metal,
            device_id: options.device_id,
            worker_l1_size: options.worker_l1_size,
            l1_small_size: options.l1_small_size,
            trace_region_size: options.trace_region_size,
            queues: options.queues,
            staging_bytes: options.staging_bytes,
            cache_dir: options.cache_dir.as_deref(),
        }
    }
}
