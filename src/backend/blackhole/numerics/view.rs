//! A matrix in memory, to be packed.

use std::ops::Range;

use super::element::Element;
use super::error::NumericsError;
use super::tile::{SIDE, TileRow, transpose};

/// A matrix `[rows, cols]` whose stored rows lie `stride` values apart; seen transposed, its stored rows are columns.
#[derive(Clone, Copy, Debug)]
pub struct MatrixView<'a, T> {
    values: &'a [T],
    rows: usize,
    cols: usize,
    stride: usize,
    transposed: bool,
}

impl<'a, T: Element> MatrixView<'a, T> {
    /// `values` begins with the first value of the matrix and may go on behind the last one.
    pub fn new(
        values: &'a [T],
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self, NumericsError> {
        if rows > 1 && stride < cols {
            return Err(NumericsError::Stride { cols, stride });
        }
        let needed = match rows.checked_sub(1) {
            Some(before) if cols > 0 => before
                .checked_mul(stride)
                .and_then(|before| before.checked_add(cols))
                .ok_or(NumericsError::TooLarge { rows, cols })?,
            _ => 0,
        };
        let found = values.len();
        if found < needed {
            return Err(NumericsError::Values { rows, cols, stride, needed, found });
        }
        Ok(Self { values, rows, cols, stride, transposed: false })
    }

    /// With rows and columns exchanged: weights stored `[out, in]` as the card multiplies by them, `[in, out]`.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// The block of these rows and columns, which have to lie in the matrix; none of the ranges is empty.
    pub fn block(self, rows: Range<usize>, cols: Range<usize>) -> Self {
        let whole = (self.rows(), self.cols());
        assert!(
            rows.start < rows.end
                && rows.end <= whole.0
                && cols.start < cols.end
                && cols.end <= whole.1,
            "rows {rows:?} and columns {cols:?} of {whole:?}"
        );
        let (stored_rows, stored_cols) = if self.transposed { (cols, rows) } else { (rows, cols) };
        let first = stored_rows.start * self.stride + stored_cols.start;
        Self {
            values: &self.values[first..],
            rows: stored_rows.len(),
            cols: stored_cols.len(),
            ..self
        }
    }

    pub(super) fn is_transposed(&self) -> bool {
        self.transposed
    }

    pub fn rows(&self) -> usize {
        if self.transposed { self.cols } else { self.rows }
    }

    pub fn cols(&self) -> usize {
        if self.transposed { self.rows } else { self.cols }
    }

    /// The tile that has `row` and `column` as its first ones. It is copied to `scratch` where it does not lie in memory as
    /// 32 rows of 32 values.
    #[inline(always)]
    pub(super) fn tile<'b>(
        &'b self,
        row: usize,
        column: usize,
        scratch: &'b mut Scratch<T>,
    ) -> [&'b TileRow<T>; SIDE] {
        let (row, column) = if self.transposed { (column, row) } else { (row, column) };
        let (height, width) = ((self.rows - row).min(SIDE), (self.cols - column).min(SIDE));
        let first = row * self.stride + column;
        let whole = (height, width) == (SIDE, SIDE);
        if whole && !self.transposed {
            return rows_of(&self.values[first..], self.stride);
        }
        if whole {
            for (i, target) in scratch.tile.iter_mut().enumerate() {
                *target = self.values[first + i * self.stride..][..SIDE].as_chunks().0[0];
            }
        } else {
            scratch.tile = [[T::default(); SIDE]; SIDE];
            for (i, target) in scratch.tile.iter_mut().take(height).enumerate() {
                let start = first + i * self.stride;
                target[..width].copy_from_slice(&self.values[start..start + width]);
            }
        }
        if self.transposed {
            rows_of(transpose(&mut scratch.tile, &mut scratch.spare), SIDE)
        } else {
            rows_of(scratch.tile.as_flattened(), SIDE)
        }
    }
}

/// 32 rows of 32 values that begin `stride` apart.
#[inline(always)]
fn rows_of<T>(values: &[T], stride: usize) -> [&TileRow<T>; SIDE] {
    let values = &values[..(SIDE - 1) * stride + SIDE];
    let mut rows = [&values.as_chunks().0[0]; SIDE];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = &values[i * stride..][..SIDE].as_chunks().0[0];
    }
    rows
}

/// Room for tiles that have to be put together.
pub(super) struct Scratch<T> {
    tile: [TileRow<T>; SIDE],
    spare: [TileRow<T>; SIDE],
}

impl<T: Element> Scratch<T> {
    pub(super) fn new() -> Self {
        Self { tile: [[T::default(); SIDE]; SIDE], spare: [[T::default(); SIDE]; SIDE] }
    }
}
