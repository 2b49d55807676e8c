//! Every instruction by itself: who runs it, which cores and semaphores it names, that it has something to do.

use super::{check_semaphore, find_at};
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::lowered::{CoreProgram, Engine, Instruction, Lowered, SCRATCH};

pub fn check(
    program: &Lowered,
    at: At<'_>,
    core: &CoreProgram,
    instruction: &Instruction,
) -> Result<(), Fault> {
    if !engines(instruction).contains(&at.engine) {
        return Err(Fault::WrongEngine { place: at.place() });
    }
    if sizes(instruction).contains(&0) {
        return Err(Fault::Nothing { place: at.place() });
    }
    check_scratch(at, core, instruction)?;
    match *instruction {
        Instruction::Wait { semaphore, .. } => check_semaphore(at, core, semaphore),
        Instruction::Signal { core: target, semaphore, .. } => {
            check_semaphore(at, find_at(program, at, target)?, semaphore)
        }
        Instruction::Send { core: target, .. } => find_at(program, at, target).map(|_| ()),
        Instruction::StreamPacket { consumer, credit, .. } => {
            check_semaphore(at, core, credit)?;
            check_ring(at, find_at(program, at, consumer)?)
        }
        Instruction::ReturnCredits { reader, credit, .. } => {
            check_semaphore(at, find_at(program, at, reader)?, credit)?;
            check_ring(at, core)
        }
        Instruction::LoadPacket { .. }
        | Instruction::Matmul { .. }
        | Instruction::EndStream { .. } => check_ring(at, core),
        _ => Ok(()),
    }
}

fn check_ring(at: At<'_>, core: &CoreProgram) -> Result<(), Fault> {
    match core.ring {
        Some(_) => Ok(()),
        None => Err(Fault::NoRing { place: at.place(), core: core.core }),
    }
}

fn check_scratch(at: At<'_>, core: &CoreProgram, instruction: &Instruction) -> Result<(), Fault> {
    let needed = instruction.scratch_bytes();
    let region = core.map.region(SCRATCH).map(|region| region.bytes);
    if needed > region.unwrap_or(0) {
        return Err(Fault::Scratch { place: at.place(), needed, region });
    }
    Ok(())
}

/// Engines that can run an instruction.
fn engines(instruction: &Instruction) -> &'static [Engine] {
    match instruction {
        Instruction::Wait { .. } | Instruction::Signal { .. } => &Engine::ALL,
        Instruction::SignalAll { .. }
        | Instruction::ReadTiles { .. }
        | Instruction::WriteTiles { .. }
        | Instruction::ReadArena { .. }
        | Instruction::ReadRows { .. }
        | Instruction::Send { .. }
        | Instruction::Multicast { .. }
        | Instruction::Zero { .. } => &[Engine::Mover, Engine::Feeder],
        Instruction::StreamPacket { .. } => &[Engine::Mover],
        Instruction::LoadPacket { .. } => &[Engine::Mover, Engine::Feeder],
        Instruction::ReturnCredits { .. } => &[Engine::Feeder],
        Instruction::Matmul { .. }
        | Instruction::EndStream { .. }
        | Instruction::Moments { .. }
        | Instruction::Combine { .. }
        | Instruction::Normalise { .. }
        | Instruction::Attention { .. }
        | Instruction::Accumulate { .. }
        | Instruction::CopyBlock { .. }
        | Instruction::LayerNorm { .. }
        | Instruction::RmsNorm { .. }
        | Instruction::Rope { .. }
        | Instruction::Activate { .. }
        | Instruction::MoveRows { .. }
        | Instruction::Spread { .. }
        | Instruction::Regroup { .. } => &[Engine::Compute],
    }
}

/// Numbers of things that an instruction works on, none of which may be zero.
fn sizes(instruction: &Instruction) -> Vec<u32> {
    match *instruction {
        Instruction::Wait { .. }
        | Instruction::Signal { .. }
        | Instruction::SignalAll { .. }
        | Instruction::EndStream { .. } => Vec::new(),
        Instruction::ReadTiles { count, bytes, .. }
        | Instruction::WriteTiles { count, bytes, .. }
        | Instruction::Send { count, bytes, .. } => vec![count, bytes],
        Instruction::ReadArena { bytes, .. }
        | Instruction::Multicast { bytes, .. }
        | Instruction::Zero { bytes, .. }
        | Instruction::StreamPacket { bytes, .. }
        | Instruction::LoadPacket { bytes, .. } => vec![bytes],
        Instruction::ReturnCredits { count, .. } => vec![count],
        Instruction::Matmul { rows, inputs, columns, .. } => vec![rows, inputs, columns],
        Instruction::Moments { rows, columns, .. }
        | Instruction::Normalise { rows, columns, .. }
        | Instruction::Accumulate { rows, columns, .. }
        | Instruction::CopyBlock { rows, columns, .. }
        | Instruction::Activate { rows, columns, .. }
        | Instruction::Spread { rows, columns, .. } => vec![rows, columns],
        Instruction::Regroup { rows, columns, x_row_step, out_column_step, .. } => {
            vec![rows, columns, x_row_step, out_column_step]
        }
        Instruction::ReadRows { count, bytes, .. } => vec![count, bytes],
        Instruction::LayerNorm { rows, count, .. } => vec![rows, count],
        Instruction::RmsNorm { rows, group, count, .. } => vec![rows, group, count],
        Instruction::Rope { rows, columns, half, .. } => vec![rows, columns, half],
        Instruction::MoveRows { count, columns, .. } => vec![count, columns],
        Instruction::Combine { count, rows, width, .. } => vec![count, rows, width],
        Instruction::Attention { rows, keys, head_dim, .. } => vec![rows, keys, head_dim],
    }
}
