//! Values that change their places.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::{Part, Tiles, decode};
use crate::backend::blackhole::lowered::{BlockFormat, Instruction, RowMotion};

pub fn run(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    match instruction {
        Instruction::MoveRows { .. } => move_rows(core, at, instruction),
        Instruction::Spread { .. } => spread(core, at, instruction),
        _ => regroup(core, at, instruction),
    }
}

fn move_rows(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::MoveRows {
        x,
        x_format,
        x_row_tiles,
        x_row,
        out,
        out_format,
        out_row_tiles,
        out_row,
        list,
        count,
        limit,
        columns,
        motion,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let words = core.words(at, list, 0, count)?;
    if let Some(word) = words.iter().find(|word| **word >= limit) {
        return Err(Fault::ListWord { place: at.place(), word: *word, limit });
    }
    // Rows of the blocks that may be named.
    let (x_rows, out_rows) = match motion {
        RowMotion::Gather => (limit, count),
        RowMotion::Scatter | RowMotion::ScatterAdd => (count, limit),
    };
    let part = |row: u32, rows| Part { row: row as usize, ..Part::new(rows, columns) };
    let source = core.column_block(at, x, x_format, x_row_tiles, part(x_row, x_rows))?;
    let target = core.column_block(at, out, out_format, out_row_tiles, part(out_row, out_rows))?;
    for (number, word) in (0..).zip(words) {
        let (from, to) = match motion {
            RowMotion::Gather => (word, number),
            RowMotion::Scatter | RowMotion::ScatterAdd => (number, word),
        };
        let (from, to) = (part(x_row + from, 1), part(out_row + to, 1));
        let mut values = core.read(at, source, from)?;
        if motion == RowMotion::ScatterAdd {
            for (value, sum) in values.iter_mut().zip(core.read(at, target, to)?) {
                *value += sum;
            }
        }
        core.write(target, to, &values);
    }
    Ok(())
}

fn spread(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Spread {
        x,
        first,
        x_row_step,
        out,
        out_format,
        out_row_tiles,
        out_row,
        out_column,
        out_column_step,
        rows,
        columns,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let mut values = Vec::with_capacity(rows as usize * columns as usize);
    for row in 0..rows {
        let first = u64::from(first) + u64::from(row) * u64::from(x_row_step);
        values.extend(core.plain_values(at, x, first, columns)?);
    }
    let target = Target { out, out_format, out_row_tiles, out_row, out_column, out_column_step };
    target.write(core, at, rows, columns, &values)
}

fn regroup(core: &mut CoreState<'_>, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    let &Instruction::Regroup {
        x,
        x_format,
        x_row_tiles,
        x_row,
        x_row_step,
        x_column,
        out,
        out_format,
        out_row_tiles,
        out_row,
        out_column,
        out_column_step,
        rows,
        columns,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let (first, step) = (x_row as usize, x_row_step as usize);
    let one = Part { row: first, column: x_column as usize, ..Part::new(1, columns) };
    let all = Part { rows: (rows as usize - 1) * step + 1, ..one };
    let block = core.block(at, x, x_format, x_row_tiles, all)?;
    let mut values = Vec::with_capacity(rows as usize * columns as usize);
    for row in 0..rows as usize {
        values.extend(core.read(at, block, Part { row: first + row * step, ..one })?);
    }
    let target = Target { out, out_format, out_row_tiles, out_row, out_column, out_column_step };
    target.write(core, at, rows, columns, &values)
}

/// Columns of a block that are equally far apart.
struct Target {
    out: u32,
    out_format: BlockFormat,
    out_row_tiles: u32,
    out_row: u32,
    out_column: u32,
    out_column_step: u32,
}

impl Target {
    fn write(
        &self,
        core: &mut CoreState<'_>,
        at: At<'_>,
        rows: u32,
        columns: u32,
        values: &[f32],
    ) -> Result<(), Fault> {
        let (row, column) = (self.out_row as usize, self.out_column as usize);
        let step = self.out_column_step as usize;
        let part = Part { row, column, ..Part::new(rows, columns) };
        let all = Part { columns: (part.columns - 1) * step + 1, ..part };
        let block: Tiles = core.block(at, self.out, self.out_format, self.out_row_tiles, all)?;
        if step == 1 {
            core.write(block, all, values);
            return Ok(());
        }
        for column in 0..part.columns {
            let place = Part { column: all.column + column * step, columns: 1, ..all };
            let mine = values.iter().skip(column).step_by(part.columns);
            core.write(block, place, &mine.copied().collect::<Vec<f32>>());
        }
        Ok(())
    }
}

impl CoreState<'_> {
    /// `count` values of bf16 one after the other, from number `first` at `address` on.
    fn plain_values(
        &mut self,
        at: At<'_>,
        address: u32,
        first: u64,
        count: u32,
    ) -> Result<Vec<f32>, Fault> {
        let size = u64::from(BlockFormat::Bf16.bytes());
        let end = (first + u64::from(count)) * size;
        let address = self.check(at, address.into(), end)? + (first * size) as usize;
        match self.l1.values(address, count as usize * size as usize) {
            Ok(bytes) => Ok(decode(BlockFormat::Bf16, bytes)),
            Err(unwritten) => Err(self.unwritten(at, unwritten)),
        }
    }
}
