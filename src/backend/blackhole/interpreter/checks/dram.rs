//! What is read from DRAM and written to it.

use crate::backend::blackhole::grid::L1_ALIGNMENT;
use crate::backend::blackhole::interpreter::ArenaBytes;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::lowered::{CoreProgram, Instruction, Lowered, PACKET_BYTES};

pub fn check(
    program: &Lowered,
    banks: &dyn ArenaBytes,
    at: At<'_>,
    core: &CoreProgram,
    instruction: &Instruction,
) -> Result<(), Fault> {
    match *instruction {
        Instruction::ReadTiles { buffer, tile, tile_step, count, offset, bytes, .. }
        | Instruction::WriteTiles { buffer, tile, tile_step, count, offset, bytes, .. } => {
            let last = u64::from(tile) + u64::from(tile_step) * u64::from(count.saturating_sub(1));
            check_tiles(program, at, buffer, last, offset, bytes)
        }
        Instruction::ReadRows { table, list, first, count, offset, bytes, .. } => {
            let last = u64::from(first) + u64::from(count.saturating_sub(1));
            check_rows(program, at, table, list.is_none().then_some(last), offset, bytes)
        }
        Instruction::ReadArena { bank, offset, bytes, .. } => {
            check_bank(banks, at, bank, offset, bytes)
        }
        Instruction::StreamPacket { offset, bytes, .. } => {
            let Some(bank) = core.bank else {
                return Err(Fault::NoReader { place: at.place() });
            };
            check_packet(banks, at, u32::from(bank), offset, bytes)
        }
        Instruction::LoadPacket { bank, offset, bytes } => {
            check_packet(banks, at, bank, offset, bytes)
        }
        _ => Ok(()),
    }
}

fn check_tiles(
    program: &Lowered,
    at: At<'_>,
    buffer: u32,
    last: u64,
    offset: u32,
    bytes: u32,
) -> Result<(), Fault> {
    let count = program.buffers.len();
    let Some(spec) = program.buffers.get(buffer as usize) else {
        return Err(Fault::NoBuffer { place: at.place(), buffer, count });
    };
    let (buffer, tiles, tile_bytes) = (spec.name.clone(), spec.tiles(), spec.format.tile_bytes());
    if last >= u64::from(tiles) {
        return Err(Fault::NoTile { place: at.place(), buffer, tile: last, tiles });
    }
    if !offset.is_multiple_of(L1_ALIGNMENT) {
        let (address, alignment) = (u64::from(offset), L1_ALIGNMENT);
        return Err(Fault::Misaligned { place: at.place(), address, alignment });
    }
    if u64::from(offset) + u64::from(bytes) > u64::from(tile_bytes) {
        return Err(Fault::TilePart { place: at.place(), buffer, offset, bytes, tile_bytes });
    }
    Ok(())
}

/// `last` is the number of the last row, if that is known.
fn check_rows(
    program: &Lowered,
    at: At<'_>,
    table: u32,
    last: Option<u64>,
    offset: u32,
    bytes: u32,
) -> Result<(), Fault> {
    let count = program.tables.len();
    let Some(spec) = program.tables.get(table as usize) else {
        return Err(Fault::NoTable { place: at.place(), table, count });
    };
    let (table, rows, row_bytes) = (spec.name.clone(), spec.rows, spec.row_bytes);
    if let Some(row) = last.filter(|last| *last >= u64::from(rows)) {
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        return Err(Fault::NoRow { place: at.place(), table, row, rows });
    }
    if u64::from(offset) + u64::from(bytes) > u64::from(row_bytes) {
        return Err(Fault::RowPart { place: at.place(), table, offset, bytes, row_bytes });
    }
    Ok(())
}

fn check_packet(
    banks: &dyn ArenaBytes,
    at: At<'_>,
    bank: u32,
    offset: u32,
    bytes: u32,
) -> Result<(), Fault> {
    if bytes > PACKET_BYTES {
        return Err(Fault::PacketBytes { place: at.place(), bytes });
    }
    check_bank(banks, at, bank, offset, bytes)
}

fn check_bank(
    banks: &dyn ArenaBytes,
    at: At<'_>,
    bank: u32,
    offset: u32,
    bytes: u32,
) -> Result<(), Fault> {
    match banks.bytes(bank, offset, bytes) {
        Some(_) => Ok(()),
        None => Err(Fault::OutsideBank { place: at.place(), bank, offset, bytes }),
    }
}
