//! What the worker answers.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// The envelope of every reply: `ok` or `error`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    pub id: u64,
    pub ok: Option<Value>,
    pub error: Option<Refusal>,
}

/// The worker's "no".
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    pub code: RefusalCode,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// Not the worker that was asked for.
    Version,
    /// The directory for compiled kernels cannot be written.
    Cache,
    /// tt-metal cannot open the card.
    Open,
    /// A request out of turn.
    State,
    /// Allocating, uploading or building after a capture.
    Captured,
    /// A program that has not run, after or in a capture.
    NotWarm,
    /// No such buffer, program, trace or event.
    Unknown,
    Argument,
    /// No room on the card.
    Memory,
    /// A kernel does not compile.
    Kernel,
    Unsupported,
    /// tt-metal has failed; the worker ends.
    Device,
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "version",
            Self::Cache => "cache",
            Self::Open => "open",
            Self::State => "state",
            Self::Captured => "captured",
            Self::NotWarm => "not_warm",
            Self::Unknown => "unknown",
            Self::Argument => "argument",
            Self::Memory => "memory",
            Self::Kernel => "kernel",
            Self::Unsupported => "unsupported",
            Self::Device => "device",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub protocol: u32,
    pub worker: String,
    pub tt_metal: String,
    pub pid: u32,
}

/// Cores that programs may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    pub columns: u32,
    pub rows: u32,
}

/// The card that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    pub arch: String,
    pub grid: Grid,
    /// `[x, y]` of each core on the network, row by row of the grid.
    pub noc: Vec<[u32; 2]>,
    pub dram_banks: u32,
    pub dram_alignment: u32,
    pub l1_alignment: u32,
    /// L1 of a core that may be allocated.
    pub l1_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocated {
    pub buffer: u32,
    pub address: u64,
    pub bytes: u64,
    pub granule: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Built {
    pub program: u32,
}

/// Time that programs or a trace took, as the worker saw it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    pub nanoseconds: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Captured {
    pub trace: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputsWritten {
    pub event: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// State of the card; `None` for what is not to be had.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    pub allocated_dram: Option<u64>,
    pub allocated_l1_per_core: Option<u64>,
    pub buffers: u32,
    pub programs: u32,
    pub traces: u32,
    pub driver: Option<String>,
    pub firmware: Option<String>,
    pub temperature_c: Option<f64>,
    pub power_w: Option<f64>,
    pub clock_mhz: Option<f64>,
}
