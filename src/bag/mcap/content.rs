//! The records of a chunk or a run, unpacked and checked.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::records::ChunkHead;
use super::scan::{Block, Kind};
use crate::bag::error::BagError;
use crate::bag::unpack::{Packing, unpack};

/// Why there is none.
pub(super) enum Fault {
    /// The bytes are not what was written.
    Damage(String),
    Other(BagError),
}

/// The records of `block`; of a chunk that was cut off, those that are left.
pub(super) fn read(path: &Path, file: &File, block: &Block) -> Result<Vec<u8>, Fault> {
    let mut bytes = vec![0; block.len as usize];
    file.read_exact_at(&mut bytes, block.offset)
        .map_err(|error| Fault::Other(BagError::io(path)(error)))?;
    match &block.kind {
        Kind::Run => Ok(bytes),
        Kind::Chunk(header) => unpacked(header, bytes, true),
        Kind::CutChunk(header) => unpacked(header, bytes, false),
    }
}

fn unpacked(header: &ChunkHead, packed: Vec<u8>, whole: bool) -> Result<Vec<u8>, Fault> {
    let packing = match header.compression.as_str() {
        "" => None,
        "zstd" => Some(Packing::Zstd),
        "lz4" => Some(Packing::Lz4),
        other => {
            return Err(Fault::Damage(format!("chunks of compression {other:?} are not read")));
        }
    };
    let bytes = match packing {
        None => packed,
        Some(packing) => {
            let unpacked = unpack(packing, &packed, header.unpacked_len);
            match unpacked.broken {
                Some(reason) if whole => return Err(Fault::Damage(reason)),
                _ => unpacked.bytes,
            }
        }
    };
    if whole {
        check(header, &bytes).map_err(Fault::Damage)?;
    }
    Ok(bytes)
}

fn check(header: &ChunkHead, bytes: &[u8]) -> Result<(), String> {
    let (found, stated) = (bytes.len() as u64, header.unpacked_len);
    if found != stated {
        return Err(format!("a chunk has {found} bytes in place of {stated}"));
    }
    let crc = crc32fast::hash(bytes);
    if header.crc != 0 && crc != header.crc {
        let stated = header.crc;
        return Err(format!("the checksum of a chunk is {crc:08x} in place of {stated:08x}"));
    }
    Ok(())
}
