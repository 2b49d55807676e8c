//! Products as the matrix engine makes them.

use half::bf16;

use super::super::linear::linear as f32_linear;
use super::super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::super::math;
use super::super::parallel::{for_rows, vectorized};
use super::CardNumerics;
use super::rounding::{ALL_BITS, rounded};
use crate::backend::blackhole::numerics::{Accumulation, round_to_bf16, tile};
use crate::program::Activation;

/// Inputs after whose products sums in bf16 are rounded: those of a tile.
const STEP: usize = tile::SIDE;

/// `out = activation(x W + bias)` with a weight that is [`dequantised`](super::dequantised) where the card changes it.
///
/// `x` is rounded to bf16 and cut to the bits of the fidelity. Sums are those of [`crate::backend::cpu::linear::linear`];
/// with bf16 accumulation they are rounded after every 32 inputs: `sum = bf16(sum + block)`. Bias and activation are f32,
/// and so is `out`: storing rounds it. A row does not depend on the rows beside it, nor a column on the columns. Panics
/// when the shapes do not fit together.
pub fn linear(
    x: Mat<'_>,
    weight: WeightBlock<'_>,
    bias: Bias<'_>,
    activation: Activation,
    numerics: &CardNumerics,
    mut out: MatMut<'_>,
) {
    assert!(bias.columns().is_none_or(|columns| columns == weight.outputs()), "linear: bias");
    let operand = value_operand(x, numerics.fidelity.value_mask());
    let x = Mat::new(&operand, x.rows(), x.cols(), x.cols());
    products(x, weight, numerics.accumulation, out.reborrow());
    for_rows(
        out,
        #[inline(always)]
        |_, out| {
            bias.add_to(0, out);
            math::activate_all(activation, out);
        },
    );
}

/// `out = x W` of operands that are cut to their bits.
pub fn products(
    x: Mat<'_>,
    weight: WeightBlock<'_>,
    accumulation: Accumulation,
    mut out: MatMut<'_>,
) {
    if accumulation == Accumulation::F32 {
        return f32_products(x, weight, out);
    }
    assert_eq!((x.rows(), weight.outputs()), (out.rows(), out.cols()), "products: result");
    let (rows, outputs) = (out.rows(), out.cols());
    for_rows(out.reborrow(), |_, sums| sums.fill(0.0));
    let mut block = vec![0.0; rows * outputs];
    for first in (0..x.cols()).step_by(STEP) {
        let inputs = first..x.cols().min(first + STEP);
        let x = x.block(0, rows, first, inputs.len());
        let target = MatMut::new(&mut block, rows, outputs, outputs);
        f32_products(x, weight.of_inputs(inputs), target);
        let block = Mat::new(&block, rows, outputs, outputs);
        for_rows(
            out.reborrow(),
            #[inline(always)]
            |row, sums| {
                for (sum, value) in sums.iter_mut().zip(block.row(row)) {
                    *sum = rounded(*sum + value, ALL_BITS);
                }
            },
        );
    }
}

fn f32_products(x: Mat<'_>, weight: WeightBlock<'_>, out: MatMut<'_>) {
    f32_linear(x, weight, Bias::None, Activation::Identity, out);
}

/// A left operand without gaps: bf16, of which the bits of `mask` are left.
pub fn value_operand(x: Mat<'_>, mask: u16) -> Vec<f32> {
    let (rows, cols) = (x.rows(), x.cols());
    let mut operand = vec![0.0; rows * cols];
    for_rows(
        MatMut::new(&mut operand, rows, cols, cols),
        #[inline(always)]
        |row, operand| cut(x.row(row), mask, operand),
    );
    operand
}

#[inline(always)]
fn cut(values: &[f32], mask: u16, out: &mut [f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = rounded(*value, mask);
    }
}

/// A right operand without gaps: bf16, of which the bits of `mask` are left.
pub fn weight_operand(x: Mat<'_>, mask: u16) -> Vec<bf16> {
    let mut operand = vec![bf16::ZERO; x.rows() * x.cols()];
    vectorized(
        #[inline(always)]
        || {
            for (row, out) in operand.chunks_exact_mut(x.cols().max(1)).enumerate() {
                for (out, value) in out.iter_mut().zip(x.row(row)) {
                    *out = bf16::from_bits(round_to_bf16(*value).to_bits() & mask);
                }
            }
        },
    );
    operand
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{assert_close, on_threads, random, random_bf16};
    use super::*;
    use crate::backend::blackhole::numerics::MathFidelity;
    use crate::program::Orientation;

    /// Rows, inputs, outputs; ragged against tiles, lanes and the steps of bf16 sums.
    const SHAPES: [(usize, usize, usize); 6] =
        [(1, 1, 1), (3, 33, 17), (7, 48, 72), (51, 100, 50), (2, 4304, 5), (16, 31, 130)];

    const FIDELITIES: [MathFidelity; 3] =
        [MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi4];

    fn numerics(fidelity: MathFidelity, accumulation: Accumulation) -> CardNumerics {
        CardNumerics { fidelity, accumulation, ..CardNumerics::default() }
    }

    fn every_numerics() -> impl Iterator<Item = CardNumerics> {
        FIDELITIES.into_iter().flat_map(|fidelity| {
            [Accumulation::F32, Accumulation::Bf16].map(|sums| numerics(fidelity, sums))
        })
    }

    fn run(
        (rows, inputs, outputs): (usize, usize, usize),
        orientation: Orientation,
        numerics: &CardNumerics,
    ) -> Vec<f32> {
        let x = random(1, rows * (inputs + 3));
        let weight = random_bf16(2, inputs * outputs);
        let turned = (0..inputs * outputs).map(|i| weight[i % inputs * outputs + i / inputs]);
        let (weight, weight_rows, weight_cols) = match orientation {
            Orientation::InOut => (weight.clone(), inputs, outputs),
            Orientation::OutIn => (turned.collect(), outputs, inputs),
        };
        let bias = random_bf16(3, outputs);
        let mut out = vec![f32::NAN; rows * outputs];
        linear(
            Mat::new(&x, rows, inputs, inputs + 3),
            WeightBlock::new(&weight, weight_rows, weight_cols, orientation),
            Bias::Bf16(&bias),
            Activation::Relu,
            numerics,
            MatMut::new(&mut out, rows, outputs, outputs),
        );
        out
    }

    /// The same by plain loops; in f64 where the card's sums are f32, and else with every rounding of the card.
    fn expected(
        (rows, inputs, outputs): (usize, usize, usize),
        numerics: &CardNumerics,
    ) -> Vec<f64> {
        let (x, weight) = (random(1, rows * (inputs + 3)), random_bf16(2, inputs * outputs));
        let bias = random_bf16(3, outputs);
        let mask = numerics.fidelity.value_mask();
        let value = |row: usize, input: usize| {
            let stored = bf16::from_f32(x[row * (inputs + 3) + input]);
            bf16::from_bits(stored.to_bits() & mask)
        };
        let mut all = Vec::new();
        for row in 0..rows {
            for column in 0..outputs {
                let term = |input: usize| {
                    value(row, input).to_f64() * weight[input * outputs + column].to_f64()
                };
                let sum = match numerics.accumulation {
                    Accumulation::F32 => (0..inputs).map(term).sum(),
                    Accumulation::Bf16 => {
                        let mut sum = bf16::ZERO;
                        for first in (0..inputs).step_by(STEP) {
                            let mut block = 0.0_f32;
                            for input in first..inputs.min(first + STEP) {
                                let weight = weight[input * outputs + column].to_f32();
                                block = value(row, input).to_f32().mul_add(weight, block);
                            }
                            sum = bf16::from_f32(sum.to_f32() + block);
                        }
                        sum.to_f64()
                    }
                };
                all.push((sum + bias[column].to_f64()).max(0.0));
            }
        }
        all
    }

    #[test]
    fn products_match_plain_loops() {
        for shape in SHAPES {
            for numerics in every_numerics() {
                let found = run(shape, Orientation::InOut, &numerics);
                let tolerance = match numerics.accumulation {
                    Accumulation::F32 => 2e-6 * (shape.1 as f64).sqrt(),
                    Accumulation::Bf16 => 1e-6,
                };
                let name = format!("{shape:?} {numerics}");
                assert_close(&name, &found, &expected(shape, &numerics), tolerance);
            }
        }
    }

    #[test]
    fn both_orientations_and_any_number_of_threads_give_the_same_bits() {
        let bits = |values: Vec<f32>| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        for shape in SHAPES {
            for numerics in every_numerics() {
                let one = on_threads(1, || run(shape, Orientation::InOut, &numerics));
                let turned = on_threads(2, || run(shape, Orientation::OutIn, &numerics));
                assert_eq!(bits(one), bits(turned), "{shape:?} {numerics}");
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_beside_it() {
        for numerics in every_numerics() {
            let all = run((13, 100, 50), Orientation::OutIn, &numerics);
            for rows in 1..13 {
                let some = run((rows, 100, 50), Orientation::OutIn, &numerics);
                assert_eq!(some, all[..some.len()], "{rows} rows, {numerics}");
            }
        }
    }

    #[test]
    fn operands_are_bf16_without_the_bits_that_take_no_part() {
        let x = [1.0 + 1.0 / 128.0, -1.0 - 3.0 / 128.0, 1.0 + 1.0 / 1024.0];
        let operand = |mask| value_operand(Mat::new(&x, 1, 3, 3), mask);
        assert_eq!(operand(0xffff), [x[0], x[1], 1.0]);
        assert_eq!(operand(0xfffe), [1.0, -1.0 - 2.0 / 128.0, 1.0]);
        let narrow = weight_operand(Mat::new(&x, 1, 3, 3), 0xfffe);
        assert!(narrow.iter().map(|value| value.to_f32()).eq(operand(0xfffe)));
        assert!(weight_operand(Mat::new(&[], 0, 0, 0), 0xffff).is_empty());
    }

    #[test]
    fn a_product_of_no_inputs_is_the_bias() {
        for numerics in every_numerics() {
            assert_eq!(
                run((2, 0, 3), Orientation::InOut, &numerics),
                expected((2, 0, 3), &numerics).iter().map(|v| *v as f32).collect::<Vec<_>>()
            );
        }
    }
}
