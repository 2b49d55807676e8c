//! A modulated layer norm whose columns lie on two owners; a hub puts their moments together.

use half::bf16;

use super::build::{Built, numbers, signal, wait};
use super::relay::{read, write};
use super::run;
use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::backend::blackhole::interpreter::Schedule;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};
use crate::backend::cpu::card::layer_norm;
use crate::backend::cpu::mat::{Mat, MatMut};
use crate::backend::cpu::norm::Scaling;

pub const OWNERS: [usize; 2] = [0, 1];
pub const HUB: usize = 2;
const OWNERS_AT: [Core; 2] = [Core::new(3, 0), Core::new(4, 0)];
const HUB_AT: Core = Core::new(0, 4);

const ROWS: u32 = 40;
const COLUMNS: [u32; 2] = [32, 24];
const WIDTH: u32 = 56;
const EPS: f32 = 1e-5;
const PASSES: u32 = 3;
/// Moments of all rows, and mean and factor.
const PAIRS: u32 = ROWS * 8;
/// Scale and shift of a pass in the memory of an owner.
const VECTORS: u32 = 128;

/// Of pass and column, scales first.
fn vectors() -> Vec<f32> {
    numbers(2, (PASSES * 2 * WIDTH) as usize)
}

/// Scale or shift of a pass.
fn vector(pass: u32, which: u32) -> Vec<f32> {
    let first = ((pass * 2 + which) * WIDTH) as usize;
    vectors()[first..][..WIDTH as usize].to_vec()
}

/// Scales and shifts of an owner's columns as they lie in its memory.
fn table(owner: usize) -> Vec<u8> {
    let first = owner * 32;
    let mut bytes = Vec::new();
    for (pass, which) in (0..PASSES).flat_map(|pass| [(pass, 0), (pass, 1)]) {
        let mut values = vector(pass, which)[first..][..COLUMNS[owner] as usize].to_vec();
        values.resize(32, 0.0);
        bytes.extend(values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()));
    }
    bytes
}

pub fn built() -> Built {
    let mut built = Built::new();
    let table_bytes = PASSES * VECTORS;
    for core in OWNERS_AT {
        built.core(
            core,
            &[("loaded", 0), ("moments out", 0), ("statistics", 0), ("done", 0)],
            &[
                ("table", table_bytes),
                ("x", 2 * 4096),
                ("moments", PAIRS),
                ("statistics", PAIRS),
                ("out", 2 * 2048),
            ],
        );
    }
    built.core(
        HUB_AT,
        &[("moments", 0), ("combined", 0)],
        &[("moments", 2 * PAIRS), ("statistics", PAIRS)],
    );
    built.buffer("x", ROWS, WIDTH, BlockFormat::F32);
    built.buffer("out", ROWS, WIDTH, BlockFormat::Bf16);
    let x = numbers(1, (ROWS * WIDTH) as usize);
    built.inputs.push(x.iter().map(|value| 3.0 + 1.7 * value).collect());
    let at = |built: &Built, core, name: &str| built.address(core, name);
    let (parts, combined) = (at(&built, HUB, "moments"), at(&built, HUB, "statistics"));
    let statistics = at(&built, OWNERS[0], "statistics");

    built.segment("load", 0, 1);
    for (owner, name) in OWNERS.into_iter().zip(OWNERS_AT) {
        let offset = built.banks[0].len() as u32;
        built.banks[0].extend(table(owner));
        let address = at(&built, owner, "table");
        let load = Instruction::ReadArena { bank: 0, offset, bytes: table_bytes, address };
        let x = at(&built, owner, "x");
        let tiles = read([0, owner as u32, 2, 2, 0, 4096, x, 4096]);
        built.push(owner, Engine::Mover, 0, &[load, tiles, signal(name, 0)]);
        built.push(owner, Engine::Compute, 0, &[wait(0, 1)]);
    }
    built.segment("norm", 0, PASSES);
    for (owner, name) in OWNERS.into_iter().zip(OWNERS_AT) {
        let (x, moments) = (at(&built, owner, "x"), at(&built, owner, "moments"));
        let (table, out) = (at(&built, owner, "table"), at(&built, owner, "out"));
        let (rows, columns, format) = (ROWS, COLUMNS[owner], BlockFormat::F32);
        let sums = Instruction::Moments { x, format, rows, columns, out: moments };
        let normalise = Instruction::Normalise {
            x,
            format,
            row_tiles: 2,
            rows,
            columns,
            moments: statistics,
            scale: Some(table),
            shift: Some(table + 64),
            vector_step: VECTORS,
            out,
        };
        built.push(owner, Engine::Compute, 1, &[sums, signal(name, 1)]);
        built.push(owner, Engine::Compute, 2, &[wait(2, 1), normalise, signal(name, 3)]);
        let send = Instruction::Send {
            address: moments,
            step: 0,
            count: 1,
            bytes: PAIRS,
            core: HUB_AT,
            target: parts + owner as u32 * PAIRS,
            target_step: 0,
        };
        built.push(owner, Engine::Mover, 1, &[wait(1, 1), send, signal(HUB_AT, 0)]);
        let back = write([1, owner as u32, 2, 2, 0, 2048, out, 2048]);
        built.push(owner, Engine::Mover, 2, &[wait(3, 1), back]);
    }
    let (count, rows, width, eps) = (2, ROWS, WIDTH, EPS);
    let combine =
        Instruction::Combine { parts, step: PAIRS, count, rows, width, eps, out: combined };
    built.push(HUB, Engine::Compute, 1, &[wait(0, 2), combine, signal(HUB_AT, 1)]);
    let [a, b] = OWNERS_AT;
    let (rectangle, noc) = (Rectangle::on(Noc::Noc0, a, b), Noc::Noc0);
    let multicast = Instruction::Multicast {
        address: combined,
        bytes: PAIRS,
        rectangle,
        noc,
        target: statistics,
    };
    let tell = Instruction::SignalAll { rectangle, noc, semaphore: 2, value: 1 };
    built.push(HUB, Engine::Mover, 1, &[wait(1, 1), multicast, tell]);
    built
}

#[test]
fn a_norm_over_cores_has_the_bits_of_the_kernel() {
    let built = built();
    let (rows, width) = (ROWS as usize, WIDTH as usize);
    let mut expected = vec![0.0; rows * width];
    let (scale, shift) = (vector(PASSES - 1, 0), vector(PASSES - 1, 1));
    layer_norm(
        Mat::new(&built.inputs[0], rows, width, width),
        Scaling::Modulated { scale: &scale, shift: &shift },
        EPS,
        MatMut::new(&mut expected, rows, width, width),
    );
    for value in &mut expected {
        *value = bf16::from_f32(*value).to_f32();
    }
    assert_eq!(run(&built), [expected]);
}

#[test]
fn a_norm_without_modulation_has_mean_zero() {
    let mut built = built();
    for segment in &mut built.program.segments {
        let steps = segment.streams.iter_mut().flat_map(|streams| &mut streams.0).flatten();
        for step in steps {
            if let Instruction::Normalise { scale, shift, .. } = &mut step.instruction {
                (*scale, *shift) = (None, None);
            }
        }
    }
    let out = built.run(&mut Schedule::round_robin()).unwrap().remove(0);
    for row in out.chunks_exact(WIDTH as usize) {
        let mean = row.iter().sum::<f32>() / WIDTH as f32;
        let square = row.iter().map(|value| value * value).sum::<f32>() / WIDTH as f32;
        assert!(mean.abs() < 5e-3 && (square - 1.0).abs() < 1e-2, "{mean} {square}");
    }
}
