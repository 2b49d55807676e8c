//! Tiles to matrices.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::block::{self, BFP4_MAGNITUDE, BFP8_MAGNITUDE, Block};
use super::element::Element;
use super::error::NumericsError;
use super::format::{EXPONENT_BYTES, TileFormat};
use super::tile::{FACE, FaceRow, SIDE, face_row};

/// Unpacks `packed` into `target`, `[rows, cols]` without gaps, on all threads of the current rayon pool. Every value
/// that a tile can hold is both a bf16 and an f32.
pub fn unpack_matrix<T: Element>(
    packed: &[u8],
    format: TileFormat,
    rows: usize,
    cols: usize,
    target: &mut [T],
) -> Result<(), NumericsError> {
    format.check_bytes(rows, cols, packed.len())?;
    let needed = rows.checked_mul(cols).ok_or(NumericsError::TooLarge { rows, cols })?;
    let found = target.len();
    if found != needed {
        return Err(NumericsError::Values { rows, cols, stride: cols, needed, found });
    }
    if target.is_empty() {
        return Ok(());
    }
    let tile_rows = packed.par_chunks(cols.div_ceil(SIDE) * format.tile_bytes());
    tile_rows.zip(target.par_chunks_mut(SIDE * cols)).for_each(|(packed, target)| {
        Arch::new().dispatch(UnpackTileRow { packed, format, cols, target });
    });
    Ok(())
}

/// One row of tiles; `target` holds the up to 32 rows of its values.
struct UnpackTileRow<'a, T> {
    packed: &'a [u8],
    format: TileFormat,
    cols: usize,
    target: &'a mut [T],
}

impl<T: Element> WithSimd for UnpackTileRow<'_, T> {
    type Output = ();

    #[expect(
        clippy::redundant_closure,
        reason = "a function is called through another one, which is compiled for the oldest processors"
    )]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match self.format {
            TileFormat::Bf16 => self.unpack(
                #[inline(always)]
                |tile, place| bf16_row(tile, place),
            ),
            TileFormat::Bfp8B => self.unpack(
                #[inline(always)]
                |tile, place| bfp8_row(tile, place),
            ),
            TileFormat::Bfp4B => self.unpack(
                #[inline(always)]
                |tile, place| bfp4_row(tile, place),
            ),
        }
    }
}

impl<T: Element> UnpackTileRow<'_, T> {
    /// `values` takes a tile and the number of a row of its faces.
    #[inline(always)]
    fn unpack(self, values: impl Fn(&[u8], usize) -> FaceRow<u32>) {
        for (index, tile) in self.packed.chunks_exact(self.format.tile_bytes()).enumerate() {
            for (row, target) in self.target.chunks_exact_mut(self.cols).enumerate() {
                let target = &mut target[index * SIDE..];
                for (side, target) in target.chunks_mut(FACE).take(2).enumerate() {
                    let values = values(tile, face_row(row, side));
                    // All but the last columns: a loop of known length becomes vector code.
                    if let Some(target) = target.first_chunk_mut::<FACE>() {
                        for (target, bits) in target.iter_mut().zip(values) {
                            *target = T::from_f32_bits(bits);
                        }
                    } else {
                        for (target, bits) in target.iter_mut().zip(values) {
                            *target = T::from_f32_bits(bits);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn bf16_row(tile: &[u8], place: usize) -> FaceRow<u32> {
    let (values, _) = tile[place * 2 * FACE..].as_chunks();
    let mut bits = [0; FACE];
    for (bits, value) in bits.iter_mut().zip(values) {
        *bits = u32::from(u16::from_le_bytes(*value)) << 16;
    }
    bits
}

#[inline(always)]
fn bfp8_row(tile: &[u8], place: usize) -> FaceRow<u32> {
    let (codes, _) = tile[EXPONENT_BYTES..].as_chunks();
    block::to_f32_bits::<BFP8_MAGNITUDE>(&Block { exponent: tile[place], codes: codes[place] })
}

#[inline(always)]
fn bfp4_row(tile: &[u8], place: usize) -> FaceRow<u32> {
    let (pairs, _) = tile[EXPONENT_BYTES..].as_chunks::<{ FACE / 2 }>();
    let mut codes = [0; FACE];
    for (codes, pair) in codes.chunks_exact_mut(2).zip(&pairs[place]) {
        codes[0] = pair & 0xf;
        codes[1] = pair >> 4;
    }
    block::to_f32_bits::<BFP4_MAGNITUDE>(&Block { exponent: tile[place], codes })
}
