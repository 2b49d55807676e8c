//! What an operation is called in a table: operations that many equal blocks have in common are called the same.

use crate::program::{Activation, Op, Program, WeightId};

/// Lists of equal blocks, as they stand in the names of tensors.
const BLOCKS: [&str; 3] = [".layers.", ".blocks.", ".transformer_blocks."];
/// What the names of matrices and vectors end with.
const ENDINGS: [&str; 4] = [".weight", ".bias", ".W", ".b"];

/// Such as `mlp.down_proj`, `attention over 448 keys`, `norm`.
pub fn label(program: &Program, op: &Op) -> String {
    let of = |weight: &WeightId| short(&program.weights[weight.0].tensor);
    match op {
        Op::Linear { weight, activation, .. } | Op::LinearBuffer { weight, activation, .. } => {
            let behind = match activation {
                Activation::Identity => "",
                Activation::Relu => " + relu",
                Activation::Silu => " + silu",
                Activation::GeluTanh | Activation::GeluErf => " + gelu",
            };
            format!("{}{behind}", of(weight))
        }
        Op::LayerNorm { affine: Some((weight, _)), .. } | Op::RmsNorm { weight, .. } => of(weight),
        Op::LayerNorm { modulation: Some(_), .. } => "modulated norm".to_owned(),
        Op::LayerNorm { .. } => "norm".to_owned(),
        Op::Rope { .. } => "rotary positions".to_owned(),
        Op::Attention { k, shape, .. } => {
            format!("attention over {} keys", k.rows / shape.sequences.max(1))
        }
        Op::Embed { .. } => "embed tokens".to_owned(),
        Op::GatherRows { .. } => "gather rows".to_owned(),
        Op::ScatterRows { .. } => "scatter rows".to_owned(),
        Op::ScatterAddRows { .. } => "add to rows".to_owned(),
        Op::Reshape { .. } => "reshape".to_owned(),
        Op::Copy { .. } => "copy".to_owned(),
        Op::CopyWeight { weight, .. } => format!("copy {}", of(weight)),
        Op::Add { .. } => "add".to_owned(),
        Op::AddWeight { weight, .. } => format!("add {}", of(weight)),
        Op::AddScaled { .. } => "Euler step".to_owned(),
        Op::Map { .. } => "activation".to_owned(),
        Op::SiluMul { .. } => "silu x up".to_owned(),
        Op::Patchify { .. } => "cut patches".to_owned(),
        Op::SpaceToDepth { .. } => "space to depth".to_owned(),
        Op::Tap { name, .. } => format!("tap {name}"),
    }
}

/// The end of a tensor's name: what stands behind the number of its block, or its last two parts. Numbers between them,
/// which tell apart what is alike, do not count.
fn short(tensor: &str) -> String {
    let ending = ENDINGS.into_iter().find_map(|ending| tensor.strip_suffix(ending));
    let name = ending.unwrap_or(tensor);
    let in_block = BLOCKS.into_iter().find_map(|list| Some(name.split_once(list)?.1));
    if let Some((_, rest)) = in_block.and_then(|numbered| numbered.split_once('.')) {
        return rest.to_owned();
    }
    let (list, last) = name.rsplit_once('.').unwrap_or(("", name));
    let named = list.rsplit('.').find(|part| part.parse::<usize>().is_err());
    match named {
        Some(part) if !part.is_empty() => format!("{part}.{last}"),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_equal_tensors_of_all_blocks_are_the_same() {
        for (tensor, name) in [
            ("backbone.model.language_model.model.layers.3.mlp.down_proj.weight", "mlp.down_proj"),
            ("action_head.model.transformer_blocks.17.ff.net.0.proj.weight", "ff.net.0.proj"),
            ("backbone.model.model.visual.blocks.3.attn.qkv.weight", "attn.qkv"),
            ("backbone.model.mlp1.1.weight", "mlp1.1"),
            ("visual.deepstack_merger_list.2.norm.weight", "deepstack_merger_list.norm"),
            ("action_head.action_encoder.W2.W", "action_encoder.W2"),
            ("action_head.vlln.weight", "action_head.vlln"),
            ("vlln", "vlln"),
        ] {
            assert_eq!(short(tensor), name);
        }
    }
}
