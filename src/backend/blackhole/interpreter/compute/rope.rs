//! Rotary positions.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::cpu::elementwise::rope;
use crate::backend::cpu::mat::{Mat, MatMut};

pub fn run(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Rope {
        x,
        format,
        row_tiles,
        first_row,
        rows,
        column,
        columns,
        half,
        cos,
        sin,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    if !columns.is_multiple_of(2 * half) {
        return Err(Fault::Groups { place: at.place(), columns, group: 2 * half });
    }
    let row = first_row as usize;
    let part = Part { row, column: column as usize, ..Part::new(rows, columns) };
    let table = Part { row, ..Part::new(rows, half) };
    let block = core.block(at, x, format, row_tiles, part)?;
    let mut values = core.read(at, block, part)?;
    let mut angles = |address| {
        let block = core.block(at, address, BlockFormat::Bf16, row_tiles, table)?;
        core.read(at, block, table)
    };
    let (cos, sin) = (angles(cos)?, angles(sin)?);
    let of_table = |values| Mat::new(values, table.rows, table.columns, table.columns);
    let target = MatMut::new(&mut values, part.rows, part.columns, part.columns);
    rope(target, of_table(&cos), of_table(&sin));
    core.write(block, part, &values);
    Ok(())
}
