//! The numbers of the network parts that model versions share.

pub(super) mod fields;
pub(super) mod files;

/// A SigLIP vision tower.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionConfig {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub mlp_width: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Side of the square picture in pixels.
    pub image_side: usize,
    /// Side of the stored position table.
    pub position_side: usize,
}

impl VisionConfig {
    /// Patches along one side of the picture.
    pub fn grid(&self) -> usize {
        self.image_side / self.patch
    }
}

impl VisionConfig {
    /// The tower of the released checkpoints of N1.5 and N1.6, for pictures of `image_side` pixels.
    pub fn released(image_side: usize) -> Self {
        Self {
            width: 1152,
            layers: 27,
            heads: 16,
            mlp_width: 4304,
            patch: 14,
            image_side,
            position_side: 16,
        }
    }
}

/// The kept layers of a Qwen3 language model.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmConfig {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub mlp_width: usize,
    pub vocabulary: usize,
    pub rope_theta: f64,
}

impl LlmConfig {
    /// The first `layers` layers of the model in the released checkpoints of N1.5 and N1.6.
    pub fn released(layers: usize) -> Self {
        Self {
            width: 2048,
            layers,
            heads: 16,
            kv_heads: 8,
            head_dim: 128,
            mlp_width: 6144,
            vocabulary: 151_680,
            rope_theta: 1_000_000.0,
        }
    }
}

/// Self-attention blocks over the backbone's features, between language model and action head.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterConfig {
    pub layers: usize,
    pub heads: usize,
    pub head_dim: usize,
}

/// Which tokens of the backbone a cross-attention block of the DiT looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossAttention {
    /// All of them.
    All,
    /// Text and pictures in turn: every `text_every`-th cross block looks at text, the others at pictures.
    Alternate { text_every: usize },
}

/// The flow-matching action head.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadConfig {
    pub dit_layers: usize,
    pub dit_heads: usize,
    pub dit_head_dim: usize,
    /// Width of the DiT's output, which the action decoder reads.
    pub dit_output: usize,
    /// Hidden width of the state encoder and the action decoder.
    pub hidden: usize,
    /// Learned rows between the state token and the action tokens.
    pub future_tokens: usize,
    /// Rows of the noise and of the prediction.
    pub action_rows: usize,
    pub state_width: usize,
    pub action_width: usize,
    /// Embodiment slots of the per-embodiment tensors.
    pub slots: usize,
    /// Rows of the learned position table.
    pub position_rows: usize,
    pub cross_attention: CrossAttention,
    /// Euler steps.
    pub steps: usize,
    /// Scale of the integer timestep.
    pub timestep_buckets: usize,
}

impl HeadConfig {
    /// Width of the DiT.
    pub fn dit_width(&self) -> usize {
        self.dit_heads * self.dit_head_dim
    }
}
