//! Norms of rows whose columns lie on several cores.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::cpu::card::Moments;

pub fn run(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    match instruction {
        Instruction::Moments { .. } => moments(core, at, instruction),
        Instruction::Combine { .. } => combine(core, at, instruction),
        _ => normalise(core, at, instruction),
    }
}

fn moments(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Moments { x, format, rows, columns, out } = instruction else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = Part::new(rows, columns);
    let block = core.column_block(at, x, format, rows.div_ceil(SIDE as u32), part)?;
    let values = core.read(at, block, part)?;
    let of_row = |row| {
        let Moments { sum, squares } = Moments::of(row);
        [sum, squares]
    };
    let pairs: Vec<[f32; 2]> = values.chunks_exact(part.columns).map(of_row).collect();
    core.set_pairs(at, out, &pairs)
}

fn combine(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Combine { parts, step, count, rows, width, eps, out } = instruction else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let mut totals = vec![Moments::default(); rows as usize];
    for part in 0..u64::from(count) {
        let pairs = core.pairs(at, u64::from(parts) + part * u64::from(step), rows)?;
        for (total, [sum, squares]) in totals.iter_mut().zip(pairs) {
            *total = total.add(Moments { sum, squares });
        }
    }
    let statistics = |total: &Moments| {
        let (mean, factor) = total.mean_and_factor(width as usize, eps);
        [mean, factor]
    };
    let pairs: Vec<[f32; 2]> = totals.iter().map(statistics).collect();
    core.set_pairs(at, out, &pairs)
}

fn normalise(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Normalise {
        x,
        format,
        row_tiles,
        rows,
        columns,
        moments,
        scale,
        shift,
        vector_step,
        out,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = Part::new(rows, columns);
    let block = core.column_block(at, x, format, row_tiles, part)?;
    let target = core.column_block(at, out, BlockFormat::Bf16, row_tiles, part)?;
    let mut values = core.read(at, block, part)?;
    let statistics = core.pairs(at, moments.into(), rows)?;
    let mut vector = |address: Option<u32>| {
        address.map(|address| core.vector(at, address, vector_step, columns)).transpose()
    };
    let (scale, shift) = (vector(scale)?, vector(shift)?);
    for (row, [mean, factor]) in values.chunks_exact_mut(part.columns).zip(statistics) {
        for (column, value) in row.iter_mut().enumerate() {
            *value = (*value - mean) * factor;
            if let Some(scale) = &scale {
                *value *= 1.0 + scale[column].to_f32();
            }
            if let Some(shift) = &shift {
                *value += shift[column].to_f32();
            }
        }
    }
    core.write(target, part, &values);
    Ok(())
}
