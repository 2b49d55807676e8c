//! The programs of instructions, a family a file.

mod elementwise;
mod heads;
mod norms;
mod patches;
mod products;
mod rows;

use super::error::TraceError;
use super::geometry::TileRange;
use super::program::ProgramWriter;
use crate::backend::blackhole::lowered::RowMotion;
use crate::program::{Activation, Op, Program, View};
use products::{Bias, Product};

/// Writes the program of an instruction.
pub fn lower(program: &mut ProgramWriter<'_>, op: &Op) -> Result<(), TraceError> {
    if result(program.tables.program, op).is_none() {
        return Ok(());
    }
    check_tiles(program, op)?;
    match *op {
        Op::Linear { x, weight, bias, activation, out } => {
            let bias = bias.map_or(Bias::None, Bias::Weight);
            products::lower(program, &Product { x, weight, bias, activation, out })
        }
        Op::LinearBuffer { x, weight, bias, activation, out } => {
            let bias = Bias::Row(bias);
            products::lower(program, &Product { x, weight, bias, activation, out })
        }
        Op::LayerNorm { x, affine, modulation, eps, out } => {
            norms::layer_norm(program, x, affine, modulation, eps, out)
        }
        Op::RmsNorm { x, weight, eps, out } => norms::rms_norm(program, x, weight, eps, out),
        Op::Rope { x, cos, sin } => heads::rope(program, x, cos, sin),
        Op::Attention { q, k, v, shape, out } => heads::attention(program, [q, k, v], shape, out),
        Op::Embed { table, ids, out } => rows::embed(program, table, ids, out),
        Op::GatherRows { x, rows, out } => rows::motion(program, RowMotion::Gather, x, rows, out),
        Op::ScatterRows { x, rows, out } => rows::motion(program, RowMotion::Scatter, x, rows, out),
        Op::ScatterAddRows { x, rows, out } => {
            rows::motion(program, RowMotion::ScatterAdd, x, rows, out)
        }
        Op::Reshape { x, out } => patches::reshape(program, x, out),
        Op::Copy { x, out } => {
            let x = program.area(x)?;
            elementwise::copy(program, x, out)
        }
        Op::CopyWeight { weight, out } => {
            let x = program.weight_rows(weight, out)?;
            elementwise::copy(program, x, out)
        }
        Op::Add { x, out } => {
            let x = program.area(x)?;
            elementwise::accumulate(program, x, 1.0, out)
        }
        Op::AddWeight { weight, out } => {
            let x = program.weight_rows(weight, out)?;
            elementwise::accumulate(program, x, 1.0, out)
        }
        Op::AddScaled { x, factor, out } => {
            let x = program.area(x)?;
            elementwise::accumulate(program, x, factor, out)
        }
        Op::Map { x, activation, out } => elementwise::activate(program, x, activation, None, out),
        Op::SiluMul { gate, up, out } => {
            elementwise::activate(program, gate, Activation::Silu, Some(up), out)
        }
        Op::Patchify { x, grid, out } => patches::patchify(program, x, grid, out),
        Op::SpaceToDepth { x, side, out } => patches::space_to_depth(program, x, side, out),
        Op::Tap { .. } => Ok(()),
    }
}

/// What an instruction writes; nothing if there are no rows for it.
pub fn result(program: &Program, op: &Op) -> Option<View> {
    let rows = match op {
        Op::ScatterRows { rows, .. } | Op::ScatterAddRows { rows, .. } => {
            program.indices[rows.0].len
        }
        _ => op.written()?.rows,
    };
    op.written().filter(|_| rows > 0)
}

/// Name of an instruction, with that of the buffer that it writes.
pub fn name(program: &Program, op: &Op) -> String {
    let kind = match op {
        Op::Linear { .. } | Op::LinearBuffer { .. } => "product",
        Op::LayerNorm { .. } => "layer norm",
        Op::RmsNorm { .. } => "RMS norm",
        Op::Rope { .. } => "rope",
        Op::Attention { .. } => "attention",
        Op::Embed { .. } => "embed",
        Op::GatherRows { .. } => "gather rows",
        Op::ScatterRows { .. } => "scatter rows",
        Op::ScatterAddRows { .. } => "scatter and add rows",
        Op::Reshape { .. } => "reshape",
        Op::Copy { .. } | Op::CopyWeight { .. } => "copy",
        Op::Add { .. } | Op::AddWeight { .. } | Op::AddScaled { .. } => "add",
        Op::Map { .. } => "map",
        Op::SiluMul { .. } => "silu times",
        Op::Patchify { .. } => "patchify",
        Op::SpaceToDepth { .. } => "space to depth",
        Op::Tap { .. } => "tap",
    };
    match op.written() {
        Some(View { buffer, .. }) => format!("{kind}: {}", program.buffers[buffer.0].name),
        None => kind.to_owned(),
    }
}

/// That no core reads tiles that another one writes meanwhile.
fn check_tiles(program: &ProgramWriter<'_>, op: &Op) -> Result<(), TraceError> {
    let Some(out) = op.written() else { return Ok(()) };
    let written = TileRange::covering(program.area(out)?);
    for read in op.reads().into_iter().filter(|read| read.buffer == out.buffer) {
        if TileRange::covering(program.area(read)?).meets(written) {
            let buffer = program.tables.program.buffers[out.buffer.0].name.clone();
            return Err(TraceError::SharedTiles { place: program.place, buffer });
        }
    }
    Ok(())
}
