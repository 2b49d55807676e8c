//! N1.7 snapshots: golden ones, synthetic ones, and what is refused.

use std::collections::BTreeMap;
use std::fs;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{
    CONFIG_FILE, Checkpoint, CheckpointError, EmbodimentProblem, Network, PROCESSOR_FILE,
    SLOTS_FILE, STATISTICS_FILE, Snapshot, n17,
};
use gr00t_blackhole::contract::{
    ActionNormalization, ActionReference, PoseFormat, StateEncoding, Version,
};
use serde_json::{Value, json};

use crate::support::{Tiny, assert_names, golden, read_json};

const DROID: &str = "oxe_droid_relative_eef_relative_joint";

#[test]
fn tiny_tensors_are_made_again_byte_for_byte() {
    let Some(reference) = golden("n17/snapshot") else { return };
    let tiny = Tiny::n17();
    let ours = Checkpoint::open(tiny.path()).unwrap();
    let stored = Checkpoint::open(&reference).unwrap();
    assert_eq!(stored.names().count(), 234);
    for name in stored.names() {
        let (ours, stored) = (ours.tensor(name).unwrap(), stored.tensor(name).unwrap());
        assert_eq!(ours.shape, stored.shape, "{name}");
        assert!(ours.values == stored.values, "{name} differs");
    }
    // The golden snapshot leaves out what a checkpoint with tied embeddings may leave out.
    let extra: Vec<&str> = ours.names().filter(|name| !stored.contains(name)).collect();
    assert_eq!(extra, ["backbone.model.lm_head.weight"]);
}

#[test]
fn the_table_of_the_released_network_is_the_golden_one() {
    let Some(path) = golden("n17/tensors-full.json") else { return };
    let ours: BTreeMap<String, Vec<usize>> = n17::tensors(&n17::Config::released())
        .into_iter()
        .map(|spec| (spec.name, spec.shape))
        .collect();
    let golden: BTreeMap<String, Vec<usize>> = serde_json::from_value(read_json(&path)).unwrap();
    assert_eq!(ours, golden);
}

#[test]
fn golden_snapshots_are_read_whole() {
    let Some(reference) = golden("n17/snapshot") else { return };
    let snapshot = Snapshot::open(&reference).unwrap();
    assert_eq!(snapshot.version(), Version::N17);
    let synthetic = Tiny::n17().open().unwrap();
    assert_eq!(snapshot.network(), synthetic.network());
    assert_eq!(snapshot.processor(), synthetic.processor());

    let served: Vec<&str> = snapshot.served().map(|embodiment| embodiment.tag.as_str()).collect();
    assert_eq!(served, ["libero_sim", "new_embodiment", DROID]);
    let droid = snapshot.embodiment(DROID).unwrap();
    assert_eq!((droid.slot, droid.horizon, droid.action_dim()), (24, 40, 17));
    assert_eq!(droid.frame_deltas, [-15, 0]);
    assert_eq!(snapshot.embodiment("libero_sim").unwrap().horizon, 16);
    let new = snapshot.embodiment("new_embodiment").unwrap();
    assert_eq!((new.slot, new.horizon, new.cameras.len()), (10, 24, 1));
}

#[test]
fn the_synthetic_droid_is_declared_as_the_real_one() {
    let snapshot = Tiny::n17().open().unwrap();
    let droid = snapshot.embodiment(DROID).unwrap();
    assert_eq!(droid.slot, 24);
    assert_eq!(droid.cameras, ["exterior_image_1_left", "wrist_image_left"]);
    assert_eq!(droid.frame_deltas, [-15, 0]);
    assert_eq!(droid.horizon, 40);
    let dims: Vec<usize> = droid.action.iter().map(|group| group.dim).collect();
    assert_eq!(dims, [9, 1, 7]);
    let pose = ActionReference::RelativePose {
        state_group: "eef_9d".to_owned(),
        format: PoseFormat::Rot6d,
    };
    let joints = ActionReference::RelativeJoint { state_group: "joint_position".to_owned() };
    let references: Vec<&ActionReference> =
        droid.action.iter().map(|group| &group.reference).collect();
    assert_eq!(references, [&pose, &ActionReference::Absolute, &joints]);
    let ranged = |group: &StateEncoding| matches!(group, StateEncoding::MinMax { clip: true, .. });
    assert!(droid.state.iter().all(|group| ranged(&group.encoding)));
}

/// Relative groups are bounded by min and max even where percentiles are in force, all others by q01 and q99.
#[test]
fn percentiles_bound_everything_but_relative_groups() {
    let tiny = Tiny::n17();
    let statistics = read_json(&tiny.file(STATISTICS_FILE));
    let numbers = |path: [&str; 3]| -> Vec<f64> {
        let [table, group, key] = path;
        let list = statistics[DROID][table][group][key].as_array().unwrap();
        let rows = list.iter().flat_map(|row| row.as_array().cloned().unwrap_or(vec![row.clone()]));
        rows.map(|value| value.as_f64().unwrap()).collect()
    };
    let snapshot = tiny.open().unwrap();
    let [pose, gripper, joints] = &snapshot.embodiment(DROID).unwrap().action[..] else { panic!() };
    for group in [pose, joints] {
        let min = numbers(["relative_action", &group.name, "min"]);
        let max = numbers(["relative_action", &group.name, "max"]);
        assert_eq!(group.normalization, ActionNormalization::MinMaxPerStep { min, max });
    }
    let min = numbers(["action", &gripper.name, "q01"]);
    let max = numbers(["action", &gripper.name, "q99"]);
    assert_eq!(gripper.normalization, ActionNormalization::MinMax { min, max });
}

#[test]
fn processor_files_may_lie_in_a_folder_of_their_own() {
    let tiny = Tiny::n17();
    let expected = tiny.open().unwrap();
    fs::create_dir(tiny.file("processor")).unwrap();
    for file in [PROCESSOR_FILE, STATISTICS_FILE, SLOTS_FILE] {
        fs::rename(tiny.file(file), tiny.path().join("processor").join(file)).unwrap();
    }
    let nested = tiny.open().unwrap();
    assert!(nested.served().eq(expected.served()));
    fs::remove_dir_all(tiny.file("processor")).unwrap();
    assert_names(&tiny.open().unwrap_err().to_string(), &[PROCESSOR_FILE]);
}

#[test]
fn tags_are_found_under_the_reference_names() {
    let snapshot = Tiny::n17().open().unwrap();
    for (name, tag) in [
        ("OXE_DROID_RELATIVE_EEF_RELATIVE_JOINT", DROID),
        ("Libero_Sim", "libero_sim"),
        ("LIBERO_PANDA", "libero_sim"),
        ("libero_panda", "libero_sim"),
        ("NEW_EMBODIMENT", "new_embodiment"),
    ] {
        assert_eq!(snapshot.embodiment(name).unwrap().tag, tag, "{name}");
    }
    let error = snapshot.embodiment("XDOF").unwrap_err();
    assert_names(&error.to_string(), &["xdof_relative_eef_relative_joint", "libero_sim"]);
    let error = snapshot.embodiment("so100").unwrap_err();
    assert!(matches!(error, CheckpointError::UnknownEmbodiment { .. }), "{error}");
}

#[test]
fn embodiments_without_statistics_are_refused_and_the_others_served() {
    let tiny = Tiny::n17();
    let empty = |value: &mut Value| {
        for key in ["min", "max", "mean", "std", "q01", "q99"] {
            value[DROID]["action"]["gripper_position"][key] = json!([]);
        }
    };
    let snapshot = tiny.open_with(STATISTICS_FILE, empty).unwrap();
    let error = snapshot.embodiment(DROID).unwrap_err();
    let CheckpointError::Embodiment { problem, .. } = &error else { panic!("{error}") };
    assert!(matches!(**problem, EmbodimentProblem::EmptyStatistic { .. }), "{problem}");
    assert_names(&error.to_string(), &[DROID, "gripper_position", "libero_sim, new_embodiment"]);

    let remove = |value: &mut Value| {
        value.as_object_mut().unwrap().remove("libero_sim").unwrap();
    };
    let snapshot = tiny.open_with(STATISTICS_FILE, remove).unwrap();
    assert_names(&snapshot.embodiment("libero_sim").unwrap_err().to_string(), &["no entry"]);
    assert_eq!(snapshot.served().count(), 2);
}

#[test]
fn whether_frames_are_letterboxed_is_read() {
    let tiny = Tiny::n17();
    let letterbox = |to: Option<Value>| {
        let snapshot = tiny.open_with(PROCESSOR_FILE, |value| {
            let kwargs = value["processor_kwargs"].as_object_mut().unwrap();
            match to {
                Some(to) => kwargs.insert("letter_box_transform".to_owned(), to),
                None => kwargs.remove("letter_box_transform"),
            };
        });
        snapshot.map(|snapshot| snapshot.processor().image.letterbox)
    };
    assert_eq!(letterbox(Some(json!(true))).unwrap(), Some(true));
    assert_eq!(letterbox(Some(json!(false))).unwrap(), Some(false));
    assert_eq!(letterbox(None).unwrap(), None);
    assert_names(
        &letterbox(Some(json!("yes"))).unwrap_err().to_string(),
        &["letter_box_transform"],
    );
}

/// Changes one value of a file; dots divide the keys of its path.
fn refusal(tiny: &Tiny, file: &str, path: &str, to: Value) -> String {
    let opened = tiny.open_with(file, |value| {
        *path.split('.').fold(value, |at, key| &mut at[key]) = to.clone();
    });
    match opened {
        Ok(_) => panic!("{path} = {to} is served"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn values_that_are_not_served_are_refused_by_name() {
    let tiny = Tiny::n17();
    let processor = "processor_kwargs";
    let cases = [
        (CONFIG_FILE, "use_vlln", json!(false)),
        (CONFIG_FILE, "add_pos_embed", json!(false)),
        (CONFIG_FILE, "use_alternate_vl_dit", json!(false)),
        (CONFIG_FILE, "state_history_length", json!(2)),
        (CONFIG_FILE, "select_layer", json!(2)),
        (CONFIG_FILE, "select_layer", json!(29)),
        (CONFIG_FILE, "backbone_embedding_dim", json!(64)),
        (CONFIG_FILE, "action_horizon", json!(65)),
        (CONFIG_FILE, "max_state_dim", json!(128)),
        (CONFIG_FILE, "diffusion_model_cfg.norm_type", json!("layer_norm")),
        (CONFIG_FILE, "diffusion_model_cfg", Value::Null),
        (CONFIG_FILE, "vl_self_attention_cfg.attention_head_dim", json!(17)),
        (CONFIG_FILE, "vl_self_attention_cfg.positional_embeddings", json!("sinusoidal")),
        (CONFIG_FILE, "vl_self_attention_cfg.cross_attention_dim", json!(32)),
        (n17::BACKBONE_FILE, "image_token_id", json!(7)),
        (n17::BACKBONE_FILE, "vision_config.patch_size", json!(14)),
        (n17::BACKBONE_FILE, "vision_config.num_heads", json!(5)),
        (n17::BACKBONE_FILE, "vision_config.num_position_embeddings", json!(2305)),
        (n17::BACKBONE_FILE, "vision_config.deepstack_visual_indexes", json!([0, 1, 4])),
        (n17::BACKBONE_FILE, "vision_config.deepstack_visual_indexes", json!([1, 0])),
        (n17::BACKBONE_FILE, "text_config.rope_scaling.mrope_section", json!([6, 5, 6])),
        (n17::BACKBONE_FILE, "text_config.rope_scaling.mrope_interleaved", json!(false)),
        (PROCESSOR_FILE, "processor_class", json!("Gr00tN1d6Processor")),
        (PROCESSOR_FILE, "processor_kwargs.model_name", json!("other/backbone")),
        (PROCESSOR_FILE, "processor_kwargs.model_type", json!("eagle")),
        (PROCESSOR_FILE, "processor_kwargs.use_albumentations", json!(false)),
        (PROCESSOR_FILE, "processor_kwargs.exclude_state", json!(true)),
        (PROCESSOR_FILE, "processor_kwargs.shortest_image_edge", json!(16)),
        (PROCESSOR_FILE, "processor_kwargs.mystery", json!(1)),
    ];
    for (file, path, to) in cases {
        let text = refusal(&tiny, file, path, to);
        let mut keys = path.split('.').filter(|key| *key != processor);
        assert_names(&text, &[file, keys.next().unwrap()]);
    }
}

#[test]
fn every_key_that_decides_the_network_must_be_there() {
    let tiny = Tiny::n17();
    for key in [
        "select_layer",
        "backbone_embedding_dim",
        "hidden_size",
        "input_embedding_dim",
        "max_state_dim",
        "max_action_dim",
        "action_horizon",
        "max_num_embodiments",
        "max_seq_len",
        "attend_text_every_n_blocks",
        "num_inference_timesteps",
        "num_timestep_buckets",
        "diffusion_model_cfg",
    ] {
        let opened = tiny.open_with(CONFIG_FILE, |value| {
            value.as_object_mut().unwrap().remove(key).unwrap();
        });
        assert_names(&opened.unwrap_err().to_string(), &[CONFIG_FILE, key]);
    }
}

#[test]
fn without_an_adapter_its_tensors_are_unknown() {
    let tiny = Tiny::n17();
    for to in [Value::Null, json!({ "num_layers": 0 })] {
        let opened = tiny.open_with(CONFIG_FILE, |value| value["vl_self_attention_cfg"] = to);
        let error = opened.unwrap_err();
        assert!(matches!(error, CheckpointError::UnknownTensor { .. }), "{error}");
        assert_names(&error.to_string(), &["action_head.vl_self_attention"]);
    }
}

#[test]
fn a_chunk_longer_than_the_model_gives_is_refused() {
    let tiny = Tiny::n17();
    let opened = tiny.open_with(PROCESSOR_FILE, |value| {
        let deltas: Vec<usize> = (0..50).collect();
        value["processor_kwargs"]["modality_configs"][DROID]["action"]["delta_indices"] =
            json!(deltas);
    });
    let text = opened.unwrap().embodiment(DROID).unwrap_err().to_string();
    assert_names(&text, &["action.delta_indices", "up to 40 steps"]);
}

#[test]
fn the_network_is_read_back_as_it_was_written() {
    let Network::N17(config) = Tiny::n17().open().unwrap().network().clone() else {
        panic!("another version")
    };
    assert_eq!(config.vision.deepstack_blocks, [0, 1, 2]);
    assert_eq!((config.vision.width, config.vision.layers, config.vision.heads), (48, 4, 3));
    assert_eq!((config.llm.layers, config.llm.vocabulary), (4, 151_936));
    assert_eq!(config.rope_sections, [6, 5, 5]);
    assert_eq!((config.adapter.layers, config.adapter.heads), (2, 2));
    assert_eq!((config.head.dit_width(), config.head.slots), (40, 25));
}

#[test]
fn a_synthetic_tokenizer_has_only_the_special_tokens_of_qwen3() {
    let dir = tempfile::tempdir().unwrap();
    synth::write(Version::N17, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    let added = read_json(&dir.path().join(synth::TOKENIZER_FOLDER).join("added_tokens.json"));
    let added = added.as_object().unwrap();
    assert_eq!(added.len(), 26);
    assert_eq!(added["<|image_pad|>"], 151_655);
    assert_eq!(added["</think>"], 151_668);
}
