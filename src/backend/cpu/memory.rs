//! The buffers of a program.

use super::mat::{Mat, MatMut};
use crate::program::{BufferId, View};

/// Every buffer of a program, row-major.
pub struct Memory {
    buffers: Vec<Vec<f32>>,
    /// Columns of each buffer.
    strides: Vec<usize>,
}

impl Memory {
    /// Takes buffers with their numbers of columns.
    pub fn new(buffers: impl Iterator<Item = (Vec<f32>, usize)>) -> Self {
        let (buffers, strides) = buffers.unzip();
        Self { buffers, strides }
    }

    pub fn whole(&self, buffer: BufferId) -> &[f32] {
        &self.buffers[buffer.0]
    }

    pub fn whole_mut(&mut self, buffer: BufferId) -> &mut [f32] {
        &mut self.buffers[buffer.0]
    }

    /// Takes a buffer out for good.
    pub fn take(&mut self, buffer: BufferId) -> Vec<f32> {
        std::mem::take(&mut self.buffers[buffer.0])
    }

    pub fn read(&self, view: View) -> Mat<'_> {
        let stride = self.strides[view.buffer.0];
        let first = view.row * stride + view.col;
        Mat::new(&self.buffers[view.buffer.0][first..], view.rows, view.cols, stride)
    }

    /// Lets `work` write one view while it reads any other buffer; that of `view` looks empty to it.
    pub fn write<R>(&mut self, view: View, work: impl FnOnce(&Memory, MatMut<'_>) -> R) -> R {
        let stride = self.strides[view.buffer.0];
        let first = view.row * stride + view.col;
        let mut buffer = self.take(view.buffer);
        let out = MatMut::new(&mut buffer[first..], view.rows, view.cols, stride);
        let result = work(self, out);
        self.buffers[view.buffer.0] = buffer;
        result
    }
}
