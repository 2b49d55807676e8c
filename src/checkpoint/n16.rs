//! Configuration of an N1.6 snapshot.

use super::network::{HeadConfig, LlmConfig, VisionConfig};

/// Everything about the N1.6 network that is a number (spec: `config.json` and the backbone's constants).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub vision: VisionConfig,
    pub llm: LlmConfig,
    pub head: HeadConfig,
}
