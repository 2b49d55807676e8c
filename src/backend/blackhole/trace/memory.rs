//! What stands in DRAM between programs.

use std::collections::HashMap;

use crate::backend::blackhole::lowered::{BlockFormat, DramBuffer, DramTable};
use crate::backend::cpu::card::{Storage, storage};
use crate::program::{BufferId, IndexId, Op, Program, WeightId};

/// Rows of tables begin at multiples of this, as reads of DRAM have to.
pub const ROW_ALIGNMENT: usize = 64;

/// What the values of a DRAM buffer or table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A buffer of the program.
    Buffer(BufferId),
    /// A matrix of the checkpoint, row by row as it is there.
    Weight(WeightId),
    /// A list of the request, as one row of 32-bit words.
    Index(IndexId),
}

/// Places of everything that is neither a weight of products nor a vector: those are in the arena.
#[derive(Clone, Debug, Default)]
pub struct DramMap {
    pub buffers: Vec<DramBuffer>,
    /// Of each buffer.
    pub buffer_origins: Vec<Origin>,
    pub tables: Vec<DramTable>,
    /// Of each table.
    pub table_origins: Vec<Origin>,
    places: HashMap<Origin, Place>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Tiles(u32),
    Rows(u32),
}

impl DramMap {
    /// A buffer as tiles for every buffer of the program and for every weight that is added or copied; a table for pictures,
    /// which are cut into patches, for lists, and for embeddings, which are looked up.
    pub fn of(program: &Program) -> Self {
        let mut dram = Self::default();
        let ops = || program.stages.iter().flat_map(|stage| &stage.ops);
        for op in ops() {
            match op {
                Op::Patchify { x, .. } => {
                    let spec = &program.buffers[x.buffer.0];
                    dram.add_table(Origin::Buffer(x.buffer), &spec.name, spec.rows, 2 * spec.cols);
                }
                Op::Embed { table, .. } => {
                    let spec = &program.weights[table.0];
                    dram.add_table(Origin::Weight(*table), &spec.tensor, spec.rows, 2 * spec.cols);
                }
                _ => {}
            }
        }
        for (number, spec) in program.indices.iter().enumerate() {
            let (origin, name) = (Origin::Index(IndexId(number)), format!("{:?}", spec.input));
            dram.add_table(origin, &name, 1, 4 * spec.len);
        }
        let formats = storage(program);
        for (number, spec) in program.buffers.iter().enumerate() {
            let format = match formats[number] {
                Storage::Bf16 => BlockFormat::Bf16,
                Storage::F32 => BlockFormat::F32,
            };
            let origin = Origin::Buffer(BufferId(number));
            dram.add_buffer(origin, &spec.name, spec.rows, spec.cols, format);
        }
        for op in ops() {
            if let Op::AddWeight { weight, .. } | Op::CopyWeight { weight, .. } = op {
                let spec = &program.weights[weight.0];
                let origin = Origin::Weight(*weight);
                dram.add_buffer(origin, &spec.tensor, spec.rows, spec.cols, BlockFormat::Bf16);
            }
        }
        dram
    }

    fn add_table(&mut self, origin: Origin, name: &str, rows: usize, bytes: usize) {
        if self.places.contains_key(&origin) {
            return;
        }
        self.places.insert(origin, Place::Rows(self.tables.len() as u32));
        self.tables.push(DramTable {
            name: name.to_owned(),
            rows: rows as u32,
            row_bytes: bytes.next_multiple_of(ROW_ALIGNMENT) as u32,
        });
        self.table_origins.push(origin);
    }

    fn add_buffer(
        &mut self,
        origin: Origin,
        name: &str,
        rows: usize,
        columns: usize,
        format: BlockFormat,
    ) {
        if self.places.contains_key(&origin) {
            return;
        }
        self.places.insert(origin, Place::Tiles(self.buffers.len() as u32));
        let (rows, columns) = (rows as u32, columns as u32);
        self.buffers.push(DramBuffer { name: name.to_owned(), rows, columns, format });
        self.buffer_origins.push(origin);
    }

    /// Number of the buffer of tiles, unless it is a table.
    pub fn buffer(&self, origin: Origin) -> Option<u32> {
        match self.places.get(&origin) {
            Some(Place::Tiles(number)) => Some(*number),
            _ => None,
        }
    }

    /// Number of the table, unless it is a buffer of tiles.
    pub fn table(&self, origin: Origin) -> Option<u32> {
        match self.places.get(&origin) {
            Some(Place::Rows(number)) => Some(*number),
            _ => None,
        }
    }
}
