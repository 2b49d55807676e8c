//! What an operation has to do, counted from shapes.

use super::cores::Execution;
use super::dram::Dram;
use super::launches::Launch;
use super::placement::{Placement, Position};
use super::rates::Rates;
use super::spread::Spread;
use crate::backend::blackhole::numerics::tile::{FACE, SIDE};
use crate::backend::blackhole::numerics::{DtypePolicy, TileFormat};
use crate::program::{Program, View, WeightId, WeightSpec};

/// Bytes of a value between operations: bf16. Sums that blocks add to are f32, but do not leave their core.
pub const VALUE_BYTES: u64 = 2;
/// Bytes of the piece in which a vector is read: 32 values.
const VECTOR_PIECE_BYTES: u64 = SIDE as u64 * VALUE_BYTES;

/// Tiles along `values` rows or columns.
pub fn tiles(values: usize) -> u64 {
    values.div_ceil(SIDE) as u64
}

/// Tiles of a view, whose first row and column begin a tile.
pub fn view_tiles(view: View) -> u64 {
    tiles(view.rows) * tiles(view.cols)
}

/// Bytes of a tile of values.
pub fn value_tile_bytes() -> u64 {
    TileFormat::Bf16.tile_bytes() as u64
}

/// What an operation has to do. Products and passes are those of every unit of its [`Spread`].
#[derive(Clone, Debug, Default)]
pub struct Work {
    pub dram: Dram,
    /// Bytes of weights among those of DRAM.
    pub weight_bytes: u64,
    pub spread: Spread,
    /// The core of the first of its loads.
    pub first_core: usize,
    /// Products of two tiles for each unit.
    pub tile_matmuls: u64,
    /// Passes of the vector unit for each unit.
    pub vector_passes: f64,
    /// Bytes that the busiest core takes in and gives out.
    pub noc_bytes: u64,
    /// Requests that the busiest core makes for them.
    pub noc_requests: u64,
    /// How often in a row cores have to wait for others' results.
    pub handovers: u32,
}

/// Where an operation stands.
pub struct Place<'a> {
    pub program: &'a Program,
    pub position: Position,
    pub execution: Execution,
    pub placement: &'a Placement,
    /// The program that the operation is part of, without it; empty if it begins one.
    pub launch: &'a Launch,
    pub policy: DtypePolicy,
    pub rates: &'a Rates,
}

impl Work {
    /// Reads a view: from DRAM if it lies there. `core_tiles` of its tiles go to the busiest core.
    pub fn read(&mut self, place: &Place<'_>, view: View, core_tiles: u64) {
        if place.placement.is_read_from_dram(place.position, view) {
            self.move_view(view);
        }
        if !place.launch.has_written(view) {
            self.transfer(core_tiles, value_tile_bytes());
        }
    }

    /// Writes a view, to DRAM if another stage needs it; `core_tiles` of its tiles come from the busiest core.
    pub fn write(&mut self, place: &Place<'_>, view: View, core_tiles: u64) {
        if place.placement.is_written_to_dram(place.position, view) {
            self.move_view(view);
        }
        if !place.launch.has_written(view) {
            self.transfer(core_tiles, value_tile_bytes());
        }
    }

    /// Reads a vector, of which `core_tiles` pieces go to every core.
    pub fn read_vector(&mut self, cols: usize, core_tiles: u64) {
        self.dram.add(TileFormat::Bf16, tiles(cols), VECTOR_PIECE_BYTES);
        self.transfer(core_tiles, VECTOR_PIECE_BYTES);
    }

    /// Reads a vector of the checkpoint.
    pub fn read_weight_vector(&mut self, spec: &WeightSpec, core_tiles: u64) {
        self.weight_bytes += tiles(spec.cols) * VECTOR_PIECE_BYTES;
        self.read_vector(spec.cols, core_tiles);
    }

    /// Reads `rows` rows of a matrix of the checkpoint as tiles.
    pub fn read_weight_rows(&mut self, spec: &WeightSpec, rows: usize, core_tiles: u64) {
        let count = tiles(rows) * tiles(spec.cols);
        self.weight_bytes += count * value_tile_bytes();
        self.dram.add(TileFormat::Bf16, count, value_tile_bytes());
        self.transfer(core_tiles, value_tile_bytes());
    }

    /// Reads a whole matrix that rows are multiplied by, in its policy's format.
    pub fn read_matrix(&mut self, place: &Place<'_>, spec: &WeightSpec, core_tiles: u64) {
        let format = place.policy.format(&spec.tensor);
        let bytes = format.tile_bytes() as u64;
        let count = tiles(spec.rows) * tiles(spec.cols);
        self.weight_bytes += count * bytes;
        self.dram.add(format, count, bytes);
        self.transfer(core_tiles, bytes);
    }

    /// So many pieces through the network, to or from the busiest core.
    pub fn transfer(&mut self, pieces: u64, piece_bytes: u64) {
        self.noc_requests += pieces;
        self.noc_bytes += pieces * piece_bytes;
    }

    /// Moves rows that keep no tile together: in pieces of the 16 values that a face has side by side.
    pub fn move_rows(&mut self, view: View, cores: usize) {
        let pieces = (view.rows * view.cols.div_ceil(FACE)) as u64;
        self.transfer(pieces.div_ceil(cores as u64), FACE as u64 * VALUE_BYTES);
    }

    /// All of a view from or to DRAM.
    pub fn move_view(&mut self, view: View) {
        if view.rows == 1 {
            self.dram.add(TileFormat::Bf16, tiles(view.cols), VECTOR_PIECE_BYTES);
        } else {
            self.dram.add(TileFormat::Bf16, view_tiles(view), value_tile_bytes());
        }
    }
}

impl Place<'_> {
    pub fn weight(&self, id: WeightId) -> &WeightSpec {
        &self.program.weights[id.0]
    }
}
