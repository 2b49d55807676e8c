//! The tensors of an N1.7 checkpoint (spec section 2.1).

use super::{Config, Qwen3VisionConfig};
use crate::checkpoint::layout::{Table, TensorSpec};
use crate::checkpoint::network::{AdapterConfig, LlmConfig};

const VISION: &str = "backbone.model.model.visual";
const LLM: &str = "backbone.model.model.language_model";
const HEAD: &str = "action_head";
const CHANNELS: usize = 3;

/// Every tensor of a checkpoint, in the order of the reference's modules.
pub fn tensors(config: &Config) -> Vec<TensorSpec> {
    let Config { vision, llm, adapter, head, .. } = config;
    let mut table = Table::default();
    tower(&mut table, vision, llm.width);
    language_model(&mut table, llm);
    table.dit(&format!("{HEAD}.model"), head, llm.width);
    table.codecs(HEAD, head);
    table.norm(&format!("{HEAD}.vlln"), llm.width);
    self_attention(&mut table, adapter, llm.width);
    let positions = [head.position_rows, head.dit_width()];
    table.add(format!("{HEAD}.position_embedding.weight"), &positions);
    table.tensors
}

fn tower(table: &mut Table, config: &Qwen3VisionConfig, llm_width: usize) {
    let (width, patch) = (config.width, config.patch);
    let kernel = [width, CHANNELS, config.temporal_patch, patch, patch];
    table.add(format!("{VISION}.patch_embed.proj.weight"), &kernel);
    table.add(format!("{VISION}.patch_embed.proj.bias"), &[width]);
    let positions = config.position_side * config.position_side;
    table.add(format!("{VISION}.pos_embed.weight"), &[positions, width]);
    for block in 0..config.layers {
        let prefix = format!("{VISION}.blocks.{block}");
        table.norm(&format!("{prefix}.norm1"), width);
        table.norm(&format!("{prefix}.norm2"), width);
        table.linear(&format!("{prefix}.attn.qkv"), 3 * width, width);
        table.linear(&format!("{prefix}.attn.proj"), width, width);
        table.linear(&format!("{prefix}.mlp.linear_fc1"), config.mlp_width, width);
        table.linear(&format!("{prefix}.mlp.linear_fc2"), width, config.mlp_width);
    }
    let grouped = config.merge * config.merge * width;
    let mut merger = |prefix: String, normed: usize| {
        table.norm(&format!("{prefix}.norm"), normed);
        table.linear(&format!("{prefix}.linear_fc1"), grouped, grouped);
        table.linear(&format!("{prefix}.linear_fc2"), llm_width, grouped);
    };
    merger(format!("{VISION}.merger"), width);
    for at in 0..config.deepstack_blocks.len() {
        merger(format!("{VISION}.deepstack_merger_list.{at}"), grouped);
    }
}

/// The features are taken before the final norm, so that neither it nor `lm_head` is ever read.
fn language_model(table: &mut Table, config: &LlmConfig) {
    table.qwen3(LLM, config);
    if let Some(norm) = table.tensors.last_mut() {
        norm.used = false;
    }
    table
        .add_unused("backbone.model.lm_head.weight".to_owned(), &[config.vocabulary, config.width]);
}

fn self_attention(table: &mut Table, config: &AdapterConfig, width: usize) {
    for block in 0..config.layers {
        let prefix = format!("{HEAD}.vl_self_attention.transformer_blocks.{block}");
        table.norm(&format!("{prefix}.norm1"), width);
        for projection in ["to_q", "to_k", "to_v", "to_out.0"] {
            table.linear(&format!("{prefix}.attn1.{projection}"), width, width);
        }
        table.norm(&format!("{prefix}.norm3"), width);
        table.linear(&format!("{prefix}.ff.net.0.proj"), 4 * width, width);
        table.linear(&format!("{prefix}.ff.net.2"), width, 4 * width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<'a>(tensors: impl IntoIterator<Item = &'a TensorSpec>) -> usize {
        tensors.into_iter().map(|tensor| 2 * tensor.shape.iter().product::<usize>()).sum()
    }

    #[test]
    fn released_network_has_the_published_size() {
        let all = tensors(&Config::released());
        assert_eq!(all.len(), 1031);
        assert_eq!(bytes(&all), 6_910_361_856);
        let parts = [
            (VISION, 315, 813_914_112),
            (LLM, 178, 622_329_856 + 1_610_756_096),
            ("backbone.model.lm_head", 1, 622_329_856),
            ("action_head.model.", 456, 2_183_444_480),
            ("action_head.vl_self_attention.", 64, 402_866_176),
            ("action_head.action_encoder.", 6, 466_255_872),
            ("action_head.state_encoder.", 4, 109_477_888),
            ("action_head.action_decoder.", 4, 75_833_600),
            ("action_head.position_embedding", 1, 3_145_728),
            ("action_head.vlln", 2, 8_192),
        ];
        for (prefix, count, size) in parts {
            let part = || all.iter().filter(|tensor| tensor.name.starts_with(prefix));
            assert_eq!((part().count(), bytes(part())), (count, size), "{prefix}");
        }
        let unused: Vec<&str> =
            all.iter().filter(|tensor| !tensor.used).map(|tensor| tensor.name.as_str()).collect();
        let norm = format!("{LLM}.norm.weight");
        assert_eq!(unused, [norm.as_str(), "backbone.model.lm_head.weight"]);
    }
}
