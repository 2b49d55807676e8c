//! The 16 data configs: states, actions, rotations, and which of them a checkpoint serves.

use std::collections::BTreeMap;

use gr00t_blackhole::checkpoint::n15::DATA_CONFIGS;
use gr00t_blackhole::checkpoint::{CheckpointError, Snapshot};
use gr00t_blackhole::contract::{EulerOrder, Representation, RotationFormat};
use gr00t_blackhole::decode::decode;
use gr00t_blackhole::encode::state::encode_state;
use gr00t_blackhole::rotation;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use super::common::golden::check;
use super::common::shared;
use super::support::{TINY, read_json, with_metadata};

/// `configs.json` and the bytes of `configs.safetensors`.
fn golden() -> Option<(Value, Vec<u8>)> {
    let dir = shared("golden/n15/configs")?;
    let bytes = std::fs::read(dir.join("configs.safetensors")).unwrap();
    Some((read_json(&dir.join("configs.json")), bytes))
}

fn f64s(tensors: &SafeTensors<'_>, name: &str) -> Vec<f64> {
    let view = tensors.tensor(name).unwrap();
    match view.dtype() {
        Dtype::F64 => {
            view.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
        }
        Dtype::F32 => view
            .data()
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
            .collect(),
        other => panic!("{name} is {other:?}"),
    }
}

fn f32s(tensors: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    f64s(tensors, name).into_iter().map(|value| value as f32).collect()
}

#[test]
fn every_data_config_agrees_with_the_reference() {
    let Some((golden, bytes)) = golden() else { return };
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let golden = golden.as_object().unwrap();
    assert_eq!(golden.len(), DATA_CONFIGS.len());
    for (name, about) in golden {
        let tag = about["embodiment_tag"].as_str().unwrap();
        let dir = with_metadata(&json!({ tag: about["metadata"] }));
        let snapshot = Snapshot::open(dir.path()).unwrap();
        let robot = snapshot.embodiment_with(tag, name).unwrap();
        assert_eq!(robot.slot as u64, about["embodiment_id"].as_u64().unwrap());
        let bare = |key: &Value| key.as_str().unwrap().split_once('.').unwrap().1.to_owned();
        let cameras: Vec<String> =
            about["video_keys"].as_array().unwrap().iter().map(bare).collect();
        assert_eq!(robot.cameras, cameras, "{name}");
        assert_eq!(json!([robot.language_key]), about["language_keys"]);

        let state: BTreeMap<String, Vec<f64>> =
            serde_json::from_value(about["state_raw"].clone()).unwrap();
        let encoded = encode_state(robot, &state, 64).unwrap();
        check(name, &f32s(&tensors, &format!("{name}.state")), &encoded, 0.0);

        let prediction = f32s(&tensors, &format!("{name}.action_pred"));
        for group in decode(robot, &prediction, 16, 32, &state).unwrap() {
            let key = format!("{name}.action.{}", group.name);
            // The reference turns rotations in f32, we in f64.
            let turned = group.name == "eef_rotation_delta";
            let tolerance = if turned { 5e-7 } else { 0.0 };
            check(&key, &f32s(&tensors, &key), &group.values, tolerance);
        }
    }
}

fn euler(axes: &str) -> EulerOrder {
    let letters = axes.replace('X', "r").replace('Y', "p").replace('Z', "y");
    EulerOrder::from_letters(&letters).unwrap()
}

#[test]
fn rotations_agree_with_the_reference() {
    let Some((_, bytes)) = golden() else { return };
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let input = |name: &str| f64s(&tensors, &format!("rot.in.{name}"));
    let same = |name: &str, found: Vec<f64>| {
        let expected = f64s(&tensors, &format!("rot.{name}"));
        assert_eq!(expected.len(), found.len(), "{name}");
        for (expected, found) in expected.iter().zip(&found) {
            assert!((expected - found).abs() <= 1e-14, "{name}: {found} should be {expected}");
        }
    };
    let matrices = |format: RotationFormat, values: &[f64]| -> Vec<_> {
        let rows = values.chunks_exact(format.dim());
        rows.map(|values| rotation::to_matrix(format, values).unwrap()).collect()
    };
    let entries = |matrices: &[nalgebra::Matrix3<f64>]| -> Vec<f64> {
        matrices.iter().flat_map(|m| m.transpose().iter().copied().collect::<Vec<_>>()).collect()
    };
    for (name, format, values) in [
        ("quaternion_to_matrix", RotationFormat::Quaternion, input("quaternion_wxyz")),
        ("axis_angle_to_matrix", RotationFormat::AxisAngle, input("axis_angle")),
        ("rotation_6d_to_matrix", RotationFormat::Rotation6d, input("rotation_6d")),
    ] {
        same(name, entries(&matrices(format, &values)));
    }
    let turns = matrices(RotationFormat::AxisAngle, &input("axis_angle"));
    same("matrix_to_rotation_6d", turns.iter().flat_map(rotation::to_6d).collect());
    for axes in ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"] {
        let found = matrices(RotationFormat::Euler(euler(axes)), &input("angles"));
        same(&format!("euler_{axes}_to_matrix"), entries(&found));
        let angles = found.iter().flat_map(|turn| rotation::to_euler(euler(axes), turn)).collect();
        same(&format!("matrix_to_euler_{axes}"), angles);
    }
}

fn group(dim: usize) -> Value {
    json!({ "absolute": true, "rotation_type": null, "shape": [dim], "continuous": true })
}

fn statistics(dim: usize) -> Value {
    json!({ "min": vec![-1.0; dim], "max": vec![1.0; dim], "mean": vec![0.0; dim], "std": vec![1.0; dim] })
}

/// Metadata with these cameras, and these groups as state and as action.
fn metadata(cameras: &[&str], groups: &[(&str, usize)]) -> Value {
    let camera = json!({ "resolution": [640, 480], "channels": 3, "fps": 30.0 });
    let video: Value = cameras.iter().map(|name| (*name, camera.clone())).collect();
    let shapes: Value = groups.iter().map(|(name, dim)| (*name, group(*dim))).collect();
    let ranges: Value = groups.iter().map(|(name, dim)| (*name, statistics(*dim))).collect();
    json!({
        "modalities": { "video": video, "state": shapes.clone(), "action": shapes },
        "statistics": { "state": ranges.clone(), "action": ranges },
    })
}

fn open(tag: &str, metadata: Value) -> Snapshot {
    Snapshot::open(with_metadata(&json!({ tag: metadata })).path()).unwrap()
}

const GR1: [(&str, usize); 6] = [
    ("left_arm", 7),
    ("right_arm", 7),
    ("left_hand", 6),
    ("right_hand", 6),
    ("waist", 3),
    ("neck", 3),
];

#[test]
fn a_tag_has_a_data_config_of_its_own() {
    let snapshot = open("gr1", metadata(&["ego_view", "front_view"], &GR1));
    let names = |data_config: Option<&str>| -> Vec<String> {
        let robot = match data_config {
            None => snapshot.embodiment("gr1"),
            Some(name) => snapshot.embodiment_with("gr1", name),
        };
        robot.unwrap().state.iter().map(|group| group.name.clone()).collect()
    };
    assert_eq!(names(None), ["left_arm", "right_arm", "left_hand", "right_hand"]);
    assert_eq!(names(Some("fourier_gr1_arms_waist")).len(), 5);
    assert_eq!(names(Some("fourier_gr1_full_upper_body")).len(), 6);
}

#[test]
fn the_only_data_config_that_fits_is_taken() {
    let gr1 = open("gr1", metadata(&["front_view"], &GR1));
    assert_eq!(gr1.embodiment("gr1").unwrap().cameras, ["front_view"]);
    let arm = [("single_arm", 5), ("gripper", 1)];
    let so100 = open("new_embodiment", metadata(&["front", "wrist"], &arm));
    assert_eq!(so100.embodiment("new_embodiment").unwrap().cameras, ["front", "wrist"]);
}

#[track_caller]
fn refused(result: Result<impl std::fmt::Debug, CheckpointError>, parts: &[&str]) {
    let text = result.unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
}

#[test]
fn a_choice_between_data_configs_is_left_to_the_user() {
    let arm = [("single_arm", 5), ("gripper", 1)];
    let snapshot = open("new_embodiment", metadata(&["webcam", "front", "wrist"], &arm));
    refused(snapshot.embodiment("new_embodiment"), &["so100, so100_dualcam", "name one"]);
    assert!(snapshot.embodiment_with("new_embodiment", "so100").is_ok());
}

#[test]
fn what_does_not_fit_is_named() {
    let gr1 = || metadata(&["ego_view"], &GR1);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut metadata = gr1();
        change(&mut metadata);
        open("gr1", metadata)
    };
    let snapshot = with(&|_| {});
    refused(snapshot.embodiment("gr2"), &["gr2", "serves: gr1"]);
    refused(snapshot.embodiment("oxe_droid"), &["oxe_droid", "metadata.json has no entry"]);
    refused(snapshot.embodiment_with("gr1", "gr1_arms"), &["gr1_arms", "fourier_gr1_arms_only"]);
    refused(snapshot.embodiment_with("gr1", "so100"), &["so100", "camera 'webcam'", "ego_view"]);
    refused(
        snapshot.embodiment_with("gr1", "fourier_gr1_full_upper_body"),
        &["camera 'front_view'"],
    );

    let snapshot = with(&|m| {
        m["statistics"]["action"].as_object_mut().unwrap().remove("left_hand");
    });
    refused(snapshot.embodiment("gr1"), &["fourier_gr1_arms_only", "action.left_hand"]);
    let snapshot = with(&|m| m["statistics"]["action"]["left_hand"] = statistics(5));
    refused(snapshot.embodiment("gr1"), &["action.left_hand", "5 values", "6"]);
    let snapshot = with(&|m| m["statistics"]["action"]["left_arm"]["max"][3] = json!(null));
    refused(snapshot.embodiment("gr1"), &["action.left_arm.max", "finite"]);
    let snapshot = with(&|m| m["modalities"]["state"]["left_arm"]["shape"] = json!([7, 1]));
    refused(snapshot.embodiment("gr1"), &["state.left_arm.shape", "[7,1]"]);
    let snapshot = with(&|m| m["modalities"]["state"]["left_arm"]["rotation_type"] = json!("rpy"));
    refused(snapshot.embodiment("gr1"), &["state.left_arm.rotation_type", "rpy", "quaternion"]);
    let snapshot = with(&|m| {
        m["modalities"]["state"]["left_arm"] = group(20);
    });
    refused(snapshot.embodiment("gr1"), &["encoded state has 78", "64"]);
    let snapshot = open("robot_nobody_knows", gr1());
    refused(snapshot.embodiment("robot_nobody_knows"), &["no slot", "gr1, oxe_droid"]);
}

#[test]
fn rotations_of_another_width_are_named() {
    let droid = |state: Value, action: Value| {
        let groups = [("eef_position", 3), ("eef_rotation", 3), ("gripper_position", 1)];
        let cameras = ["exterior_image_1", "exterior_image_2", "wrist_image"];
        let mut metadata = metadata(&cameras, &groups);
        metadata["modalities"]["state"]["eef_rotation"] = state;
        metadata["modalities"]["action"]["eef_position_delta"] = group(3);
        metadata["modalities"]["action"]["eef_rotation_delta"] = action;
        open("oxe_droid", metadata)
    };
    let typed = |rotation_type: &str, dim: usize| {
        let mut group = group(dim);
        group["rotation_type"] = json!(rotation_type);
        group
    };
    let euler = || typed("euler_angles_rpy", 3);
    let quaternion = || typed("quaternion", 4);
    let serves = |snapshot: Snapshot| snapshot.embodiment("oxe_droid").cloned();
    assert!(serves(droid(euler(), euler())).is_ok());
    assert!(serves(droid(quaternion(), typed("axis_angle", 3))).is_ok());
    assert!(serves(droid(typed("rotation_6d", 6), euler())).is_ok());
    refused(serves(droid(group(3), euler())), &["eef_rotation", "null", "quaternion"]);
    refused(serves(droid(typed("matrix", 9), euler())), &["eef_rotation", "Matrix"]);
    refused(serves(droid(typed("quaternion", 3), euler())), &["eef_rotation", "3 values", "4"]);
    refused(serves(droid(euler(), quaternion())), &["eef_rotation_delta", "axis_angle"]);
    refused(serves(droid(euler(), typed("axis_angle", 4))), &["eef_rotation_delta", "4", "3"]);
}

/// Every value of the metadata in turn becomes something else: then the snapshot opens, and serves or refuses.
#[test]
fn damaged_metadata_never_panics() {
    fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
        if let Some(object) = value.as_object() {
            for (key, inner) in object {
                pointers(inner, format!("{at}/{key}"), found);
            }
        }
        found.push(at);
    }
    let whole = json!({ "gr1": metadata(&["ego_view"], &GR1) });
    let mut paths = vec![];
    pointers(&whole, String::new(), &mut paths);
    paths.retain(|path| !path.is_empty());
    for (index, path) in paths.iter().enumerate() {
        let junk = [json!(null), json!(-1), json!("x"), json!([]), json!({}), json!([1e300])];
        let mut damaged = whole.clone();
        *damaged.pointer_mut(path).unwrap() = junk[index % junk.len()].clone();
        let dir = with_metadata(&damaged);
        let snapshot = Snapshot::open(dir.path()).unwrap();
        if let Err(error) = snapshot.embodiment("gr1") {
            assert!(error.to_string().contains("gr1"), "{path}: {error}");
        }
    }
}

#[test]
fn changes_are_said_to_be_changes() {
    let snapshot = Snapshot::open(TINY.path()).unwrap();
    let robot = snapshot.embodiment("oxe_droid").unwrap();
    let kinds: Vec<Representation> =
        robot.action.iter().map(gr00t_blackhole::decode::representation).collect();
    let delta = Representation::Delta;
    assert_eq!(kinds, [delta, delta, Representation::Absolute]);
}
