//! How long a reply may take before the worker is given up.

use std::time::Duration;

/// For each kind of request. The defaults leave room for a cold cache of compiled kernels; a simulator needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the start of the process to its `hello`.
    pub hello: Duration,
    /// Loading tt-metal, and firmware that has to be compiled.
    pub open: Duration,
    pub allocate: Duration,
    /// One piece of at most the staging memory, either way.
    pub transfer: Duration,
    pub build: Duration,
    /// With kernels that have to be compiled.
    pub run: Duration,
    pub capture: Duration,
    /// Where the caller names none.
    pub replay: Duration,
    pub telemetry: Duration,
    pub close: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            hello: seconds(30),
            open: seconds(180),
            allocate: seconds(10),
            transfer: seconds(60),
            build: seconds(30),
            run: seconds(300),
            capture: seconds(60),
            replay: seconds(30),
            telemetry: seconds(10),
            close: seconds(10),
        }
    }
}

impl Deadlines {
    /// All of them, `factor` times as long.
    pub fn scaled(self, factor: u32) -> Self {
        Self {
            hello: self.hello * factor,
            open: self.open * factor,
            allocate: self.allocate * factor,
            transfer: self.transfer * factor,
            build: self.build * factor,
            run: self.run * factor,
            capture: self.capture * factor,
            replay: self.replay * factor,
            telemetry: self.telemetry * factor,
            close: self.close * factor,
        }
    }
}
