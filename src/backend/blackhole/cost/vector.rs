//! What the vector unit does, value by value and row by row.
//!
//! Counts are instructions for 32 values at a time, whose rates are measured ([`Rates`]); those below that no rate
//! covers are counted from what has to be done.

use super::rates::Rates;
use super::spread::Spread;
use super::work::{Place, Work, tiles, view_tiles};
use crate::program::{Activation, Modulation, View, WeightId};

/// A row onto a tile of sums, by the matrix engine, which takes less than one instruction for all values of a tile.
pub const BIAS: f64 = 1.0;
/// Load, sum, sum of squares, next address.
const STATISTICS: f64 = 4.0;
/// Load, multiply and add, store, next address.
const NORMALISE: f64 = 4.0;
/// Load the factor, multiply.
const SCALE: f64 = 2.0;
/// Load factor and summand, multiply and add.
const SCALE_AND_SHIFT: f64 = 3.0;
/// Load two halves, cosine and sine; four products; store two; next address: for two tiles.
const ROTATE: f64 = 11.0 / 2.0;
/// Load, store, next address.
const MOVE: f64 = 3.0;
/// Statistics of a row are collected from the cores that have parts of it, and handed out again.
const ROW_HANDOVERS: u32 = 2;

/// Passes of an activation, its loads and stores included. The packer does the simple ones.
pub fn activation(rates: &Rates, activation: Activation) -> f64 {
    match activation {
        Activation::Identity | Activation::Relu => 0.0,
        Activation::Silu => rates.sigmoid + 1.0,
        Activation::GeluTanh => rates.gelu_tanh,
        Activation::GeluErf => rates.gelu_erf,
    }
}

/// Scale and shift behind a layer norm.
#[derive(Clone, Copy)]
pub enum Affine {
    None,
    Weights(WeightId, WeightId),
    Modulation(Modulation),
}

/// A layer norm over whole rows, of which every core has some columns.
pub fn layer_norm(place: &Place<'_>, x: View, affine: Affine, out: View) -> Work {
    let mut work = over_tiles(place, &[x], out, STATISTICS + NORMALISE);
    let wide = work.spread.block[1];
    work.handovers += ROW_HANDOVERS;
    match affine {
        Affine::None => {}
        Affine::Weights(weight, bias) => {
            work.vector_passes += SCALE_AND_SHIFT;
            work.read_weight_vector(place.weight(weight), wide);
            work.read_weight_vector(place.weight(bias), wide);
        }
        Affine::Modulation(Modulation { scale, shift }) => {
            work.vector_passes += SCALE_AND_SHIFT;
            work.read_vector(scale.cols, wide);
            work.read_vector(shift.cols, wide);
        }
    }
    work
}

/// An RMS norm over whole rows, or over the heads in them; a head is on one core.
pub fn rms_norm(place: &Place<'_>, x: View, weight: WeightId, out: View) -> Work {
    let passes = STATISTICS + NORMALISE + SCALE;
    let spec = place.weight(weight);
    let is_whole = spec.cols == x.cols;
    let mut work = if is_whole {
        over_tiles(place, &[x], out, passes)
    } else {
        over_heads(place, x, out, spec.cols, passes)
    };
    let wide = if is_whole { work.spread.block[1] } else { tiles(spec.cols) };
    work.handovers += if is_whole { ROW_HANDOVERS } else { 0 };
    work.read_weight_vector(spec, wide);
    work
}

/// Rotary positions, in place; the two halves of a head are on one core.
pub fn rope(place: &Place<'_>, x: View, cos: View, sin: View) -> Work {
    let head_dim = 2 * cos.cols;
    let mut work = over_heads(place, x, x, head_dim, ROTATE);
    let table = work.spread.block[0] * tiles(cos.cols);
    work.read(place, cos, table);
    work.read(place, sin, table);
    work
}

/// One tile from several.
pub fn combine(place: &Place<'_>, operands: &[View], out: View, passes: f64) -> Work {
    over_tiles(place, operands, out, passes)
}

/// Sum of two tiles.
pub fn add(place: &Place<'_>, x: View, out: View) -> Work {
    combine(place, &[x, out], out, place.rates.two_operands)
}

/// Sum with rows of a matrix of the checkpoint.
pub fn add_weight(place: &Place<'_>, weight: WeightId, out: View) -> Work {
    let mut work = combine(place, &[out], out, place.rates.two_operands);
    let core_tiles = work.spread.busiest();
    work.read_weight_rows(place.weight(weight), out.rows, core_tiles);
    work
}

/// An activation by itself.
pub fn map(place: &Place<'_>, x: View, kind: Activation, out: View) -> Work {
    combine(place, &[x], out, activation(place.rates, kind).max(MOVE))
}

/// `silu(gate) * up`
pub fn silu_mul(place: &Place<'_>, gate: View, up: View, out: View) -> Work {
    let passes = activation(place.rates, Activation::Silu) + place.rates.two_operands;
    combine(place, &[gate, up], out, passes)
}

/// Output tiles in rectangles on the cores that own them.
fn over_tiles(place: &Place<'_>, operands: &[View], out: View, passes: f64) -> Work {
    let spread = Spread::blocks(tiles(out.rows), tiles(out.cols), place.execution.owners());
    let mut work = Work { vector_passes: passes, handovers: 1, ..Work::default() };
    let busiest = spread.busiest();
    for operand in operands {
        // A view of fewer rows is repeated.
        work.read(place, *operand, busiest.min(view_tiles(*operand)));
    }
    work.write(place, out, busiest);
    work.spread = spread;
    work
}

/// Rows of tiles and whole heads in rectangles; the passes are for every tile.
fn over_heads(place: &Place<'_>, x: View, out: View, head_dim: usize, passes: f64) -> Work {
    let (heads, head_tiles) = ((x.cols / head_dim) as u64, tiles(head_dim));
    let spread = Spread::blocks(tiles(x.rows), heads, place.execution.owners());
    let passes = passes * head_tiles as f64;
    let mut work = Work { vector_passes: passes, handovers: 1, ..Work::default() };
    let core_tiles = spread.busiest() * head_tiles;
    work.read(place, x, core_tiles);
    work.write(place, out, core_tiles);
    work.spread = spread;
    work
}
