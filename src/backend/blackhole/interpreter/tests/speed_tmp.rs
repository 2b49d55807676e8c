use super::build::*;
use super::relay::read;
use crate::backend::blackhole::grid::*;
use crate::backend::blackhole::interpreter::*;
use crate::backend::blackhole::lowered::*;
use crate::backend::blackhole::numerics::*;
use crate::program::Activation;

#[test]
fn speed() {
    let mut built = Built::new();
    let at = Core::new(1, 0);
    built.core(at, &[("packets", 0), ("freed", 4), ("loaded", 0)], &[("ring", 4 * PACKET_BYTES), ("x", 2 * 48 * 2048), ("out", 4096)]);
    built.ring(0, "ring", 4);
    built.program.cores[0].map.regions.last_mut().unwrap().bytes = 1_000_000;
    built.buffer("x", 51, 1536, BlockFormat::Bf16);
    built.inputs.push(numbers(1, 51 * 1536));
    let w: Vec<half::bf16> = numbers(2, 1536 * 32).into_iter().map(half::bf16::from_f32).collect();
    let mut packed = vec![0; 48 * 2048];
    pack_matrix(MatrixView::new(&w, 1536, 32, 32).unwrap(), TileFormat::Bf16, &mut packed, &|_, _| {}).unwrap();
    built.banks[0] = packed;
    let (x, out) = (built.address(0, "x"), built.address(0, "out"));
    built.segment("load", 0, 1);
    for row in 0..2 { built.push(0, Engine::Mover, 0, &[read([0, row * 48, 1, 48, 0, 2048, x + row * 2048, 4096])]); }
    built.push(0, Engine::Mover, 0, &[signal(at, 2)]);
    built.push(0, Engine::Compute, 0, &[wait(2, 1)]);
    built.segment("s", 0, 576);
    for p in 0..6 { built.push(0, Engine::Mover, 0, &[Instruction::LoadPacket { bank: 0, offset: p * PACKET_BYTES, bytes: PACKET_BYTES }]); }
    built.push(0, Engine::Compute, 0, &[Instruction::Matmul { x, row_tiles: 2, first_row: 0, rows: 51, inputs: 1536, columns: 32, weights: TileFormat::Bf16, bias: None, vector_step: 0, activation: Activation::Identity, out, out_format: BlockFormat::Bf16, x_format: BlockFormat::Bf16 }, Instruction::EndStream {}]);
    let mut m = built.machine().unwrap();
    let t = std::time::Instant::now();
    m.run(&mut Schedule::round_robin()).unwrap();
    eprintln!("SPEED {:?}", t.elapsed());
    let mut m = built.machine().unwrap();
    let t = std::time::Instant::now();
    m.run(&mut Schedule::seeded(1)).unwrap();
    eprintln!("SPEED seeded {:?}", t.elapsed());
}
