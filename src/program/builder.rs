//! Building a program: named buffers and weights, shapes checked as instructions are added.

use std::collections::HashMap;

use super::{
    Activation, AttentionShape, BufferId, BufferSource, BufferSpec, IndexId, IndexInput, IndexSpec,
    Input, Modulation, Op, Orientation, PatchGrid, Program, Stage, StageKind, View, WeightId,
    WeightSpec,
};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::contract::Version;

/// Collects the instructions of a program.
///
/// Weights are looked up in the checkpoint when they are named, so a missing tensor or a wrong shape is an error
/// here, before any work. A shape that does not fit between instructions is a mistake in a builder page and panics.
pub struct ProgramBuilder<'a> {
    checkpoint: &'a Checkpoint,
    known: HashMap<WeightSpec, WeightId>,
    program: Program,
}

impl<'a> ProgramBuilder<'a> {
    pub fn new(version: Version, checkpoint: &'a Checkpoint) -> Self {
        let program = Program {
            version,
            buffers: Vec::new(),
            indices: Vec::new(),
            weights: Vec::new(),
            stages: Vec::new(),
            exports: Vec::new(),
        };
        Self { checkpoint, known: HashMap::new(), program }
    }

    pub fn finish(self) -> Program {
        self.program
    }

    /// Instructions from here on belong to this stage.
    pub fn stage(&mut self, kind: StageKind) {
        self.program.stages.push(Stage { kind, leading_tokens: None, ops: Vec::new() });
    }

    /// As [`Self::stage`]; nothing of the request but its first `count` token ids changes what these instructions do.
    pub fn stage_of_leading_tokens(&mut self, kind: StageKind, count: usize) {
        self.program.stages.push(Stage { kind, leading_tokens: Some(count), ops: Vec::new() });
    }

    pub fn scratch(&mut self, name: &str, rows: usize, cols: usize) -> View {
        self.buffer(name, rows, cols, BufferSource::Scratch)
    }

    pub fn input(&mut self, input: Input, rows: usize, cols: usize) -> View {
        self.buffer(&format!("{input:?}").to_lowercase(), rows, cols, BufferSource::Input(input))
    }

    pub fn constant(&mut self, name: &str, rows: usize, cols: usize, values: Vec<f32>) -> View {
        assert_eq!(values.len(), rows * cols, "constant {name}");
        self.buffer(name, rows, cols, BufferSource::Constant(values))
    }

    pub fn import(&mut self, name: &str, rows: usize, cols: usize) -> View {
        self.buffer(name, rows, cols, BufferSource::Import(name.to_owned()))
    }

    pub fn export(&mut self, name: &str, view: View) {
        assert_eq!(view, self.program.view(view.buffer), "only whole buffers are exported");
        self.program.exports.push((name.to_owned(), view.buffer));
    }

    pub fn index(&mut self, input: IndexInput, len: usize) -> IndexId {
        self.index_from(input, 0, len)
    }

    /// The entries `first .. first + len` of an index input.
    pub fn index_from(&mut self, input: IndexInput, first: usize, len: usize) -> IndexId {
        self.program.indices.push(IndexSpec { input, first, len });
        IndexId(self.program.indices.len() - 1)
    }

    /// How many entries an index list has.
    pub fn index_len(&self, index: IndexId) -> usize {
        self.program.indices[index.0].len
    }

    fn buffer(&mut self, name: &str, rows: usize, cols: usize, source: BufferSource) -> View {
        self.program.buffers.push(BufferSpec { name: name.to_owned(), rows, cols, source });
        View { buffer: BufferId(self.program.buffers.len() - 1), row: 0, rows, col: 0, cols }
    }

    /// A Linear's matrix `[out, in]`.
    pub fn matrix(
        &mut self,
        tensor: &str,
        out: usize,
        input: usize,
    ) -> Result<WeightId, CheckpointError> {
        self.weight(tensor, &[out, input], 0, out, input, Orientation::OutIn)
    }

    /// A vector `[len]`.
    pub fn vector(&mut self, tensor: &str, len: usize) -> Result<WeightId, CheckpointError> {
        self.weight(tensor, &[len], 0, 1, len, Orientation::OutIn)
    }

    /// `weight` and `bias` of a Linear or a norm named `prefix`.
    pub fn weight_and_bias(
        &mut self,
        prefix: &str,
        out: usize,
        input: usize,
    ) -> Result<(WeightId, WeightId), CheckpointError> {
        let weight = self.matrix(&format!("{prefix}.weight"), out, input)?;
        let bias = self.vector(&format!("{prefix}.bias"), out)?;
        Ok((weight, bias))
    }

    /// `weight` and `bias` of an affine layer norm named `prefix`.
    pub fn affine(
        &mut self,
        prefix: &str,
        width: usize,
    ) -> Result<(WeightId, WeightId), CheckpointError> {
        let weight = self.vector(&format!("{prefix}.weight"), width)?;
        let bias = self.vector(&format!("{prefix}.bias"), width)?;
        Ok((weight, bias))
    }

    /// Any contiguous block: `rows * cols` elements from `offset` on of a tensor that must have shape `shape`.
    pub fn weight(
        &mut self,
        tensor: &str,
        shape: &[usize],
        offset: usize,
        rows: usize,
        cols: usize,
        orientation: Orientation,
    ) -> Result<WeightId, CheckpointError> {
        self.checkpoint.expect(tensor, shape)?;
        let spec = WeightSpec { tensor: tensor.to_owned(), offset, rows, cols, orientation };
        if let Some(id) = self.known.get(&spec) {
            return Ok(*id);
        }
        let id = WeightId(self.program.weights.len());
        self.known.insert(spec.clone(), id);
        self.program.weights.push(spec);
        Ok(id)
    }

    /// `out = activation(Linear(x))` with the Linear named `prefix`, bias included.
    pub fn project(
        &mut self,
        prefix: &str,
        x: View,
        activation: Activation,
        out: View,
    ) -> Result<(), CheckpointError> {
        let (weight, bias) = self.weight_and_bias(prefix, out.cols, x.cols)?;
        self.linear(x, (weight, Some(bias)), activation, out);
        Ok(())
    }

    pub fn linear(
        &mut self,
        x: View,
        (weight, bias): (WeightId, Option<WeightId>),
        activation: Activation,
        out: View,
    ) {
        self.check_product(x, weight, out);
        if let Some(bias) = bias {
            assert_eq!(self.program.weights[bias.0].cols, out.cols, "bias of {out:?}");
        }
        self.push(Op::Linear { x, weight, bias, activation, out });
    }

    pub fn linear_buffer(
        &mut self,
        x: View,
        (weight, bias): (WeightId, View),
        activation: Activation,
        out: View,
    ) {
        self.check_product(x, weight, out);
        assert_eq!((bias.rows, bias.cols), (1, out.cols), "bias of {out:?}");
        self.push(Op::LinearBuffer { x, weight, bias, activation, out });
    }

    fn check_product(&self, x: View, weight: WeightId, out: View) {
        let spec = &self.program.weights[weight.0];
        assert_eq!(x.cols, spec.inputs(), "input of {}", spec.tensor);
        assert_eq!(out.cols, spec.outputs(), "output of {}", spec.tensor);
        assert_eq!(x.rows, out.rows, "rows through {}", spec.tensor);
        assert_ne!(x.buffer, out.buffer, "{} in place", spec.tensor);
    }

    pub fn layer_norm(
        &mut self,
        x: View,
        affine: Option<(WeightId, WeightId)>,
        modulation: Option<Modulation>,
        eps: f32,
        out: View,
    ) {
        self.check_same_shape(x, out);
        if let Some((weight, bias)) = affine {
            assert_eq!(self.program.weights[weight.0].cols, x.cols);
            assert_eq!(self.program.weights[bias.0].cols, x.cols);
        }
        if let Some(Modulation { scale, shift }) = modulation {
            assert_eq!((scale.rows, scale.cols), (1, x.cols));
            assert_eq!((shift.rows, shift.cols), (1, x.cols));
        }
        self.push(Op::LayerNorm { x, affine, modulation, eps, out });
    }

    pub fn rms_norm(&mut self, x: View, weight: WeightId, eps: f32, out: View) {
        self.check_same_shape(x, out);
        let width = self.program.weights[weight.0].cols;
        assert_eq!(x.cols % width, 0, "RMS norm of width {width} over {x:?}");
        self.push(Op::RmsNorm { x, weight, eps, out });
    }

    pub fn rope(&mut self, x: View, cos: View, sin: View) {
        assert_eq!((cos.rows, cos.cols), (sin.rows, sin.cols));
        assert_eq!(cos.rows, x.rows);
        assert_eq!(x.cols % (2 * cos.cols), 0);
        self.push(Op::Rope { x, cos, sin });
    }

    pub fn attention(&mut self, q: View, k: View, v: View, shape: AttentionShape, out: View) {
        self.check_same_shape(q, out);
        self.check_same_shape(k, v);
        assert_eq!(q.cols, shape.heads * shape.head_dim);
        assert_eq!(k.cols, shape.kv_heads * shape.head_dim);
        assert_eq!(shape.heads % shape.kv_heads, 0);
        assert_eq!((q.rows % shape.sequences, k.rows % shape.sequences), (0, 0));
        assert!(!shape.causal || q.rows <= k.rows);
        self.push(Op::Attention { q, k, v, shape, out });
    }

    pub fn embed(&mut self, table: WeightId, ids: IndexId, out: View) {
        assert_eq!(self.program.weights[table.0].cols, out.cols);
        assert_eq!(self.program.indices[ids.0].len, out.rows);
        self.push(Op::Embed { table, ids, out });
    }

    pub fn gather_rows(&mut self, x: View, rows: IndexId, out: View) {
        assert_eq!((self.program.indices[rows.0].len, x.cols), (out.rows, out.cols));
        self.push(Op::GatherRows { x, rows, out });
    }

    pub fn scatter_rows(&mut self, x: View, rows: IndexId, out: View) {
        assert_eq!((self.program.indices[rows.0].len, out.cols), (x.rows, x.cols));
        self.push(Op::ScatterRows { x, rows, out });
    }

    pub fn scatter_add_rows(&mut self, x: View, rows: IndexId, out: View) {
        assert_eq!((self.program.indices[rows.0].len, out.cols), (x.rows, x.cols));
        self.push(Op::ScatterAddRows { x, rows, out });
    }

    pub fn reshape(&mut self, x: View, out: View) {
        assert_eq!(x.rows * x.cols, out.rows * out.cols, "{x:?} as {out:?}");
        self.push(Op::Reshape { x, out });
    }

    pub fn copy(&mut self, x: View, out: View) {
        self.check_same_shape(x, out);
        self.push(Op::Copy { x, out });
    }

    pub fn add(&mut self, x: View, out: View) {
        assert_eq!((x.cols, out.rows % x.rows), (out.cols, 0));
        self.push(Op::Add { x, out });
    }

    pub fn add_weight(&mut self, weight: WeightId, out: View) {
        let spec = &self.program.weights[weight.0];
        assert!(spec.rows >= out.rows && spec.cols == out.cols, "{} onto {out:?}", spec.tensor);
        self.push(Op::AddWeight { weight, out });
    }

    pub fn copy_weight(&mut self, weight: WeightId, out: View) {
        let spec = &self.program.weights[weight.0];
        assert_eq!((spec.rows, spec.cols), (out.rows, out.cols), "{} to {out:?}", spec.tensor);
        self.push(Op::CopyWeight { weight, out });
    }

    pub fn add_scaled(&mut self, x: View, factor: f32, out: View) {
        self.check_same_shape(x, out);
        self.push(Op::AddScaled { x, factor, out });
    }

    pub fn map(&mut self, x: View, activation: Activation, out: View) {
        self.check_same_shape(x, out);
        self.push(Op::Map { x, activation, out });
    }

    pub fn silu_mul(&mut self, gate: View, up: View, out: View) {
        self.check_same_shape(gate, up);
        self.check_same_shape(gate, out);
        self.push(Op::SiluMul { gate, up, out });
    }

    pub fn patchify(&mut self, x: View, grid: PatchGrid, out: View) {
        let PatchGrid { side, patch, channels, .. } = grid;
        let cells = side / patch * (side / patch);
        assert_eq!(x.cols, channels * side * side);
        assert_eq!((out.rows, out.cols), (x.rows * cells, patch * patch * channels));
        self.push(Op::Patchify { x, grid, out });
    }

    pub fn space_to_depth(&mut self, x: View, side: usize, out: View) {
        assert_eq!((x.rows % (side * side), side % 2), (0, 0));
        assert_eq!((out.rows, out.cols), (x.rows / 4, x.cols * 4));
        self.push(Op::SpaceToDepth { x, side, out });
    }

    /// Names the current contents of a view for whoever listens.
    pub fn tap(&mut self, name: impl Into<String>, x: View) {
        self.push(Op::Tap { x, name: name.into() });
    }

    fn check_same_shape(&self, a: View, b: View) {
        assert_eq!((a.rows, a.cols), (b.rows, b.cols), "{a:?} and {b:?}");
    }

    fn push(&mut self, op: Op) {
        self.program.stages.last_mut().expect("a stage is open").ops.push(op);
    }
}
