//! `config.json`, `eagle_config.json` and `processor_config.json`: what is read, what is refused.

use gr00t_blackhole::checkpoint::{
    CONFIG_FILE, CheckpointError, Network, PROCESSOR_FILE, SLOTS_FILE, STATISTICS_FILE, n16,
};
use serde_json::{Value, json};

use crate::support::{Tiny, assert_names};

/// Sets the value at a path of keys that are divided by dots; `None` removes it.
fn set(value: &mut Value, path: &str, to: Option<Value>) {
    let (parents, key) = path.rsplit_once('.').map_or((None, path), |(p, key)| (Some(p), key));
    let parent =
        parents.iter().flat_map(|parents| parents.split('.')).fold(value, |at, key| &mut at[key]);
    match to {
        Some(to) => parent[key] = to,
        None => {
            parent.as_object_mut().unwrap().remove(key).unwrap();
        }
    }
}

/// Checks that the snapshot is refused once `path` in `file` has this value, by names of file and key.
#[track_caller]
fn assert_refused(tiny: &Tiny, file: &str, path: &str, to: Option<Value>) {
    let label = format!("{path} = {to:?}");
    let Err(error) = tiny.open_with(file, |value| set(value, path, to.clone())) else {
        panic!("{label} is served")
    };
    assert!(matches!(error, CheckpointError::Field { .. }), "{label}: {error}");
    let text = error.to_string();
    assert_names(&text, &[file, path.rsplit('.').next().unwrap()]);
    if let Some(Value::Number(number)) = to {
        assert_names(&text, &[&number.to_string()]);
    }
}

#[test]
fn case_19_values_that_are_not_implemented_are_refused_by_name() {
    let tiny = Tiny::new();
    for (path, to) in [
        ("use_vlln", json!(false)),
        ("use_alternate_vl_dit", json!(false)),
        ("add_pos_embed", json!(false)),
        ("backbone_model_type", json!("qwen")),
        ("diffusion_model_cfg.positional_embeddings", json!("sinusoidal")),
        ("diffusion_model_cfg.interleave_self_attention", json!(false)),
        ("diffusion_model_cfg.norm_type", json!("layer_norm")),
        ("diffusion_model_cfg.attention_bias", json!(false)),
        ("diffusion_model_cfg.activation_fn", json!("geglu")),
        ("diffusion_model_cfg.norm_elementwise_affine", json!(true)),
        ("diffusion_model_cfg.norm_eps", json!(1e-6)),
        ("diffusion_model_cfg.cross_attention_dim", json!(64)),
        ("diffusion_model_cfg.something_new", json!(1)),
        ("diffusion_model_cfg", json!(null)),
        ("model_type", json!("Gr00tN1d9")),
        ("model_type", json!(16)),
        ("attend_text_every_n_blocks", json!(0)),
        ("num_inference_timesteps", json!(0)),
        ("num_inference_timesteps", json!(2.5)),
        ("num_inference_timesteps", json!("4")),
        ("num_inference_timesteps", json!(-4)),
        ("num_timestep_buckets", json!(0)),
    ] {
        assert_refused(&tiny, CONFIG_FILE, path, Some(to));
    }
    // The reference falls back to another network for these.
    for key in ["positional_embeddings", "interleave_self_attention", "num_layers"] {
        assert_refused(&tiny, CONFIG_FILE, &format!("diffusion_model_cfg.{key}"), None);
    }
    assert_refused(&tiny, CONFIG_FILE, "model_type", None);
}

#[test]
fn sizes_that_do_not_fit_together_are_refused() {
    let tiny = Tiny::new();
    for (file, path, to) in [
        (CONFIG_FILE, "select_layer", json!(29)),
        (CONFIG_FILE, "select_layer", json!(-1)),
        (CONFIG_FILE, "backbone_embedding_dim", json!(64)),
        (CONFIG_FILE, "input_embedding_dim", json!(97)),
        (CONFIG_FILE, "hidden_size", json!(128)),
        (CONFIG_FILE, "max_seq_len", json!(49)),
        (CONFIG_FILE, "action_horizon", json!(65)),
        (CONFIG_FILE, "max_state_dim", json!(64)),
        (CONFIG_FILE, "max_action_dim", json!(129)),
        (PROCESSOR_FILE, "processor_kwargs.max_state_dim", json!(0)),
        (n16::BACKBONE_FILE, "vision_config.num_attention_heads", json!(7)),
        (n16::BACKBONE_FILE, "text_config.num_key_value_heads", json!(3)),
        (n16::BACKBONE_FILE, "text_config.head_dim", json!(33)),
        (n16::BACKBONE_FILE, "text_config.rope_theta", json!(0)),
        (n16::BACKBONE_FILE, "text_config.rope_scaling", json!({ "type": "yarn" })),
        (n16::BACKBONE_FILE, "text_config", json!([])),
        (n16::BACKBONE_FILE, "vision_config.patch_size", json!(16)),
    ] {
        let key = path.rsplit('.').next().unwrap();
        let Err(error) = tiny.open_with(file, |value| set(value, path, Some(to.clone()))) else {
            panic!("{path} = {to} is served")
        };
        // A width of the processor is compared with the network's, whose file is the one named.
        assert!(matches!(error, CheckpointError::Field { .. }), "{path}: {error}");
        let named = if key == "max_seq_len" { "action_horizon" } else { key };
        assert_names(&error.to_string(), &[named]);
    }
}

#[test]
fn hostile_sizes_are_refused_before_they_are_used() {
    let tiny = Tiny::new();
    let sizes = [
        "action_horizon",
        "max_state_dim",
        "max_num_embodiments",
        "max_seq_len",
        "hidden_size",
        "input_embedding_dim",
        "select_layer",
        "num_timestep_buckets",
        "diffusion_model_cfg.num_layers",
        "diffusion_model_cfg.num_attention_heads",
        "diffusion_model_cfg.attention_head_dim",
        "diffusion_model_cfg.output_dim",
    ];
    for path in sizes {
        for to in
            [json!(0), json!(u64::MAX), json!(1_u64 << 40), json!(null), json!("1"), json!([1])]
        {
            assert_refused(&tiny, CONFIG_FILE, path, Some(to));
        }
    }
}

/// What the configuration says wins over what would be usual, as far as the tensors agree.
#[test]
fn a_size_that_the_tensors_do_not_have_names_tensor_and_shapes() {
    let tiny = Tiny::new();
    for (path, to, tensor) in [
        ("max_num_embodiments", json!(4), "action_head."),
        ("max_seq_len", json!(128), "action_head.position_embedding.weight"),
        ("diffusion_model_cfg.num_layers", json!(6), "transformer_blocks.4"),
        ("select_layer", json!(3), "language_model.model.layers.2"),
    ] {
        let error =
            tiny.open_with(CONFIG_FILE, |value| set(value, path, Some(to.clone()))).unwrap_err();
        let tensor_error =
            matches!(error, CheckpointError::Shape { .. } | CheckpointError::MissingTensor { .. });
        assert!(tensor_error, "{path}: {error}");
        assert_names(&error.to_string(), &[tensor]);
    }
    // Fewer layers than stored would be another network as well.
    let error = tiny
        .open_with(CONFIG_FILE, |value| {
            set(value, "diffusion_model_cfg.num_layers", Some(json!(2)))
        })
        .unwrap_err();
    assert!(matches!(error, CheckpointError::UnknownTensor { .. }), "{error}");
}

#[test]
fn absent_keys_take_the_defaults_of_the_reference() {
    let tiny = Tiny::new();
    let served = ["attend_text_every_n_blocks", "num_inference_timesteps", "num_timestep_buckets"];
    let flags = ["use_vlln", "use_alternate_vl_dit", "add_pos_embed", "model_name", "torch_dtype"];
    let reference = tiny.open().unwrap();
    for key in served.iter().chain(&flags) {
        let opened = tiny.open_with(CONFIG_FILE, |value| set(value, key, None)).unwrap();
        assert_eq!(opened.network(), reference.network(), "{key}");
    }
    // The default of the horizon is 16, not the 50 of the released file.
    let opened = tiny.open_with(CONFIG_FILE, |value| set(value, "action_horizon", None)).unwrap();
    let Network::N16(config) = opened.network() else { panic!("another version") };
    assert_eq!(config.head.action_rows, 16);
    // Those of the widths are 29, which does not fit the processor.
    let error = tiny.open_with(CONFIG_FILE, |value| set(value, "max_state_dim", None)).unwrap_err();
    assert_names(&error.to_string(), &["max_state_dim", "missing", "128"]);
}

#[test]
fn an_unknown_backbone_needs_its_own_description() {
    let tiny = Tiny::new();
    let other = |value: &mut Value| set(value, "model_name", Some(json!("other/backbone")));
    assert!(tiny.open_with(CONFIG_FILE, other).is_ok(), "eagle_config.json describes it");
    std::fs::remove_file(tiny.file(n16::BACKBONE_FILE)).unwrap();
    let error = tiny.open_with(CONFIG_FILE, other).unwrap_err();
    assert_names(&error.to_string(), &["model_name", "other/backbone"]);
    // Without the description the built-in sizes hold, and the tiny tensors do not have them.
    assert!(tiny.open().is_err());
}

#[test]
fn other_versions_are_named() {
    let tiny = Tiny::new();
    for (model_type, version) in [("gr00t_n1_5", "n15")] {
        let error = tiny
            .open_with(CONFIG_FILE, |value| value["model_type"] = json!(model_type))
            .unwrap_err();
        assert!(matches!(error, CheckpointError::UnsupportedVersion { .. }), "{error}");
        assert_names(&error.to_string(), &[version, model_type, "config.json"]);
    }
}

#[test]
fn case_20_the_image_chain_comes_from_the_processor_file() {
    let tiny = Tiny::new();
    let chain = |changes: &[(&str, Value)]| {
        let opened = tiny.open_with(PROCESSOR_FILE, |value| {
            for (key, to) in changes {
                value["processor_kwargs"][*key] = to.clone();
            }
        })?;
        let Network::N16(config) = opened.network() else { panic!("another version") };
        let image = opened.processor().image;
        Ok((image.shortest_edge, image.crop_side(), config.vision.image_side))
    };
    let ok = |changes: &[(&str, Value)]| -> (usize, usize, usize) {
        chain(changes).map_err(|error: CheckpointError| error.to_string()).unwrap()
    };
    assert_eq!(ok(&[]), (256, 243, 252));
    assert_eq!(ok(&[("crop_fraction", json!(0.9))]), (256, 230, 252));
    assert_eq!(ok(&[("crop_fraction", json!(1))]), (256, 256, 252));
    assert_eq!(ok(&[("shortest_image_edge", json!(224))]), (224, 212, 224));
    assert_eq!(ok(&[("shortest_image_edge", json!(70))]), (70, 66, 56), "2.5 tokens are 2");
    assert_eq!(ok(&[("shortest_image_edge", json!(98))]), (98, 93, 112), "3.5 tokens are 4");
    let sizes = [
        ("crop_fraction", json!(null)),
        ("shortest_image_edge", json!(null)),
        ("image_crop_size", json!([230, 230])),
        ("image_target_size", json!([256, 256])),
    ];
    assert_eq!(ok(&sizes), (256, 230, 252), "the older pair of sizes stands in");
    // Sizes that are not needed do not matter.
    assert_eq!(ok(&sizes[2..]), (256, 243, 252));

    let refused: [&[(&str, Value)]; 13] = [
        &[("crop_fraction", json!(0))],
        &[("crop_fraction", json!(1.01))],
        &[("crop_fraction", json!(-0.5))],
        &[("crop_fraction", json!("0.95"))],
        &[("crop_fraction", json!(1e-9))],
        &[("crop_fraction", json!(null))],
        &[("shortest_image_edge", json!(null))],
        &[("shortest_image_edge", json!(55))],
        &[("shortest_image_edge", json!(1793))],
        &[("shortest_image_edge", json!(256.5))],
        &[("image_crop_size", json!([230]))],
        &[("image_crop_size", json!([230, 0]))],
        &[
            ("crop_fraction", json!(null)),
            ("image_crop_size", json!([300, 300])),
            ("image_target_size", json!([256, 256])),
        ],
    ];
    for changes in refused {
        let error = chain(changes).unwrap_err();
        assert!(matches!(error, CheckpointError::Field { .. }), "{changes:?}: {error}");
        assert_names(&error.to_string(), &[PROCESSOR_FILE, "processor_kwargs."]);
    }
}

#[test]
fn case_19_processing_fields_are_refused_by_name() {
    let tiny = Tiny::new();
    for (key, to) in [
        ("use_albumentations", Some(json!(false))),
        ("use_albumentations", None),
        ("use_mean_std", Some(json!(true))),
        ("exclude_state", Some(json!(true))),
        ("letter_box_transform", Some(json!(false))),
        ("some_new_step", Some(json!("on"))),
        ("model_type", Some(json!("qwen"))),
        ("model_name", Some(json!("other/backbone"))),
        ("formalize_language", Some(json!("yes"))),
        ("formalize_language", None),
        ("shortest_image_edge", None),
        ("crop_fraction", None),
        ("use_percentiles", None),
        ("use_percentiles", Some(json!(1))),
        ("apply_sincos_state_encoding", None),
        ("use_relative_action", None),
        ("max_state_dim", None),
        ("modality_configs", None),
        ("modality_configs", Some(json!([]))),
    ] {
        assert_refused(&tiny, PROCESSOR_FILE, &format!("processor_kwargs.{key}"), to);
    }
    assert_refused(&tiny, PROCESSOR_FILE, "processor_class", Some(json!("Gr00tN1d7Processor")));
    assert_refused(&tiny, PROCESSOR_FILE, "processor_kwargs", None);

    let null = tiny.open_with(PROCESSOR_FILE, |value| {
        value["processor_kwargs"]["some_new_step"] = Value::Null;
        value["processor_kwargs"]["color_jitter_params"] = json!({ "hue": 0.08 });
    });
    assert!(null.is_ok(), "what is off, and what only training reads, is no reason");
    let clip = tiny.open_with(PROCESSOR_FILE, |value| {
        set(value, "processor_kwargs.clip_outliers", None);
    });
    assert!(clip.unwrap().processor().clip_outliers);
}

#[test]
fn damaged_json_names_its_file() {
    let tiny = Tiny::new();
    for file in [CONFIG_FILE, PROCESSOR_FILE, STATISTICS_FILE, SLOTS_FILE, n16::BACKBONE_FILE] {
        type Damage = fn(String) -> String;
        let damages: [(&str, Damage); 6] = [
            ("empty", |_| String::new()),
            ("cut", |text| text[..text.len() / 2].to_owned()),
            ("list", |text| format!("[{text}]")),
            ("twice", |text| text.replacen('{', "{\"gr1\": 1, \"gr1\": 1,", 1)),
            ("deep", |_| "{\"a\":".repeat(100_000)),
            ("huge", |text| text + &" ".repeat(17 << 20)),
        ];
        for (label, damage) in damages {
            let error = tiny.open_with_text(file, damage).expect_err(label);
            assert!(matches!(error, CheckpointError::Json { .. }), "{label}: {error}");
            assert_names(&error.to_string(), &[file]);
        }
    }
    for file in [CONFIG_FILE, PROCESSOR_FILE] {
        let error =
            tiny.open_with_text(file, |text| text.replacen(": true", ": NaN", 1)).unwrap_err();
        assert_names(&error.to_string(), &[file, "NaN"]);
    }
}

#[test]
fn missing_files_are_named() {
    for file in [CONFIG_FILE, PROCESSOR_FILE, STATISTICS_FILE] {
        let tiny = Tiny::new();
        std::fs::remove_file(tiny.file(file)).unwrap();
        let error = tiny.open().unwrap_err();
        assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
        assert_names(&error.to_string(), &[file]);
    }
}
