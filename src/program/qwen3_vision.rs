//! The Qwen3-VL vision tower: 2D rotary attention, a merger to language-model width, and DeepStack mergers that hand
//! intermediate features to the first layers of the language model (spec of N1.7, section 7.1).

use super::{Activation, AttentionShape, Orientation, ProgramBuilder, View, sinusoid};
use crate::checkpoint::n17::Qwen3VisionConfig;
use crate::checkpoint::{Checkpoint, CheckpointError};

const EPS: f32 = 1e-6;
const CHANNELS: usize = 3;
const ROPE_THETA: f64 = 10_000.0;

/// What the language model gets.
pub struct Features {
    /// `[images * tokens per picture, llm width]`.
    pub tokens: View,
    /// One per DeepStack merger, each as `tokens`.
    pub deepstack: Vec<View>,
}

/// Runs the tower on `pixels`, `[images * patches, values per patch]`, patches in merge-block order.
pub fn tower(
    b: &mut ProgramBuilder<'_>,
    checkpoint: &Checkpoint,
    prefix: &str,
    config: &Qwen3VisionConfig,
    grid: [usize; 2],
    pixels: View,
    llm_width: usize,
) -> Result<Features, CheckpointError> {
    let patches = grid[0] * grid[1];
    let images = pixels.rows / patches;
    let hidden = embed(b, checkpoint, prefix, config, grid, pixels)?;
    let blocks = Blocks::new(b, prefix, config, grid, hidden, images);
    let mut deepstack = Vec::new();
    for layer in 0..config.layers {
        blocks.layer(b, layer)?;
        for _ in config.deepstack_blocks.iter().filter(|block| **block == layer) {
            let merger = format!("deepstack_merger_list.{}", deepstack.len());
            let tap = format!("vit.deepstack_mergers.{}", deepstack.len());
            let name = format!("{prefix}.{merger}");
            let merged = merge(b, &name, config, hidden, llm_width, NormPlace::AfterGrouping)?;
            b.tap(tap, merged);
            deepstack.push(merged);
        }
    }
    let name = format!("{prefix}.merger");
    let tokens = merge(b, &name, config, hidden, llm_width, NormPlace::BeforeGrouping)?;
    b.tap("vit.merger", tokens);
    Ok(Features { tokens, deepstack })
}

/// Patch embedding plus interpolated positions.
fn embed(
    b: &mut ProgramBuilder<'_>,
    checkpoint: &Checkpoint,
    prefix: &str,
    config: &Qwen3VisionConfig,
    grid: [usize; 2],
    pixels: View,
) -> Result<View, CheckpointError> {
    let width = config.width;
    let hidden = b.scratch("vit.hidden", pixels.rows, width);
    let (time, patch) = (config.temporal_patch, config.patch);
    let kernel = b.weight(
        &format!("{prefix}.patch_embed.proj.weight"),
        &[width, CHANNELS, time, patch, patch],
        0,
        width,
        pixels.cols,
        Orientation::OutIn,
    )?;
    let bias = b.vector(&format!("{prefix}.patch_embed.proj.bias"), width)?;
    b.linear(pixels, (kernel, Some(bias)), Activation::Identity, hidden);
    b.tap("vit.patch_embed", hidden);

    let side = config.position_side;
    let name = format!("{prefix}.pos_embed.weight");
    checkpoint.expect(&name, &[side * side, width])?;
    let table: Vec<f32> =
        checkpoint.tensor(&name)?.values.iter().map(|value| value.to_f32()).collect();
    let resized = interpolate_positions(&table, side, width, grid, config.merge);
    let positions = b.constant("vit.positions", grid[0] * grid[1], width, resized);
    b.tap("vit.pos_embed", positions);
    b.add(positions, hidden);
    b.tap("vit.block_in", hidden);
    Ok(hidden)
}

/// Patch rows and columns in merge-block order: blocks in raster order, raster order within a block.
fn patch_order(grid: [usize; 2], merge: usize) -> impl Iterator<Item = (usize, usize)> {
    let blocks =
        move || (0..grid[0] / merge).flat_map(move |r| (0..grid[1] / merge).map(move |c| (r, c)));
    blocks().flat_map(move |(row, col)| {
        (0..merge * merge)
            .map(move |inner| (merge * row + inner / merge, merge * col + inner % merge))
    })
}

/// Evenly spaced positions from 0 to `last`, computed from both ends towards the middle as the reference does.
fn linspace(last: usize, count: usize) -> Vec<f32> {
    let step = last as f32 / (count.max(2) - 1) as f32;
    (0..count)
        .map(|i| {
            if i < count / 2 {
                step * i as f32
            } else {
                last as f32 - step * (count - 1 - i) as f32
            }
        })
        .collect()
}

/// Bilinear interpolation of the position table with aligned corners, `[patches, width]` in merge-block order.
fn interpolate_positions(
    table: &[f32],
    side: usize,
    width: usize,
    grid: [usize; 2],
    merge: usize,
) -> Vec<f32> {
    let (ys, xs) = (linspace(side - 1, grid[0]), linspace(side - 1, grid[1]));
    let mut out = Vec::with_capacity(grid[0] * grid[1] * width);
    for (row, col) in patch_order(grid, merge) {
        let (y, x) = (ys[row], xs[col]);
        let (y0, x0) = (y as usize, x as usize);
        let (y1, x1) = ((y0 + 1).min(side - 1), (x0 + 1).min(side - 1));
        let (dy, dx) = (y - y0 as f32, x - x0 as f32);
        let at = |row: usize, col: usize| &table[(row * side + col) * width..][..width];
        let corners = [
            (at(y0, x0), (1.0 - dy) * (1.0 - dx)),
            (at(y0, x1), (1.0 - dy) * dx),
            (at(y1, x0), dy * (1.0 - dx)),
            (at(y1, x1), dy * dx),
        ];
        out.extend((0..width).map(|channel| {
            corners.iter().map(|(values, weight)| values[channel] * weight).fold(0.0, |a, v| a + v)
        }));
    }
    out
}

/// The transformer blocks, with the buffers that they share.
struct Blocks<'a> {
    prefix: &'a str,
    config: &'a Qwen3VisionConfig,
    images: usize,
    hidden: View,
    cos: View,
    sin: View,
    normed: View,
    qkv: View,
    context: View,
    branch: View,
    mlp: View,
}

impl<'a> Blocks<'a> {
    fn new(
        b: &mut ProgramBuilder<'_>,
        prefix: &'a str,
        config: &'a Qwen3VisionConfig,
        grid: [usize; 2],
        hidden: View,
        images: usize,
    ) -> Self {
        let width = config.width;
        let half = width / config.heads / 2;
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for _ in 0..images {
            for (row, col) in patch_order(grid, config.merge) {
                for position in [row, col] {
                    let (c, s) = sinusoid::rotary_at(position, half / 2, ROPE_THETA);
                    cos.extend(c);
                    sin.extend(s);
                }
            }
        }
        let mut scratch = |name: &str, cols| b.scratch(&format!("vit.{name}"), hidden.rows, cols);
        let normed = scratch("norm", width);
        let qkv = scratch("qkv", 3 * width);
        let context = scratch("context", width);
        let branch = scratch("branch", width);
        let mlp = scratch("mlp", config.mlp_width);
        let cos = b.constant("vit.cos", hidden.rows, half, cos);
        let sin = b.constant("vit.sin", hidden.rows, half, sin);
        b.tap("vit.rope_cos", cos);
        b.tap("vit.rope_sin", sin);
        Self { prefix, config, images, hidden, cos, sin, normed, qkv, context, branch, mlp }
    }

    fn layer(&self, b: &mut ProgramBuilder<'_>, layer: usize) -> Result<(), CheckpointError> {
        let width = self.config.width;
        let block = format!("{}.blocks.{layer}", self.prefix);
        let tap = format!("vit.block{layer}");
        let affine = b.affine(&format!("{block}.norm1"), width)?;
        b.layer_norm(self.hidden, Some(affine), None, EPS, self.normed);
        b.tap(format!("{tap}.norm1"), self.normed);
        b.project(&format!("{block}.attn.qkv"), self.normed, Activation::Identity, self.qkv)?;
        let [q, k, v] = [0, 1, 2].map(|part| self.qkv.slice_cols(part * width, width));
        b.rope(q, self.cos, self.sin);
        b.rope(k, self.cos, self.sin);
        let head_dim = width / self.config.heads;
        let shape = AttentionShape {
            heads: self.config.heads,
            kv_heads: self.config.heads,
            head_dim,
            scale: (head_dim as f32).powf(-0.5),
            causal: false,
            sequences: self.images,
        };
        b.attention(q, k, v, shape, self.context);
        b.project(&format!("{block}.attn.proj"), self.context, Activation::Identity, self.branch)?;
        b.tap(format!("{tap}.attn"), self.branch);
        b.add(self.branch, self.hidden);

        let affine = b.affine(&format!("{block}.norm2"), width)?;
        b.layer_norm(self.hidden, Some(affine), None, EPS, self.normed);
        b.tap(format!("{tap}.norm2"), self.normed);
        b.project(&format!("{block}.mlp.linear_fc1"), self.normed, Activation::GeluTanh, self.mlp)?;
        b.project(&format!("{block}.mlp.linear_fc2"), self.mlp, Activation::Identity, self.branch)?;
        b.tap(format!("{tap}.mlp"), self.branch);
        b.add(self.branch, self.hidden);
        b.tap(tap, self.hidden);
        Ok(())
    }
}

/// Where a merger's layer norm stands.
enum NormPlace {
    /// On each patch.
    BeforeGrouping,
    /// On the patches of a block together.
    AfterGrouping,
}

/// The patches of a merge block, which are neighbours in memory, become one token.
fn merge(
    b: &mut ProgramBuilder<'_>,
    name: &str,
    config: &Qwen3VisionConfig,
    hidden: View,
    llm_width: usize,
    place: NormPlace,
) -> Result<View, CheckpointError> {
    let group = config.merge * config.merge;
    let (rows, width) = (hidden.rows / group, hidden.cols * group);
    let grouped = b.scratch(&format!("{name}.grouped"), rows, width);
    let input = match place {
        NormPlace::BeforeGrouping => {
            let normed = b.scratch(&format!("{name}.normed"), hidden.rows, hidden.cols);
            let affine = b.affine(&format!("{name}.norm"), hidden.cols)?;
            b.layer_norm(hidden, Some(affine), None, EPS, normed);
            b.reshape(normed, grouped);
            grouped
        }
        NormPlace::AfterGrouping => {
            let normed = b.scratch(&format!("{name}.normed"), rows, width);
            let affine = b.affine(&format!("{name}.norm"), width)?;
            b.reshape(hidden, grouped);
            b.layer_norm(grouped, Some(affine), None, EPS, normed);
            normed
        }
    };
    let mlp = b.scratch(&format!("{name}.hidden"), rows, width);
    b.project(&format!("{name}.linear_fc1"), input, Activation::GeluErf, mlp)?;
    let out = b.scratch(&format!("{name}.out"), rows, llm_width);
    b.project(&format!("{name}.linear_fc2"), mlp, Activation::Identity, out)?;
    Ok(out)
}
