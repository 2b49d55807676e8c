//! Configuration of an N1.5 snapshot.

use super::network::{AdapterConfig, HeadConfig, LlmConfig, VisionConfig};

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
