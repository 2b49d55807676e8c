//! A program of the card: kernels on cores, with what they find there.

use std::path::PathBuf;

use serde::Serialize;

/// Cores from `start`, the upper left one, to `end`; `[x, y]`, both inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rectangle {
    pub start: [u32; 2],
    pub end: [u32; 2],
}

/// Which RISC-V processors of a core run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// Data movement on NoC 1.
    Brisc,
    /// Data movement on NoC 0.
    Ncrisc,
    /// Unpack, math and pack.
    Trisc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MathFidelity {
    LoFi,
    HiFi2,
    HiFi3,
    HiFi4,
}

/// What a compute kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compute {
    pub math_fidelity: MathFidelity,
    /// Whether the destination registers hold f32.
    pub fp32_dest: bool,
    pub dst_full_sync: bool,
    pub math_approx: bool,
    /// Indices of circular buffers of f32 that are unpacked straight to the destination registers.
    pub unpack_to_dest_fp32: Vec<u32>,
}

/// Run-time arguments of a kernel on one core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimeArgs {
    pub core: [u32; 2],
    pub args: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Absolute path of a C++ source.
    pub source: PathBuf,
    pub processor: Processor,
    /// Disjoint.
    pub cores: Vec<Rectangle>,
    pub compile_time_args: Vec<u32>,
    pub defines: Vec<(String, String)>,
    pub include_dirs: Vec<PathBuf>,
    pub common_runtime_args: Vec<u32>,
    /// Of every core of `cores`, or empty.
    pub runtime_args: Vec<RuntimeArgs>,
    /// Just for [`Processor::Trisc`].
    pub compute: Option<Compute>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DataFormat {
    #[serde(rename = "bf16")]
    Bf16,
    #[serde(rename = "f32")]
    F32,
    #[serde(rename = "bfp8_b")]
    Bfp8B,
    #[serde(rename = "bfp4_b")]
    Bfp4B,
    #[serde(rename = "u32")]
    U32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CircularBuffer {
    /// 0 to 31.
    pub index: u32,
    pub cores: Vec<Rectangle>,
    /// A multiple of `page_bytes`.
    pub total_bytes: u32,
    pub page_bytes: u32,
    pub format: DataFormat,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Semaphore {
    /// 0 to 15.
    pub id: u32,
    pub cores: Vec<Rectangle>,
    pub initial: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// For messages.
    pub name: String,
    pub kernels: Vec<Kernel>,
    pub circular_buffers: Vec<CircularBuffer>,
    pub semaphores: Vec<Semaphore>,
}
