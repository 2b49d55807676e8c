//! The table of tensors: names and shapes as functions of the configuration (spec section 1).

use super::{
    Config, HeadConfig, LlmConfig, PATCHES_PER_TOKEN_SIDE, TIMESTEP_CHANNELS, VisionConfig,
};

const VISION: &str = "backbone.model.vision_model.vision_model";
const CONNECTOR: &str = "backbone.model.mlp1";
const LLM: &str = "backbone.model.language_model";
const HEAD: &str = "action_head";

/// One tensor of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    pub name: String,
    pub shape: Vec<usize>,
    /// Whether inference reads it. The pooling head and `lm_head` are stored but never read, and may be absent.
    pub used: bool,
}

/// Every tensor of a checkpoint, in the order of the reference's modules, which decides how shards are split.
pub fn tensors(config: &Config) -> Vec<TensorSpec> {
    let mut table = Table::default();
    table.vision(&config.vision);
    table.llm(&config.llm);
    table.connector(&config.vision, &config.llm);
    table.head(&config.head, &config.llm);
    table.tensors
}

#[derive(Default)]
struct Table {
    tensors: Vec<TensorSpec>,
}

impl Table {
    fn add(&mut self, name: String, shape: &[usize]) {
        self.tensors.push(TensorSpec { name, shape: shape.to_vec(), used: true });
    }

    fn add_unused(&mut self, name: String, shape: &[usize]) {
        self.tensors.push(TensorSpec { name, shape: shape.to_vec(), used: false });
    }

    /// `weight` `[out, input]` and `bias` `[out]`.
    fn linear(&mut self, prefix: &str, out: usize, input: usize) {
        self.add(format!("{prefix}.weight"), &[out, input]);
        self.add(format!("{prefix}.bias"), &[out]);
    }

    /// `weight` and `bias` of a layer norm, `[width]`.
    fn norm(&mut self, prefix: &str, width: usize) {
        self.add(format!("{prefix}.weight"), &[width]);
        self.add(format!("{prefix}.bias"), &[width]);
    }

    /// `W` `[slots, input, out]` and `b` `[slots, out]`: one Linear per embodiment slot.
    fn per_slot(&mut self, prefix: &str, slots: usize, input: usize, out: usize) {
        self.add(format!("{prefix}.W"), &[slots, input, out]);
        self.add(format!("{prefix}.b"), &[slots, out]);
    }

    fn vision(&mut self, config: &VisionConfig) {
        let width = config.width;
        let patch_values = 3 * config.patch * config.patch;
        self.linear(&format!("{VISION}.embeddings.patch_embedding"), width, patch_values);
        let positions = config.position_side * config.position_side;
        self.add(format!("{VISION}.embeddings.position_embedding.weight"), &[positions, width]);
        for layer in 0..config.layers {
            let prefix = format!("{VISION}.encoder.layers.{layer}");
            self.norm(&format!("{prefix}.layer_norm1"), width);
            for projection in ["k_proj", "v_proj", "q_proj", "out_proj"] {
                self.linear(&format!("{prefix}.self_attn.{projection}"), width, width);
            }
            self.norm(&format!("{prefix}.layer_norm2"), width);
            self.linear(&format!("{prefix}.mlp.fc1"), config.mlp_width, width);
            self.linear(&format!("{prefix}.mlp.fc2"), width, config.mlp_width);
        }
        self.norm(&format!("{VISION}.post_layernorm"), width);
        self.pooling_head(config);
    }

    fn pooling_head(&mut self, config: &VisionConfig) {
        let (width, mlp) = (config.width, config.mlp_width);
        let entries: [(&str, &[usize]); 11] = [
            ("probe", &[1, 1, width]),
            ("attention.in_proj_weight", &[3 * width, width]),
            ("attention.in_proj_bias", &[3 * width]),
            ("attention.out_proj.weight", &[width, width]),
            ("attention.out_proj.bias", &[width]),
            ("layernorm.weight", &[width]),
            ("layernorm.bias", &[width]),
            ("mlp.fc1.weight", &[mlp, width]),
            ("mlp.fc1.bias", &[mlp]),
            ("mlp.fc2.weight", &[width, mlp]),
            ("mlp.fc2.bias", &[width]),
        ];
        for (name, shape) in entries {
            self.add_unused(format!("{VISION}.head.{name}"), shape);
        }
    }

    fn llm(&mut self, config: &LlmConfig) {
        let width = config.width;
        let (query, key) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        self.add(format!("{LLM}.model.embed_tokens.weight"), &[config.vocabulary, width]);
        for layer in 0..config.layers {
            let prefix = format!("{LLM}.model.layers.{layer}");
            let entries: [(&str, &[usize]); 11] = [
                ("self_attn.q_proj", &[query, width]),
                ("self_attn.k_proj", &[key, width]),
                ("self_attn.v_proj", &[key, width]),
                ("self_attn.o_proj", &[width, query]),
                ("self_attn.q_norm", &[config.head_dim]),
                ("self_attn.k_norm", &[config.head_dim]),
                ("mlp.gate_proj", &[config.mlp_width, width]),
                ("mlp.up_proj", &[config.mlp_width, width]),
                ("mlp.down_proj", &[width, config.mlp_width]),
                ("input_layernorm", &[width]),
                ("post_attention_layernorm", &[width]),
            ];
            for (name, shape) in entries {
                self.add(format!("{prefix}.{name}.weight"), shape);
            }
        }
        self.add(format!("{LLM}.model.norm.weight"), &[width]);
        self.add_unused(format!("{LLM}.lm_head.weight"), &[config.vocabulary, width]);
    }

    fn connector(&mut self, vision: &VisionConfig, llm: &LlmConfig) {
        let joined = PATCHES_PER_TOKEN_SIDE * PATCHES_PER_TOKEN_SIDE * vision.width;
        self.norm(&format!("{CONNECTOR}.0"), joined);
        self.linear(&format!("{CONNECTOR}.1"), llm.width, joined);
        self.linear(&format!("{CONNECTOR}.3"), llm.width, llm.width);
    }

    fn head(&mut self, config: &HeadConfig, llm: &LlmConfig) {
        let width = config.dit_width();
        let embedder = format!("{HEAD}.model.timestep_encoder.timestep_embedder");
        self.linear(&format!("{embedder}.linear_1"), width, TIMESTEP_CHANNELS);
        self.linear(&format!("{embedder}.linear_2"), width, width);
        for block in 0..config.dit_layers {
            let prefix = format!("{HEAD}.model.transformer_blocks.{block}");
            let source = if block % 2 == 0 { llm.width } else { width };
            self.linear(&format!("{prefix}.norm1.linear"), 2 * width, width);
            self.linear(&format!("{prefix}.attn1.to_q"), width, width);
            self.linear(&format!("{prefix}.attn1.to_k"), width, source);
            self.linear(&format!("{prefix}.attn1.to_v"), width, source);
            self.linear(&format!("{prefix}.attn1.to_out.0"), width, width);
            self.linear(&format!("{prefix}.ff.net.0.proj"), 4 * width, width);
            self.linear(&format!("{prefix}.ff.net.2"), width, 4 * width);
        }
        self.linear(&format!("{HEAD}.model.proj_out_1"), 2 * width, width);
        self.linear(&format!("{HEAD}.model.proj_out_2"), config.dit_output, width);

        let (slots, hidden) = (config.slots, config.hidden);
        self.per_slot(&format!("{HEAD}.state_encoder.layer1"), slots, config.state_width, hidden);
        self.per_slot(&format!("{HEAD}.state_encoder.layer2"), slots, hidden, width);
        self.per_slot(&format!("{HEAD}.action_encoder.W1"), slots, config.action_width, width);
        self.per_slot(&format!("{HEAD}.action_encoder.W2"), slots, 2 * width, width);
        self.per_slot(&format!("{HEAD}.action_encoder.W3"), slots, width, width);
        self.per_slot(&format!("{HEAD}.action_decoder.layer1"), slots, config.dit_output, hidden);
        self.per_slot(&format!("{HEAD}.action_decoder.layer2"), slots, hidden, config.action_width);
        self.norm(&format!("{HEAD}.vlln"), llm.width);
        self.add(format!("{HEAD}.position_embedding.weight"), &[config.position_rows, width]);
    }
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
