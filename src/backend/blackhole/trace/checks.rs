//! What holds for every program, whoever wrote it: each tile of the result is written once, and no core looks at a tile that
//! another one writes.

use std::collections::HashMap;

use super::geometry::{Area, TileRange};
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::{Instruction, Lowered};

/// A program that does not keep to its tiles.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TileFault {
    #[error("core {core} writes tile {tile} of '{buffer}', which is no part of the result")]
    Foreign { core: Core, buffer: String, tile: u32 },
    #[error("cores {} and {} write tile {tile} of '{buffer}'", cores[0], cores[1])]
    Twice { cores: [Core; 2], buffer: String, tile: u32 },
    #[error("no core writes tile {tile} of '{buffer}', which is part of the result")]
    Missing { buffer: String, tile: u32 },
    #[error("core {reader} reads tile {tile} of '{buffer}', which core {writer} writes")]
    Race { reader: Core, writer: Core, buffer: String, tile: u32 },
}

/// A transfer of tiles.
struct Transfer {
    core: Core,
    writes: bool,
    buffer: u32,
    tiles: Vec<u32>,
}

/// Checks a program whose result is `out`, or which writes nothing.
pub fn check(program: &Lowered, out: Option<Area>) -> Result<(), TileFault> {
    let name = |buffer: u32| {
        let known = program.buffers.get(buffer as usize);
        known.map_or_else(|| format!("buffer {buffer}"), |buffer| buffer.name.clone())
    };
    let expected = out.map_or(Vec::new(), |out| tiles_of(program, out));
    let is_expected = |transfer: &Transfer, tile: u32| {
        out.is_some_and(|out| out.buffer == transfer.buffer)
            && expected.binary_search(&tile).is_ok()
    };
    let mut writers: HashMap<u32, Core> = HashMap::new();
    for transfer in transfers(program).filter(|transfer| transfer.writes) {
        let (core, buffer) = (transfer.core, name(transfer.buffer));
        for tile in &transfer.tiles {
            if !is_expected(&transfer, *tile) {
                return Err(TileFault::Foreign { core, buffer, tile: *tile });
            }
            if let Some(other) = writers.insert(*tile, core) {
                return Err(TileFault::Twice { cores: [other, core], buffer, tile: *tile });
            }
        }
    }
    let Some(out) = out else { return Ok(()) };
    if let Some(tile) = expected.iter().find(|tile| !writers.contains_key(tile)) {
        return Err(TileFault::Missing { buffer: name(out.buffer), tile: *tile });
    }
    let reads = transfers(program).filter(|transfer| !transfer.writes);
    for Transfer { core: reader, tiles, .. } in reads.filter(|read| read.buffer == out.buffer) {
        for tile in tiles {
            if let Some(writer) = writers.get(&tile).copied().filter(|writer| *writer != reader) {
                let buffer = name(out.buffer);
                return Err(TileFault::Race { reader, writer, buffer, tile });
            }
        }
    }
    Ok(())
}

/// Numbers of the tiles of an area, ascending.
fn tiles_of(program: &Lowered, area: Area) -> Vec<u32> {
    let across = program.buffers[area.buffer as usize].column_tiles() as usize;
    let number = |tile: TileRange| (tile.row * across + tile.column) as u32;
    TileRange::covering(area).each().map(number).collect()
}

fn transfers(program: &Lowered) -> impl Iterator<Item = Transfer> {
    let streams =
        program.segments.iter().flat_map(|segment| program.cores.iter().zip(&segment.streams));
    let steps = streams.flat_map(|(core, streams)| {
        streams.0.iter().flatten().map(|step| (core.core, step.instruction))
    });
    steps.filter_map(|(core, instruction)| match instruction {
        Instruction::ReadTiles { buffer, tile, tile_step, count, .. } => {
            let tiles = (0..count).map(|number| tile + number * tile_step).collect();
            Some(Transfer { core, writes: false, buffer, tiles })
        }
        Instruction::WriteTiles { buffer, tile, tile_step, count, .. } => {
            let tiles = (0..count).map(|number| tile + number * tile_step).collect();
            Some(Transfer { core, writes: true, buffer, tiles })
        }
        _ => None,
    })
}
