//! What holds for every matrix.

use std::sync::Mutex;

use gr00t_blackhole::backend::blackhole::numerics::{
    MatrixView, NumericsError, TileFormat, pack_block, pack_matrix, unpack_matrix,
};
use half::bf16;
use proptest::prelude::*;

/// Rows, columns and values: any bits, or exponents that are close together as those of weights.
fn matrix() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    let wild = any::<u32>().prop_map(f32::from_bits);
    let close = (any::<u32>(), 110..130u32)
        .prop_map(|(bits, exponent)| f32::from_bits(bits & 0x807f_ffff | exponent << 23));
    (1..70usize, 1..70usize).prop_flat_map(move |(rows, cols)| {
        let len = rows * cols;
        let values = prop_oneof![
            prop::collection::vec(wild.clone(), len),
            prop::collection::vec(close.clone(), len)
        ];
        values.prop_map(move |values| (rows, cols, values))
    })
}

fn pack(format: TileFormat, rows: usize, cols: usize, values: &[f32]) -> Vec<u8> {
    let mut packed = vec![0xaa; format.matrix_bytes(rows, cols).expect("small")];
    let view = MatrixView::new(values, rows, cols, cols).expect("it fits");
    pack_matrix(view, format, &mut packed, &|_, _| ()).expect("the size is right");
    packed
}

fn unpack(format: TileFormat, rows: usize, cols: usize, packed: &[u8]) -> Vec<f32> {
    let mut values = vec![f32::NAN; rows * cols];
    unpack_matrix(packed, format, rows, cols, &mut values).expect("the size is right");
    values
}

/// Largest magnitude of the values of every row that share an exponent, for each value.
fn largest(cols: usize, values: &[f32]) -> impl Iterator<Item = f32> {
    let rows = values.chunks_exact(cols).flat_map(|row| row.chunks(16));
    rows.flat_map(|shared| {
        // By bits, where NaN is the largest of all.
        let bits = shared.iter().map(|value| value.abs().to_bits()).max();
        let largest = f32::from_bits(bits.unwrap_or_default());
        std::iter::repeat_n(largest, shared.len())
    })
}

proptest! {
    #[test]
    fn values_come_back_within_a_step((rows, cols, values) in matrix()) {
        for (format, bits) in [(TileFormat::Bfp8B, 7), (TileFormat::Bfp4B, 3)] {
            let found = unpack(format, rows, cols, &pack(format, rows, cols, &values));
            for ((value, found), largest) in values.iter().zip(found).zip(largest(cols, &values)) {
                // Infinity and NaN are numbers to a block; at the bottom unpacking is not arithmetic.
                if !(1e-35..f32::INFINITY).contains(&largest) {
                    continue;
                }
                let exponent = (largest.to_bits() >> 23).cast_signed() - 127;
                let step = 2_f64.powi(exponent + 1 - bits);
                let error = (f64::from(found) - f64::from(*value)).abs();
                // Half a step, but all of one where a magnitude is at its end; and what an f32 loses before rounding.
                let saturated = f64::from(value.abs()) > 2_f64.powi(exponent + 1) - step;
                let bound = if saturated { step } else { step * 0.500_01 };
                prop_assert!(error <= bound, "{format:?}: {value:e} came back as {found:e}");
            }
        }
    }

    #[test]
    fn packing_again_changes_nothing((rows, cols, values) in matrix()) {
        // Without exponents so small that a value's own would be none: unpacking does not give those back.
        let values: Vec<f32> = values.iter().map(|value| {
            if value.abs() < 1e-30 { 0.0 } else { *value }
        }).collect();
        for format in TileFormat::ALL {
            let packed = pack(format, rows, cols, &values);
            let again = pack(format, rows, cols, &unpack(format, rows, cols, &packed));
            prop_assert!(packed == again, "{format:?}");
        }
    }

    #[test]
    fn bf16_is_packed_as_the_f32_that_it_is((rows, cols, values) in matrix()) {
        let short: Vec<bf16> = values.iter().map(|value| bf16::from_f32(*value)).collect();
        let long: Vec<f32> = short.iter().map(|value| value.to_f32()).collect();
        let view = MatrixView::new(&short, rows, cols, cols).expect("it fits");
        for format in [TileFormat::Bfp8B, TileFormat::Bfp4B] {
            let expected = pack(format, rows, cols, &long);
            let mut packed = vec![0xaa; expected.len()];
            pack_matrix(view, format, &mut packed, &|_, _| ()).expect("the size is right");
            prop_assert!(packed == expected, "{format:?}");
        }
    }
}

proptest! {
    #[test]
    fn a_block_is_packed_as_a_copy_of_it(
        (rows, cols, values) in matrix(),
        ends in any::<[prop::sample::Index; 4]>(),
        turned in any::<bool>(),
    ) {
        let whole = MatrixView::new(&values, rows, cols, cols).expect("it fits");
        let whole = if turned { whole.transposed() } else { whole };
        let range = |len: usize, a: prop::sample::Index, b: prop::sample::Index| {
            let (a, b) = (a.index(len), b.index(len));
            a.min(b)..a.max(b) + 1
        };
        let [a, b, c, d] = ends;
        let (block_rows, block_cols) = (range(whole.rows(), a, b), range(whole.cols(), c, d));
        let value = |row: usize, col: usize| {
            if turned { values[col * cols + row] } else { values[row * cols + col] }
        };
        let copy: Vec<f32> = block_rows
            .clone()
            .flat_map(|row| block_cols.clone().map(move |col| value(row, col)))
            .collect();
        for format in TileFormat::ALL {
            let expected = pack(format, block_rows.len(), block_cols.len(), &copy);
            let mut packed = vec![0xaa; expected.len()];
            let block = whole.block(block_rows.clone(), block_cols.clone());
            pack_block(block, format, &mut packed).expect("the size is right");
            prop_assert!(packed == expected, "{format:?}");
        }
    }
}

/// Large enough for several bands of tile rows, the last of them short.
#[test]
fn a_transposed_view_is_packed_as_a_transposed_copy() {
    let (rows, cols) = (300, 70);
    let values: Vec<f32> =
        (0..rows * cols).map(|i| f32::from_bits((i as u32).wrapping_mul(2_654_435_761))).collect();
    let turned: Vec<f32> = (0..rows * cols).map(|i| values[i % rows * cols + i / rows]).collect();
    let view = MatrixView::new(&turned, cols, rows, rows).expect("it fits").transposed();
    for format in TileFormat::ALL {
        let expected = pack(format, rows, cols, &values);
        let mut packed = vec![0xaa; expected.len()];
        pack_matrix(view, format, &mut packed, &|_, _| ()).expect("the size is right");
        assert!(packed == expected, "{format:?}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let values = [0.0_f32; 40];
    let error = MatrixView::new(&values, 4, 10, 9).expect_err("rows overlap");
    assert_eq!(error, NumericsError::Stride { cols: 10, stride: 9 });
    let error = MatrixView::new(&values, 4, 10, 11).expect_err("the last row is too short");
    assert_eq!(error.to_string(), "[4, 10] at a stride of 11 needs 43 values, found 40");
    let error = MatrixView::new(&values, usize::MAX, 10, 11).expect_err("more than memory");
    assert_eq!(error, NumericsError::TooLarge { rows: usize::MAX, cols: 10 });

    let view = MatrixView::new(&values, 4, 10, 10).expect("it fits");
    let mut target = [0; 1087];
    let error = pack_matrix(view, TileFormat::Bfp8B, &mut target, &|_, _| ());
    let error = error.expect_err("a byte is missing").to_string();
    assert_eq!(error, "[4, 10] packed as bfp8_b has 1088 bytes, found 1087");
    let error = unpack_matrix(&target, TileFormat::Bfp8B, 4, 10, &mut [0.0_f32; 40]);
    assert!(matches!(error, Err(NumericsError::PackedBytes { expected: 1088, found: 1087, .. })));
    let error = unpack_matrix(&[0; 1088], TileFormat::Bfp8B, 4, 10, &mut [0.0_f32; 39]);
    assert!(matches!(error, Err(NumericsError::Values { needed: 40, found: 39, .. })));
}

#[test]
fn nothing_is_packed_to_nothing() {
    for (rows, cols) in [(0, 0), (0, 7), (7, 0)] {
        let view = MatrixView::new(&[0.0_f32; 0], rows, cols, cols).expect("it needs no values");
        for view in [view, view.transposed()] {
            pack_matrix(view, TileFormat::Bfp8B, &mut [], &|_, _| ()).expect("no bytes");
        }
        let mut none: [f32; 0] = [];
        unpack_matrix(&[], TileFormat::Bf16, rows, cols, &mut none).expect("no bytes");
    }
}

#[test]
fn progress_counts_all_tiles() {
    let values = vec![bf16::ONE; 100 * 70];
    let view = MatrixView::new(&values, 100, 70, 70).expect("it fits");
    let mut packed = vec![0; 12 * 1088];
    let seen = Mutex::new(Vec::new());
    let note = |done, total| seen.lock().expect("no panic").push((done, total));
    pack_matrix(view, TileFormat::Bfp8B, &mut packed, &note).expect("the size is right");
    let mut seen = seen.into_inner().expect("no panic");
    seen.sort_unstable();
    assert_eq!(seen, [(3, 12), (6, 12), (9, 12), (12, 12)]);
}
