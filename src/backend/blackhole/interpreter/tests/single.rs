//! What a core computes by itself.

use half::bf16;

use super::build::{Built, numbers, signal, wait};
use super::relay::{read, write};
use super::run;
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};
use crate::backend::cpu::card::attend;
use crate::backend::cpu::mat::{Mat, MatMut};

pub const CORE: Core = Core::new(5, 5);

/// A core that loads its inputs, computes, and writes its outputs: `buffers` are rows, columns and format of both.
pub fn built(
    inputs: &[(u32, u32, BlockFormat)],
    outputs: &[(u32, u32, BlockFormat)],
    compute: impl Fn(&[u32]) -> Vec<Instruction>,
) -> Built {
    let mut built = Built::new();
    let all: Vec<_> = inputs.iter().chain(outputs).copied().collect();
    let names: Vec<String> = (0..all.len()).map(|number| format!("block {number}")).collect();
    let bytes = |(rows, columns, format): &(u32, u32, BlockFormat)| {
        rows.div_ceil(32) * columns.div_ceil(32) * format.tile_bytes()
    };
    let regions: Vec<(&str, u32)> =
        names.iter().map(String::as_str).zip(all.iter().map(bytes)).collect();
    built.core(CORE, &[("loaded", 0), ("done", 0)], &regions);
    let addresses: Vec<u32> = names.iter().map(|name| built.address(0, name)).collect();
    built.segment("all", 0, 1);
    for (number, (rows, columns, format)) in all.iter().copied().enumerate() {
        let buffer = built.buffer(&names[number], rows, columns, format);
        let (down, right) = (rows.div_ceil(32), columns.div_ceil(32));
        let tile = format.tile_bytes();
        if number == inputs.len() {
            built.push(0, Engine::Mover, 1, &[signal(CORE, 0), wait(1, 1)]);
        }
        for row in 0..down {
            let (first, address) = (row * right, addresses[number] + row * tile);
            let tiles = [buffer, first, 1, right, 0, tile, address, down * tile];
            if number < inputs.len() {
                built.push(0, Engine::Mover, 0, &[read(tiles)]);
            } else {
                built.push(0, Engine::Mover, 2, &[write(tiles)]);
            }
        }
        if number < inputs.len() {
            built.inputs.push(numbers(number as u32 + 1, (rows * columns) as usize));
        }
    }
    built.push(0, Engine::Compute, 1, &[wait(0, 1)]);
    built.push(0, Engine::Compute, 1, &compute(&addresses));
    built.push(0, Engine::Compute, 1, &[signal(CORE, 1)]);
    built
}

/// One head of 48 columns, which is a tile and a half; more keys than queries.
pub fn attention(before: Option<u32>) -> Built {
    let (q, k) = ((40, 48, BlockFormat::Bf16), (50, 48, BlockFormat::Bf16));
    built(&[q, k, k], &[q], |at| {
        let [q, k, v, out] = *at else { panic!("four blocks") };
        vec![Instruction::Attention {
            q,
            k,
            v,
            row_tiles: 2,
            rows: 40,
            key_tiles: 2,
            keys: 50,
            head_dim: 48,
            scale: 0.4,
            before,
            out,
        }]
    })
}

#[test]
fn attention_has_the_bits_of_the_kernel() {
    for before in [None, Some(0), Some(10)] {
        let built = attention(before);
        let [q, k, v] = &built.inputs[..] else { panic!("three inputs") };
        let mut expected = vec![0.0; 40 * 48];
        attend(
            Mat::new(q, 40, 48, 48),
            Mat::new(k, 50, 48, 48),
            Mat::new(v, 50, 48, 48),
            0.4,
            before.map(|before| before as usize),
            &built.numerics,
            MatMut::new(&mut expected, 40, 48, 48),
        );
        assert_eq!(run(&built), [expected], "{before:?}");
    }
}

/// `sums[3..40] += 0.25 * x[3..40]`, twice.
pub fn accumulation() -> Built {
    let (x, sums) = ((40, 20, BlockFormat::Bf16), (40, 20, BlockFormat::F32));
    built(&[x, sums], &[sums], |at| {
        let [x, sums, out] = *at else { panic!("three blocks") };
        let add = Instruction::Accumulate {
            x,
            x_format: BlockFormat::Bf16,
            factor: 0.25,
            row_tiles: 2,
            first_row: 3,
            rows: 37,
            columns: 20,
            out: sums,
        };
        let copy = Instruction::CopyBlock {
            x: sums,
            x_format: BlockFormat::F32,
            x_row_tiles: 2,
            x_row: 0,
            x_column: 0,
            out,
            out_format: BlockFormat::F32,
            out_row_tiles: 2,
            out_row: 0,
            out_column: 0,
            rows: 40,
            columns: 20,
        };
        vec![add, add, copy]
    })
}

#[test]
fn sums_grow_in_f32() {
    let built = accumulation();
    let [x, sums] = &built.inputs[..] else { panic!("two inputs") };
    let expected: Vec<f32> = (0..40 * 20)
        .map(|at| {
            let term = if at / 20 >= 3 { 0.25 * x[at] } else { 0.0 };
            sums[at] + term + term
        })
        .collect();
    assert_eq!(run(&built), [expected]);
}

#[test]
fn copies_move_rows_and_columns_and_round() {
    let (x, out) = ((40, 70, BlockFormat::F32), (33, 40, BlockFormat::Bf16));
    let mut built = built(&[x], &[out], |at| {
        let copy = |x_row, x_column, out_row, out_column, rows, columns| Instruction::CopyBlock {
            x: at[0],
            x_format: BlockFormat::F32,
            x_row_tiles: 2,
            x_row,
            x_column,
            out: at[1],
            out_format: BlockFormat::Bf16,
            out_row_tiles: 2,
            out_row,
            out_column,
            rows,
            columns,
        };
        vec![copy(7, 20, 0, 0, 33, 15), copy(0, 45, 0, 15, 33, 25)]
    });
    for value in &mut built.inputs[0] {
        *value *= 1.001;
    }
    let x = &built.inputs[0];
    let rounded = |row: usize, column: usize| bf16::from_f32(x[row * 70 + column]).to_f32();
    let expected: Vec<f32> = (0..33 * 40)
        .map(|at| match (at / 40, at % 40) {
            (row, column) if column < 15 => rounded(row + 7, column + 20),
            (row, column) => rounded(row, column + 30),
        })
        .collect();
    assert_eq!(run(&built), [expected]);
}
