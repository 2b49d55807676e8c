//! Views of matrices in memory, as the kernels take them.

use std::marker::PhantomData;
use std::ops::Range;

use half::bf16;

use crate::program::Orientation;

/// A matrix `[rows, cols]` of f32 whose rows lie `stride` elements apart; `data` starts at its first element.
#[derive(Clone, Copy)]
pub struct Mat<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// A [`Mat`] to write to; it can be cut into blocks of columns that different threads write.
pub struct MatMut<'a> {
    /// First element. A view reaches no element outside its own columns, so that blocks side by side, whose rows
    /// interleave in memory, never hold references to the same element.
    first: *mut f32,
    rows: usize,
    cols: usize,
    stride: usize,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: a view is the only way to its elements while it lives, like the `&mut [f32]` it was made from.
unsafe impl Send for MatMut<'_> {}

/// A matrix of the checkpoint, row-major as it lies in the file, or some of its inputs.
#[derive(Clone, Copy)]
pub struct WeightBlock<'a> {
    values: &'a [bf16],
    rows: usize,
    cols: usize,
    /// Elements from one row to the next.
    stride: usize,
    orientation: Orientation,
}

/// What a product adds to every row of its result.
#[derive(Clone, Copy)]
pub enum Bias<'a> {
    None,
    Bf16(&'a [bf16]),
    F32(&'a [f32]),
}

/// Elements from the first to the last of a strided matrix.
fn extent(rows: usize, cols: usize, stride: usize) -> usize {
    if rows == 0 || cols == 0 { 0 } else { (rows - 1) * stride + cols }
}

fn check(len: usize, rows: usize, cols: usize, stride: usize) {
    assert!(cols <= stride || rows <= 1, "rows of {cols} columns overlap at a stride of {stride}");
    let needed = extent(rows, cols, stride);
    assert!(needed <= len, "[{rows}, {cols}] at stride {stride} needs {needed} values, got {len}");
}

impl<'a> Mat<'a> {
    /// Panics when the rectangle does not fit in `data`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        check(data.len(), rows, cols, stride);
        Self { data, rows, cols, stride }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn row(&self, index: usize) -> &'a [f32] {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        &self.data[index * self.stride..][..self.cols]
    }

    /// The rectangle of `rows` and `cols` that begins at `row` and `col`.
    pub fn block(&self, row: usize, rows: usize, col: usize, cols: usize) -> Mat<'a> {
        assert!(row + rows <= self.rows && col + cols <= self.cols, "a block beyond the matrix");
        let first = if rows == 0 || cols == 0 { 0 } else { row * self.stride + col };
        Mat { data: &self.data[first..], rows, cols, stride: self.stride }
    }

    /// The first element.
    pub fn as_ptr(&self) -> *const f32 {
        self.data.as_ptr()
    }
}

impl<'a> MatMut<'a> {
    /// Panics when the rectangle does not fit in `data` or its rows overlap.
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize, stride: usize) -> Self {
        check(data.len(), rows, cols, stride);
        Self { first: data.as_mut_ptr(), rows, cols, stride, owner: PhantomData }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn row(&self, index: usize) -> &[f32] {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        // SAFETY: the constructor checked that row `index` lies in the slice that `self` borrows, and no other view
        // reaches its `cols` elements.
        unsafe {
            std::slice::from_raw_parts(self.first.wrapping_add(index * self.stride), self.cols)
        }
    }

    pub fn row_mut(&mut self, index: usize) -> &mut [f32] {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        // SAFETY: as in `row`, and `self` is borrowed mutably.
        unsafe {
            std::slice::from_raw_parts_mut(self.first.wrapping_add(index * self.stride), self.cols)
        }
    }

    /// The first element.
    pub fn as_mut_ptr(&mut self) -> *mut f32 {
        self.first
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> MatMut<'_> {
        MatMut { owner: PhantomData, ..*self }
    }

    /// The columns before `col`, and the others.
    pub fn split_cols(self, col: usize) -> (Self, Self) {
        assert!(col <= self.cols, "column {col} of {}", self.cols);
        // An empty view reaches nothing, so that its pointer need not point anywhere.
        let right = Self { first: self.first.wrapping_add(col), cols: self.cols - col, ..self };
        (Self { cols: col, ..self }, right)
    }

    /// The rows before `row`, and the others.
    pub fn split_rows(self, row: usize) -> (Self, Self) {
        assert!(row <= self.rows, "row {row} of {}", self.rows);
        let first = self.first.wrapping_add(row * self.stride);
        let lower = Self { first, rows: self.rows - row, ..self };
        (Self { rows: row, ..self }, lower)
    }
}

impl<'a> WeightBlock<'a> {
    /// Panics when `values` is not exactly `rows * cols` long.
    pub fn new(values: &'a [bf16], rows: usize, cols: usize, orientation: Orientation) -> Self {
        assert_eq!(values.len(), rows * cols, "a [{rows}, {cols}] block");
        Self { values, rows, cols, stride: cols, orientation }
    }

    /// The part that the inputs `range` are multiplied by.
    pub fn of_inputs(&self, range: Range<usize>) -> Self {
        let (inputs, len) = (self.inputs(), range.len());
        assert!(range.start <= range.end && range.end <= inputs, "{range:?} of {inputs} inputs");
        let (first, rows, cols) = match self.orientation {
            Orientation::OutIn => (range.start, self.rows, len),
            Orientation::InOut => (range.start * self.stride, len, self.cols),
        };
        let extent = extent(rows, cols, self.stride);
        let first = if extent == 0 { 0 } else { first };
        Self { values: &self.values[first..first + extent], rows, cols, ..*self }
    }

    /// From the first element to the last, as they are stored.
    pub fn values(&self) -> &'a [bf16] {
        self.values
    }

    /// Elements from one stored row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn orientation(&self) -> Orientation {
        self.orientation
    }

    /// Columns that the product's left side must have.
    pub fn inputs(&self) -> usize {
        match self.orientation {
            Orientation::OutIn => self.cols,
            Orientation::InOut => self.rows,
        }
    }

    /// Columns of the product.
    pub fn outputs(&self) -> usize {
        match self.orientation {
            Orientation::OutIn => self.rows,
            Orientation::InOut => self.cols,
        }
    }

    /// One row as it is stored.
    pub fn row(&self, index: usize) -> &'a [bf16] {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        &self.values[index * self.stride..][..self.cols]
    }
}

impl Bias<'_> {
    /// Number of columns, when there are any.
    pub fn columns(&self) -> Option<usize> {
        match self {
            Bias::None => None,
            Bias::Bf16(values) => Some(values.len()),
            Bias::F32(values) => Some(values.len()),
        }
    }

    /// Adds the terms of the columns from `first` on to a part of a row.
    #[inline(always)]
    pub fn add_to(&self, first: usize, row: &mut [f32]) {
        match self {
            Bias::None => {}
            Bias::Bf16(values) => {
                for (value, term) in row.iter_mut().zip(&values[first..]) {
                    *value += term.to_f32();
                }
            }
            Bias::F32(values) => {
                for (value, term) in row.iter_mut().zip(&values[first..]) {
                    *value += term;
                }
            }
        }
    }
}
