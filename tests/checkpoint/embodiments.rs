//! From modality configuration and statistics to embodiments, and to the reasons why there is none.

use gr00t_blackhole::checkpoint::{
    CheckpointError, EmbodimentProblem, PROCESSOR_FILE, SLOTS_FILE, STATISTICS_FILE, Snapshot,
};
use gr00t_blackhole::contract::{ActionNormalization, ActionReference, PoseFormat, StateEncoding};
use serde_json::{Value, json};

use crate::support::{Tiny, assert_names, golden, read_json};

/// Why a tag cannot be served after a change to its modalities.
fn problem_with_modalities(
    tiny: &Tiny,
    tag: &str,
    change: impl FnOnce(&mut Value),
) -> EmbodimentProblem {
    let opened = tiny.open_with(PROCESSOR_FILE, |value| {
        change(&mut value["processor_kwargs"]["modality_configs"][tag]);
    });
    problem(&opened.unwrap(), tag)
}

/// Why a tag cannot be served after a change to its statistics.
fn problem_with_statistics(
    tiny: &Tiny,
    tag: &str,
    change: impl FnOnce(&mut Value),
) -> EmbodimentProblem {
    let opened = tiny.open_with(STATISTICS_FILE, |value| change(&mut value[tag]));
    problem(&opened.unwrap(), tag)
}

/// The reason for one tag; the other two of the snapshot are served all the same.
fn problem(snapshot: &Snapshot, tag: &str) -> EmbodimentProblem {
    let error = snapshot.embodiment(tag).expect_err("the tag cannot be served");
    let text = error.to_string();
    let CheckpointError::Embodiment { problem, served, .. } = error else { panic!("{text}") };
    assert_eq!(served.len(), 2, "{text}");
    assert_names(&text, &[tag, &served[0], &served[1], &problem.to_string()]);
    *problem
}

#[test]
fn case_17_unknown_tag_lists_the_served_ones() {
    let snapshot = Tiny::new().open().unwrap();
    let error = snapshot.embodiment("so100").unwrap_err();
    assert!(matches!(error, CheckpointError::UnknownEmbodiment { .. }));
    assert_names(&error.to_string(), &["so100", "gr1, libero_panda, new_embodiment"]);
}

#[test]
fn case_17_a_slot_alone_serves_nothing() {
    let snapshot = Tiny::new().open().unwrap();
    let error = snapshot.embodiment("unitree_g1").unwrap_err();
    let CheckpointError::Embodiment { problem, .. } = &error else { panic!("{error}") };
    assert_eq!(**problem, EmbodimentProblem::NoModalities);
    let tags: Vec<&str> = snapshot.embodiments().map(|(tag, _)| tag).collect();
    assert_eq!(tags.len(), 9, "every tag of any file is listed: {tags:?}");
    assert_eq!(snapshot.embodiments().filter(|(_, found)| found.is_ok()).count(), 3);
}

#[test]
fn case_17_statistics_modalities_and_slot_must_all_be_there() {
    let tiny = Tiny::new();
    let opened = tiny.open_with(STATISTICS_FILE, |value| {
        value.as_object_mut().unwrap().remove("gr1");
    });
    assert_eq!(problem(&opened.unwrap(), "gr1"), EmbodimentProblem::NoStatistics);

    for (slot, found) in
        [(json!(3), "3"), (json!(-1), "-1"), (json!("2"), "\"2\""), (json!(1.5), "1.5")]
    {
        let opened = tiny.open_with(SLOTS_FILE, |value| value["gr1"] = slot);
        let expected = EmbodimentProblem::Slot { found: found.to_owned(), slots: 3 };
        assert_eq!(problem(&opened.unwrap(), "gr1"), expected);
    }
    let opened = tiny.open_with(PROCESSOR_FILE, |value| {
        let configs = value["processor_kwargs"]["modality_configs"].as_object_mut().unwrap();
        let moved = configs.remove("libero_panda").unwrap();
        configs.insert("my_robot".to_owned(), moved);
    });
    let snapshot = opened.unwrap();
    assert_eq!(problem(&snapshot, "libero_panda"), EmbodimentProblem::NoModalities);
    assert_eq!(problem(&snapshot, "my_robot"), EmbodimentProblem::NoStatistics);
}

#[test]
fn tags_that_the_slot_file_leaves_out_take_the_built_in_slots() {
    let tiny = Tiny::new();
    let opened = tiny.open_with(SLOTS_FILE, |value| *value = json!({ "gr1": 0 })).unwrap();
    assert_eq!(opened.embodiment("gr1").unwrap().slot, 0);
    assert_eq!(opened.embodiment("libero_panda").unwrap().slot, 2);
    let error = opened.embodiment("new_embodiment").unwrap_err().to_string();
    assert_names(&error, &["slot", "10", "0 to 2"]);
    std::fs::remove_file(tiny.file(SLOTS_FILE)).unwrap();
    assert_names(&tiny.open().unwrap().embodiment("gr1").unwrap_err().to_string(), &["20"]);
}

#[test]
fn golden_embodiments_are_read_as_the_files_say() {
    let Some(dir) = golden("n16/tiny/snapshot") else { return };
    let snapshot = Snapshot::open(&dir).unwrap();
    let statistics = read_json(&dir.join(STATISTICS_FILE));
    let list = |value: &Value| -> Vec<f64> { serde_json::from_value(value.clone()).unwrap() };
    let rows = |value: &Value| -> Vec<f64> {
        let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).unwrap();
        rows.concat()
    };

    let gr1 = snapshot.embodiment("gr1").unwrap();
    let names: Vec<(&str, usize)> =
        gr1.state.iter().map(|group| (group.name.as_str(), group.dim)).collect();
    let expected =
        [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6), ("waist", 3)];
    assert_eq!(names, expected);
    assert_eq!(gr1.language_key, "task");
    for group in &gr1.action {
        let (expected, reference) = if group.name == "waist" {
            let source = &statistics["gr1"]["action"]["waist"];
            let (min, max) = (list(&source["min"]), list(&source["max"]));
            (ActionNormalization::MinMax { min, max }, ActionReference::Absolute)
        } else {
            let source = &statistics["gr1"]["relative_action"][&group.name];
            let (min, max) = (rows(&source["min"]), rows(&source["max"]));
            assert_eq!(min.len(), 16 * group.dim);
            let state_group = group.name.clone();
            (
                ActionNormalization::MinMaxPerStep { min, max },
                ActionReference::RelativeJoint { state_group },
            )
        };
        assert_eq!(group.normalization, expected, "{}", group.name);
        assert_eq!(group.reference, reference, "{}", group.name);
        assert_eq!(group.pose, None);
    }

    let libero = snapshot.embodiment("libero_panda").unwrap();
    assert_eq!(libero.cameras, ["image", "wrist_image"]);
    let gripper = &libero.state[6];
    assert_eq!((gripper.name.as_str(), gripper.dim), ("gripper", 2));
    let source = &statistics["libero_panda"]["state"]["gripper"];
    let expected =
        StateEncoding::MinMax { min: list(&source["min"]), max: list(&source["max"]), clip: true };
    assert_eq!(gripper.encoding, expected);
    assert!(libero.action.iter().all(|group| group.reference == ActionReference::Absolute));

    let eef = snapshot.embodiment("new_embodiment").unwrap();
    assert_eq!((eef.horizon, eef.action_dim()), (8, 20));
    let source = &statistics["new_embodiment"]["state"]["joints"];
    let expected =
        StateEncoding::MeanStd { mean: list(&source["mean"]), std: list(&source["std"]) };
    assert_eq!(eef.state[2].encoding, expected);
    let source = &statistics["new_embodiment"]["action"]["gripper"];
    let expected =
        ActionNormalization::MeanStd { mean: list(&source["mean"]), std: list(&source["std"]) };
    assert_eq!(eef.action[3].normalization, expected);
    let state_group = "tool_rv".to_owned();
    let expected = ActionReference::RelativePose { state_group, format: PoseFormat::Rotvec };
    assert_eq!(
        (&eef.action[1].reference, eef.action[1].pose),
        (&expected, Some(PoseFormat::Rotvec))
    );
    let expected = ActionReference::RelativeJoint { state_group: "joints".to_owned() };
    assert_eq!(eef.action[2].reference, expected);
}

#[test]
fn case_74_sin_cos_keys_are_obeyed_only_if_the_processor_says_so() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(PROCESSOR_FILE, |value| {
            value["processor_kwargs"]["apply_sincos_state_encoding"] = json!(false);
        })
        .unwrap();
    let gr1 = opened.embodiment("gr1").unwrap();
    assert!(
        gr1.state
            .iter()
            .all(|group| matches!(group.encoding, StateEncoding::MinMax { clip: true, .. }))
    );
}

#[test]
fn case_19_mean_and_deviation_are_obeyed() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(PROCESSOR_FILE, |value| {
            let gr1 = &mut value["processor_kwargs"]["modality_configs"]["gr1"];
            gr1["state"]["sin_cos_embedding_keys"] = json!(["waist"]);
            gr1["state"]["mean_std_embedding_keys"] = json!(["waist", "left_arm"]);
            gr1["action"]["mean_std_embedding_keys"] = json!(["waist", "left_arm"]);
        })
        .unwrap();
    let gr1 = opened.embodiment("gr1").unwrap();
    let encoding =
        |name: &str| &gr1.state.iter().find(|group| group.name == name).unwrap().encoding;
    assert_eq!(*encoding("waist"), StateEncoding::SinCos, "sin/cos comes first");
    assert!(matches!(encoding("left_arm"), StateEncoding::MeanStd { .. }));
    assert!(matches!(encoding("left_hand"), StateEncoding::MinMax { .. }));
    let ActionNormalization::MeanStdPerStep { mean, std } = &gr1.action[0].normalization else {
        panic!("{:?}", gr1.action[0].normalization)
    };
    assert_eq!((mean.len(), std.len()), (16 * 7, 16 * 7));
    assert!(matches!(gr1.action[4].normalization, ActionNormalization::MeanStd { .. }));
}

#[test]
fn percentiles_replace_bounds_but_not_those_of_relative_actions() {
    let tiny = Tiny::new();
    let statistics = read_json(&tiny.file(STATISTICS_FILE));
    let opened = tiny
        .open_with(PROCESSOR_FILE, |value| {
            value["processor_kwargs"]["use_percentiles"] = json!(true);
            value["processor_kwargs"]["clip_outliers"] = json!(false);
        })
        .unwrap();
    let list = |value: &Value| -> Vec<f64> { serde_json::from_value(value.clone()).unwrap() };
    let libero = opened.embodiment("libero_panda").unwrap();
    let source = &statistics["libero_panda"]["state"]["x"];
    let (min, max) = (list(&source["q01"]), list(&source["q99"]));
    assert_eq!(libero.state[0].encoding, StateEncoding::MinMax { min, max, clip: false });
    let source = &statistics["libero_panda"]["action"]["x"];
    let (min, max) = (list(&source["q01"]), list(&source["q99"]));
    assert_eq!(libero.action[0].normalization, ActionNormalization::MinMax { min, max });
    let gr1 = opened.embodiment("gr1").unwrap();
    let ActionNormalization::MinMaxPerStep { min, .. } = &gr1.action[0].normalization else {
        panic!("{:?}", gr1.action[0].normalization)
    };
    assert_eq!(min[..7], list(&statistics["gr1"]["relative_action"]["left_arm"]["min"][0]));
}

#[test]
fn without_relative_actions_the_output_is_absolute() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(PROCESSOR_FILE, |value| {
            value["processor_kwargs"]["use_relative_action"] = json!(false);
        })
        .unwrap();
    for tag in ["gr1", "new_embodiment"] {
        for group in &opened.embodiment(tag).unwrap().action {
            assert_eq!(group.reference, ActionReference::Absolute, "{tag} {}", group.name);
            let per_step = matches!(group.normalization, ActionNormalization::MinMaxPerStep { .. });
            assert!(!per_step, "{tag} {}", group.name);
        }
    }
    assert_eq!(
        opened.embodiment("new_embodiment").unwrap().action[0].pose,
        Some(PoseFormat::Rot6d)
    );
}

#[test]
fn case_12_every_group_keeps_its_own_representation() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(PROCESSOR_FILE, |value| {
            let gr1 = &mut value["processor_kwargs"]["modality_configs"]["gr1"]["action"];
            gr1["action_configs"][1]["rep"] = json!("ABSOLUTE");
            gr1["action_configs"][2]["rep"] = json!("DELTA");
            gr1["action_configs"][3]["state_key"] = json!("left_hand");
            let libero =
                &mut value["processor_kwargs"]["modality_configs"]["libero_panda"]["action"];
            libero["action_configs"] = json!(null);
        })
        .unwrap();
    let references: Vec<&ActionReference> =
        opened.embodiment("gr1").unwrap().action.iter().map(|group| &group.reference).collect();
    let joint = |group: &str| ActionReference::RelativeJoint { state_group: group.to_owned() };
    let expected = [
        &joint("left_arm"),
        &ActionReference::Absolute,
        &ActionReference::Delta,
        &joint("left_hand"),
        &ActionReference::Absolute,
    ];
    assert_eq!(references, expected);
    let libero = opened.embodiment("libero_panda").unwrap();
    assert!(libero.action.iter().all(|group| group.reference == ActionReference::Absolute));
}

#[test]
fn end_effector_groups_must_fit_their_format() {
    let tiny = Tiny::new();
    let tag = "new_embodiment";
    let width = problem_with_modalities(&tiny, tag, |config| {
        config["action"]["action_configs"][0]["format"] = json!("XYZ_ROTVEC");
    });
    let expected = EmbodimentProblem::PoseWidth {
        group: "eef_9d".to_owned(),
        format: PoseFormat::Rotvec,
        found: 9,
    };
    assert_eq!(width, expected);
    let matrix = problem_with_modalities(&tiny, tag, |config| {
        config["action"]["action_configs"][0]["format"] = json!("DEFAULT");
    });
    assert_names(&matrix.to_string(), &["eef_9d", "9", "16"]);
    let absolute = problem_with_modalities(&tiny, tag, |config| {
        config["action"]["action_configs"][0]["rep"] = json!("ABSOLUTE");
        config["action"]["action_configs"][0]["format"] = json!("XYZ_ROTVEC");
    });
    assert!(matches!(absolute, EmbodimentProblem::PoseWidth { .. }));
    let joint = problem_with_modalities(&tiny, tag, |config| {
        config["action"]["action_configs"][0]["type"] = json!("NON_EEF");
    });
    assert_names(&joint.to_string(), &["action_configs[0].format", "XYZ_ROT6D", "NON_EEF"]);
}

#[test]
fn relative_groups_need_their_state_group() {
    let tiny = Tiny::new();
    let tag = "new_embodiment";
    let absent = problem_with_modalities(&tiny, tag, |config| {
        config["action"]["action_configs"][2]["state_key"] = json!(null);
    });
    let expected =
        EmbodimentProblem::NoReference { group: "arm".to_owned(), state_group: "arm".to_owned() };
    assert_eq!(absent, expected);
    let width = problem_with_modalities(&tiny, tag, |config| {
        config["action"]["action_configs"][2]["state_key"] = json!("tool_rv");
    });
    let expected = EmbodimentProblem::ReferenceWidth {
        group: "arm".to_owned(),
        dim: 4,
        state_group: "tool_rv".to_owned(),
        state_dim: 6,
    };
    assert_eq!(width, expected);
}

#[test]
fn modalities_are_refused_by_name() {
    let tiny = Tiny::new();
    type Change = fn(&mut Value);
    let cases: [(Change, &[&str]); 31] = [
        (|config| *config = json!([]), &["modality_configs"]),
        (|config| drop(config.as_object_mut().unwrap().remove("action")), &["no 'action'"]),
        (|config| config["audio"] = json!({}), &["audio"]),
        (|config| config["video"] = json!(3), &["video", "3"]),
        (|config| config["video"]["modality_keys"] = json!([]), &["video.modality_keys"]),
        (|config| config["video"]["modality_keys"] = json!("image"), &["video.modality_keys"]),
        (|config| config["video"]["modality_keys"] = json!(["a", "a"]), &["'a' twice"]),
        (|config| config["video"]["delta_indices"] = json!([]), &["video.delta_indices"]),
        (|config| config["video"]["delta_indices"] = json!([0, -3]), &["[0, -3]"]),
        (|config| config["video"]["delta_indices"] = json!([-3, -3]), &["[-3, -3]"]),
        (|config| config["video"]["delta_indices"] = json!([0, 1]), &["none above 0"]),
        (|config| config["video"]["delta_indices"] = json!([0.5]), &["video.delta_indices"]),
        (|config| config["video"]["delta_indices"] = json!([-5_000_000_000_i64]), &["video"]),
        (
            |config| config["video"]["delta_indices"] = json!(Vec::from_iter(-99..=0)),
            &["2 cameras", "100 frames"],
        ),
        (|config| config["video"]["delta_indices"] = json!(null), &["video.delta_indices", "null"]),
        (
            |config| config["video"]["mean_std_embedding_keys"] = json!(["image"]),
            &["video.mean_std"],
        ),
        (|config| config["video"]["resolution"] = json!([1, 2]), &["video.resolution"]),
        (|config| config["state"]["delta_indices"] = json!([-1]), &["state.delta_indices", "[-1]"]),
        (|config| config["state"]["delta_indices"] = json!([-1, 0]), &["[-1, 0]"]),
        (|config| config["state"]["sin_cos_embedding_keys"] = json!(["legs"]), &["'legs'"]),
        (|config| config["state"]["exclude_state"] = json!(true), &["state.exclude_state"]),
        (|config| config["state"]["action_configs"] = json!([{}]), &["state.action_configs"]),
        (|config| config["action"]["delta_indices"] = json!([1, 2]), &["[1, 2]"]),
        (|config| config["action"]["delta_indices"] = json!([0, 2]), &["[0, 2]"]),
        (|config| config["action"]["delta_indices"] = json!([]), &["action.delta_indices"]),
        (
            |config| config["action"]["delta_indices"] = json!(Vec::from_iter(0..51)),
            &["action.delta_indices", "50"],
        ),
        (|config| config["action"]["sin_cos_embedding_keys"] = json!(["x"]), &["action.sin_cos"]),
        (|config| config["action"]["action_configs"] = json!([]), &["0 entries", "7"]),
        (|config| config["language"]["modality_keys"] = json!(["a", "b"]), &["2 entries"]),
        (|config| config["language"]["delta_indices"] = json!([-1]), &["language.delta_indices"]),
        (|config| config["state"]["modality_keys"] = json!(["elbow"]), &["state.elbow"]),
    ];
    for (change, names) in cases {
        let problem = problem_with_modalities(&tiny, "libero_panda", change);
        assert_names(&problem.to_string(), names);
    }
}

#[test]
fn action_declarations_are_refused_by_name() {
    let tiny = Tiny::new();
    for (key, to) in [
        ("rep", json!("relative")),
        ("rep", json!(null)),
        ("type", json!("JOINT")),
        ("format", json!("XYZ_QUAT")),
        ("state_key", json!(4)),
        ("gain", json!(2)),
    ] {
        let problem = problem_with_modalities(&tiny, "gr1", |config| {
            config["action"]["action_configs"][3][key] = to.clone();
        });
        let at = format!("action.action_configs[3].{key}");
        assert!(
            matches!(&problem, EmbodimentProblem::Field { key, .. } if *key == at),
            "{problem}"
        );
        assert_names(&problem.to_string(), &[&to.to_string()]);
    }
}

#[test]
fn widths_beyond_the_model_are_refused() {
    let tiny = Tiny::new();
    let problem = problem_with_statistics(&tiny, "gr1", |tables| {
        for key in ["min", "max", "mean", "std", "q01", "q99"] {
            tables["state"]["waist"][key] = json!(vec![0.5; 39]);
        }
    });
    assert_eq!(problem, EmbodimentProblem::StateWidth { found: 2 * (26 + 39), max: 128 });
    let problem = problem_with_statistics(&tiny, "gr1", |tables| {
        for key in ["min", "max", "mean", "std", "q01", "q99"] {
            tables["action"]["waist"][key] = json!(vec![0.5; 103]);
        }
    });
    assert_eq!(problem, EmbodimentProblem::ActionWidth { found: 129, max: 128 });
}

#[test]
fn statistics_are_refused_by_name() {
    let tiny = Tiny::new();
    type Change = fn(&mut Value);
    let cases: [(Change, &[&str]); 22] = [
        (|tables| *tables = json!(null), &["state.eef_9d"]),
        (|tables| drop(tables.as_object_mut().unwrap().remove("state")), &["state.eef_9d"]),
        (|tables| tables["state"]["gripper"] = json!([]), &["state.gripper"]),
        (
            |tables| drop(tables["state"]["gripper"].as_object_mut().unwrap().remove("max")),
            &["state.gripper.max"],
        ),
        (|tables| tables["state"]["gripper"]["min"] = json!([]), &["state.gripper.min", "empty"]),
        (|tables| tables["state"]["gripper"]["min"] = json!(1), &["state.gripper.min", "is 1"]),
        (
            |tables| tables["state"]["gripper"]["max"] = json!([1, 2]),
            &["state.gripper.max", "2 values"],
        ),
        (
            |tables| tables["state"]["gripper"]["q01"] = json!([]),
            &["state.gripper.q01", "0 values"],
        ),
        (
            |tables| tables["state"]["gripper"]["min"] = json!([null]),
            &["state.gripper.min", "null"],
        ),
        (|tables| tables["state"]["gripper"]["min"] = json!(["0"]), &["state.gripper.min"]),
        (|tables| tables["state"]["gripper"]["min"] = json!([[0.0]]), &["state.gripper.min"]),
        (|tables| tables["state"]["gripper"]["min"] = json!([7.5]), &["state.gripper", "min 7.5"]),
        (
            |tables| {
                tables["state"]["gripper"]["min"] = json!([-1.5e308]);
                tables["state"]["gripper"]["max"] = json!([1.5e308]);
            },
            &["state.gripper"],
        ),
        (
            |tables| tables["state"]["joints"]["std"][2] = json!(-0.5),
            &["state.joints", "-0.5", "dimension 2"],
        ),
        (|tables| drop(tables["action"].as_object_mut().unwrap().remove("arm")), &["action.arm"]),
        (
            |tables| drop(tables.as_object_mut().unwrap().remove("relative_action")),
            &["relative_action.eef_9d"],
        ),
        (
            |tables| drop(tables["relative_action"]["arm"]["min"].as_array_mut().unwrap().pop()),
            &["relative_action.arm.min", "7 rows", "8 steps"],
        ),
        (
            |tables| tables["relative_action"]["arm"]["min"][3] = json!([0.0]),
            &["relative_action.arm.min", "1 values", "4"],
        ),
        (
            |tables| tables["relative_action"]["arm"]["min"][3] = json!(0.0),
            &["relative_action.arm.min"],
        ),
        (
            |tables| tables["relative_action"]["arm"]["min"] = json!([-1, -1, -1, -1]),
            &["relative_action.arm", "only one of min and max"],
        ),
        (
            |tables| tables["relative_action"]["arm"]["max"][7][3] = json!(-9),
            &["relative_action.arm", "max -9", "dimension 3"],
        ),
        (|tables| tables["action"]["gripper"]["std"] = json!([-1e-9]), &["action.gripper.std"]),
    ];
    for (change, names) in cases {
        let problem = problem_with_statistics(&tiny, "new_embodiment", change);
        assert_names(&problem.to_string(), names);
    }
}

#[test]
fn statistics_that_a_group_does_not_use_may_be_absent() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(STATISTICS_FILE, |value| {
            let waist = value["gr1"]["state"]["waist"].as_object_mut().unwrap();
            waist.retain(|key, _| key == "min");
            let x = value["libero_panda"]["action"]["x"].as_object_mut().unwrap();
            x.retain(|key, _| ["min", "max"].contains(&key.as_str()));
        })
        .unwrap();
    assert_eq!(opened.served().count(), 3);
}

#[test]
fn dimensions_without_range_are_served() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(STATISTICS_FILE, |value| {
            let x = &mut value["libero_panda"]["state"]["x"];
            x["max"] = x["min"].clone();
            value["new_embodiment"]["state"]["joints"]["std"] = json!([0, 0.0, -0.0, 1]);
        })
        .unwrap();
    assert_eq!(opened.served().count(), 3);
}

#[test]
fn flat_relative_statistics_hold_for_every_step() {
    let tiny = Tiny::new();
    let opened = tiny
        .open_with(STATISTICS_FILE, |value| {
            let arm = &mut value["new_embodiment"]["relative_action"]["arm"];
            arm["min"] = json!([-1, -2, -3, -4]);
            arm["max"] = json!([1, 2, 3, 4]);
        })
        .unwrap();
    let arm = &opened.embodiment("new_embodiment").unwrap().action[2];
    let expected = ActionNormalization::MinMax {
        min: vec![-1.0, -2.0, -3.0, -4.0],
        max: vec![1.0, 2.0, 3.0, 4.0],
    };
    assert_eq!(arm.normalization, expected);
}

/// Python writes NaN and Infinity into JSON. One such entry must not make the other robots unusable, and not pass for a
/// number.
#[test]
fn numbers_that_json_does_not_have_concern_their_robot_only() {
    let tiny = Tiny::new();
    for word in ["NaN", "Infinity", "-Infinity"] {
        let opened = tiny.open_with_text(STATISTICS_FILE, |text| {
            let mut value: Value = serde_json::from_str(&text).unwrap();
            value["libero_panda"]["action"]["x"]["max"] = json!(["HERE"]);
            value.to_string().replace("\"HERE\"", word)
        });
        let problem = problem(&opened.unwrap(), "libero_panda");
        assert!(matches!(problem, EmbodimentProblem::NotANumber { .. }), "{problem}");
        assert_names(&problem.to_string(), &["action.x.max", "finite"]);
    }
}

#[test]
fn statistics_are_read_to_the_last_bit() {
    let tiny = Tiny::new();
    let exact = [-1.650050401687622, 0.1 + 0.2, 1e-308, 2.225_073_858_507_201e-308];
    let opened = tiny
        .open_with(STATISTICS_FILE, |value| {
            value["new_embodiment"]["state"]["joints"]["mean"] = json!(exact);
        })
        .unwrap();
    let StateEncoding::MeanStd { mean, .. } =
        &opened.embodiment("new_embodiment").unwrap().state[2].encoding
    else {
        panic!("joints are scaled by mean and deviation")
    };
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(mean), bits(&exact));
}
