//! Attention of one head.

use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::Part;
use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::cpu::card::{CardNumerics, attend};
use crate::backend::cpu::mat::{Mat, MatMut};

pub fn run(
    core: &mut CoreState<'_>,
    at: At<'_>,
    instruction: &Instruction,
    numerics: &CardNumerics,
) -> Result<(), Fault> {
    let &Instruction::Attention {
        q,
        k,
        v,
        row_tiles,
        rows,
        key_tiles,
        keys,
        head_dim,
        scale,
        before,
        out,
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let seen = |before: &u32| u64::from(*before) + u64::from(rows);
    if let Some(before) = before.filter(|before| seen(before) > keys.into()) {
        return Err(Fault::FewKeys { place: at.place(), before, rows, keys });
    }
    let (queries, others) = (Part::new(rows, head_dim), Part::new(keys, head_dim));
    let q = core.block(at, q, BlockFormat::Bf16, row_tiles, queries)?;
    let k = core.block(at, k, BlockFormat::Bf16, key_tiles, others)?;
    let v = core.block(at, v, BlockFormat::Bf16, key_tiles, others)?;
    let target = core.block(at, out, BlockFormat::Bf16, row_tiles, queries)?;
    // Queries meet keys along whole tiles, and softmax weights meet values along all rows of tiles.
    core.check_zero(at, q, beside(queries))?;
    core.check_zero(at, k, beside(others))?;
    core.check_filled(at, v, below(others, key_tiles))?;
    let (q, k) = (core.read(at, q, queries)?, core.read(at, k, others)?);
    let v = core.read(at, v, others)?;
    let width = queries.columns;
    let mut context = vec![0.0; queries.values()];
    attend(
        Mat::new(&q, queries.rows, width, width),
        Mat::new(&k, others.rows, width, width),
        Mat::new(&v, others.rows, width, width),
        scale,
        before.map(|before| before as usize),
        numerics,
        MatMut::new(&mut context, queries.rows, width, width),
    );
    core.write(target, queries, &context);
    Ok(())
}

/// What fills up the last tiles of rows.
fn beside(part: Part) -> Part {
    let end = part.columns.next_multiple_of(SIDE);
    Part { column: part.columns, columns: end - part.columns, ..part }
}

/// What fills up the last tiles of columns.
fn below(part: Part, row_tiles: u32) -> Part {
    let end = row_tiles as usize * SIDE;
    Part { row: part.rows, rows: end - part.rows, ..part }
}
