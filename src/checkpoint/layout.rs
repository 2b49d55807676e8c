//! The table of tensors of a checkpoint: names and shapes as functions of the configuration. The parts that versions
//! share stand here; each version puts its table together in its own file.

use std::collections::BTreeMap;

use super::network::{AdapterConfig, HeadConfig, LlmConfig, VisionConfig};
use super::{Checkpoint, CheckpointError};

/// Channels of the sinusoid that the timestep embedder of the action head reads.
pub const TIMESTEP_CHANNELS: usize = 256;

/// One tensor of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    pub name: String,
    pub shape: Vec<usize>,
    /// Whether inference reads it. What is stored but never read may be absent.
    pub used: bool,
}

/// Tensors that may be stored besides the network's own: training's mask, and tables that are recomputed.
const IGNORED_TENSORS: [&str; 3] = [".mask_token", ".inv_freq", ".position_ids"];

/// Checks that every tensor that inference reads is stored, and that there is none that the network does not know: that
/// would be another network.
pub(super) fn check_tensors(
    network: &[TensorSpec],
    stored: &Checkpoint,
) -> Result<(), CheckpointError> {
    compare(network, stored).into_iter().next().map_or(Ok(()), Err)
}

/// Everything that [`check_tensors`] refuses.
pub(super) fn compare(network: &[TensorSpec], stored: &Checkpoint) -> Vec<CheckpointError> {
    let table: BTreeMap<&str, &TensorSpec> =
        network.iter().map(|spec| (spec.name.as_str(), spec)).collect();
    let used = table.values().filter(|spec| spec.used);
    let unfit = used.filter_map(|spec| stored.expect(&spec.name, &spec.shape).err());
    let ignored = |name: &str| IGNORED_TENSORS.iter().any(|suffix| name.ends_with(suffix));
    let unknown = stored.names().filter(|name| !table.contains_key(name) && !ignored(name));
    let unknown = unknown.map(|name| CheckpointError::UnknownTensor {
        dir: stored.dir().to_owned(),
        tensor: name.to_owned(),
    });
    unfit.chain(unknown).collect()
}

/// Tensors in the order of the reference's modules, which decides how shards are split.
#[derive(Default)]
pub(super) struct Table {
    pub tensors: Vec<TensorSpec>,
}

impl Table {
    pub fn add(&mut self, name: String, shape: &[usize]) {
        self.tensors.push(TensorSpec { name, shape: shape.to_vec(), used: true });
    }

    pub fn add_unused(&mut self, name: String, shape: &[usize]) {
        self.tensors.push(TensorSpec { name, shape: shape.to_vec(), used: false });
    }

    /// `weight` `[out, input]` and `bias` `[out]`.
    pub fn linear(&mut self, prefix: &str, out: usize, input: usize) {
        self.add(format!("{prefix}.weight"), &[out, input]);
        self.add(format!("{prefix}.bias"), &[out]);
    }

    /// `weight` and `bias` of a layer norm, `[width]`.
    pub fn norm(&mut self, prefix: &str, width: usize) {
        self.add(format!("{prefix}.weight"), &[width]);
        self.add(format!("{prefix}.bias"), &[width]);
    }

    /// `W` `[slots, input, out]` and `b` `[slots, out]`: one Linear per embodiment slot.
    pub fn per_slot(&mut self, prefix: &str, slots: usize, input: usize, out: usize) {
        self.add(format!("{prefix}.W"), &[slots, input, out]);
        self.add(format!("{prefix}.b"), &[slots, out]);
    }

    /// A SigLIP tower under `tower`, with the pooling head that is stored but never read. `kernel` is how the values of
    /// a patch are laid out in the patch embedding.
    pub fn siglip(&mut self, tower: &str, config: &VisionConfig, kernel: &[usize]) {
        let width = config.width;
        let embedding = format!("{tower}.embeddings.patch_embedding");
        self.add(format!("{embedding}.weight"), &[&[width], kernel].concat());
        self.add(format!("{embedding}.bias"), &[width]);
        let positions = config.position_side * config.position_side;
        self.add(format!("{tower}.embeddings.position_embedding.weight"), &[positions, width]);
        for layer in 0..config.layers {
            let prefix = format!("{tower}.encoder.layers.{layer}");
            self.norm(&format!("{prefix}.layer_norm1"), width);
            for projection in ["k_proj", "v_proj", "q_proj", "out_proj"] {
                self.linear(&format!("{prefix}.self_attn.{projection}"), width, width);
            }
            self.norm(&format!("{prefix}.layer_norm2"), width);
            self.linear(&format!("{prefix}.mlp.fc1"), config.mlp_width, width);
            self.linear(&format!("{prefix}.mlp.fc2"), width, config.mlp_width);
        }
        self.norm(&format!("{tower}.post_layernorm"), width);
        self.pooling_head(tower, config);
    }

    fn pooling_head(&mut self, tower: &str, config: &VisionConfig) {
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
            self.add_unused(format!("{tower}.head.{name}"), shape);
        }
    }

    /// Embeddings, the kept layers of a Qwen3 language model and their final norm, under `model`.
    pub fn qwen3(&mut self, model: &str, config: &LlmConfig) {
        let width = config.width;
        let (query, key) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        self.add(format!("{model}.embed_tokens.weight"), &[config.vocabulary, width]);
        for layer in 0..config.layers {
            let prefix = format!("{model}.layers.{layer}");
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
        self.add(format!("{model}.norm.weight"), &[width]);
    }

    /// The timestep embedder, the blocks and the output of a DiT under `dit`; even blocks look at features of `memory`
    /// columns, odd ones at the tokens themselves.
    pub fn dit(&mut self, dit: &str, config: &HeadConfig, memory: usize) {
        let width = config.dit_width();
        let embedder = format!("{dit}.timestep_encoder.timestep_embedder");
        self.linear(&format!("{embedder}.linear_1"), width, TIMESTEP_CHANNELS);
        self.linear(&format!("{embedder}.linear_2"), width, width);
        for block in 0..config.dit_layers {
            let prefix = format!("{dit}.transformer_blocks.{block}");
            let source = if block % 2 == 0 { memory } else { width };
            self.linear(&format!("{prefix}.norm1.linear"), 2 * width, width);
            self.linear(&format!("{prefix}.attn1.to_q"), width, width);
            self.linear(&format!("{prefix}.attn1.to_k"), width, source);
            self.linear(&format!("{prefix}.attn1.to_v"), width, source);
            self.linear(&format!("{prefix}.attn1.to_out.0"), width, width);
            self.linear(&format!("{prefix}.ff.net.0.proj"), 4 * width, width);
            self.linear(&format!("{prefix}.ff.net.2"), width, 4 * width);
        }
        self.linear(&format!("{dit}.proj_out_1"), 2 * width, width);
        self.linear(&format!("{dit}.proj_out_2"), config.dit_output, width);
    }

    /// The self-attention blocks over the backbone's features of `width` columns, under `adapter`.
    pub fn adapter(&mut self, adapter: &str, config: &AdapterConfig, width: usize) {
        for block in 0..config.layers {
            let prefix = format!("{adapter}.transformer_blocks.{block}");
            self.norm(&format!("{prefix}.norm1"), width);
            for projection in ["to_q", "to_k", "to_v", "to_out.0"] {
                self.linear(&format!("{prefix}.attn1.{projection}"), width, width);
            }
            self.norm(&format!("{prefix}.norm3"), width);
            self.linear(&format!("{prefix}.ff.net.0.proj"), 4 * width, width);
            self.linear(&format!("{prefix}.ff.net.2"), width, 4 * width);
        }
    }

    /// State encoder, action encoder and action decoder under `head`, one of each per embodiment slot.
    pub fn codecs(&mut self, head: &str, config: &HeadConfig) {
        let width = config.dit_width();
        let (slots, hidden) = (config.slots, config.hidden);
        self.per_slot(&format!("{head}.state_encoder.layer1"), slots, config.state_width, hidden);
        self.per_slot(&format!("{head}.state_encoder.layer2"), slots, hidden, width);
        self.per_slot(&format!("{head}.action_encoder.W1"), slots, config.action_width, width);
        self.per_slot(&format!("{head}.action_encoder.W2"), slots, 2 * width, width);
        self.per_slot(&format!("{head}.action_encoder.W3"), slots, width, width);
        self.per_slot(&format!("{head}.action_decoder.layer1"), slots, config.dit_output, hidden);
        self.per_slot(&format!("{head}.action_decoder.layer2"), slots, hidden, config.action_width);
    }
}
