//! Functions of every value.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::Instruction;
use crate::backend::cpu::math::activate_all;

pub fn run(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Activate {
        x,
        x_format,
        factor,
        factor_format,
        activation,
        row_tiles,
        first_row,
        rows,
        columns,
        out,
        out_format,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = Part { row: first_row as usize, ..Part::new(rows, columns) };
    let block = core.column_block(at, x, x_format, row_tiles, part)?;
    let target = core.column_block(at, out, out_format, row_tiles, part)?;
    let mut values = core.read(at, block, part)?;
    activate_all(activation, &mut values);
    if let Some(factor) = factor {
        let block = core.column_block(at, factor, factor_format, row_tiles, part)?;
        let factors = core.read(at, block, part)?;
        for (value, factor) in values.iter_mut().zip(factors) {
            *value *= factor;
        }
    }
    core.write(target, part, &values);
    Ok(())
}
