use std::f64::consts::FRAC_1_SQRT_2;

use proptest::prelude::*;

use super::super::messages::tests::Writer;
use super::*;
use crate::contract::PoseFormat;

const GRIPPER: [f64; 2] = [0.0, 0.8];

fn gripper_map() -> Option<AffineMap> {
    Some(AffineMap::new(GRIPPER, [0.0, 1.0]))
}

fn joints() -> StateReader {
    let groups = vec![
        ("arm".to_owned(), vec!["shoulder".to_owned(), "elbow".to_owned()]),
        ("gripper".to_owned(), vec!["finger".to_owned()]),
    ];
    let joints = JointMap::new(groups).expect("valid");
    StateReader::Joints { joints, maps: vec![None, gripper_map()] }
}

fn joint_state(joints: &[(&str, f64)]) -> Vec<u8> {
    let mut writer = Writer::new().header(1, 5, "").u32(joints.len() as u32);
    for (name, _) in joints {
        writer = writer.text(name);
    }
    let positions: Vec<f64> = joints.iter().map(|(_, position)| *position).collect();
    writer.doubles(&positions).doubles(&[]).doubles(&[]).message()
}

fn pose_reader(base_frame: Option<&str>) -> StateReader {
    StateReader::Pose {
        group: "eef".to_owned(),
        layout: PoseLayout::Pose(PoseFormat::Rot6d),
        base_frame: base_frame.map(str::to_owned),
    }
}

fn pose_stamped(frame: &str, values: [f64; 7]) -> Vec<u8> {
    values.iter().fold(Writer::new().header(2, 0, frame), |w, value| w.double(*value)).message()
}

#[test]
fn a_gripper_among_the_joints_is_mapped_and_the_arm_is_not() {
    let message =
        joint_state(&[("finger", 0.4), ("elbow", 2.0), ("wheel", 7.0), ("shoulder", 1.0)]);
    let read = joints().read(&message).expect("complete");
    assert_eq!(read.stamp_ns, Some(1_000_000_005));
    assert_eq!(read.sample["arm"], [1.0, 2.0]);
    assert_eq!(read.sample["gripper"], [0.5]);
    let far = joint_state(&[("finger", 40.0), ("elbow", 2.0), ("shoulder", 1.0)]);
    let error = joints().read(&far).expect_err("another scale").to_string();
    assert!(error.contains("group 'gripper': 40 is outside"), "{error}");
}

#[test]
fn poses_are_taken_in_their_own_frame_alone() {
    let quarter = [1.0, 2.0, 3.0, 0.0, 0.0, FRAC_1_SQRT_2, FRAC_1_SQRT_2];
    let read = pose_reader(Some("base")).read(&pose_stamped("/base", quarter)).expect("valid");
    let expected = [1.0, 2.0, 3.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0];
    assert!(read.sample["eef"].iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15));
    assert_eq!(read.stamp_ns, Some(2_000_000_000));
    assert!(pose_reader(None).read(&pose_stamped("camera", quarter)).is_ok());
    let error =
        pose_reader(Some("base")).read(&pose_stamped("camera", quarter)).expect_err("frame");
    assert!(error.to_string().contains("in frame 'camera', not in 'base'"), "{error}");
    let doubled = quarter.map(|value| 2.0 * value);
    let error = pose_reader(None).read(&pose_stamped("base", doubled)).expect_err("length 2");
    assert!(error.to_string().contains("has length 2.0000"), "{error}");
}

#[test]
fn numbers_without_a_header_have_no_stamp() {
    let reader = StateReader::Float64 { group: "gripper".to_owned(), map: gripper_map() };
    assert!(!reader.stamped());
    let read = reader.read(&Writer::new().double(0.8).message()).expect("valid");
    assert_eq!((read.stamp_ns, &read.sample["gripper"]), (None, &vec![1.0]));
    for value in [f64::NAN, f64::INFINITY, 1.0] {
        assert!(reader.read(&Writer::new().double(value).message()).is_err());
    }
    let unmapped = StateReader::Float64 { group: "gripper".to_owned(), map: None };
    let error = unmapped.read(&Writer::new().double(f64::NAN).message()).expect_err("not finite");
    assert!(error.to_string().contains("NaN is not a finite number"), "{error}");

    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let columns = ColumnMap::new(names(&["yaw"]), names(&["height", "yaw"])).expect("valid");
    let reader = StateReader::Columns { group: "base".to_owned(), columns, map: None };
    let array = |data: &[f64]| Writer::new().u32(0).u32(0).doubles(data).message();
    assert_eq!(reader.read(&array(&[1.0, 2.0])).expect("valid").sample["base"], [2.0]);
    let error = reader.read(&array(&[1.0])).expect_err("short").to_string();
    assert!(error.contains("group 'base': it has 1 values for the 2 columns"), "{error}");
}

#[test]
fn a_reader_knows_its_groups_and_maps() {
    let reader = joints();
    assert_eq!(reader.groups(), ["arm", "gripper"]);
    assert_eq!((reader.map("arm"), reader.map("gripper")), (None, gripper_map().as_ref()));
    // The gripper's values are another quantity.
    let arm = ("arm".to_owned(), vec!["shoulder".to_owned(), "elbow".to_owned()]);
    assert_eq!(reader.positions(), [arm].into());
    assert_eq!(pose_reader(None).positions(), [].into());
}

proptest! {
    #[test]
    fn a_quaternion_and_its_negative_are_the_same_sample(
        xyzw in prop::array::uniform4(-1.0..1.0f64),
    ) {
        let length = xyzw.iter().map(|value| value * value).sum::<f64>().sqrt();
        prop_assume!(length > 1e-3);
        let message = |sign: f64| {
            let [x, y, z, w] = xyzw.map(|value| sign * value / length);
            pose_stamped("base", [0.1, 0.2, 0.3, x, y, z, w])
        };
        let bits = |sign| {
            let read = pose_reader(None).read(&message(sign)).expect("normalised");
            read.sample["eef"].iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        };
        prop_assert_eq!(bits(1.0), bits(-1.0));
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let bytes = [&[0, 1, 0, 0][..], &bytes].concat();
        for reader in [joints(), pose_reader(None)] {
            let _ = reader.read(&bytes);
        }
    }
}
