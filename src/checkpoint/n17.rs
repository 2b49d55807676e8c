//! The N1.7 network: its numbers, where they are read from, and the tensors that follow from them.

mod config;
mod layout;

use std::ops::RangeInclusive;
use std::path::Path;

pub(super) use config::to_json;
pub use layout::tensors;

use super::CheckpointError;
use super::network::files::ConfigFiles;
use super::network::{AdapterConfig, CrossAttention, HeadConfig, LlmConfig};
use super::processor::{Backbone, Processor, Schema};

/// Optional file that overrides the built-in geometry of the backbone, in Hugging Face's schema for Qwen3-VL.
pub const BACKBONE_FILE: &str = "qwen3vl_config.json";

/// Shortest picture edges that are served, in pixels.
pub const IMAGE_EDGES: RangeInclusive<usize> = 32..=2048;

/// Folder in which the processor's files may lie instead of beside the weights.
pub(super) const PROCESSOR_FOLDER: &str = "processor";

/// The backbone of the released checkpoint.
pub(super) const BACKBONE: &str = "nvidia/Cosmos-Reason2-2B";

/// Slots of the tags that `embodiment_id.json` leaves out, and the reference's other names for them (spec section 3.1).
const BUILT_IN: [(&str, usize, &str); 16] = [
    ("oxe_droid_relative_eef_relative_joint", 24, "OXE_DROID_RELATIVE_EEF_RELATIVE_JOINT"),
    ("real_g1_relative_eef_relative_joints", 25, "REAL_G1"),
    ("real_r1_pro_sharpa_relative_eef", 26, "REAL_R1_PRO_SHARPA"),
    ("real_r1_pro_sharpa_relative_eef_human", 26, "REAL_R1_PRO_SHARPA_HUMAN"),
    ("real_r1_pro_sharpa_relative_eef_maxinsights", 26, "REAL_R1_PRO_SHARPA_MAXINSIGHTS"),
    ("real_r1_pro_sharpa_relative_eef_mecka", 26, "REAL_R1_PRO_SHARPA_MECKA"),
    ("xdof_relative_eef_relative_joint", 27, "XDOF"),
    ("xdof_relative_eef_relative_joint_subtask", 27, "XDOF_SUBTASK"),
    ("unitree_g1_full_body_with_waist_height_nav_cmd", 25, "UNITREE_G1"),
    ("unitree_g1_sonic", 11, "UNITREE_G1_SONIC"),
    ("simpler_env_google", 0, "SIMPLER_ENV_GOOGLE"),
    ("simpler_env_widowx", 1, "SIMPLER_ENV_WIDOWX"),
    ("libero_sim", 2, "LIBERO_PANDA"),
    ("new_embodiment", 10, "NEW_EMBODIMENT"),
    ("robocasa_panda_omron", 10, "ROBOCASA_PANDA_OMRON"),
    ("robocasa_gr1_tabletop", 10, "ROBOCASA_GR1_TABLETOP"),
];

/// Tag -> slot, for the tags that `embodiment_id.json` leaves out.
pub(super) fn built_in_slots() -> impl Iterator<Item = (&'static str, usize)> {
    BUILT_IN.into_iter().map(|(tag, slot, _)| (tag, slot))
}

/// The tag that the reference takes `name` for: the name of its constant first, then the tag, both in any case.
pub(super) fn tag_of(name: &str) -> Option<&'static str> {
    let constant = BUILT_IN.iter().find(|(_, _, constant)| constant.eq_ignore_ascii_case(name));
    let found =
        constant.or_else(|| BUILT_IN.iter().find(|(tag, ..)| tag.eq_ignore_ascii_case(name)));
    found.map(|(tag, ..)| *tag)
}

/// What is particular to N1.7 in `processor_config.json`.
pub(super) const PROCESSOR_SCHEMA: Schema = Schema {
    class: "Gr00tN1d7Processor",
    backbone_kind: "qwen",
    backbone: Backbone::Containing(&["nvidia/Cosmos-Reason2", "Qwen/Qwen3-VL"]),
    edges: IMAGE_EDGES,
    letterbox_key: Some("letter_box_transform"),
};

/// Reads the network's configuration.
pub(super) fn read_config(dir: &Path, processor: &Processor) -> Result<Config, CheckpointError> {
    let files = ConfigFiles::read(dir, BACKBONE_FILE)?;
    let (fields, backbone) = (files.config(), files.backbone());

    let config = config::read(&fields, backbone.as_ref())?;
    processor.check_widths(&fields, &config.head)?;
    Ok(config)
}

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

impl Config {
    /// The network of the released 3B checkpoint (spec sections 1.2 and 2.2).
    pub fn released() -> Self {
        Self {
            vision: Qwen3VisionConfig {
                width: 1024,
                layers: 24,
                heads: 16,
                mlp_width: 4096,
                patch: 16,
                temporal_patch: 2,
                merge: 2,
                position_side: 48,
                deepstack_blocks: vec![5, 11, 17],
            },
            llm: LlmConfig {
                vocabulary: 151_936,
                rope_theta: 5_000_000.0,
                ..LlmConfig::released(16)
            },
            rope_sections: [24, 20, 20],
            adapter: AdapterConfig { layers: 4, heads: 32, head_dim: 64 },
            head: HeadConfig {
                dit_layers: 32,
                dit_heads: 32,
                dit_head_dim: 48,
                dit_output: 1024,
                hidden: 1024,
                future_tokens: 0,
                action_rows: 40,
                state_width: 132,
                action_width: 132,
                slots: 32,
                position_rows: 1024,
                cross_attention: CrossAttention::Alternate { text_every: 2 },
                steps: 4,
                timestep_buckets: 1000,
            },
        }
    }
}
