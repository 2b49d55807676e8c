//! The N1.6 network: its numbers, where they are read from, and the tensors that follow from them.

mod config;
mod layout;

use std::ops::RangeInclusive;
use std::path::Path;

pub(super) use config::{BACKBONE, to_json};
pub use layout::tensors;

use super::network::files::ConfigFiles;
use super::network::{CrossAttention, HeadConfig, LlmConfig, VisionConfig};
use super::processor::{Backbone, Processor, Schema};
use super::{Checkpoint, CheckpointError};

/// Optional file that overrides the built-in geometry of the backbone.
pub const BACKBONE_FILE: &str = "eagle_config.json";

/// Picture patches that space-to-depth joins into one token, along each side.
pub const PATCHES_PER_TOKEN_SIDE: usize = 2;

/// Slots of the tags that `embodiment_id.json` leaves out (spec section 2.5).
pub(super) const BUILT_IN_SLOTS: [(&str, usize); 9] = [
    ("robocasa_panda_omron", 13),
    ("gr1", 20),
    ("behavior_r1_pro", 24),
    ("unitree_g1", 8),
    ("libero_panda", 2),
    ("oxe_google", 0),
    ("oxe_widowx", 1),
    ("oxe_droid", 16),
    ("new_embodiment", 10),
];

/// What is particular to N1.6 in `processor_config.json`.
pub(super) const PROCESSOR_SCHEMA: Schema = Schema {
    class: "Gr00tN1d6Processor",
    backbone_kind: "eagle",
    backbone: Backbone::Named(config::BACKBONE),
    edges: IMAGE_EDGES,
    letterbox_key: None,
};

/// Reads the network's configuration. Sizes that an overriding backbone file leaves out are read off the stored tensors.
pub(super) fn read_config(
    dir: &Path,
    tensors: &Checkpoint,
    processor: &Processor,
) -> Result<Config, CheckpointError> {
    let files = ConfigFiles::read(dir, BACKBONE_FILE)?;
    let (fields, backbone) = (files.config(), files.backbone());

    let side = image_side(processor.image.shortest_edge);
    let config = config::read(&fields, backbone.as_ref(), &|name| tensors.shape(name), side)?;
    processor.check_widths(&fields, &config.head)?;
    Ok(config)
}

/// Everything about the N1.6 network that is a number (spec: `config.json` and the backbone's constants).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub vision: VisionConfig,
    pub llm: LlmConfig,
    pub head: HeadConfig,
}

/// Shortest picture edges that are served, in pixels. Within them the reference never rescales for its area limits.
pub const IMAGE_EDGES: RangeInclusive<usize> = 56..=1792;

/// Side of the square picture that the vision tower sees, in pixels, when the processor delivers `edge` pixels: the
/// nearest multiple of a token's side, ties to the even multiple (spec section 4).
pub fn image_side(edge: usize) -> usize {
    let token = PATCHES_PER_TOKEN_SIDE * Config::released().vision.patch;
    let tokens = (edge as f64 / token as f64).round_ties_even() as usize;
    tokens.max(1) * token
}

impl Config {
    /// The network of the released 3B checkpoint (spec sections 2.1 and 2.2).
    pub fn released() -> Self {
        Self {
            vision: VisionConfig::released(252),
            llm: LlmConfig::released(16),
            head: HeadConfig {
                dit_layers: 32,
                dit_heads: 32,
                dit_head_dim: 48,
                dit_output: 1024,
                hidden: 1024,
                future_tokens: 0,
                action_rows: 50,
                state_width: 128,
                action_width: 128,
                slots: 32,
                position_rows: 1024,
                cross_attention: CrossAttention::Alternate { text_every: 2 },
                steps: 4,
                timestep_buckets: 1000,
            },
        }
    }
}
