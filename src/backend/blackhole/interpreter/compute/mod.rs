//! What the compute engine computes: operands are read from L1, given to the kernels of the CPU backend, and the result is
//! packed again. A family of instructions a file.

mod activate;
mod attention;
mod elementwise;
mod norm;
pub mod product;
mod rearrange;
mod rope;
mod row_norm;

use super::core::CoreState;
use super::fault::Fault;
use super::place::At;
use crate::backend::blackhole::lowered::Instruction;
use crate::backend::cpu::card::CardNumerics;

/// An instruction that waits for nothing.
pub fn run(
    core: &mut CoreState<'_>,
    at: At<'_>,
    instruction: &Instruction,
    numerics: &CardNumerics,
) -> Result<(), Fault> {
    match instruction {
        Instruction::Moments { .. }
        | Instruction::Combine { .. }
        | Instruction::Normalise { .. } => norm::run(core, at, instruction),
        Instruction::Attention { .. } => attention::run(core, at, instruction, numerics),
        Instruction::Accumulate { .. } | Instruction::CopyBlock { .. } => {
            elementwise::run(core, at, instruction)
        }
        Instruction::LayerNorm { .. } | Instruction::RmsNorm { .. } => {
            row_norm::run(core, at, instruction)
        }
        Instruction::Rope { .. } => rope::run(core, at, instruction),
        Instruction::Activate { .. } => activate::run(core, at, instruction),
        Instruction::MoveRows { .. } | Instruction::Spread { .. } | Instruction::Regroup { .. } => {
            rearrange::run(core, at, instruction)
        }
        _ => Err(Fault::WrongEngine { place: at.place() }),
    }
}
