//! The Euler steps of a denoise stage: what comes before them, and what each of them does.

use super::LowerError;
use crate::program::{Activation, BufferSource, Op, Program, Stage, StageKind, View};

/// A denoise stage without taps, cut into its parts. Numbers of instructions count within the stage, taps included.
pub struct Steps {
    /// Once per request.
    pub before: Vec<(u32, Op)>,
    /// The first step. The others do the same with the next row of every imported table.
    pub step: Vec<(u32, Op)>,
    pub count: u32,
}

impl Steps {
    /// Every step ends with the only addition of a scaled view in it.
    pub fn of(program: &Program) -> Result<Self, LowerError> {
        let ops = instructions(program)?;
        let ends: Vec<usize> = (0..ops.len())
            .filter(|at| matches!(ops[*at].1, Op::AddScaled { .. }))
            .map(|at| at + 1)
            .collect();
        let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
            return Err(LowerError::NoSteps);
        };
        let length = ends.get(1).map_or(*first, |second| second - first);
        let before = first.checked_sub(length).ok_or(LowerError::NoSteps)?;
        if *last != ops.len() {
            return Err(LowerError::UnequalSteps { op: ops[*last].0 });
        }
        for step in 1..ends.len() {
            for place in before..before + length {
                let (number, op) = ops.get(place + step * length).ok_or(LowerError::NoSteps)?;
                let expected = moved_on(program, &ops[place].1, step);
                if *op != expected {
                    return Err(LowerError::UnequalSteps { op: *number });
                }
            }
        }
        Ok(Self {
            before: ops[..before].to_vec(),
            step: ops[before..before + length].to_vec(),
            count: ends.len() as u32,
        })
    }
}

/// The instructions of the denoise stage without taps. A product whose result goes through a ReLU and nowhere else takes
/// that with it, under the number of the ReLU: rounding in between changes no bit.
pub fn instructions(program: &Program) -> Result<Vec<(u32, Op)>, LowerError> {
    let stage = program.stages.iter().find(|stage| stage.kind == StageKind::Denoise);
    let stage = stage.ok_or(LowerError::NoSteps)?;
    let mut ops: Vec<(u32, Op)> = Vec::new();
    for (number, op) in (0..).zip(&stage.ops) {
        match (op, ops.last_mut()) {
            (Op::Tap { .. }, _) => {}
            (
                Op::Map { x, activation: Activation::Relu, out: mapped },
                Some((last, Op::Linear { activation, out, .. })),
            ) if x == out && *activation == Activation::Identity && is_read_once(stage, *x) => {
                *last = number;
                *activation = Activation::Relu;
                *out = *mapped;
            }
            _ => ops.push((number, op.clone())),
        }
    }
    Ok(ops)
}

/// Whether only one instruction reads a buffer, taps not counted.
fn is_read_once(stage: &Stage, view: View) -> bool {
    let readers = stage.ops.iter().filter(|op| !matches!(op, Op::Tap { .. }));
    readers.flat_map(Op::reads).filter(|read| read.buffer == view.buffer).count() == 1
}

/// What an instruction of the first step is in a later one.
fn moved_on(program: &Program, op: &Op, step: usize) -> Op {
    let table = |view: View| match program.buffers[view.buffer.0].source {
        BufferSource::Import(_) => View { row: view.row + step, ..view },
        _ => view,
    };
    match op.clone() {
        Op::LinearBuffer { x, weight, bias, activation, out } => {
            Op::LinearBuffer { x, weight, bias: table(bias), activation, out }
        }
        Op::LayerNorm { x, affine, modulation: Some(mut modulation), eps, out } => {
            modulation.scale = table(modulation.scale);
            modulation.shift = table(modulation.shift);
            Op::LayerNorm { x, affine, modulation: Some(modulation), eps, out }
        }
        other => other,
    }
}
