use proptest::prelude::*;

use super::*;
use crate::contract::{ActionNormalization, ActionScaling, EulerOrder};

fn min_max(dim: usize, min: f64, max: f64) -> ActionNormalization {
    ActionNormalization::MinMax { min: vec![min; dim], max: vec![max; dim] }
}

fn group(
    name: &str,
    dim: usize,
    normalization: ActionNormalization,
    reference: ActionReference,
) -> ActionGroupSpec {
    ActionGroupSpec { name: name.into(), dim, normalization, reference, pose: None }
}

fn relative_joint(state_group: &str) -> ActionReference {
    ActionReference::RelativeJoint { state_group: state_group.into() }
}

fn relative_pose(state_group: &str, format: PoseFormat) -> ActionReference {
    ActionReference::RelativePose { state_group: state_group.into(), format }
}

fn embodiment(horizon: usize, state: &[(&str, usize)], action: Vec<ActionGroupSpec>) -> Embodiment {
    let encoding = crate::contract::StateEncoding::SinCos;
    Embodiment {
        tag: "test".into(),
        slot: 0,
        cameras: vec![],
        frame_deltas: vec![0],
        state: state
            .iter()
            .map(|&(name, dim)| StateGroupSpec {
                name: name.into(),
                dim,
                encoding: encoding.clone(),
            })
            .collect(),
        action,
        horizon,
        language_key: String::new(),
    }
}

fn state(groups: &[(&str, &[f64])]) -> BTreeMap<String, Vec<f64>> {
    groups.iter().map(|(name, values)| (name.to_string(), values.to_vec())).collect()
}

#[test]
fn case_12_each_group_keeps_its_own_representation() {
    let robot = embodiment(
        1,
        &[("arm", 1), ("waist", 1)],
        vec![
            group("arm", 1, min_max(1, -1.0, 1.0), relative_joint("arm")),
            group("waist", 1, min_max(1, -1.0, 1.0), ActionReference::Absolute),
            group("base", 1, min_max(1, -1.0, 1.0), ActionReference::Delta),
        ],
    );
    let observed = state(&[("arm", &[10.0]), ("waist", &[20.0])]);
    let groups = decode(&robot, &[0.5, 0.5, 0.5], 1, 3, &observed).unwrap();
    let values: Vec<f32> = groups.iter().map(|group| group.values[0]).collect();
    assert_eq!(values, [10.5, 0.5, 0.5]);
    let kinds: Vec<_> = groups.iter().map(|group| group.representation).collect();
    assert_eq!(kinds, [Representation::Absolute, Representation::Absolute, Representation::Delta]);
}

#[test]
fn case_13_columns_are_cut_in_the_order_of_the_checkpoint() {
    let absolute = ActionReference::Absolute;
    let robot = embodiment(
        2,
        &[],
        vec![
            group("thumb", 2, min_max(2, -1.0, 1.0), absolute.clone()),
            group("index", 1, min_max(1, -1.0, 1.0), absolute),
        ],
    );
    let prediction = [0.125, 0.25, 0.375, 9.0, 0.5, 0.625, 0.75, 9.0, 9.0, 9.0, 9.0, 9.0];
    let groups = decode(&robot, &prediction, 3, 4, &BTreeMap::new()).unwrap();
    assert_eq!((groups[0].name.as_str(), groups[0].dim), ("thumb", 2));
    assert_eq!(groups[0].values, [0.125, 0.25, 0.5, 0.625]);
    assert_eq!(groups[1].values, [0.375, 0.75]);
}

#[test]
fn case_11_every_step_is_relative_to_the_same_state() {
    let robot = embodiment(
        3,
        &[("joints", 1)],
        vec![group("arm", 1, min_max(1, -1.0, 1.0), relative_joint("joints"))],
    );
    let groups = decode(&robot, &[0.5, 0.5, 0.25], 3, 1, &state(&[("joints", &[1.0])])).unwrap();
    assert_eq!(groups[0].values, [1.5, 1.5, 1.25]);
}

#[test]
fn bounds_of_each_step_are_used_at_that_step() {
    let normalization = ActionNormalization::MinMaxPerStep {
        min: vec![0.0, -1.0, 0.0, -10.0],
        max: vec![1.0, 1.0, 4.0, 10.0],
    };
    let robot = embodiment(2, &[], vec![group("arm", 2, normalization, ActionReference::Absolute)]);
    let groups = decode(&robot, &[0.0, 0.5, 0.5, -2.0], 2, 2, &BTreeMap::new()).unwrap();
    assert_eq!(groups[0].values, [0.5, 0.5, 3.0, -10.0]);
}

#[test]
fn case_19_mean_and_std_are_not_clipped_and_pass_a_spread_of_zero() {
    let shared = ActionNormalization::MeanStd { mean: vec![1.0, 9.0], std: vec![2.0, 0.0] };
    let each = ActionNormalization::MeanStdPerStep { mean: vec![0.0, 5.0], std: vec![1.0, 0.0] };
    let robot = embodiment(
        2,
        &[],
        vec![
            group("a", 2, shared, ActionReference::Absolute),
            group("b", 1, each, ActionReference::Absolute),
        ],
    );
    let groups =
        decode(&robot, &[3.0, 0.5, 0.25, -3.0, 7.0, 0.125], 2, 3, &BTreeMap::new()).unwrap();
    assert_eq!(groups[0].values, [7.0, 0.5, -5.0, 7.0]);
    assert_eq!(groups[1].values, [0.25, 0.125]);
}

fn single(scaling: ActionScaling, euler: Option<EulerOrder>) -> ActionNormalization {
    ActionNormalization::Single { scaling, euler }
}

#[test]
fn n15_neither_clips_nor_passes_a_spread_of_zero() {
    let bounds = ActionScaling::MinMax { min: vec![-1.0, 2.0], max: vec![3.0, 2.0] };
    let moments = ActionScaling::MeanStd { mean: vec![1.0, 9.0], std: vec![2.0, 0.0] };
    let absolute = ActionReference::Absolute;
    let robot = embodiment(
        1,
        &[],
        vec![
            group("a", 2, single(bounds, None), absolute.clone()),
            group("b", 2, single(moments, None), absolute.clone()),
            group("c", 2, single(ActionScaling::Binary, None), absolute.clone()),
            group("d", 1, single(ActionScaling::None, None), absolute),
        ],
    );
    let prediction = [2.0, 0.7, -3.0, 0.25, 0.5, 0.51, -7.5];
    let groups = decode(&robot, &prediction, 1, 7, &BTreeMap::new()).unwrap();
    let values: Vec<f32> = groups.into_iter().flat_map(|group| group.values).collect();
    assert_eq!(values, [5.0, 2.0, -5.0, 9.0, 0.0, 1.0, -7.5]);
}

#[test]
fn n15_axis_angles_become_euler_angles() {
    let roll_first = EulerOrder::from_letters("rpy");
    let robot = |dim| {
        let scaling = single(ActionScaling::None, roll_first);
        embodiment(1, &[], vec![group("turn", dim, scaling, ActionReference::Delta)])
    };
    let groups = decode(&robot(3), &[0.0, 0.0, 0.75], 1, 3, &BTreeMap::new()).unwrap();
    for (found, expected) in groups[0].values.iter().zip([0.0, 0.0, 0.75]) {
        assert!((found - expected).abs() < 1e-6, "{:?}", groups[0].values);
    }
    let error = decode(&robot(4), &[0.0; 4], 1, 4, &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, DecodeError::RotationWidth { dim: 4, .. }), "{error}");
}

#[test]
fn a_dimension_without_range_gives_its_minimum() {
    let robot =
        embodiment(1, &[], vec![group("a", 1, min_max(1, 0.75, 0.75), ActionReference::Absolute)]);
    for x in [-5.0, 0.0, 0.3] {
        assert_eq!(decode(&robot, &[x], 1, 1, &BTreeMap::new()).unwrap()[0].values, [0.75]);
    }
}

#[test]
fn case_16_a_prediction_that_is_not_finite_drops_the_whole_chunk() {
    let robot = embodiment(
        2,
        &[],
        vec![
            group("arm", 2, min_max(2, -1.0, 1.0), ActionReference::Absolute),
            group("hand", 1, min_max(1, -1.0, 1.0), ActionReference::Absolute),
        ],
    );
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut prediction = [0.0; 12];
        prediction[4 + 2] = bad;
        let error = decode(&robot, &prediction, 3, 4, &BTreeMap::new()).unwrap_err();
        assert!(
            matches!(&error, DecodeError::PredictionNotFinite { group, step: 1, column: 0, .. } if group == "hand"),
            "{error}"
        );
        assert!(error.to_string().contains("group 'hand', step 1, column 0"), "{error}");

        for padding in [3, 8] {
            let mut prediction = [0.0; 12];
            prediction[padding] = bad;
            let error = decode(&robot, &prediction, 3, 4, &BTreeMap::new()).unwrap_err();
            let (row, column) = (padding / 4, padding % 4);
            assert!(
                matches!(error, DecodeError::PaddingNotFinite { row: r, column: c, .. } if (r, c) == (row, column))
            );
        }
    }
}

#[test]
fn case_16_an_action_beyond_f32_drops_the_whole_chunk() {
    let robot =
        embodiment(1, &[], vec![group("a", 1, min_max(1, 0.0, 1e300), ActionReference::Absolute)]);
    let error = decode(&robot, &[1.0], 1, 1, &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, DecodeError::ActionNotFinite { step: 0, column: 0, .. }), "{error}");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let spec = || group("a", 2, min_max(2, 0.0, 1.0), ActionReference::Absolute);
    let robot = embodiment(2, &[], vec![spec()]);
    let decode = |robot: &Embodiment, len: usize, rows, cols| {
        super::decode(robot, &vec![0.0; len], rows, cols, &BTreeMap::new()).unwrap_err()
    };
    assert!(matches!(decode(&robot, 5, 2, 2), DecodeError::Length { found: 5, .. }));
    assert!(matches!(decode(&robot, 2, 1, 2), DecodeError::Shape { need_rows: 2, .. }));
    assert!(matches!(decode(&robot, 2, 2, 1), DecodeError::Shape { need_cols: 2, .. }));
    assert!(matches!(decode(&robot, 0, 0, usize::MAX), DecodeError::Shape { .. }));
    assert!(matches!(
        decode(&embodiment(0, &[], vec![spec()]), 4, 2, 2),
        DecodeError::Shape { .. }
    ));
    assert!(matches!(decode(&embodiment(2, &[], vec![]), 4, 2, 2), DecodeError::Shape { .. }));
    let short =
        embodiment(2, &[], vec![group("a", 2, min_max(1, 0.0, 1.0), ActionReference::Absolute)]);
    assert!(matches!(
        decode(&short, 4, 2, 2),
        DecodeError::Statistics { expected: 2, found: 1, .. }
    ));
}

#[test]
fn references_that_do_not_fit_are_refused() {
    let with = |state_groups: &[(&str, usize)], reference, dim| {
        embodiment(1, state_groups, vec![group("arm", dim, min_max(dim, -1.0, 1.0), reference)])
    };
    let decode = |robot: &Embodiment, observed: &[(&str, &[f64])]| {
        let cols = robot.action_dim();
        super::decode(robot, &vec![0.0; cols], 1, cols, &state(observed)).unwrap_err()
    };
    let robot = with(&[("arm", 2)], relative_joint("arm"), 2);
    assert!(matches!(decode(&robot, &[]), DecodeError::State(_)));
    assert!(matches!(decode(&robot, &[("arm", &[1.0])]), DecodeError::State(_)));
    assert!(matches!(decode(&robot, &[("arm", &[1.0, f64::NAN])]), DecodeError::State(_)));
    let robot = with(&[("other", 2)], relative_joint("arm"), 2);
    assert!(matches!(decode(&robot, &[]), DecodeError::ReferenceGroup { .. }));
    let robot = with(&[("arm", 3)], relative_joint("arm"), 2);
    assert!(matches!(decode(&robot, &[]), DecodeError::ReferenceWidth { action: 2, state: 3, .. }));
    let robot = with(&[("arm", 7)], relative_pose("arm", PoseFormat::Rot6d), 7);
    assert!(matches!(decode(&robot, &[]), DecodeError::PoseWidth { dim: 7, .. }));
}

#[test]
fn degenerate_poses_are_named() {
    let rot6d = PoseFormat::Rot6d;
    let robot = embodiment(
        2,
        &[("eef", 9)],
        vec![group("eef", 9, min_max(9, -1.0, 1.0), relative_pose("eef", rot6d))],
    );
    let upright = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let flat = [0.0; 9];
    let mut prediction: Vec<f32> = upright.iter().chain(&flat).map(|&v| v as f32).collect();
    let error = decode(&robot, &prediction, 2, 9, &state(&[("eef", &upright)])).unwrap_err();
    assert!(
        matches!(&error, DecodeError::ActionPose { group, step: 1, problem: PoseError::Rows } if group == "eef"),
        "{error}"
    );
    prediction.copy_within(..9, 9);
    let error = decode(&robot, &prediction, 2, 9, &state(&[("eef", &flat)])).unwrap_err();
    assert!(matches!(error, DecodeError::StatePose { problem: PoseError::Rows, .. }), "{error}");
    let groups = decode(&robot, &prediction, 2, 9, &state(&[("eef", &upright)])).unwrap();
    assert_eq!(groups[0].representation, Representation::PoseRot6d);
    assert_eq!(groups[0].values[..9], upright.map(|v| v as f32));
}

proptest! {
    #[test]
    fn a_shifted_state_shifts_relative_joints_by_as_much(
        prediction in prop::collection::vec(-1.5f32..1.5, 12),
        position in prop::collection::vec(-3.0f32..3.0, 3),
        // Exact in f32 together with any position, so that only the final rounding is left.
        shift in prop::collection::vec((-64i32..64).prop_map(|step| step as f32 / 32.0), 3),
    ) {
        let bounds = ActionNormalization::MinMax { min: vec![-0.5, -1.0, 0.1], max: vec![0.4, 2.0, 0.3] };
        let robot = embodiment(4, &[("arm", 3)], vec![group("arm", 3, bounds, relative_joint("arm"))]);
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        let moved: Vec<f32> = position.iter().zip(&shift).map(|(p, s)| p + s).collect();
        let at = decode(&robot, &prediction, 4, 3, &state(&[("arm", &wide(&position))])).unwrap();
        let there = decode(&robot, &prediction, 4, 3, &state(&[("arm", &wide(&moved))])).unwrap();
        for (index, (before, after)) in at[0].values.iter().zip(&there[0].values).enumerate() {
            let exact = f64::from(moved[index % 3]) - f64::from(position[index % 3]);
            let difference = f64::from(*after) - f64::from(*before);
            prop_assert!((difference - exact).abs() <= 1e-6, "{difference} instead of {exact}");
        }
    }

    #[test]
    fn arbitrary_predictions_and_states_never_panic(
        prediction in prop::collection::vec(prop::num::f32::ANY, 25),
        values in prop::collection::vec(prop::num::f64::ANY, 16),
        cols in 0usize..30,
    ) {
        for (format, dim) in [(PoseFormat::Rot6d, 9), (PoseFormat::Rotvec, 6), (PoseFormat::Matrix, 16)] {
            let bounds = ActionNormalization::MinMax { min: values[..dim].to_vec(), max: vec![1.0; dim] };
            let robot =
                embodiment(1, &[("eef", dim)], vec![group("eef", dim, bounds, relative_pose("eef", format))]);
            let result = decode(&robot, &prediction, 1, cols, &state(&[("eef", &values[..dim])]));
            if let Ok(groups) = result {
                prop_assert!(groups[0].values.iter().all(|value| value.is_finite()));
            }
            // The same with a shape that fits, so that more than the length is tried.
            let fits: Vec<f32> = prediction[..dim].iter().map(|v| if v.is_finite() { *v } else { 0.5 }).collect();
            if let Ok(groups) = decode(&robot, &fits, 1, dim, &state(&[("eef", &values[..dim])])) {
                prop_assert!(groups[0].values.iter().all(|value| value.is_finite()));
            }
        }
    }
}
