//! Norms of whole rows, rotary positions, activations: what a core does to rows by itself.

use half::bf16;

use super::build::{Built, numbers};
use super::single::built;
use super::{fault, run};
use crate::backend::blackhole::interpreter::Fault;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction, NormScaling, Step};
use crate::backend::cpu::card::{layer_norm, rms_norm};
use crate::backend::cpu::elementwise::{rope, silu_mul};
use crate::backend::cpu::mat::{Mat, MatMut};
use crate::backend::cpu::norm::Scaling;
use crate::program::Activation;

const ROWS: usize = 40;
const COLUMNS: usize = 70;
const EPS: f32 = 1e-5;
const X: (u32, u32, BlockFormat) = (ROWS as u32, COLUMNS as u32, BlockFormat::F32);

fn rounded(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| bf16::from_f32(*value).to_f32()).collect()
}

fn of_bf16(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|value| bf16::from_f32(*value)).collect()
}

/// Lets the mover bring vectors from the arena, before all else; gives the address of the first one, the others are 192
/// bytes apart.
fn with_vectors(built: &mut Built, vectors: &[&[f32]]) -> u32 {
    let address = built.region(0, "vectors", 192 * vectors.len() as u32);
    for (number, vector) in (0..).zip(vectors) {
        let offset = built.banks[0].len() as u32;
        let values = of_bf16(vector).into_iter().flat_map(bf16::to_le_bytes);
        built.banks[0].extend(values);
        let bytes = built.banks[0].len() as u32 - offset;
        built.banks[0].resize((offset + 192) as usize, 0);
        let address = address + 192 * number;
        let read = Instruction::ReadArena { bank: 0, offset, bytes, address };
        built.stream(0, Engine::Mover).insert(0, Step { op: 0, instruction: read });
    }
    address
}

/// Columns 32 to 69 of a layer norm of 70 columns.
fn strip(scaling: NormScaling) -> (Built, [Vec<f32>; 2]) {
    let out = (ROWS as u32, 38, BlockFormat::Bf16);
    let mut built = built(&[X], &[out], |at| {
        vec![Instruction::LayerNorm {
            x: at[0],
            x_format: BlockFormat::F32,
            row_tiles: 2,
            first_row: 0,
            rows: ROWS as u32,
            columns: COLUMNS as u32,
            first: 32,
            count: 38,
            scaling,
            gain: None,
            shift: None,
            eps: EPS,
            out: at[1],
            out_format: BlockFormat::Bf16,
        }]
    });
    let vectors = [numbers(7, COLUMNS), numbers(8, COLUMNS)];
    if scaling != NormScaling::None {
        let at = with_vectors(&mut built, &[&vectors[0], &vectors[1]]);
        if let Instruction::LayerNorm { gain, shift, .. } =
            built.find(0, Engine::Compute, "LayerNorm")
        {
            (*gain, *shift) = (Some(at), Some(at + 192));
        }
    }
    (built, vectors)
}

#[test]
fn a_strip_of_a_layer_norm_has_the_bits_of_the_kernel() {
    for scaling in [NormScaling::None, NormScaling::Affine, NormScaling::Modulated] {
        let (built, [gain, shift]) = strip(scaling);
        let (weight, bias) = (of_bf16(&gain), of_bf16(&shift));
        let kernel = match scaling {
            NormScaling::None => Scaling::None,
            NormScaling::Affine => Scaling::Affine { weight: &weight, bias: &bias },
            NormScaling::Modulated => Scaling::Modulated { scale: &gain, shift: &shift },
        };
        let mut all = vec![0.0; ROWS * COLUMNS];
        layer_norm(
            Mat::new(&built.inputs[0], ROWS, COLUMNS, COLUMNS),
            kernel,
            EPS,
            MatMut::new(&mut all, ROWS, COLUMNS, COLUMNS),
        );
        let expected: Vec<f32> =
            all.chunks_exact(COLUMNS).flat_map(|row| rounded(&row[32..])).collect();
        assert_eq!(run(&built), [expected], "{scaling:?}");
    }
}

#[test]
fn a_norm_has_the_columns_and_vectors_that_it_names() {
    let with = |change: fn(&mut Instruction)| {
        let (mut built, _) = strip(NormScaling::Affine);
        change(built.find(0, Engine::Compute, "LayerNorm"));
        fault(&built)
    };
    let found = with(|norm| {
        if let Instruction::LayerNorm { count, .. } = norm {
            *count = 39;
        }
    });
    assert!(matches!(found, Fault::Strip { end: 71, columns: 70, .. }), "{found}");
    let found = with(|norm| {
        if let Instruction::LayerNorm { shift, .. } = norm {
            *shift = None;
        }
    });
    assert!(matches!(found, Fault::NormVectors { .. }), "{found}");
}

/// RMS norm of seven groups of ten columns, from row 3 on; the first rows are copied.
fn groups(group: u32) -> (Built, Vec<f32>) {
    let mut built = built(&[X], &[X], |at| {
        let norm = Instruction::RmsNorm {
            x: at[0],
            x_format: BlockFormat::F32,
            row_tiles: 2,
            first_row: 3,
            rows: ROWS as u32 - 3,
            columns: COLUMNS as u32,
            group,
            first: 0,
            count: COLUMNS as u32,
            weight: 0,
            eps: EPS,
            out: at[1],
            out_format: BlockFormat::F32,
        };
        vec![copy(at, 3), norm]
    });
    let weight = numbers(7, group as usize);
    let at = with_vectors(&mut built, &[&weight]);
    if let Instruction::RmsNorm { weight, .. } = built.find(0, Engine::Compute, "RmsNorm") {
        *weight = at;
    }
    (built, weight)
}

/// Copies the first rows of an f32 block of 70 columns to another.
fn copy(at: &[u32], rows: u32) -> Instruction {
    Instruction::CopyBlock {
        x: at[0],
        x_format: BlockFormat::F32,
        x_row_tiles: 2,
        x_row: 0,
        x_column: 0,
        out: at[at.len() - 1],
        out_format: BlockFormat::F32,
        out_row_tiles: 2,
        out_row: 0,
        out_column: 0,
        rows,
        columns: COLUMNS as u32,
    }
}

#[test]
fn an_rms_norm_of_groups_has_the_bits_of_the_kernel() {
    let (built, weight) = groups(10);
    let mut expected = vec![0.0; ROWS * COLUMNS];
    rms_norm(
        Mat::new(&built.inputs[0], ROWS, COLUMNS, COLUMNS),
        &of_bf16(&weight),
        EPS,
        MatMut::new(&mut expected, ROWS, COLUMNS, COLUMNS),
    );
    expected[..3 * COLUMNS].copy_from_slice(&built.inputs[0][..3 * COLUMNS]);
    assert_eq!(run(&built), [expected]);
    let (built, _) = groups(11);
    assert!(matches!(fault(&built), Fault::Groups { columns: 70, group: 11, .. }));
}

/// Rotates heads of ten columns in columns 20 to 69 of rows 3 to 39.
fn rotation() -> Built {
    let table = (ROWS as u32, 5, BlockFormat::Bf16);
    built(&[X, table, table], &[X], |at| {
        let rope = Instruction::Rope {
            x: at[0],
            format: BlockFormat::F32,
            row_tiles: 2,
            first_row: 3,
            rows: ROWS as u32 - 3,
            column: 20,
            columns: 50,
            half: 5,
            cos: at[1],
            sin: at[2],
        };
        vec![rope, copy(at, ROWS as u32)]
    })
}

#[test]
fn heads_are_rotated_in_place() {
    let mut built = rotation();
    let [x, cos, sin] = &built.inputs[..] else { panic!("three inputs") };
    let mut expected = x.clone();
    rope(
        MatMut::new(&mut expected[3 * COLUMNS + 20..], ROWS - 3, 50, COLUMNS),
        Mat::new(&cos[3 * 5..], ROWS - 3, 5, 5),
        Mat::new(&sin[3 * 5..], ROWS - 3, 5, 5),
    );
    assert_eq!(run(&built), [expected]);
    if let Instruction::Rope { columns, .. } = built.find(0, Engine::Compute, "Rope") {
        *columns = 49;
    }
    assert!(matches!(fault(&built), Fault::Groups { columns: 49, group: 10, .. }));
}

#[test]
fn activations_are_multiplied_by_a_factor() {
    let x = (ROWS as u32, 20, BlockFormat::F32);
    let factor = (ROWS as u32, 20, BlockFormat::Bf16);
    for (with_factor, inputs) in [(true, vec![x, factor]), (false, vec![x])] {
        let built = built(&inputs, &[x], |at| {
            vec![Instruction::Activate {
                x: at[0],
                x_format: BlockFormat::F32,
                factor: with_factor.then_some(at[1]),
                factor_format: BlockFormat::Bf16,
                activation: Activation::Silu,
                row_tiles: 2,
                first_row: 0,
                rows: ROWS as u32,
                columns: 20,
                out: at[at.len() - 1],
                out_format: BlockFormat::F32,
            }]
        });
        let ones = vec![1.0; ROWS * 20];
        let factors = if with_factor { &built.inputs[1] } else { &ones };
        let mut expected = vec![0.0; ROWS * 20];
        silu_mul(
            Mat::new(&built.inputs[0], ROWS, 20, 20),
            Mat::new(factors, ROWS, 20, 20),
            MatMut::new(&mut expected, ROWS, 20, 20),
        );
        assert_eq!(run(&built), [expected]);
    }
}
