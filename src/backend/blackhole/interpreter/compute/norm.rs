//! Norms of rows whose columns lie on several cores.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::cpu::card::Moments;
use crate::backend::cpu::norm::{self, Scaling};

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
    let x = core.read(at, block, part)?;
    let statistics = core.pairs(at, moments.into(), rows)?;
    let mut vector = |address: u32| -> Result<Vec<f32>, Fault> {
        let values = core.vector(at, address, vector_step, columns)?;
        Ok(values.iter().map(|value| value.to_f32()).collect())
    };
    let vectors = match (scale, shift) {
        (Some(scale), Some(shift)) => Some((vector(scale)?, vector(shift)?)),
        (None, None) => None,
        _ => return Err(Fault::NormVectors { place: at.place() }),
    };
    let scaling = match &vectors {
        Some((scale, shift)) => Scaling::Modulated { scale, shift },
        None => Scaling::None,
    };
    let mut values = vec![0.0; part.values()];
    let rows = x.chunks_exact(part.columns).zip(statistics);
    for (out, (x, [mean, factor])) in values.chunks_exact_mut(part.columns).zip(rows) {
        norm::scale(x, mean, factor, scaling, out);
    }
    core.write(target, part, &values);
    Ok(())
}
