//! The persistent program of the Euler steps, lowered for real: what it takes of cores and banks.

use super::error::PlanError;
use super::network::Planned;
use crate::backend::blackhole::core_map::{CoreMap, Layout};
use crate::backend::blackhole::lower::{self, LowerError, Source, Summary};
use crate::backend::blackhole::lowered::INSTRUCTION_BYTES;
use crate::backend::blackhole::numerics::DtypePolicy;
use crate::prepared::Values;
use crate::program::Program;

/// Lowers the denoise stage of a request; the error says why the stage has no such program.
pub fn summary(
    planned: &Planned,
    program: &Program,
    policy: DtypePolicy,
    layout: Layout,
) -> Result<Result<Summary, LowerError>, PlanError> {
    let prepare = planned.prepare()?;
    // Where things lie depends on sizes alone.
    let exports = prepare.exports.iter().map(|(name, buffer)| {
        let spec = &prepare.buffers[buffer.0];
        (name.clone(), vec![0.0; spec.rows * spec.cols])
    });
    let constants: Values = exports.collect();
    let source = Source {
        program,
        prepare: &prepare,
        checkpoint: planned.checkpoint(),
        constants: &constants,
        policy,
        layout,
    };
    Ok(lower::denoise(&source, None).map(|denoise| Summary::of(&denoise, &CoreMap::new(layout))))
}

/// Columns of the table of roles.
pub const ROLE_HEADS: [&str; 5] =
    ["cores", "number", "L1 in use [kB]", "of it instructions [kB]", "instructions a request"];

/// One row for each role.
pub fn role_rows(summary: &Summary) -> Vec<Vec<String>> {
    let kilobytes = |bytes: u32| format!("{:.1}", f64::from(bytes) / 1e3);
    let row = |role: &lower::RoleSummary| {
        vec![
            role.role.to_owned(),
            role.cores.to_string(),
            kilobytes(role.l1_bytes),
            kilobytes(role.stream_bytes),
            role.instructions.to_string(),
        ]
    };
    summary.roles.iter().map(row).collect()
}

/// What limits them, in a sentence.
pub fn about(summary: &Summary) -> String {
    format!(
        "Of the fullest core of each role; a core has {:.1} kB of L1, its own memory. An instruction has {INSTRUCTION_BYTES} bytes; those of an \
         Euler step are there once and executed in every step. The readers send {} packets of weights in a request.",
        f64::from(summary.l1_limit) / 1e3,
        summary.packets
    )
}

/// Columns of the table of the arena.
pub const ARENA_HEADS: [&str; 6] = [
    "weights in DRAM",
    "streams",
    "packets",
    "size [MB]",
    "padding [MB]",
    "fullest bank over mean",
];

/// What lies in the banks besides, in a sentence.
pub fn besides(summary: &Summary) -> String {
    let arena = &summary.arena;
    format!(
        "Besides, {} vectors and tables of {} MB in all; fullest bank over mean {:.4}.",
        arena.blob_count,
        megabytes(arena.blobs.bytes),
        arena.blobs.balance
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{:.3}", bytes as f64 / 1e6)
}

/// One row for each part of the arena.
pub fn arena_rows(summary: &Summary) -> Vec<Vec<String>> {
    let parts = summary.arena.parts.iter().map(|part| {
        vec![
            part.name.clone(),
            part.streams.to_string(),
            part.packets.to_string(),
            megabytes(part.packet_bytes.bytes),
            megabytes(part.padding),
            format!("{:.4}", part.packet_bytes.balance),
        ]
    });
    parts.collect()
}
