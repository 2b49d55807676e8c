//! What the client asks for.

use std::path::Path;

use serde::Serialize;

use super::{Program, Rectangle};

/// A part of the staging memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StagingPart {
    pub offset: usize,
    pub bytes: usize,
}

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Place {
    /// Page `i` lies in bank `i % banks`.
    Dram { page_bytes: u32, pages: u32 },
    /// At the same address in the L1 of each core.
    L1 { bytes_per_core: u32, cores: Rectangle },
}

/// One buffer of a [`Request::WriteInputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InputWrite {
    pub buffer: u32,
    pub offset: u64,
    pub staging: StagingPart,
}

/// `open`, with all that it says.
#[derive(Clone, Debug, Serialize)]
pub struct OpenRequest<'a> {
    pub protocol: u32,
    pub worker: &'a str,
    pub tt_metal: &'a str,
    pub device_id: u32,
    pub worker_l1_size: Option<u32>,
    pub l1_small_size: u32,
    pub trace_region_size: u64,
    pub queues: u8,
    pub staging_bytes: usize,
    pub cache_dir: Option<&'a Path>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request<'a> {
    Open(OpenRequest<'a>),
    Allocate { name: &'a str, place: Place },
    Upload { buffer: u32, offset: u64, staging: StagingPart },
    Build { program: &'a Program },
    Run { programs: &'a [u32] },
    BeginCapture {},
    EndCapture {},
    WriteInputs { writes: &'a [InputWrite] },
    Replay { trace: u32, after: Option<u64> },
    Read { buffer: u32, offset: u64, staging: StagingPart },
    Telemetry {},
    Close {},
}

impl Request<'_> {
    /// As it stands in frames and in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::Allocate { .. } => "allocate",
            Self::Upload { .. } => "upload",
            Self::Build { .. } => "build",
            Self::Run { .. } => "run",
            Self::BeginCapture {} => "begin_capture",
            Self::EndCapture {} => "end_capture",
            Self::WriteInputs { .. } => "write_inputs",
            Self::Replay { .. } => "replay",
            Self::Read { .. } => "read",
            Self::Telemetry {} => "telemetry",
            Self::Close {} => "close",
        }
    }
}
