//! The tensors of an N1.6 checkpoint (spec section 1).

use super::{Config, PATCHES_PER_TOKEN_SIDE};
use crate::checkpoint::layout::{Table, TensorSpec};

const VISION: &str = "backbone.model.vision_model.vision_model";
const CONNECTOR: &str = "backbone.model.mlp1";
const LLM: &str = "backbone.model.language_model";
const HEAD: &str = "action_head";

/// Every tensor of a checkpoint, in the order of the reference's modules.
pub fn tensors(config: &Config) -> Vec<TensorSpec> {
    let Config { vision, llm, head } = config;
    let mut table = Table::default();
    table.siglip(VISION, vision);
    table.qwen3(&format!("{LLM}.model"), llm);
    table.add_unused(format!("{LLM}.lm_head.weight"), &[llm.vocabulary, llm.width]);

    let joined = PATCHES_PER_TOKEN_SIDE * PATCHES_PER_TOKEN_SIDE * vision.width;
    table.norm(&format!("{CONNECTOR}.0"), joined);
    table.linear(&format!("{CONNECTOR}.1"), llm.width, joined);
    table.linear(&format!("{CONNECTOR}.3"), llm.width, llm.width);

    table.dit(&format!("{HEAD}.model"), head, llm.width);
    table.codecs(HEAD, head);
    table.norm(&format!("{HEAD}.vlln"), llm.width);
    let positions = [head.position_rows, head.dit_width()];
    table.add(format!("{HEAD}.position_embedding.weight"), &positions);
    table.tensors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(tensors: &[TensorSpec]) -> usize {
        tensors.iter().map(|tensor| 2 * tensor.shape.iter().product::<usize>()).sum()
    }

    #[test]
    fn released_network_has_the_published_size() {
        let all = tensors(&Config::released());
        assert_eq!(all.len(), 1106);
        assert_eq!(bytes(&all), 6_573_217_664);
        let with_prefix = |prefix: &str| -> Vec<TensorSpec> {
            all.iter().filter(|tensor| tensor.name.starts_with(prefix)).cloned().collect()
        };
        assert_eq!(with_prefix(VISION).len(), 448);
        assert_eq!(bytes(&with_prefix(VISION)), 2 * 427_680_704);
        assert_eq!(with_prefix(LLM).len(), 179);
        assert_eq!(bytes(&with_prefix(CONNECTOR)), 2 * 13_644_800);
        assert_eq!(with_prefix(HEAD).len(), 473);
        assert_eq!(bytes(&with_prefix(HEAD)), 2 * 1_418_624_000);
        let unused: Vec<TensorSpec> = all.into_iter().filter(|tensor| !tensor.used).collect();
        assert_eq!(bytes(&unused), 2 * (15_238_352 + 310_640_640));
    }
}
