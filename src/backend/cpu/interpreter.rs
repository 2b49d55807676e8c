//! Executing one instruction.

use half::bf16;

use super::elementwise;
use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::memory::Memory;
use super::norm::Scaling;
use super::numerics::Numerics;
use super::weights::Weights;
use crate::backend::BackendError;
use crate::program::{IndexId, Modulation, Op, PatchGrid, PatchOrder, View, WeightId, WeightSpec};

/// What instructions refer to, besides the buffers.
pub struct Interpreter<'a> {
    pub numerics: Numerics,
    pub specs: &'a [WeightSpec],
    pub weights: &'a Weights,
    pub indices: &'a [Vec<u32>],
}

impl Interpreter<'_> {
    pub fn execute(&self, op: &Op, memory: &mut Memory) -> Result<(), BackendError> {
        match op {
            Op::Linear { x, weight, bias, activation, out } => {
                let weight = self.factor(*weight)?;
                let bias = match bias {
                    Some(bias) => Bias::Bf16(self.values(*bias)?),
                    None => Bias::None,
                };
                memory.write(*out, |memory, out| {
                    self.numerics.linear(memory.read(*x), weight, bias, *activation, out);
                });
            }
            Op::LinearBuffer { x, weight, bias, activation, out } => {
                let weight = self.factor(*weight)?;
                memory.write(*out, |memory, out| {
                    let bias = Bias::F32(memory.read(*bias).row(0));
                    self.numerics.linear(memory.read(*x), weight, bias, *activation, out);
                });
            }
            Op::LayerNorm { x, affine, modulation, eps, out } => {
                let affine = match affine {
                    Some((weight, bias)) => Some((self.values(*weight)?, self.values(*bias)?)),
                    None => None,
                };
                memory.write(*out, |memory, out| {
                    let scaling = match (affine, modulation) {
                        (Some((weight, bias)), _) => Scaling::Affine { weight, bias },
                        (None, Some(Modulation { scale, shift })) => Scaling::Modulated {
                            scale: memory.read(*scale).row(0),
                            shift: memory.read(*shift).row(0),
                        },
                        (None, None) => Scaling::None,
                    };
                    self.numerics.layer_norm(memory.read(*x), scaling, *eps, out);
                });
            }
            Op::RmsNorm { x, weight, eps, out } => {
                let weight = self.values(*weight)?;
                memory.write(*out, |memory, out| {
                    self.numerics.rms_norm(memory.read(*x), weight, *eps, out);
                });
            }
            Op::Rope { x, cos, sin } => memory.write(*x, |memory, x| {
                elementwise::rope(x, memory.read(*cos), memory.read(*sin));
            }),
            Op::Attention { q, k, v, shape, out } => memory.write(*out, |memory, out| {
                let (q, k, v) = (memory.read(*q), memory.read(*k), memory.read(*v));
                self.numerics.attention(q, k, v, shape, out);
            }),
            Op::Embed { table, ids, out } => self.embed(*table, *ids, *out, memory)?,
            Op::GatherRows { x, rows, out } => {
                let rows = self.checked_rows(*rows, x.rows, "rows to gather")?;
                memory.write(*out, |memory, mut out| {
                    let x = memory.read(*x);
                    for (target, source) in rows.iter().enumerate() {
                        out.row_mut(target).copy_from_slice(x.row(*source as usize));
                    }
                });
            }
            Op::ScatterRows { x, rows, out } => {
                let rows = self.checked_rows(*rows, out.rows, "rows to scatter")?;
                memory.write(*out, |memory, mut out| {
                    let x = memory.read(*x);
                    for (source, target) in rows.iter().enumerate() {
                        out.row_mut(*target as usize).copy_from_slice(x.row(source));
                    }
                });
            }
            Op::ScatterAddRows { x, rows, out } => {
                let rows = self.checked_rows(*rows, out.rows, "rows to add to")?;
                memory.write(*out, |memory, mut out| {
                    let x = memory.read(*x);
                    for (source, target) in rows.iter().enumerate() {
                        for (sum, value) in
                            out.row_mut(*target as usize).iter_mut().zip(x.row(source))
                        {
                            *sum += value;
                        }
                    }
                });
            }
            Op::Reshape { x, out } => memory.write(*out, |memory, mut out| {
                let x = memory.read(*x);
                let mut values = (0..x.rows()).flat_map(|row| x.row(row)).copied();
                for row in 0..out.rows() {
                    for (target, value) in out.row_mut(row).iter_mut().zip(&mut values) {
                        *target = value;
                    }
                }
            }),
            Op::Copy { x, out } => {
                memory.write(*out, |memory, mut out| {
                    let x = memory.read(*x);
                    for row in 0..x.rows() {
                        out.row_mut(row).copy_from_slice(x.row(row));
                    }
                });
            }
            Op::Add { x, out } => {
                memory.write(*out, |memory, out| elementwise::add(memory.read(*x), out));
            }
            Op::CopyWeight { weight, out } => {
                let weight = self.block(*weight)?;
                memory.write(*out, |_, mut out| {
                    for row in 0..out.rows() {
                        copy_to_f32(weight.row(row), out.row_mut(row));
                    }
                });
            }
            Op::AddWeight { weight, out } => {
                let weight = self.values(*weight)?;
                memory.write(*out, |_, out| elementwise::add_weight(weight, out));
            }
            Op::AddScaled { x, factor, out } => memory.write(*out, |memory, out| {
                elementwise::add_scaled(memory.read(*x), *factor, out);
            }),
            Op::Map { x, activation, out } => memory.write(*out, |memory, out| {
                elementwise::map(memory.read(*x), *activation, out);
            }),
            Op::SiluMul { gate, up, out } => memory.write(*out, |memory, out| {
                elementwise::silu_mul(memory.read(*gate), memory.read(*up), out);
            }),
            Op::Patchify { x, grid, out } => memory.write(*out, |memory, out| {
                patchify(memory.read(*x), *grid, out);
            }),
            Op::SpaceToDepth { x, side, out } => memory.write(*out, |memory, out| {
                space_to_depth(memory.read(*x), *side, out);
            }),
            Op::Tap { .. } => {}
        }
        Ok(())
    }

    fn embed(
        &self,
        table: WeightId,
        ids: IndexId,
        out: View,
        memory: &mut Memory,
    ) -> Result<(), BackendError> {
        let ids = self.checked_rows(ids, self.specs[table.0].rows, "token ids")?;
        let table = self.block(table)?;
        memory.write(out, |_, mut out| {
            for (row, id) in ids.iter().enumerate() {
                copy_to_f32(table.row(*id as usize), out.row_mut(row));
            }
        });
        Ok(())
    }

    fn checked_rows(
        &self,
        index: IndexId,
        limit: usize,
        name: &'static str,
    ) -> Result<&[u32], BackendError> {
        let rows = &self.indices[index.0];
        match rows.iter().find(|row| **row as usize >= limit) {
            Some(value) => Err(BackendError::Index { name, value: *value, limit }),
            None => Ok(rows),
        }
    }

    fn factor(&self, weight: WeightId) -> Result<WeightBlock<'_>, BackendError> {
        Ok(self.weights.factor(&self.specs[weight.0])?)
    }

    fn block(&self, weight: WeightId) -> Result<WeightBlock<'_>, BackendError> {
        Ok(self.weights.block(&self.specs[weight.0])?)
    }

    fn values(&self, weight: WeightId) -> Result<&[bf16], BackendError> {
        Ok(self.weights.values(&self.specs[weight.0])?)
    }
}

fn copy_to_f32(source: &[bf16], target: &mut [f32]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target = source.to_f32();
    }
}

/// Every picture, a row `[channels * side * side]` of `x`, to its rows of patches.
fn patchify(x: Mat<'_>, grid: PatchGrid, mut out: MatMut<'_>) {
    let PatchGrid { side, patch, channels, order } = grid;
    let cells = side / patch;
    for row in 0..out.rows() {
        let (image, cell) = (row / (cells * cells), row % (cells * cells));
        let (top, left) = (cell / cells * patch, cell % cells * patch);
        let picture = x.row(image);
        for (position, value) in out.row_mut(row).iter_mut().enumerate() {
            let (channel, pixel) = match order {
                PatchOrder::ChannelLast => (position % channels, position / channels),
                PatchOrder::ChannelFirst => {
                    (position / (patch * patch), position % (patch * patch))
                }
            };
            let (y, x) = (top + pixel / patch, left + pixel % patch);
            *value = picture[(channel * side + y) * side + x];
        }
    }
}

/// 2x2 neighbours of every picture's grid to one row, channel slowest.
fn space_to_depth(x: Mat<'_>, side: usize, mut out: MatMut<'_>) {
    let half = side / 2;
    for row in 0..out.rows() {
        let (image, cell) = (row / (half * half), row % (half * half));
        let (top, left) = (cell / half * 2, cell % half * 2);
        for (offset, (dy, dx)) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().enumerate() {
            let source = x.row((image * side + top + dy) * side + left + dx);
            let target = out.row_mut(row).iter_mut().skip(offset).step_by(4);
            for (value, channel) in target.zip(source) {
                *value = *channel;
            }
        }
    }
}
