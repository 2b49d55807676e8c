//! Synthetic N1.7 snapshots.

use serde_json::{Value, json};

use super::{Recipe, Size, robots};
use crate::checkpoint::n17::{self, BACKBONE_FILE, Config};
use crate::checkpoint::{CONFIG_FILE, PROCESSOR_FILE, SLOTS_FILE, STATISTICS_FILE};

pub fn recipe(size: Size) -> Recipe {
    let config = network(size);
    let (network, backbone) = n17::to_json(&config);
    let robots = robots::n17::robots();
    let mut files = vec![
        (CONFIG_FILE, network),
        (PROCESSOR_FILE, processor(&config, robots::modality_configs(&robots))),
        (STATISTICS_FILE, robots::statistics(&robots)),
        (SLOTS_FILE, slots(size)),
    ];
    if size != Size::Full {
        files.push((BACKBONE_FILE, backbone));
    }
    Recipe { tensors: n17::tensors(&config), shard_limit: shard_limit(size), files }
}

fn network(size: Size) -> Config {
    let mut config = Config::released();
    let Config { vision, llm, rope_sections, adapter, head } = &mut config;
    match size {
        Size::Full => {}
        Size::Mid => {
            (vision.layers, llm.layers, adapter.layers, head.dit_layers) = (4, 4, 1, 4);
            vision.deepstack_blocks = vec![0, 1, 2];
        }
        Size::Tiny => {
            (vision.width, vision.layers, vision.heads, vision.mlp_width) = (48, 4, 3, 96);
            vision.deepstack_blocks = vec![0, 1, 2];
            (llm.width, llm.layers, llm.mlp_width) = (32, 4, 96);
            (llm.heads, llm.kv_heads, llm.head_dim) = (4, 2, 32);
            *rope_sections = [6, 5, 5];
            (adapter.layers, adapter.heads, adapter.head_dim) = (2, 2, 16);
            (head.dit_layers, head.dit_heads, head.dit_head_dim) = (4, 2, 20);
            (head.dit_output, head.hidden) = (16, 16);
            (head.slots, head.position_rows) = (25, 64);
        }
    }
    config
}

fn shard_limit(size: Size) -> u64 {
    match size {
        Size::Tiny => 11_000_000,
        Size::Mid | Size::Full => 5_000_000_000,
    }
}

fn slots(size: Size) -> Value {
    match size {
        Size::Tiny => json!({
            "oxe_droid_relative_eef_relative_joint": 24,
            "libero_sim": 2,
            "new_embodiment": 10,
        }),
        Size::Mid | Size::Full => n17::built_in_slots().collect(),
    }
}

fn processor(config: &Config, modality_configs: Value) -> Value {
    json!({
        "processor_class": n17::PROCESSOR_SCHEMA.class,
        "processor_kwargs": {
            "modality_configs": modality_configs,
            "image_crop_size": [230, 230],
            "image_target_size": [256, 256],
            "use_albumentations": true,
            "shortest_image_edge": 256,
            "crop_fraction": 0.95,
            "letter_box_transform": false,
            "model_name": n17::BACKBONE,
            "model_type": n17::PROCESSOR_SCHEMA.backbone_kind,
            "formalize_language": true,
            "max_state_dim": config.head.state_width,
            "max_action_dim": config.head.action_width,
            "max_action_horizon": config.head.action_rows,
            "use_percentiles": true,
            "use_mean_std": false,
            "clip_outliers": true,
            "apply_sincos_state_encoding": false,
            "use_relative_action": true,
            "exclude_state": false,
        },
    })
}
