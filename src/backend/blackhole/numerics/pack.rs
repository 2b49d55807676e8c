//! Matrices to tiles.

use std::sync::atomic::{AtomicU64, Ordering};

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::block::{BFP4_MAGNITUDE, BFP8_MAGNITUDE};
use super::element::Element;
use super::error::NumericsError;
use super::format::{EXPONENT_BYTES, TileFormat};
use super::tile::{FACE, FaceRow, SIDE, TileRow, face_row};
use super::view::{MatrixView, Scratch};

/// Gets the number of tiles that are packed and of all that will be, from any thread.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Rows of tiles that are packed side by side from a transposed view, whose stored rows hold one value of each of their
/// rows: a stored row is then read for 256 bytes of bf16, not 64, before the next one.
const TURNED_TILE_ROWS: usize = 4;

/// Packs `matrix` into `target`, which has to be of [`TileFormat::matrix_bytes`], on all threads of the current rayon
/// pool.
pub fn pack_matrix<T: Element>(
    matrix: MatrixView<'_, T>,
    format: TileFormat,
    target: &mut [u8],
    progress: Progress<'_>,
) -> Result<(), NumericsError> {
    format.check_bytes(matrix.rows(), matrix.cols(), target.len())?;
    if target.is_empty() {
        return Ok(());
    }
    let total = (target.len() / format.tile_bytes()) as u64;
    let done = AtomicU64::new(0);
    let tile_rows = if matrix.is_transposed() { TURNED_TILE_ROWS } else { 1 };
    let band = tile_rows * tile_row_bytes(&matrix, format);
    target.par_chunks_mut(band).enumerate().for_each(|(index, target)| {
        let tiles = (target.len() / format.tile_bytes()) as u64;
        let first = index * tile_rows * SIDE;
        Arch::new().dispatch(PackTileRows { matrix, format, first, target });
        progress(done.fetch_add(tiles, Ordering::Relaxed) + tiles, total);
    });
    Ok(())
}

/// As [`pack_matrix`], on this thread alone: for blocks so small that sharing them out costs more than it gains.
pub fn pack_block<T: Element>(
    matrix: MatrixView<'_, T>,
    format: TileFormat,
    target: &mut [u8],
) -> Result<(), NumericsError> {
    format.check_bytes(matrix.rows(), matrix.cols(), target.len())?;
    if !target.is_empty() {
        Arch::new().dispatch(PackTileRows { matrix, format, first: 0, target });
    }
    Ok(())
}

fn tile_row_bytes<T: Element>(matrix: &MatrixView<'_, T>, format: TileFormat) -> usize {
    matrix.cols().div_ceil(SIDE) * format.tile_bytes()
}

/// Rows of tiles from row `first` of the matrix on, as many as `target` has room for.
struct PackTileRows<'a, T> {
    matrix: MatrixView<'a, T>,
    format: TileFormat,
    first: usize,
    target: &'a mut [u8],
}

impl<T: Element> WithSimd for PackTileRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        // One loop each, so that the choice is not made per tile. A function in place of a closure would be called through
        // another one, which is compiled for the oldest processors.
        match self.format {
            TileFormat::Bf16 => self.pack(
                #[inline(always)]
                |rows, target| pack_bf16(rows, target),
            ),
            TileFormat::Bfp8B => self.pack(
                #[inline(always)]
                |rows, target| pack_bfp8(rows, target),
            ),
            TileFormat::Bfp4B => self.pack(
                #[inline(always)]
                |rows, target| pack_bfp4(rows, target),
            ),
        }
    }
}

impl<T: Element> PackTileRows<'_, T> {
    #[inline(always)]
    fn pack(self, tile: impl Fn(&[&TileRow<T>; SIDE], &mut [u8])) {
        let mut scratch = Scratch::new();
        let tile_bytes = self.format.tile_bytes();
        let row_bytes = tile_row_bytes(&self.matrix, self.format);
        for index in 0..row_bytes / tile_bytes {
            for (row, target) in self.target.chunks_exact_mut(row_bytes).enumerate() {
                let (row, column) = (self.first + row * SIDE, index * SIDE);
                let target = &mut target[index * tile_bytes..][..tile_bytes];
                tile(&self.matrix.tile(row, column, &mut scratch), target);
            }
        }
    }
}

/// Both halves of every row of a tile, with the numbers of the rows of faces that they are.
#[inline(always)]
fn face_rows<T>(rows: &[&TileRow<T>; SIDE], mut work: impl FnMut(usize, &FaceRow<T>)) {
    for (index, row) in rows.iter().enumerate() {
        for (side, half) in row.as_chunks().0.iter().enumerate() {
            work(face_row(index, side), half);
        }
    }
}

#[inline(always)]
fn pack_bf16<T: Element>(rows: &[&TileRow<T>; SIDE], target: &mut [u8]) {
    let (targets, _) = target.as_chunks_mut::<{ 2 * FACE }>();
    face_rows(
        rows,
        #[inline(always)]
        |place, values| {
            for (target, value) in targets[place].chunks_exact_mut(2).zip(values) {
                target.copy_from_slice(&value.to_bf16().to_le_bytes());
            }
        },
    );
}

#[inline(always)]
fn pack_bfp8<T: Element>(rows: &[&TileRow<T>; SIDE], target: &mut [u8]) {
    let (exponents, codes) = target.split_at_mut(EXPONENT_BYTES);
    let (codes, _) = codes.as_chunks_mut::<FACE>();
    face_rows(
        rows,
        #[inline(always)]
        |place, values| {
            let block = T::to_block::<BFP8_MAGNITUDE>(values);
            exponents[place] = block.exponent;
            codes[place] = block.codes;
        },
    );
}

#[inline(always)]
fn pack_bfp4<T: Element>(rows: &[&TileRow<T>; SIDE], target: &mut [u8]) {
    let (exponents, codes) = target.split_at_mut(EXPONENT_BYTES);
    let (codes, _) = codes.as_chunks_mut::<{ FACE / 2 }>();
    face_rows(
        rows,
        #[inline(always)]
        |place, values| {
            let block = T::to_block::<BFP4_MAGNITUDE>(values);
            exponents[place] = block.exponent;
            for (target, pair) in codes[place].iter_mut().zip(block.codes.chunks_exact(2)) {
                *target = pair[0] | pair[1] << 4;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    fn packed<T: Element>(
        values: &[T],
        format: TileFormat,
        run: impl Fn(PackTileRows<'_, T>),
    ) -> Vec<u8> {
        let matrix = MatrixView::new(values, SIDE, 3 * SIDE, 3 * SIDE).expect("it fits");
        let mut target = vec![0; 3 * format.tile_bytes()];
        run(PackTileRows { matrix, format, first: 0, target: &mut target });
        target
    }

    fn check<T: Element>(values: &[T]) {
        for format in TileFormat::ALL {
            let plain = packed(values, format, |job| job.with_simd(pulp::Scalar));
            let best = packed(values, format, |job| Arch::new().dispatch(job));
            assert!(plain == best, "{format:?}");
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = pulp::x86::V3::try_new() {
                assert!(
                    plain == packed(values, format, |job| Simd::vectorize(avx2, job)),
                    "{format:?}"
                );
            }
        }
    }

    #[test]
    fn vectors_change_no_byte() {
        let bits = (0..3 * SIDE as u32 * SIDE as u32).map(|i| i.wrapping_mul(2_654_435_761));
        let long: Vec<f32> = bits.map(f32::from_bits).collect();
        let short: Vec<bf16> = long.iter().map(|value| bf16::from_f32(*value)).collect();
        check(&long);
        check(&short);
    }
}
