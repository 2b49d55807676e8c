//! What the programs of a request take.

use std::fmt;

use serde::Serialize;

use crate::backend::blackhole::grid::L1_BYTES;
use crate::backend::blackhole::lowered::Lowered;
use crate::program::Stage;

/// Stage by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceReport {
    pub stages: Vec<StageReport>,
}

/// The programs of one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageReport {
    pub stage: &'static str,
    /// Set for a stage that need not run again while so many first tokens stay the same.
    pub leading_tokens: Option<usize>,
    pub programs: usize,
    /// Cores of the program with the most of them, and of all programs together.
    pub most_cores: usize,
    pub cores: usize,
    /// The largest use of L1 of any core in any program, streams included.
    pub l1_bytes: u32,
    /// Of all streams.
    pub instructions: u64,
    pub stream_bytes: u64,
}

impl StageReport {
    pub fn new(stage: &Stage) -> Self {
        Self {
            stage: stage.kind.name(),
            leading_tokens: stage.leading_tokens,
            programs: 0,
            most_cores: 0,
            cores: 0,
            l1_bytes: 0,
            instructions: 0,
            stream_bytes: 0,
        }
    }

    pub fn add(&mut self, program: &Lowered) {
        self.programs += 1;
        self.cores += program.cores.len();
        self.most_cores = self.most_cores.max(program.cores.len());
        let used = program.cores.iter().map(|core| core.map.bytes_to_end());
        self.l1_bytes = self.l1_bytes.max(used.max().unwrap_or(0));
        for streams in program.segments.iter().flat_map(|segment| &segment.streams) {
            self.instructions += streams.0.iter().map(|stream| stream.len() as u64).sum::<u64>();
            self.stream_bytes += u64::from(streams.bytes());
        }
    }

    fn name(&self) -> String {
        match self.leading_tokens {
            Some(tokens) => format!("{} ({tokens} first tokens)", self.stage),
            None => self.stage.to_owned(),
        }
    }
}

impl fmt::Display for TraceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24} {:>8} {:>10} {:>10} {:>10} {:>8} {:>12} {:>10}",
            "stage",
            "programs",
            "cores each",
            "most cores",
            "L1 bytes",
            "of L1",
            "instructions",
            "MB"
        )?;
        for stage in &self.stages {
            writeln!(
                f,
                "{:<24} {:>8} {:>10.1} {:>10} {:>10} {:>7.1}% {:>12} {:>10.1}",
                stage.name(),
                stage.programs,
                stage.cores as f64 / stage.programs.max(1) as f64,
                stage.most_cores,
                stage.l1_bytes,
                100.0 * f64::from(stage.l1_bytes) / f64::from(L1_BYTES),
                stage.instructions,
                stage.stream_bytes as f64 / 1e6
            )?;
        }
        Ok(())
    }
}
