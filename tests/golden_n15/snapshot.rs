//! Snapshots: synthetic ones against the golden ones, and settings that are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use gr00t_blackhole::checkpoint::n15::{self, BACKBONE_FILE, Config};
use gr00t_blackhole::checkpoint::synth::TOKENIZER_FOLDER;
use gr00t_blackhole::checkpoint::{
    CONFIG_FILE, Checkpoint, CheckpointError, SINGLE_FILE, Snapshot,
};
use gr00t_blackhole::contract::{Embodiment, Observation, PredictOptions};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use half::bf16;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::common::full_size::link;
use super::common::golden::Taps;
use super::common::pattern::pattern;
use super::common::shared;
use super::support::{TINY, linked, network, read_json};

#[test]
fn tiny_tensors_are_made_again_byte_for_byte() {
    let Some(golden) = shared("golden/n15/snapshot-tiny") else { return };
    let ours = Checkpoint::open(TINY.path()).unwrap();
    let stored = Checkpoint::open(&golden).unwrap();
    assert_eq!(stored.names().count(), 188);
    for name in stored.names() {
        let (ours, stored) = (ours.tensor(name).unwrap(), stored.tensor(name).unwrap());
        assert_eq!(ours.shape, stored.shape, "{name}");
        assert!(ours.values == stored.values, "{name} differs");
    }
    // The golden snapshot leaves out what is never read, to stay small.
    let extra: Vec<&str> = ours.names().filter(|name| !stored.contains(name)).collect();
    assert_eq!(extra, ["backbone.eagle_model.language_model.lm_head.weight"]);
}

#[test]
fn the_full_table_is_that_of_the_released_weights() {
    let Some(path) = shared("golden/n15/tensors-full.json") else { return };
    let golden = read_json(&path);
    let golden: Vec<(String, Vec<usize>)> = golden["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| serde_json::from_value(json!([t["name"], t["shape"]])).unwrap())
        .collect();
    let ours = n15::tensors(&Config::released());
    assert_eq!(ours.len(), golden.len());
    let golden: BTreeMap<_, _> = golden.into_iter().collect();
    for tensor in ours {
        assert_eq!(golden.get(&tensor.name), Some(&tensor.shape), "{}", tensor.name);
    }
}

#[test]
fn golden_snapshots_are_read_whole() {
    let Some(golden) = shared("golden/n15") else { return };
    let snapshot = Snapshot::open(&golden.join("snapshot-tiny")).unwrap();
    let ours = Snapshot::open(TINY.path()).unwrap();
    assert_eq!(network(&snapshot), network(&ours));
    assert_eq!(snapshot.processor(), None);
    let served: Vec<&str> = snapshot.served().map(|robot| robot.tag.as_str()).collect();
    assert_eq!(served, ["gr1", "oxe_droid"]);
    let gr1 = snapshot.embodiment("gr1").unwrap();
    assert_eq!((gr1.slot, gr1.horizon, gr1.action_dim()), (24, 16, 26));
}

#[test]
fn the_released_configuration_is_read_without_the_backbone_file() {
    let Some(golden) = shared("golden/n15/full/snapshot") else { return };
    let config = read_json(&golden.join(CONFIG_FILE));
    let with_tiny_tensors = |backbone: bool| {
        let dir = linked(TINY.path(), &[CONFIG_FILE, BACKBONE_FILE]);
        std::fs::write(dir.path().join(CONFIG_FILE), config.to_string()).unwrap();
        if backbone {
            std::fs::create_dir(dir.path().join("eagle")).unwrap();
            let target = dir.path().join(BACKBONE_FILE);
            std::fs::copy(golden.join(BACKBONE_FILE), target).unwrap();
        }
        Snapshot::open(dir.path()).unwrap_err()
    };
    // The configuration is accepted and asks for the released network, so the tiny tensors have the wrong shape.
    for backbone in [false, true] {
        let error = with_tiny_tensors(backbone);
        assert!(matches!(&error, CheckpointError::Shape { .. }), "{error}");
    }
}

/// Opens the tiny snapshot with a changed `config.json` or `eagle/config.json`.
fn open_with(file: &str, change: impl Fn(&mut Value)) -> Result<Snapshot, CheckpointError> {
    let mut value = read_json(&TINY.path().join(file));
    change(&mut value);
    let dir = linked(TINY.path(), &[file]);
    let target = dir.path().join(file);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::write(target, value.to_string()).unwrap();
    Snapshot::open(dir.path())
}

#[test]
fn settings_that_are_not_served_are_named() {
    let head =
        |key: &'static str, value: Value| (CONFIG_FILE, format!("action_head_cfg.{key}"), value);
    let cases = [
        (CONFIG_FILE, "action_dim".to_owned(), json!(29)),
        (CONFIG_FILE, "backbone_cfg.select_layer".to_owned(), json!(29)),
        (CONFIG_FILE, "backbone_cfg.project_to_dim".to_owned(), json!("wide")),
        head("max_state_dim", json!(128)),
        head("max_action_dim", json!(29)),
        head("use_vlln", json!(false)),
        head("add_pos_embed", json!(false)),
        head("backbone_embedding_dim", json!(1536)),
        head("max_seq_len", json!(15)),
        head("input_embedding_dim", json!(65)),
        head("hidden_size", json!(33)),
        head("diffusion_model_cfg.norm_type", json!("layer_norm")),
        head("diffusion_model_cfg.positional_embeddings", json!("sinusoidal")),
        head("vl_self_attention_cfg.positional_embeddings", json!("sinusoidal")),
        head("vl_self_attention_cfg.attention_head_dim", json!(17)),
        head("vl_self_attention_cfg.new_key", json!(1)),
        (BACKBONE_FILE, "use_pixel_shuffle".to_owned(), json!(true)),
        (BACKBONE_FILE, "image_token_index".to_owned(), json!(7)),
        (BACKBONE_FILE, "vision_config.image_size".to_owned(), json!(448)),
        (BACKBONE_FILE, "text_config.rope_scaling".to_owned(), json!({ "type": "yarn" })),
    ];
    for (file, path, value) in cases {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (object, key) = pointer.rsplit_once('/').unwrap();
        let error = open_with(file, |config| {
            let object = if object.is_empty() { Some(config) } else { config.pointer_mut(object) };
            object.unwrap()[key] = value.clone();
        })
        .unwrap_err();
        let found = matches!(&error, CheckpointError::Field { key, .. } if *key == path);
        assert!(found && error.to_string().contains(file), "{path}: {error}");
    }
}

#[test]
fn switches_that_the_reference_has_other_defaults_for_must_be_there() {
    for (object, key) in [
        ("vl_self_attention_cfg", "positional_embeddings"),
        ("vl_self_attention_cfg", "num_layers"),
        ("diffusion_model_cfg", "interleave_self_attention"),
    ] {
        let error = open_with(CONFIG_FILE, |config| {
            let object = &mut config["action_head_cfg"][object];
            object.as_object_mut().unwrap().remove(key);
        })
        .unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn a_projection_needs_its_tensors() {
    let error = open_with(CONFIG_FILE, |config| {
        config["backbone_cfg"]["project_to_dim"] = json!(32);
    })
    .unwrap_err();
    assert!(matches!(&error, CheckpointError::MissingTensor { .. }), "{error}");
    assert!(error.to_string().contains("backbone.eagle_linear"), "{error}");
}

/// The tiny network with a projection to another width behind its language model.
fn with_projection(width: usize) -> TempDir {
    let tiny = Snapshot::open(TINY.path()).unwrap();
    let mut config = network(&tiny).clone();
    config.projection = Some(width);
    let names: BTreeMap<String, Vec<usize>> =
        n15::tensors(&config).into_iter().map(|spec| (spec.name, spec.shape)).collect();
    let values: BTreeMap<&String, Vec<u8>> = names
        .iter()
        .map(|(name, shape)| {
            let known = tiny.tensors().tensor(name).ok().filter(|tensor| tensor.shape == shape);
            let bytes = match known {
                Some(tensor) => {
                    tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect()
                }
                None => (0..shape.iter().product::<usize>())
                    .flat_map(|i| bf16::from_f32((i % 7) as f32 * 0.02 - 0.06).to_le_bytes())
                    .collect(),
            };
            (name, bytes)
        })
        .collect();
    let views = names.iter().map(|(name, shape)| {
        (name, TensorView::new(Dtype::BF16, shape.clone(), &values[name]).unwrap())
    });

    let dir = TempDir::new().unwrap();
    let bytes = safetensors::serialize(views, None).unwrap();
    std::fs::write(dir.path().join(SINGLE_FILE), bytes).unwrap();
    let mut file = read_json(&TINY.path().join(CONFIG_FILE));
    file["backbone_cfg"]["project_to_dim"] = json!(width);
    let head = &mut file["action_head_cfg"];
    head["backbone_embedding_dim"] = json!(width);
    head["diffusion_model_cfg"]["cross_attention_dim"] = json!(width);
    head["vl_self_attention_cfg"]["attention_head_dim"] = json!(width / config.adapter.heads);
    std::fs::write(dir.path().join(CONFIG_FILE), file.to_string()).unwrap();
    for folder in ["eagle", "experiment_cfg", TOKENIZER_FOLDER] {
        link(&TINY.path().join(folder), dir.path(), folder);
    }
    dir
}

#[test]
fn a_projection_narrows_the_features() {
    let dir = with_projection(48);
    let options = PolicyOptions {
        snapshot: dir.path().to_owned(),
        embodiment: Some("gr1".to_owned()),
        ..PolicyOptions::default()
    };
    let mut policy = Policy::load(&options).unwrap();
    let observation = observation(policy.embodiment());
    let mut taps = Taps::default();
    let options = PredictOptions::default();
    policy.predict_with_taps(&observation, &options, Some(&mut taps)).unwrap();
    assert_eq!(taps.0["backbone_features"].cols, 48);
    assert_eq!(taps.0["vl_self_attention_out"].cols, 48);
}

fn observation(robot: &Embodiment) -> Observation {
    let frame = Arc::new(pattern(3, 320, 240));
    Observation {
        stamp_ns: 5,
        frames: robot.cameras.iter().map(|c| (c.clone(), vec![frame.clone()])).collect(),
        state: robot.state.iter().map(|g| (g.name.clone(), vec![0.1; g.dim])).collect(),
        instruction: "pick it up".to_owned(),
    }
}

fn load(embodiment: Option<&str>, data_config: Option<&str>) -> Result<Policy, String> {
    let options = PolicyOptions {
        snapshot: TINY.path().to_owned(),
        embodiment: embodiment.map(str::to_owned),
        data_config: data_config.map(str::to_owned),
        ..PolicyOptions::default()
    };
    Policy::load(&options).map_err(|error| error.to_string())
}

#[test]
fn a_synthetic_snapshot_predicts_for_each_of_its_robots() {
    let snapshot = Snapshot::open(TINY.path()).unwrap();
    let served: Vec<(&str, usize)> =
        snapshot.served().map(|robot| (robot.tag.as_str(), robot.slot)).collect();
    assert_eq!(served, [("gr1", 24), ("new_embodiment", 31), ("oxe_droid", 17)]);
    for robot in snapshot.served() {
        let mut policy = load(Some(&robot.tag), None).unwrap();
        let observation = observation(robot);
        let options = PredictOptions::default();
        let chunk = policy.predict(&observation, &options).unwrap();
        assert_eq!((chunk.horizon, chunk.groups.len()), (16, robot.action.len()));
        let again = policy.predict(&observation, &options).unwrap();
        assert_eq!(chunk.normalized, again.normalized);
        assert_eq!(chunk.groups, again.groups);
    }
}

#[test]
fn a_data_config_can_be_named_with_or_without_a_tag() {
    assert_eq!(
        load(Some("gr1"), Some("fourier_gr1_arms_waist")).unwrap().embodiment().action.len(),
        5
    );
    assert_eq!(load(None, Some("so100")).unwrap().embodiment().tag, "new_embodiment");
    let error = load(Some("gr1"), Some("so100")).err().unwrap();
    assert!(error.contains("so100") && error.contains("webcam"), "{error}");
    let error = load(None, None).err().unwrap();
    assert!(error.contains("gr1") && error.contains("oxe_droid"), "{error}");
}
