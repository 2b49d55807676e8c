//! zstd and lz4, never beyond a limit.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::error::BagError;
use super::limits::{MAX_UNPACKED_FILE_BYTES, RESERVED_DISK_BYTES};
use crate::disk::free_bytes;

/// What every frame of zstd begins with.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How much is unpacked at once.
const STEP_BYTES: usize = 128 << 10;

/// A compression that bags use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Zstd,
    Lz4,
}

/// What came out.
pub(super) struct Unpacked {
    pub bytes: Vec<u8>,
    /// Why it ended before the packed data did, if so; `bytes` is what came before.
    pub broken: Option<String>,
}

/// Unpacks `packed` until it ends, breaks, or would be longer than `limit`, which counts as broken.
pub(super) fn unpack(packing: Packing, packed: &[u8], limit: u64) -> Unpacked {
    let mut unpacked = Unpacked { bytes: Vec::new(), broken: None };
    let copied = match packing {
        Packing::Zstd => zstd::stream::read::Decoder::with_buffer(packed)
            .and_then(|decoder| copy_up_to(decoder, &mut unpacked.bytes, limit)),
        Packing::Lz4 => {
            let decoder = lz4_flex::frame::FrameDecoder::new(packed);
            copy_up_to(decoder, &mut unpacked.bytes, limit)
        }
    };
    unpacked.broken = match copied {
        Ok(Copied::All) => None,
        Ok(Copied::Limit) => Some(format!("it unpacks to more than {limit} bytes")),
        Err(error) => Some(error.to_string()),
    };
    unpacked
}

/// A bag file that is compressed as a whole, unpacked beside the other temporary files of this machine.
pub(super) struct UnpackedFile {
    pub file: NamedTempFile,
    /// Set when the packed file ends too early; what came before is in `file`.
    pub broken: Option<String>,
}

/// Unpacks a file of zstd.
///
/// # Errors
/// A file that cannot be read, or more bytes than the disk or [`MAX_UNPACKED_FILE_BYTES`] have room for.
pub(super) fn unpack_file(path: &Path) -> Result<UnpackedFile, BagError> {
    let packed = File::open(path).map_err(BagError::io(path))?;
    let dir = std::env::temp_dir();
    let free = free_bytes(&dir).map_err(BagError::io(&dir))?;
    let limit = free.saturating_sub(RESERVED_DISK_BYTES).min(MAX_UNPACKED_FILE_BYTES);
    let mut file =
        NamedTempFile::with_prefix_in("gr00t_blackhole-bag-", &dir).map_err(BagError::io(&dir))?;
    let decoder = zstd::stream::read::Decoder::new(packed).map_err(BagError::io(path))?;
    let broken = match copy_up_to(decoder, &mut file, limit) {
        Ok(Copied::All) => None,
        Ok(Copied::Limit) => return Err(BagError::NoRoom { path: path.into(), dir, limit }),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            return Err(BagError::Io { path: dir, error });
        }
        Err(error) => Some(error.to_string()),
    };
    file.flush().map_err(BagError::io(path))?;
    Ok(UnpackedFile { file, broken })
}

enum Copied {
    All,
    Limit,
}

/// Copies until `from` ends; everything that came before an error is in `to`.
fn copy_up_to(mut from: impl Read, to: &mut impl Write, limit: u64) -> io::Result<Copied> {
    let mut step = vec![0; STEP_BYTES];
    let mut copied = 0;
    loop {
        let length = match from.read(&mut step) {
            Ok(0) => return Ok(Copied::All),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        copied += length as u64;
        if copied > limit {
            return Ok(Copied::Limit);
        }
        to.write_all(&step[..length])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_bomb_goes_no_further_than_its_limit() {
        let zeros = vec![0; 8 << 20];
        for (packing, packed) in
            [(Packing::Zstd, zstd::encode_all(&zeros[..], 3).unwrap()), (Packing::Lz4, lz4(&zeros))]
        {
            let all = unpack(packing, &packed, 8 << 20);
            assert!(all.broken.is_none() && all.bytes == zeros, "{packing:?}");
            let stopped = unpack(packing, &packed, 3 << 20);
            assert!(stopped.broken.unwrap().contains("more than 3145728 bytes"), "{packing:?}");
            assert!(stopped.bytes.len() <= 3 << 20);
        }
    }

    #[test]
    fn what_comes_before_a_cut_is_a_prefix() {
        let bytes: Vec<u8> =
            (0..2_000_000u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
        for (packing, packed) in
            [(Packing::Zstd, zstd::encode_all(&bytes[..], 1).unwrap()), (Packing::Lz4, lz4(&bytes))]
        {
            let mut longest = 0;
            for tenth in 0..10 {
                let cut = unpack(packing, &packed[..packed.len() * tenth / 10], u64::MAX);
                assert!(tenth == 0 || cut.broken.is_some(), "{packing:?} {tenth}");
                assert!(bytes.starts_with(&cut.bytes), "{packing:?} {tenth}");
                longest = longest.max(cut.bytes.len());
            }
            assert!(longest > bytes.len() / 2, "{packing:?} {longest}");
        }
    }
}
