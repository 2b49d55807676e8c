//! Bytes of the wheel. Where `TTNN_PYTHON` names a Python with `ttnn` 0.81.1 and torch, more of them come from there:
//! `TTNN_PYTHON=/path/to/python cargo test --test card -- --ignored`.

use std::fmt::Debug;
use std::process::Command;

use gr00t_blackhole::backend::blackhole::numerics::{
    Element, MatrixView, TileFormat, pack_matrix, tile, unpack_matrix,
};
use half::bf16;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

const MAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/card/make.py");

#[test]
fn tiles_are_those_of_the_wheel() {
    let stored = include_bytes!("../data/card/packed.safetensors");
    assert_eq!(compare(stored), 14);
}

#[test]
#[ignore = "needs a Python with ttnn"]
fn larger_matrices_are_packed_as_by_the_wheel_that_is_installed() {
    let python = std::env::var_os("TTNN_PYTHON").expect("TTNN_PYTHON is not set");
    let folder = tempfile::tempdir().expect("a folder");
    for seed in ["2", "3"] {
        let file = folder.path().join(seed);
        let status = Command::new(&python).arg(MAKE).arg(&file).args([seed, "352"]).status();
        assert!(status.expect("python").success());
        assert_eq!(compare(&std::fs::read(file).expect("what was made")), 14);
    }
}

/// Packs and unpacks all that is stored; how many matrices there were.
fn compare(stored: &[u8]) -> usize {
    let stored = SafeTensors::deserialize(stored).expect("a safetensors file");
    let mut matrices = 0;
    for (name, tensor) in stored.iter() {
        match tensor.dtype() {
            Dtype::U8 => continue,
            _ if name.starts_with("unpack/") => continue,
            Dtype::F32 => compare_packed(&stored, name, &tensor, |b| f32::from_le_bytes(*b)),
            Dtype::BF16 => compare_packed(&stored, name, &tensor, |b| bf16::from_le_bytes(*b)),
            other => panic!("{name}: {other:?}"),
        }
        matrices += 1;
    }
    for format in [TileFormat::Bfp8B, TileFormat::Bfp4B] {
        compare_unpacked(&stored, format);
    }
    matrices
}

fn values<T, const N: usize>(tensor: &TensorView<'_>, read: impl Fn(&[u8; N]) -> T) -> Vec<T> {
    tensor.data().as_chunks().0.iter().map(read).collect()
}

fn compare_packed<T: Element + Debug, const N: usize>(
    stored: &SafeTensors<'_>,
    name: &str,
    tensor: &TensorView<'_>,
    read: impl Fn(&[u8; N]) -> T,
) {
    let &[rows, cols] = tensor.shape() else { panic!("{name} is no matrix") };
    let dense = values(tensor, read);
    // The same with room between its rows, and as the transposed view of its transposed.
    let stride = cols + 5;
    let mut spread = vec![T::default(); rows * stride];
    let mut turned = vec![T::default(); rows * cols];
    for (row, values) in dense.chunks_exact(cols).enumerate() {
        spread[row * stride..][..cols].copy_from_slice(values);
        for (column, value) in values.iter().enumerate() {
            turned[column * rows + row] = *value;
        }
    }
    let views = [
        MatrixView::new(&dense, rows, cols, cols).expect("it fits"),
        MatrixView::new(&spread, rows, cols, stride).expect("it fits"),
        MatrixView::new(&turned, cols, rows, rows).expect("it fits").transposed(),
    ];
    for format in TileFormat::ALL {
        let expected = stored.tensor(&format!("{name}/{}", format.name())).expect("its tiles");
        for (kind, view) in views.into_iter().enumerate() {
            let mut packed = vec![0xaa; format.matrix_bytes(rows, cols).expect("small")];
            pack_matrix(view, format, &mut packed, &|_, _| ()).expect("the size is right");
            let differs = packed.iter().zip(expected.data()).position(|(a, b)| a != b);
            assert_eq!(packed.len(), expected.data().len(), "{name}, {format:?}");
            assert_eq!(differs, None, "{name}, {format:?}, view {kind}");
        }
    }
}

fn compare_unpacked(stored: &SafeTensors<'_>, format: TileFormat) {
    let name = format!("unpack/{}", format.name());
    let packed = stored.tensor(&name).expect("tiles");
    let expected = stored.tensor(&format!("{name}/f32")).expect("their values");
    let expected = values(&expected, |bits| u32::from_le_bytes(*bits));
    let tiles = expected.len() / tile::VALUES;
    let (rows, cols) = (tile::SIDE, tiles * tile::SIDE);
    let mut single = vec![0.0; rows * cols];
    unpack_matrix(packed.data(), format, rows, cols, &mut single).expect("the size is right");
    let mut half = vec![bf16::ZERO; rows * cols];
    unpack_matrix(packed.data(), format, rows, cols, &mut half).expect("the size is right");
    for row in 0..rows {
        for column in 0..cols {
            let expected = expected
                [column / tile::SIDE * tile::VALUES + tile::place(row, column % tile::SIDE)];
            let index = row * cols + column;
            assert_eq!(single[index].to_bits(), expected, "{format:?}: {row}, {column}");
            assert_eq!(u32::from(half[index].to_bits()) << 16, expected, "{format:?}");
        }
    }
}
