use proptest::prelude::*;

use super::*;
use crate::contract::{ActionGroup, PoseFormat, Representation, StageTimings, Version};
use crate::node::state::affine::AffineMap;

const CLAMP: OnViolation = OnViolation::Clamp;
const REFUSE: OnViolation = OnViolation::Refuse;

fn chunk(groups: Vec<(&str, Representation, usize, Vec<f32>)>) -> ActionChunk {
    let horizon = groups[0].3.len() / groups[0].2;
    let group = |(name, representation, dim, values): (&str, Representation, usize, Vec<f32>)| {
        ActionGroup { name: name.to_owned(), representation, dim, values }
    };
    ActionChunk {
        version: Version::N17,
        embodiment: "robot".to_owned(),
        instruction: "wave".to_owned(),
        seed: Some(1),
        stamp_ns: 0,
        horizon,
        groups: groups.into_iter().map(group).collect(),
        normalized: vec![],
        timings: StageTimings::default(),
    }
}

fn arm(values: &[f32]) -> ActionChunk {
    chunk(vec![("arm", Representation::Absolute, 2, values.to_vec())])
}

fn poses(values: &[f32]) -> ActionChunk {
    chunk(vec![("eef", Representation::PoseRotvec, 6, values.to_vec())])
}

fn joint(name: &str, [minimum, maximum]: [f64; 2], velocity: f64, column: usize) -> LimitedJoint {
    let observed = ObservedJoint { state_group: "arm_state".to_owned(), column, map: None };
    LimitedJoint { name: name.to_owned(), minimum, maximum, velocity, observed: Some(observed) }
}

/// Two joints at 10 Hz: one between -1 and 1, one that makes at most 5 a second.
fn arm_guard() -> Guard {
    let any = [f64::NEG_INFINITY, f64::INFINITY];
    let joints =
        vec![joint("shoulder", [-1.0, 1.0], f64::INFINITY, 0), joint("elbow", any, 5.0, 1)];
    let limits = JointLimits { group: "arm".to_owned(), joints, map: None };
    Guard { joints: vec![limits], step_s: 0.1, ..Guard::default() }
}

fn pose_guard(translation_step: f64, rotation_step: f64) -> Guard {
    let limits = PoseLimits {
        group: "eef".to_owned(),
        format: PoseFormat::Rotvec,
        translation_step,
        rotation_step,
        observed: Some("eef_state".to_owned()),
    };
    Guard { poses: vec![limits], step_s: 0.1, ..Guard::default() }
}

fn observed(arm: [f64; 2]) -> ObservedState {
    [("arm_state".to_owned(), arm.to_vec()), ("eef_state".to_owned(), vec![0.0; 6])].into()
}

fn refusal(guard: &Guard, mut chunk: ActionChunk, state: &ObservedState) -> String {
    let before = chunk.clone();
    let violation = guard.check(&mut chunk, state, REFUSE).expect_err("a violation");
    assert_eq!(chunk, before, "a refused chunk is untouched");
    violation.to_string()
}

#[test]
fn case_94_the_joint_the_row_and_the_limit_are_named() {
    let at_rest = observed([0.0; 2]);
    for (values, expected) in [
        (
            [0.5, 0.0, 1.5, 0.0],
            "joint 'shoulder' (group 'arm'): row 1 commands position 1.500000, above its limit 1 \
             (`action.arm.position_max`)",
        ),
        (
            [-1.25, 0.0, 0.0, 0.0],
            "joint 'shoulder' (group 'arm'): row 0 commands position -1.250000, below its limit -1 \
             (`action.arm.position_min`)",
        ),
        (
            [0.0, 0.0, 0.0, -0.75],
            "joint 'elbow' (group 'arm'): the step to row 1 has a speed of 7.500000 per second, above its limit 5 \
             (`action.arm.velocity_max`)",
        ),
        ([0.0, 0.75, 0.0, 0.75], "the step to row 0 has a speed of 7.5"),
    ] {
        let text = refusal(&arm_guard(), arm(&values), &at_rest);
        assert!(text.contains(expected), "{text}");
    }
    // From where the joint is observed, the same first row is no step; without observation it has none to come from.
    for state in [observed([0.0, 0.5]), ObservedState::new()] {
        assert_eq!(arm_guard().check(&mut arm(&[0.0, 0.75, 0.0, 0.75]), &state, REFUSE), Ok(0));
    }
}

#[test]
fn case_94_values_are_brought_to_the_limits_one_row_after_the_other() {
    let mut chunk = arm(&[0.5, 1.0, 2.0, 1.0, -3.0, 1.0, 0.25, 1.25]);
    assert_eq!(arm_guard().check(&mut chunk, &observed([0.0; 2]), CLAMP), Ok(3));
    let shoulder: Vec<f32> = chunk.groups[0].values.iter().copied().step_by(2).collect();
    let elbow: Vec<f32> = chunk.groups[0].values.iter().copied().skip(1).step_by(2).collect();
    assert_eq!(shoulder, [0.5, 1.0, -1.0, 0.25]);
    assert_eq!(elbow, [0.5, 1.0, 1.0, 1.25]);
}

#[test]
fn the_nearest_f32_of_a_limit_keeps_it() {
    let mut guard = arm_guard();
    guard.joints[0].joints[0].maximum = 0.1;
    // 0.1 as f32 is larger than 0.1.
    assert_eq!(guard.check(&mut arm(&[0.1, 0.0]), &observed([0.0; 2]), REFUSE), Ok(0));
    assert!(guard.check(&mut arm(&[0.100_001, 0.0]), &observed([0.0; 2]), REFUSE).is_err());
}

#[test]
fn the_largest_numbers_have_limits_too() {
    for value in [f32::MAX, f32::MIN] {
        let mut chunk = arm(&[value, 0.0]);
        assert!(arm_guard().check(&mut chunk, &observed([0.0; 2]), REFUSE).is_err(), "{value}");
        assert_eq!(arm_guard().check(&mut chunk, &observed([0.0; 2]), CLAMP), Ok(1));
        assert_eq!(chunk.groups[0].values, [value.signum(), 0.0]);
    }
}

#[test]
fn limits_are_in_the_units_of_the_joint() {
    let map = |from, to| Some(AffineMap::new(from, to));
    // 0 to 1 for the policy, 0.8 to 0 for the joint, in action and state.
    let mut finger = joint("finger", [0.2, f64::INFINITY], 1.0, 0);
    let backwards = map([0.0, 1.0], [0.8, 0.0]);
    finger.observed.as_mut().expect("observed").map = backwards;
    let limits = JointLimits { group: "hand".to_owned(), joints: vec![finger], map: backwards };
    let guard = Guard { joints: vec![limits], step_s: 0.1, ..Guard::default() };
    let hand = |values: &[f32]| chunk(vec![("hand", Representation::Absolute, 1, values.to_vec())]);
    let open = [("arm_state".to_owned(), vec![0.5])].into();
    let text = guard.check(&mut hand(&[0.6, 0.8]), &open, REFUSE).expect_err("0.16").to_string();
    assert!(text.contains("row 1 commands position 0.160000, below its limit 0.2"), "{text}");
    let mut chunk = hand(&[0.9, 0.9]);
    assert_eq!(guard.check(&mut chunk, &open, CLAMP), Ok(2));
    // 0.4, then 0.3 and 0.2 of the joint.
    let [first, second] = chunk.groups[0].values[..] else { panic!("two rows") };
    assert!((first - 0.625).abs() < 1e-6 && (second - 0.75).abs() < 1e-6, "{first} {second}");
}

#[test]
fn a_joint_that_is_observed_out_of_reach_is_no_matter_of_clamping() {
    let mut guard = arm_guard();
    guard.joints[0].joints[0].velocity = 1.0;
    // One step of 0.1 is enough from here.
    let mut chunk = arm(&[1.04, 0.0]);
    assert_eq!(guard.check(&mut chunk, &observed([1.05, 0.0]), CLAMP), Ok(1));
    assert_eq!(chunk.groups[0].values[0], 1.0);
    let error = guard.check(&mut arm(&[1.0, 0.0]), &observed([1.5, 0.0]), CLAMP).expect_err("far");
    assert!(matches!(error, Violation::OutOfReach { .. }), "{error}");
    assert!(
        error.to_string().contains("'shoulder' (group 'arm') is observed at 1.500000"),
        "{error}"
    );
}

#[test]
fn case_94_steps_of_poses_are_limited() {
    let state = observed([0.0; 2]);
    let far = [0.005, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02, 0.0, 0.0, 0.0, 0.0];
    let text = refusal(&pose_guard(0.01, f64::INFINITY), poses(&far), &state);
    assert!(
        text.contains("the step to row 1 is 0.020616 m long, above its limit 0.01 m"),
        "{text}"
    );
    assert!(text.contains("`action.eef.translation_step_max_m`"), "{text}");
    let turn = [0.0, 0.0, 0.0, 0.0, 0.0, 0.3];
    let text = refusal(&pose_guard(f64::INFINITY, 0.1), poses(&turn), &state);
    assert!(
        text.contains("the step to row 0 turns by 0.300000 rad, above its limit 0.1 rad"),
        "{text}"
    );
    assert!(text.contains("`action.eef.rotation_step_max_rad`"), "{text}");

    let mut chunk = poses(&[0.03, 0.0, 0.04, 0.0, 0.0, 0.3]);
    assert_eq!(pose_guard(0.01, 0.1).check(&mut chunk, &state, CLAMP), Ok(2));
    let expected = [0.006, 0.0, 0.008, 0.0, 0.0, 0.1];
    let near = |(value, expected): (&f32, f32)| (value - expected).abs() < 1e-6;
    assert!(chunk.groups[0].values.iter().zip(expected).all(near), "{chunk:?}");
    // What keeps its limit keeps its bytes.
    let mut chunk = poses(&[0.3, 0.0, 0.0, 0.01, 0.02, 0.03]);
    assert_eq!(pose_guard(0.01, 0.1).check(&mut chunk, &state, CLAMP), Ok(1));
    assert_eq!(chunk.groups[0].values[3..], [0.01, 0.02, 0.03]);
}

#[test]
fn half_a_turn_away_is_turned_one_way() {
    let mut chunk = poses(&[0.0, 0.0, 0.0, 0.0, 0.0, std::f32::consts::PI]);
    assert_eq!(pose_guard(1.0, 0.1).check(&mut chunk, &observed([0.0; 2]), CLAMP), Ok(1));
    assert!((chunk.groups[0].values[5].abs() - 0.1).abs() < 1e-6, "{chunk:?}");
}

#[test]
fn numbers_that_are_not_finite_never_pass() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for guard in [Guard::default(), arm_guard()] {
            for on_violation in [REFUSE, CLAMP] {
                let mut chunk = arm(&[0.0, 0.0, bad, 0.0]);
                let error = guard.check(&mut chunk, &observed([0.0; 2]), on_violation);
                let text = error.expect_err("not finite").to_string();
                assert!(text.contains("group 'arm': row 1, column 0 is"), "{text}");
            }
        }
    }
    // Nor do those that limits make of them.
    let error = arm_guard().check(&mut arm(&[0.0, 0.0]), &observed([0.0, 1e300]), CLAMP);
    assert!(matches!(error, Err(Violation::NotFinite { column: 1, .. })), "{error:?}");
    let mut no_pose = chunk(vec![("eef", Representation::PoseRot6d, 9, vec![0.0; 9])]);
    let mut guard = pose_guard(0.1, 0.1);
    guard.poses[0].format = PoseFormat::Rot6d;
    let error = guard.check(&mut no_pose, &observed([0.0; 2]), CLAMP).expect_err("no pose");
    assert!(matches!(error, Violation::NoPose { row: 0, .. }), "{error}");
}

proptest! {
    /// After clamping nothing violates; what violated nothing keeps its bytes.
    #[test]
    fn clamped_joints_keep_every_limit(
        values in prop::collection::vec(-4.0f32..4.0, 20),
        start in prop::array::uniform2(-1.0f64..1.0),
        maximum in 0.0f64..1.5,
        velocity in 0.0f64..60.0,
        mapped in any::<bool>(),
    ) {
        let mut guard = arm_guard();
        let limits = &mut guard.joints[0];
        limits.map = mapped.then(|| AffineMap::new([0.0, 3.0], [1.0, -0.7]));
        limits.joints[0] = joint("shoulder", [-1.0, maximum], velocity, 0);
        limits.joints[1] = joint("elbow", [-2.0, 2.0], 3.0, 1);
        let state = observed([start[0].min(maximum), start[1]]);
        let mut chunk = arm(&values);
        let refused = guard.check(&mut chunk.clone(), &state, REFUSE).is_err();
        let limited = guard.check(&mut chunk, &state, CLAMP).expect("within reach");
        prop_assert_eq!(refused, limited > 0);
        prop_assert_eq!(chunk.groups[0].values == values, limited == 0);
        prop_assert_eq!(guard.check(&mut chunk, &state, REFUSE), Ok(0));
    }

    #[test]
    fn clamped_poses_keep_every_limit(
        values in prop::collection::vec(-3.0f32..3.0, 60),
        translation in 1e-3f64..3.0,
        rotation in 1e-3f64..3.2,
        format in prop::sample::select(vec![PoseFormat::Rotvec, PoseFormat::Rot6d, PoseFormat::Matrix]),
    ) {
        let mut guard = pose_guard(translation, rotation);
        guard.poses[0].format = format;
        let dim = format.dim();
        let state: ObservedState = match format {
            PoseFormat::Rotvec => observed([0.0; 2]),
            // The chunk's first row has nothing to be a step from.
            PoseFormat::Rot6d | PoseFormat::Matrix => ObservedState::new(),
        };
        let values = &values[..values.len() / dim * dim];
        let mut chunk = chunk(vec![("eef", Representation::PoseRotvec, dim, values.to_vec())]);
        match guard.check(&mut chunk, &state, CLAMP) {
            Ok(limited) => {
                prop_assert_eq!(chunk.groups[0].values == values, limited == 0);
                prop_assert_eq!(guard.check(&mut chunk, &state, REFUSE), Ok(0));
            }
            // Random matrices are no rotations, some of them.
            Err(violation) => prop_assert!(matches!(violation, Violation::NoPose { .. }), "{}", violation),
        }
    }
}
