//! Sums and copies of blocks.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::cpu::elementwise::add_scaled;
use crate::backend::cpu::mat::{Mat, MatMut};

pub fn run(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    match instruction {
        Instruction::Accumulate { .. } => accumulate(core, at, instruction),
        _ => copy(core, at, instruction),
    }
}

fn accumulate(
    core: &mut CoreState<'_>,
    at: At<'_>,
    instruction: &Instruction,
) -> Result<(), Fault> {
    let &Instruction::Accumulate { x, x_format, factor, row_tiles, first_row, rows, columns, out } =
        instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = Part { row: first_row as usize, ..Part::new(rows, columns) };
    let block = core.column_block(at, x, x_format, row_tiles, part)?;
    let target = core.column_block(at, out, BlockFormat::F32, row_tiles, part)?;
    let x = core.read(at, block, part)?;
    let mut sums = core.read(at, target, part)?;
    let width = part.columns;
    add_scaled(
        Mat::new(&x, part.rows, width, width),
        factor,
        MatMut::new(&mut sums, part.rows, width, width),
    );
    core.write(target, part, &sums);
    Ok(())
}

fn copy(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::CopyBlock {
        x,
        x_format,
        x_row_tiles,
        x_row,
        x_column,
        out,
        out_format,
        out_row_tiles,
        out_row,
        out_column,
        rows,
        columns,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = |row: u32, column: u32| Part {
        row: row as usize,
        column: column as usize,
        ..Part::new(rows, columns)
    };
    let (from, to) = (part(x_row, x_column), part(out_row, out_column));
    let block = core.block(at, x, x_format, x_row_tiles, from)?;
    let target = core.block(at, out, out_format, out_row_tiles, to)?;
    let values = core.read(at, block, from)?;
    core.write(target, to, &values);
    Ok(())
}
