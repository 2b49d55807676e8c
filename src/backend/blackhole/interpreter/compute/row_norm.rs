//! Norms of whole rows.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::{Instruction, NormScaling};
use crate::backend::cpu::card;
use crate::backend::cpu::mat::{Mat, MatMut};
use crate::backend::cpu::norm::Scaling;

pub fn run(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    match instruction {
        Instruction::LayerNorm { .. } => layer_norm(core, at, instruction),
        _ => rms_norm(core, at, instruction),
    }
}

fn layer_norm(
    core: &mut CoreState<'_>,
    at: At<'_>,
    instruction: &Instruction,
) -> Result<(), Fault> {
    let &Instruction::LayerNorm {
        x,
        x_format,
        row_tiles,
        first_row,
        rows,
        columns,
        first,
        count,
        scaling,
        gain,
        shift,
        eps,
        out,
        out_format,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    check_strip(at, first, count, columns)?;
    let part = Part { row: first_row as usize, ..Part::new(rows, columns) };
    let block = core.block(at, x, x_format, row_tiles, part)?;
    let x = core.read(at, block, part)?;
    let mut vector = |address: Option<u32>| match address {
        Some(address) => core.vector(at, address, 0, columns),
        None => Ok(Vec::new()),
    };
    let (gain, shift) = (vector(gain)?, vector(shift)?);
    let wide = |values: &[half::bf16]| -> Vec<f32> { values.iter().map(|v| v.to_f32()).collect() };
    let (wide_gain, wide_shift) = (wide(&gain), wide(&shift));
    let expected = if scaling == NormScaling::None { 0 } else { part.columns };
    if [gain.len(), shift.len()] != [expected; 2] {
        return Err(Fault::NormVectors { place: at.place() });
    }
    let scaling = match scaling {
        NormScaling::None => Scaling::None,
        NormScaling::Affine => Scaling::Affine { weight: &gain, bias: &shift },
        NormScaling::Modulated => Scaling::Modulated { scale: &wide_gain, shift: &wide_shift },
    };
    let mut values = vec![0.0; part.values()];
    let target = MatMut::new(&mut values, part.rows, part.columns, part.columns);
    card::layer_norm(Mat::new(&x, part.rows, part.columns, part.columns), scaling, eps, target);
    let kept = Part { columns: count as usize, ..part };
    let target = core.block(at, out, out_format, row_tiles, kept)?;
    core.write(target, kept, &strip(&values, part.columns, first, count));
    Ok(())
}

fn rms_norm(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::RmsNorm {
        x,
        x_format,
        row_tiles,
        first_row,
        rows,
        columns,
        group,
        first,
        count,
        weight,
        eps,
        out,
        out_format,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    check_strip(at, first, count, columns)?;
    if !columns.is_multiple_of(group) {
        return Err(Fault::Groups { place: at.place(), columns, group });
    }
    let part = Part { row: first_row as usize, ..Part::new(rows, columns) };
    let block = core.block(at, x, x_format, row_tiles, part)?;
    let x = core.read(at, block, part)?;
    let weight = core.vector(at, weight, 0, group)?;
    let mut values = vec![0.0; part.values()];
    let target = MatMut::new(&mut values, part.rows, part.columns, part.columns);
    card::rms_norm(Mat::new(&x, part.rows, part.columns, part.columns), &weight, eps, target);
    let kept = Part { columns: count as usize, ..part };
    let target = core.block(at, out, out_format, row_tiles, kept)?;
    core.write(target, kept, &strip(&values, part.columns, first, count));
    Ok(())
}

/// That the columns that are wanted are there.
fn check_strip(at: At<'_>, first: u32, count: u32, columns: u32) -> Result<(), Fault> {
    let end = u64::from(first) + u64::from(count);
    if end <= u64::from(columns) {
        return Ok(());
    }
    Err(Fault::Strip { place: at.place(), end, columns })
}

/// Some columns of all rows.
fn strip(values: &[f32], columns: usize, first: u32, count: u32) -> Vec<f32> {
    let (first, count) = (first as usize, count as usize);
    values.chunks_exact(columns).flat_map(|row| &row[first..first + count]).copied().collect()
}
