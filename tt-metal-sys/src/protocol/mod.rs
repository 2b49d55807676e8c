//! The messages of `PROTOCOL.md`, as types.

mod frame;
mod program;
mod reply;
mod request;

pub use frame::{FrameError, MAX_FRAME_BYTES, decode_length, encode};
pub use program::{
    CircularBuffer, Compute, DataFormat, Kernel, MathFidelity, Processor, Program, Rectangle,
    RuntimeArgs, Semaphore,
};
pub use reply::{
    Allocated, Built, Captured, Empty, Grid, Hello, InputsWritten, Opened, Ran, Refusal,
    RefusalCode, Reply, Telemetry,
};
pub use request::{InputWrite, OpenRequest, Place, Request, StagingPart};

/// Version of the protocol. Client and worker have the same one, or do not talk.
pub const VERSION: u32 = 1;
