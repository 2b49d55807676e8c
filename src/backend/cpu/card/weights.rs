//! The weights that the card holds otherwise than the checkpoint.

use std::collections::BTreeSet;

use half::bf16;

use super::CardNumerics;
use crate::backend::blackhole::numerics::{
    MatrixView, NumericsError, TileFormat, pack_matrix, unpack_matrix,
};
use crate::program::{Op, Orientation, Program, WeightId, WeightSpec};

/// Whether products with this weight read something else than the checkpoint's values.
pub fn is_changed(spec: &WeightSpec, numerics: &CardNumerics) -> bool {
    let CardNumerics { policy, fidelity, .. } = numerics;
    policy.format(&spec.tensor) != TileFormat::Bf16 || fidelity.weight_mask() != u16::MAX
}

/// What the matrix engine sees of a weight, `[inputs, outputs]`: packed in the policy's format as the card has it, unpacked,
/// and cut to the bits of the fidelity. On all threads of the current rayon pool.
///
/// Panics when `values` are not those of `spec`.
pub fn dequantised(values: &[bf16], spec: &WeightSpec, numerics: &CardNumerics) -> Vec<bf16> {
    let format = numerics.policy.format(&spec.tensor);
    let mut values = through_tiles(values, spec, format)
        .unwrap_or_else(|error| panic!("{}: {error}", spec.tensor));
    let mask = numerics.fidelity.weight_mask();
    if mask != u16::MAX {
        for value in &mut values {
            *value = bf16::from_bits(value.to_bits() & mask);
        }
    }
    values
}

fn through_tiles(
    values: &[bf16],
    spec: &WeightSpec,
    format: TileFormat,
) -> Result<Vec<bf16>, NumericsError> {
    let stored = MatrixView::new(values, spec.rows, spec.cols, spec.cols)?;
    let matrix = match spec.orientation {
        Orientation::OutIn => stored.transposed(),
        Orientation::InOut => stored,
    };
    let (inputs, outputs) = (matrix.rows(), matrix.cols());
    let mut packed = vec![0; format.matrix_bytes(inputs, outputs)?];
    pack_matrix(matrix, format, &mut packed, &|_, _| ())?;
    let mut unpacked = vec![bf16::ZERO; inputs * outputs];
    unpack_matrix(&packed, format, inputs, outputs, &mut unpacked)?;
    Ok(unpacked)
}

/// The weights of a program that rows are multiplied by, each once.
pub fn factors(program: &Program) -> BTreeSet<WeightId> {
    let ops = program.stages.iter().flat_map(|stage| &stage.ops);
    ops.filter_map(|op| match op {
        Op::Linear { weight, .. } | Op::LinearBuffer { weight, .. } => Some(*weight),
        _ => None,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::random_bf16;
    use super::*;
    use crate::backend::blackhole::numerics::{DtypePolicy, MathFidelity};

    const DIT: &str = "action_head.model.transformer_blocks.7.attn1.to_q.weight";

    fn spec(tensor: &str, rows: usize, cols: usize, orientation: Orientation) -> WeightSpec {
        WeightSpec { tensor: tensor.to_owned(), offset: 0, rows, cols, orientation }
    }

    #[test]
    fn both_orientations_give_the_same_blocks() {
        let (inputs, outputs) = (70, 41);
        let stored = random_bf16(1, inputs * outputs);
        let turned: Vec<bf16> =
            (0..inputs * outputs).map(|i| stored[i % inputs * outputs + i / inputs]).collect();
        for fidelity in [MathFidelity::LoFi, MathFidelity::HiFi2] {
            let numerics = CardNumerics { fidelity, ..CardNumerics::default() };
            let in_out = spec(DIT, inputs, outputs, Orientation::InOut);
            let out_in = spec(DIT, outputs, inputs, Orientation::OutIn);
            let found = dequantised(&stored, &in_out, &numerics);
            assert_eq!(found, dequantised(&turned, &out_in, &numerics));
            // Exponents are shared along the outputs.
            for (row, stored) in found.chunks(outputs).zip(stored.chunks(outputs)) {
                for (block, stored) in row.chunks(16).zip(stored.chunks(16)) {
                    let largest = stored.iter().map(|v| v.to_f32().abs()).fold(0.0, f32::max);
                    let step = 2_f32.powi(largest.log2().floor() as i32 - 6);
                    for (found, stored) in block.iter().zip(stored) {
                        let error = (found.to_f32() - stored.to_f32()).abs();
                        let cut = if fidelity == MathFidelity::LoFi {
                            found.to_f32().abs() / 16.0
                        } else {
                            0.0
                        };
                        assert!(error <= step + cut, "{found} for {stored}");
                        assert_eq!(found.to_bits() & !fidelity.weight_mask(), 0);
                    }
                }
            }
            assert_ne!(found, stored);
        }
    }

    #[test]
    fn only_what_differs_is_changed() {
        let numerics =
            |policy, fidelity| CardNumerics { policy, fidelity, ..CardNumerics::default() };
        let (dit, slot) = (
            spec(DIT, 3, 5, Orientation::OutIn),
            spec("action_head.action_decoder.layer1.W", 3, 5, Orientation::InOut),
        );
        let kept = numerics(DtypePolicy::Bf16, MathFidelity::HiFi4);
        assert!(!is_changed(&dit, &kept) && !is_changed(&slot, &kept));
        let mixed = numerics(DtypePolicy::MixedDit, MathFidelity::HiFi2);
        assert!(is_changed(&dit, &mixed) && !is_changed(&slot, &mixed));
        let cut = numerics(DtypePolicy::Bf16, MathFidelity::LoFi);
        assert!(is_changed(&dit, &cut) && is_changed(&slot, &cut));
        let values = random_bf16(2, 15);
        assert_eq!(dequantised(&values, &slot, &mixed), values);
        let masked = dequantised(&values, &slot, &cut);
        let mask = MathFidelity::LoFi.weight_mask();
        assert!(masked.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits() & mask));
    }
}
