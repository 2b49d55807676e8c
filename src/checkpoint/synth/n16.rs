//! Synthetic N1.6 snapshots.

use serde_json::{Value, json};

use super::{Recipe, Size, robots};
use crate::checkpoint::n16::{self, BACKBONE_FILE, Config};
use crate::checkpoint::{CONFIG_FILE, PROCESSOR_FILE, SLOTS_FILE, STATISTICS_FILE};

pub fn recipe(size: Size) -> Recipe {
    let config = network(size);
    let (network, backbone) = n16::to_json(&config);
    let robots = robots::robots();
    let mut files = vec![
        (CONFIG_FILE, network),
        (PROCESSOR_FILE, processor(&config, robots::modality_configs(&robots))),
        (STATISTICS_FILE, robots::statistics(&robots)),
        (SLOTS_FILE, slots(size)),
    ];
    if size != Size::Full {
        files.push((BACKBONE_FILE, backbone));
    }
    Recipe { tensors: n16::tensors(&config), shard_limit: shard_limit(size), files }
}

fn network(size: Size) -> Config {
    let mut config = Config::released();
    let Config { vision, llm, head } = &mut config;
    match size {
        Size::Full => {}
        Size::Mid => {
            vision.layers = 2;
            llm.layers = 2;
            head.dit_layers = 4;
        }
        Size::Tiny => {
            (vision.width, vision.layers, vision.heads, vision.mlp_width) = (72, 2, 2, 176);
            (llm.width, llm.layers, llm.mlp_width) = (32, 2, 96);
            (llm.heads, llm.kv_heads, llm.head_dim) = (4, 2, 32);
            (head.dit_layers, head.dit_heads, head.dit_output, head.hidden) = (4, 2, 64, 64);
            (head.slots, head.position_rows) = (3, 64);
        }
    }
    config
}

fn shard_limit(size: Size) -> u64 {
    match size {
        Size::Tiny => 10_000_000,
        Size::Mid | Size::Full => 5_000_000_000,
    }
}

fn slots(size: Size) -> Value {
    match size {
        Size::Tiny => json!({ "libero_panda": 0, "new_embodiment": 1, "gr1": 2 }),
        Size::Mid | Size::Full => n16::BUILT_IN_SLOTS.into_iter().collect(),
    }
}

fn processor(config: &Config, modality_configs: Value) -> Value {
    json!({
        "processor_class": n16::PROCESSOR_SCHEMA.class,
        "processor_kwargs": {
            "modality_configs": modality_configs,
            "image_crop_size": null,
            "image_target_size": null,
            "use_albumentations": true,
            "shortest_image_edge": 256,
            "crop_fraction": 0.95,
            "model_name": n16::BACKBONE,
            "model_type": n16::PROCESSOR_SCHEMA.backbone_kind,
            "formalize_language": true,
            "max_state_dim": config.head.state_width,
            "max_action_dim": config.head.action_width,
            "max_action_horizon": config.head.action_rows,
            "use_percentiles": false,
            "clip_outliers": true,
            "apply_sincos_state_encoding": true,
            "use_relative_action": true,
        },
    })
}
