//! The N1.5 network: its numbers, where they are read from, the tensors that follow from them, and the data configs that
//! say how a robot's cameras, state and actions are processed.

mod config;
mod data_configs;
mod embodiments;
mod layout;
mod metadata;
mod problem;

use std::path::Path;

pub(super) use config::to_json;
pub use data_configs::{ActionMode, DATA_CONFIGS, DataConfig, StateMode};
pub(super) use embodiments::{Choices, Sources, choose};
pub use layout::tensors;
pub use problem::{DataConfigProblem, Misfit};

use super::CheckpointError;
use super::network::files::ConfigFiles;
use super::network::{AdapterConfig, CrossAttention, HeadConfig, LlmConfig, VisionConfig};

/// Optional file that overrides the built-in geometry of the backbone.
pub const BACKBONE_FILE: &str = "eagle/config.json";

/// File with the groups, cameras and statistics of every embodiment.
pub const METADATA_FILE: &str = "experiment_cfg/metadata.json";

/// Side of the picture that the vision tower sees, in pixels.
const IMAGE_SIDE: usize = 224;

/// Reads the network's configuration.
pub(super) fn read_config(dir: &Path) -> Result<Config, CheckpointError> {
    let files = ConfigFiles::read(dir, BACKBONE_FILE)?;
    let (fields, backbone) = (files.config(), files.backbone());
    config::read(&fields, backbone.as_ref())
}

/// Everything about the N1.5 network that is a number (spec: `config.json` and the backbone's constants).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub vision: VisionConfig,
    pub llm: LlmConfig,
    /// Width of the projection after the language model, where a fine-tuned checkpoint has one.
    pub projection: Option<usize>,
    pub adapter: AdapterConfig,
    pub head: HeadConfig,
}

impl Config {
    /// Width of the features that adapter and action head read.
    pub fn features(&self) -> usize {
        self.projection.unwrap_or(self.llm.width)
    }

    /// The network of the released 3B checkpoint (spec sections 2 and 3.1).
    pub fn released() -> Self {
        Self {
            vision: VisionConfig::released(IMAGE_SIDE),
            llm: LlmConfig::released(12),
            projection: None,
            adapter: AdapterConfig { layers: 4, heads: 32, head_dim: 64 },
            head: HeadConfig {
                dit_layers: 16,
                dit_heads: 32,
                dit_head_dim: 48,
                dit_output: 1024,
                hidden: 1024,
                future_tokens: 32,
                action_rows: data_configs::HORIZON,
                state_width: data_configs::STATE_WIDTH,
                action_width: data_configs::ACTION_WIDTH,
                slots: 32,
                position_rows: 1024,
                cross_attention: CrossAttention::All,
                steps: 4,
                timestep_buckets: 1000,
            },
        }
    }
}
