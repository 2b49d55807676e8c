//! The tensors of an N1.5 checkpoint (spec section 2).

use super::Config;
use crate::checkpoint::layout::{Table, TensorSpec};

const VISION: &str = "backbone.eagle_model.vision_model.vision_model";
const CONNECTOR: &str = "backbone.eagle_model.mlp1";
const LLM: &str = "backbone.eagle_model.language_model";
const PROJECTION: &str = "backbone.eagle_linear";
const HEAD: &str = "action_head";

/// Every tensor of a checkpoint, in the order of the reference's modules.
pub fn tensors(config: &Config) -> Vec<TensorSpec> {
    let Config { vision, llm, projection, adapter, head } = config;
    let mut table = Table::default();
    table.siglip(VISION, vision, &[3, vision.patch, vision.patch]);
    table.qwen3(&format!("{LLM}.model"), llm);
    table.add_unused(format!("{LLM}.lm_head.weight"), &[llm.vocabulary, llm.width]);
    table.linear(&format!("{CONNECTOR}.0"), llm.width, vision.width);
    if let Some(width) = projection {
        table.linear(PROJECTION, *width, llm.width);
    }

    table.dit(&format!("{HEAD}.model"), head, config.features());
    table.codecs(HEAD, head);
    let width = head.dit_width();
    table.add(format!("{HEAD}.future_tokens.weight"), &[head.future_tokens, width]);
    table.norm(&format!("{HEAD}.vlln"), config.features());
    table.adapter(&format!("{HEAD}.vl_self_attention"), adapter, config.features());
    table.add(format!("{HEAD}.position_embedding.weight"), &[head.position_rows, width]);
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
        assert_eq!(all.len(), 899);
        assert_eq!(bytes(&all), 5_448_327_040);
    }

    #[test]
    fn a_projection_narrows_everything_behind_it() {
        let config = Config { projection: Some(1536), ..Config::released() };
        let all = tensors(&config);
        assert_eq!(all.len(), 901);
        let shape = |name: &str| {
            let found = all.iter().find(|tensor| tensor.name == name);
            found.unwrap_or_else(|| panic!("{name}")).shape.clone()
        };
        assert_eq!(shape("backbone.eagle_linear.weight"), [1536, 2048]);
        assert_eq!(shape("action_head.vlln.weight"), [1536]);
        let key = "action_head.model.transformer_blocks.0.attn1.to_k.weight";
        assert_eq!(shape(key), [1536, 1536]);
    }
}
