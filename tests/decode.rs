//! Decoding against NVIDIA's own processors.

mod common;
#[path = "common/stored.rs"]
mod stored;

use std::collections::BTreeMap;

use common::golden::check;
use common::n16::every_case;
use common::shared;
use gr00t_blackhole::contract::{PoseFormat, Representation};
use gr00t_blackhole::decode::{Pose, PoseError, decode};
use safetensors::SafeTensors;
use serde_json::Value;
use stored::Stored;

const TOLERANCE: f32 = 1e-6;

#[test]
fn stored_predictions_decode_to_the_reference_actions() {
    for case in Stored::all() {
        let embodiment = case.embodiment();
        let (rows, cols) = (embodiment.horizon, embodiment.action_dim());
        let groups = decode(&embodiment, &case.prediction, rows, cols, &case.state).unwrap();
        assert_eq!(groups.len(), case.actions.len());
        for (group, spec) in groups.iter().zip(&embodiment.action) {
            let name = format!("{}: {}", case.id, group.name);
            assert_eq!((&group.name, group.dim), (&spec.name, spec.dim));
            check(&name, &case.actions[&group.name], &group.values, TOLERANCE);
        }
    }
}

#[test]
fn golden_predictions_decode_to_the_reference_actions() {
    for (case, embodiment) in every_case() {
        let prediction = case.f32("action_pred");
        let (rows, cols) = (prediction.values.len() / prediction.cols, prediction.cols);
        let state = case.observation().state;
        for group in decode(&embodiment, &prediction.values, rows, cols, &state).unwrap() {
            let golden = case.f32(&format!("action.{}", group.name));
            assert_eq!(golden.cols, group.dim);
            check(
                &format!("{}: {}", case.name, group.name),
                &golden.values,
                &group.values,
                TOLERANCE,
            );
        }
    }
}

#[test]
fn composed_poses_say_their_layout() {
    let case = Stored::all().into_iter().find(|case| case.id.starts_with("c4")).unwrap();
    let embodiment = case.embodiment();
    let (rows, cols) = (embodiment.horizon, embodiment.action_dim());
    let groups = decode(&embodiment, &case.prediction, rows, cols, &case.state).unwrap();
    let kinds: BTreeMap<&str, Representation> =
        groups.iter().map(|group| (group.name.as_str(), group.representation)).collect();
    assert_eq!(kinds["eef_9d"], Representation::PoseRot6d);
    assert_eq!(kinds["tool_rv"], Representation::PoseRotvec);
    assert_eq!(kinds["arm"], Representation::Absolute);
}

/// Columns outside the embodiment's groups and rows behind its horizon have no influence.
#[test]
fn the_rest_of_a_prediction_changes_nothing() {
    let case = Stored::all().remove(0);
    let embodiment = case.embodiment();
    let (rows, cols) = (embodiment.horizon, embodiment.action_dim());
    let plain = decode(&embodiment, &case.prediction, rows, cols, &case.state).unwrap();
    let mut padded = vec![0.75; 50 * 128];
    for (wide, narrow) in padded.chunks_exact_mut(128).zip(case.prediction.chunks_exact(cols)) {
        wide[..cols].copy_from_slice(narrow);
    }
    assert_eq!(decode(&embodiment, &padded, 50, 128, &case.state).unwrap(), plain);
}

#[test]
fn case_14_golden_poses_compose_as_in_the_reference() {
    let Some(dir) = shared("golden/n17") else { return };
    let bytes = std::fs::read(dir.join("se3.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let json: Value =
        serde_json::from_slice(&std::fs::read(dir.join("se3.json")).unwrap()).unwrap();
    let f64s = |name: &str| -> Vec<f64> {
        let values = tensors.tensor(name).unwrap();
        let values = values.data().chunks_exact(8);
        values.map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    let format = PoseFormat::Rot6d;
    for case in json["cases"].as_array().unwrap() {
        let (index, label) = (case["index"].as_u64().unwrap(), case["label"].as_str().unwrap());
        let state = tensors.tensor(&format!("{index:02}.state")).unwrap();
        let state: Vec<f32> = state
            .data()
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        let reference = Pose::from_state(format, &state).unwrap();
        let relative = f64s(&format!("{index:02}.relative"));
        let absolute = f64s(&format!("{index:02}.absolute"));
        for (relative, expected) in relative.chunks_exact(9).zip(absolute.chunks_exact(9)) {
            let mut found = [0.0; 9];
            reference
                .compose(&Pose::from_action(format, relative).unwrap())
                .write(format, &mut found);
            for (column, (found, expected)) in found.iter().zip(expected).enumerate() {
                let difference = (found - expected).abs();
                assert!(difference <= 2e-7, "{label}[{column}]: {found} should be {expected}");
            }
        }
    }
    for case in json["degenerate"].as_array().unwrap() {
        let relative: Vec<f64> = serde_json::from_value(case["relative"].clone()).unwrap();
        assert_eq!(Pose::from_action(format, &relative), Err(PoseError::Rows), "{}", case["label"]);
    }
}
