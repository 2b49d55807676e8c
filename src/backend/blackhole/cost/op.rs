//! What one operation costs.

use serde::Serialize;

use super::cores::BANKS;
use super::label::label;
use super::product::{self, Bias};
use super::rates::Rates;
use super::vector::{self, Affine};
use super::work::{Place, Work};
use super::{attention, movement};
use crate::backend::blackhole::numerics::MathFidelity;
use crate::program::Op;

/// Floating-point operations of a product of two tiles.
const TILE_MATMUL_FLOPS: f64 = 2.0 * 32.0 * 32.0 * 32.0;

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// DRAM.
    Memory,
    /// The network on chip.
    Noc,
    /// The matrix engine and the vector unit of the busiest core.
    Arithmetic,
}

impl Bound {
    pub const ALL: [Self; 3] = [Self::Memory, Self::Noc, Self::Arithmetic];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Noc => "noc",
            Self::Arithmetic => "arithmetic",
        }
    }
}

/// What an operation costs. Times are seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpCost {
    /// The same for the same operation of every block.
    pub label: String,
    /// Whether it runs in the program of the operation before.
    pub joined: bool,
    /// Bytes that each DRAM bank delivers or takes.
    pub bank_bytes: [u64; BANKS],
    /// Of these, weights.
    pub weight_bytes: u64,
    /// Bytes that the busiest core takes in and gives out.
    pub noc_bytes: u64,
    /// Products of two tiles, on all cores together.
    pub tile_matmuls: u64,
    /// Instructions of the vector unit for all values of a tile, on all cores together.
    pub sfpu_passes: f64,
    /// Cores that compute, and the share of the busiest one in their work.
    pub cores: usize,
    pub busiest_share: f64,
    pub memory_s: f64,
    pub noc_s: f64,
    pub arithmetic_s: f64,
    /// The larger of DRAM and matrix engine if the products were spread over all cores to the last tile.
    pub rates_alone_s: f64,
    /// The larger of DRAM and matrix engine on the busiest core.
    pub whole_tiles_s: f64,
}

impl OpCost {
    /// DRAM, network and arithmetic work at the same time.
    pub fn total_s(&self) -> f64 {
        self.memory_s.max(self.noc_s).max(self.arithmetic_s)
    }

    pub fn bound(&self) -> Bound {
        if self.memory_s >= self.noc_s.max(self.arithmetic_s) {
            Bound::Memory
        } else if self.arithmetic_s >= self.noc_s {
            Bound::Arithmetic
        } else {
            Bound::Noc
        }
    }
}

/// Counts an operation; one that computes nothing costs nothing.
pub fn work(place: &Place<'_>, op: &Op) -> Work {
    match *op {
        Op::Linear { x, weight, bias, activation, out } => {
            let bias = bias.map_or(Bias::None, Bias::Weight);
            product::linear(place, x, weight, bias, activation, out)
        }
        Op::LinearBuffer { x, weight, activation, out, .. } => {
            product::linear(place, x, weight, Bias::Buffer, activation, out)
        }
        Op::LayerNorm { x, affine, modulation, out, .. } => {
            let affine = match (affine, modulation) {
                (Some((weight, bias)), _) => Affine::Weights(weight, bias),
                (None, Some(modulation)) => Affine::Modulation(modulation),
                (None, None) => Affine::None,
            };
            vector::layer_norm(place, x, affine, out)
        }
        Op::RmsNorm { x, weight, out, .. } => vector::rms_norm(place, x, weight, out),
        Op::Rope { x, cos, sin } => vector::rope(place, x, cos, sin),
        Op::Attention { q, k, v, shape, out } => attention::attention(place, [q, k, v], shape, out),
        Op::Embed { table, out, .. } => movement::embed(place, table, out),
        Op::GatherRows { x, out, .. } => movement::gather(place, x, out),
        Op::ScatterRows { x, out, .. } => movement::rows(place, x, out),
        Op::ScatterAddRows { x, out, .. } => movement::add_rows(place, x, out),
        Op::Reshape { x, out } | Op::SpaceToDepth { x, out, .. } => movement::rows(place, x, out),
        Op::Copy { x, out } => movement::copy(place, x, out),
        Op::CopyWeight { weight, out } => movement::copy_weight(place, weight, out),
        Op::Add { x, out } => vector::add(place, x, out),
        Op::AddWeight { weight, out } => vector::add_weight(place, weight, out),
        Op::AddScaled { x, out, .. } => vector::add(place, x, out),
        Op::Map { x, activation, out } => vector::map(place, x, activation, out),
        Op::SiluMul { gate, up, out } => vector::silu_mul(place, gate, up, out),
        Op::Patchify { x, grid, out } => movement::patchify(place, x, grid, out),
        Op::Tap { .. } => Work::default(),
    }
}

/// The times of what was counted.
///
/// The matrix engine reaches a share of its rate, since operands do not come faster; in the time that this leaves, the
/// vector unit works. Both take their instructions from one thread, one after the other (tt-metal#55759), so that what
/// does not fit into that time is added.
pub fn cost(
    place: &Place<'_>,
    op: &Op,
    work: &Work,
    fidelity: MathFidelity,
    joined: bool,
) -> OpCost {
    let rates = place.rates;
    let (total, busiest) = (work.spread.total() as f64, work.spread.busiest() as f64);
    let engine_s = |products: f64| products * tile_matmul_s(rates, fidelity);
    let products = work.tile_matmuls as f64;
    let product_s = engine_s(busiest * products);
    let vector_s = rates.passes(busiest * work.vector_passes);
    let reached_s = product_s / rates.matrix_reached;
    let even_s = engine_s(total * products) / rates.matrix_reached / place.execution.cores() as f64;
    let memory_s = work.dram.seconds(rates);
    OpCost {
        label: label(place.program, op),
        joined,
        bank_bytes: work.dram.banks(),
        weight_bytes: work.weight_bytes,
        noc_bytes: work.noc_bytes,
        tile_matmuls: work.spread.total() * work.tile_matmuls,
        sfpu_passes: total * work.vector_passes,
        cores: work.spread.cores(),
        busiest_share: if total > 0.0 { busiest / total } else { 0.0 },
        memory_s,
        noc_s: noc_s(rates, work),
        arithmetic_s: reached_s.max(product_s + vector_s),
        rates_alone_s: memory_s.max(even_s),
        whole_tiles_s: memory_s.max(reached_s),
    }
}

/// Seconds of a product of two tiles at the engine's full rate.
fn tile_matmul_s(rates: &Rates, fidelity: MathFidelity) -> f64 {
    let passes = fidelity.passes() as f64 / MathFidelity::HiFi2.passes() as f64;
    passes * TILE_MATMUL_FLOPS / (rates.matrix * 1e12)
}

fn noc_s(rates: &Rates, work: &Work) -> f64 {
    let cycles =
        (work.noc_bytes as f64 / rates.noc_width).max(work.noc_requests as f64 * rates.noc_request);
    rates.cycles(cycles) + f64::from(work.handovers) * rates.noc_handover * 1e-6
}
