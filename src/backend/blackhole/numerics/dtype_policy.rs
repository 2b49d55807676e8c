//! Which weights the card holds in which format.

use super::format::TileFormat;

/// The weights of products in the transformer blocks take almost all of the card's memory traffic; the others (slots of
/// an embodiment, connectors, norms, biases, embeddings) are always bf16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DtypePolicy {
    /// All weights as they are in the checkpoint.
    Bf16,
    /// The weights of all transformer blocks as bfp8_b.
    Mixed,
    /// Those of the DiT's blocks as bfp8_b.
    #[default]
    MixedDit,
}

impl DtypePolicy {
    pub const ALL: [Self; 3] = [Self::Bf16, Self::Mixed, Self::MixedDit];
    pub const NAMES: [&'static str; 3] =
        [Self::Bf16.name(), Self::Mixed.name(), Self::MixedDit.name()];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Mixed => "mixed",
            Self::MixedDit => "mixed_dit",
        }
    }

    /// The format of a matrix that rows are multiplied by; `tensor` is its name in the checkpoint.
    pub fn format(self, tensor: &str) -> TileFormat {
        let compressed = match self {
            Self::Bf16 => false,
            Self::Mixed => is_numbered(tensor),
            Self::MixedDit => is_dit_block(tensor),
        };
        if compressed { TileFormat::Bfp8B } else { TileFormat::Bf16 }
    }
}

/// Of a block of the action head's transformer: `action_head.model.transformer_blocks.7.attn1.to_q.weight`.
fn is_dit_block(tensor: &str) -> bool {
    tensor.contains(".model.transformer_blocks.")
}

/// Of one of many equal blocks, which have a number in their name. `mlp1.0.weight` is not one of them: there it is the
/// place in a sequence of layers.
fn is_numbered(tensor: &str) -> bool {
    [".layers.", ".blocks.", ".transformer_blocks."].iter().any(|list| tensor.contains(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_differ_in_what_they_compress() {
        let formats = |tensor: &str| DtypePolicy::ALL.map(|policy| policy.format(tensor));
        use TileFormat::{Bf16, Bfp8B};
        let dit = "action_head.model.transformer_blocks.7.attn1.to_q.weight";
        assert_eq!(formats(dit), [Bf16, Bfp8B, Bfp8B]);
        let llm = "backbone.model.language_model.model.layers.3.mlp.up_proj.weight";
        assert_eq!(formats(llm), [Bf16, Bfp8B, Bf16]);
        let adapter = "action_head.vl_self_attention.transformer_blocks.0.attn1.to_q.weight";
        assert_eq!(formats(adapter), [Bf16, Bfp8B, Bf16]);
        assert_eq!(formats("backbone.model.mlp1.1.weight"), [Bf16; 3]);
        assert_eq!(formats("action_head.action_decoder.layer1.W"), [Bf16; 3]);
    }
}
