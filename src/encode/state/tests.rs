use proptest::prelude::*;

use super::*;

fn embodiment(groups: Vec<(&str, usize, StateEncoding)>) -> Embodiment {
    Embodiment {
        tag: "test".into(),
        slot: 0,
        cameras: vec![],
        frame_deltas: vec![0],
        state: groups
            .into_iter()
            .map(|(name, dim, encoding)| StateGroupSpec { name: name.into(), dim, encoding })
            .collect(),
        action: vec![],
        horizon: 1,
        language_key: String::new(),
    }
}

fn state(groups: &[(&str, &[f64])]) -> BTreeMap<String, Vec<f64>> {
    groups.iter().map(|(name, values)| (name.to_string(), values.to_vec())).collect()
}

fn min_max(min: &[f64], max: &[f64], clip: bool) -> StateEncoding {
    StateEncoding::MinMax { min: min.into(), max: max.into(), clip }
}

#[test]
fn case_74_sines_come_before_cosines() {
    let embodiment = embodiment(vec![("arm", 2, StateEncoding::SinCos)]);
    let encoded = encode_state(&embodiment, &state(&[("arm", &[0.5, -1.25])]), 6).unwrap();
    assert_eq!(encoded, [0.479_425_55, -0.948_984_6, 0.877_582_55, 0.315_322_37, 0.0, 0.0]);
}

#[test]
fn min_max_clips_and_zeroes_dimensions_without_range() {
    let bounds = min_max(&[0.0, -2.0, 100.0], &[4.0, 2.0, 100.000_5], true);
    let embodiment = embodiment(vec![("g", 3, bounds)]);
    let encoded = encode_state(&embodiment, &state(&[("g", &[1.0, 9.0, 7.0])]), 3).unwrap();
    assert_eq!(encoded, [-0.5, 1.0, 0.0]);
}

#[test]
fn min_max_without_clip_goes_past_one() {
    let embodiment = embodiment(vec![("g", 1, min_max(&[0.0], &[1.0], false))]);
    assert_eq!(encode_state(&embodiment, &state(&[("g", &[2.0])]), 1).unwrap(), [3.0]);
}

#[test]
fn case_19_mean_std_passes_a_dimension_without_spread_through() {
    let encoding = StateEncoding::MeanStd { mean: vec![1.0, 5.0], std: vec![0.5, 0.0] };
    let embodiment = embodiment(vec![("g", 2, encoding)]);
    assert_eq!(encode_state(&embodiment, &state(&[("g", &[3.0, 0.25])]), 2).unwrap(), [4.0, 0.25]);
}

#[test]
fn values_are_rounded_to_f32_before_the_statistics() {
    // 0.1f32 lies 1.49e-9 above 0.1, which these bounds make visible.
    let embodiment = embodiment(vec![("g", 1, min_max(&[0.1], &[0.1 + 1e-7], false))]);
    let narrow = encode_state(&embodiment, &state(&[("g", &[0.1])]), 1).unwrap()[0];
    assert_eq!(narrow, 0.0, "no range by the 1e-8 rule");
    let encoding = StateEncoding::MeanStd { mean: vec![0.1], std: vec![1e-9] };
    let embodiment = self::embodiment(vec![("g", 1, encoding)]);
    let encoded = encode_state(&embodiment, &state(&[("g", &[0.1])]), 1).unwrap()[0];
    assert!((encoded - 1.490_116_1).abs() < 1e-5, "{encoded}");
}

#[test]
fn case_03_a_missing_group_is_named_and_nothing_shifts() {
    let embodiment =
        embodiment(vec![("arm", 1, StateEncoding::SinCos), ("hand", 1, StateEncoding::SinCos)]);
    let error = encode_state(&embodiment, &state(&[("arm", &[0.0])]), 8).unwrap_err();
    assert!(
        matches!(&error, StateEncodeError::State(StateError::Missing { group, .. }) if group == "hand")
    );
    assert!(error.to_string().contains("'hand'"), "{error}");
}

#[test]
fn case_04_an_unknown_group_is_named_with_the_expected_ones() {
    let embodiment = embodiment(vec![("left_arm", 1, StateEncoding::SinCos)]);
    let error = encode_state(&embodiment, &state(&[("robot1/left_arm", &[0.0])]), 8)
        .unwrap_err()
        .to_string();
    assert!(error.contains("robot1/left_arm") && error.contains("'left_arm'"), "{error}");
}

#[test]
fn wrong_width_and_non_finite_values_are_refused() {
    let embodiment = embodiment(vec![("arm", 2, StateEncoding::SinCos)]);
    let refuse =
        |values: &[f64]| encode_state(&embodiment, &state(&[("arm", values)]), 8).unwrap_err();
    assert!(matches!(
        refuse(&[1.0]),
        StateEncodeError::State(StateError::Width { expected: 2, found: 1, .. })
    ));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e39] {
        let error = refuse(&[0.0, bad]);
        assert!(
            matches!(error, StateEncodeError::State(StateError::NotFinite { index: 1, .. })),
            "{error}"
        );
        assert_eq!(error.group(), Some("arm"));
    }
    let text = refuse(&[0.0, 1e300]).to_string();
    assert!(text.contains("has 1e300 at index 1; it must be"), "{text}");
}

#[test]
fn statistics_and_widths_that_do_not_fit_are_refused() {
    let short = embodiment(vec![("g", 2, min_max(&[0.0], &[1.0, 1.0], true))]);
    let values = state(&[("g", &[0.0, 0.0])]);
    assert!(matches!(
        encode_state(&short, &values, 8),
        Err(StateEncodeError::Statistics { found: 1, .. })
    ));
    let wide = embodiment(vec![("g", 2, StateEncoding::SinCos)]);
    assert!(matches!(
        encode_state(&wide, &values, 3),
        Err(StateEncodeError::TooWide { needed: 4, width: 3, .. })
    ));
}

#[test]
fn an_encoding_that_overflows_is_refused() {
    let encoding = StateEncoding::MeanStd { mean: vec![0.0], std: vec![1e-10] };
    let embodiment = embodiment(vec![("g", 1, encoding)]);
    let error = encode_state(&embodiment, &state(&[("g", &[1e35])]), 1).unwrap_err();
    assert!(matches!(error, StateEncodeError::Overflow { index: 0, .. }), "{error}");
    assert!(error.to_string().contains("is 1e35, which the checkpoint's"), "{error}");
}

fn double(rotation: Option<RotationFormat>, scaling: StateScaling) -> StateEncoding {
    StateEncoding::Double { rotation, scaling }
}

#[test]
fn n15_computes_in_f64_and_never_clips() {
    let bounds = StateScaling::MinMax { min: vec![0.1, 0.0, 3.0], max: vec![0.1 + 1e-7, 1.0, 3.0] };
    let robot = embodiment(vec![
        ("g", 3, double(None, bounds)),
        ("arm", 1, double(None, StateScaling::SinCos)),
    ]);
    let state = state(&[("g", &[0.1 + 2e-7, 5.0, 9.0]), ("arm", &[0.1])]);
    let encoded = encode_state(&robot, &state, 6).unwrap();
    assert!((encoded[0] - 3.0).abs() < 1e-6, "a narrow range is a range: {encoded:?}");
    assert_eq!(encoded[1..], [9.0, 0.0, 0.1f64.sin() as f32, 0.1f64.cos() as f32, 0.0]);
}

#[test]
fn n15_rotations_become_two_rows() {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let quaternion = double(Some(RotationFormat::Quaternion), StateScaling::None);
    let robot = embodiment(vec![("quat", 4, quaternion)]);
    let encoded = encode_state(&robot, &state(&[("quat", &[half, 0.0, 0.0, half])]), 7).unwrap();
    for (found, expected) in encoded.iter().zip([0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0]) {
        assert!((found - expected).abs() < 1e-6, "{encoded:?}");
    }
    let error = encode_state(&robot, &state(&[("quat", &[0.0; 4])]), 7).unwrap_err();
    assert!(matches!(error, StateEncodeError::Rotation { .. }), "{error}");
}

proptest! {
    #[test]
    fn arbitrary_values_never_panic(
        values in prop::collection::vec(any::<f64>(), 0..5),
        bounds in prop::collection::vec(any::<f64>(), 0..5),
        width in 0usize..12,
    ) {
        for encoding in [
            StateEncoding::SinCos,
            min_max(&bounds, &bounds, true),
            StateEncoding::MeanStd { mean: bounds.clone(), std: bounds.clone() },
            double(None, StateScaling::MinMax { min: bounds.clone(), max: bounds.clone() }),
            double(Some(RotationFormat::AxisAngle), StateScaling::None),
        ] {
            let embodiment = embodiment(vec![("g", 3, encoding)]);
            if let Ok(encoded) = encode_state(&embodiment, &state(&[("g", &values)]), width) {
                prop_assert_eq!(encoded.len(), width);
                prop_assert!(encoded.iter().all(|value| value.is_finite()));
            }
        }
    }

    #[test]
    fn the_order_of_insertion_changes_nothing(values in prop::collection::vec(-3.0f64..3.0, 3)) {
        let embodiment = embodiment(vec![
            ("b", 1, StateEncoding::SinCos),
            ("a", 1, min_max(&[-1.0], &[1.0], true)),
            ("c", 1, StateEncoding::SinCos),
        ]);
        let groups = [("a", &values[0..1]), ("b", &values[1..2]), ("c", &values[2..3])];
        let forward = encode_state(&embodiment, &state(&groups), 8).unwrap();
        let mut reversed = groups;
        reversed.reverse();
        prop_assert_eq!(&forward, &encode_state(&embodiment, &state(&reversed), 8).unwrap());
        prop_assert_eq!(forward[0], f64::from(values[1] as f32).sin() as f32);
    }
}
