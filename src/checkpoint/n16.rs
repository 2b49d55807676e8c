//! Configuration of an N1.6 snapshot.

/// Everything about the N1.6 network that is a number (spec: `config.json` and the backbone's constants).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub vision: VisionConfig,
    pub llm: LlmConfig,
    pub head: HeadConfig,
}

/// SigLIP-2 vision tower and its connector.
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

/// The kept layers of the Qwen3 language model.
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
    /// Rows of the noise and of the prediction.
    pub action_rows: usize,
    pub state_width: usize,
    pub action_width: usize,
    /// Embodiment slots of the per-embodiment tensors.
    pub slots: usize,
    /// Rows of the learned position table.
    pub position_rows: usize,
    /// Every n-th cross-attention block looks at text, the others at pictures.
    pub attend_text_every: usize,
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
