//! Products with weights.

use super::spread::Spread;
use super::vector;
use super::work::{Place, Work, tiles};
use crate::program::{Activation, View, WeightId};

/// Bias of a product.
#[derive(Clone, Copy)]
pub enum Bias {
    None,
    Weight(WeightId),
    /// A row of a buffer.
    Buffer,
}

/// `out = activation(x W + bias)`: every core has a rectangle of output tiles, and gets the rows and columns for it.
///
/// Weights are read once, whoever needs them; bias and activation cost no transfer of their own.
pub fn linear(
    place: &Place<'_>,
    x: View,
    weight: WeightId,
    bias: Bias,
    activation: Activation,
    out: View,
) -> Work {
    let spec = place.weight(weight);
    let depth = tiles(spec.inputs());
    let spread = Spread::blocks(tiles(out.rows), tiles(spec.outputs()), place.execution.cores());
    let [high, wide] = spread.block;
    let mut work = Work { tile_matmuls: depth, handovers: 1, ..Work::default() };
    work.read(place, x, high * depth);
    work.read_matrix(place, spec, wide * depth);
    match bias {
        Bias::None => {}
        Bias::Weight(bias) => work.read_weight_vector(place.weight(bias), wide),
        Bias::Buffer => work.read_vector(out.cols, wide),
    }
    if !matches!(bias, Bias::None) {
        work.vector_passes += vector::BIAS;
    }
    work.vector_passes += vector::activation(place.rates, activation);
    work.write(place, out, high * wide);
    work.spread = spread;
    work
}
