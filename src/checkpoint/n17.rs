//! Configuration of an N1.7 snapshot.

use super::network::{AdapterConfig, HeadConfig, LlmConfig};

/// Everything about the N1.7 network that is a number (spec: `config.json` and the backbone's constants).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub vision: Qwen3VisionConfig,
    pub llm: LlmConfig,
    /// How many rotary frequencies belong to time, height and width.
    pub rope_sections: [usize; 3],
    pub adapter: AdapterConfig,
    pub head: HeadConfig,
}

/// The Qwen3-VL vision tower.
#[derive(Clone, Debug, PartialEq)]
pub struct Qwen3VisionConfig {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub mlp_width: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// How often a picture is repeated along the time axis of a patch.
    pub temporal_patch: usize,
    /// Patches along each side that the merger joins into one token.
    pub merge: usize,
    /// Side of the stored position table.
    pub position_side: usize,
    /// Blocks whose outputs are handed to the first layers of the language model.
    pub deepstack_blocks: Vec<usize>,
}
