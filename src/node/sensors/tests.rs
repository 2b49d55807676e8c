use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::contract::{Frame, PoseFormat};
use crate::history::{CameraInput, Cause, Inputs};
use crate::node::state::pose::PoseLayout;

const MS: i64 = 1_000_000;
const START: i64 = 1_700_000_000_000_000_000;
const STAMP: Timeline = Timeline::Stamp;
const GATES: Gates =
    Gates { camera_max_age_ns: 500 * MS, state_max_age_ns: 200 * MS, ..Gates::OPEN };

fn at(ms: i64) -> Moment {
    Moment { ros_ns: START + ms * MS, steady_ns: ms * MS }
}

fn sensors() -> Sensors {
    let cameras = vec![CameraInput { key: "ego".to_owned(), topic: "/ego".to_owned() }];
    let wanted = TransformSettings {
        group: "eef".to_owned(),
        base_frame: "base".to_owned(),
        tip_frame: "tip".to_owned(),
        layout: PoseLayout::Pose(PoseFormat::Rot6d),
    };
    let inputs = Inputs { cameras, states: vec![], frame_deltas: vec![0], step_ns: 50 * MS };
    Sensors {
        history: History::new(inputs),
        transforms: Transforms::default(),
        wanted: vec![wanted],
        publishers: vec![],
        received_steady_ns: None,
        refusal: None,
        clock_jumps: 0,
    }
}

fn transform(ms: i64, parent: &str, child: &str, x: f64) -> TransformStamped {
    TransformStamped {
        stamp_ns: START + ms * MS,
        parent: parent.to_owned(),
        child: child.to_owned(),
        translation: [x, 0.0, 0.0],
        rotation_xyzw: [0.0, 0.0, 0.0, 1.0],
    }
}

impl Sensors {
    fn show(&mut self, ms: i64) {
        let frame = Arc::new(Frame::new(64, 64, vec![7; 3 * 64 * 64]).expect("valid"));
        self.history.insert_frame(0, START + ms * MS, frame, at(ms), STAMP).expect("new");
    }

    fn hear(&mut self, transforms: Vec<TransformStamped>, now_ms: i64) -> Vec<String> {
        self.insert_transforms(&TfMessage { transforms }, false, at(now_ms), STAMP)
    }

    fn waits(&mut self, now_ms: i64) -> String {
        self.observation(at(now_ms), "wave", &GATES).expect_err("waits").to_string()
    }
}

#[test]
fn the_pose_is_that_of_the_observation() {
    let mut sensors = sensors();
    sensors.show(95);
    for tick in 0..=11 {
        sensors.hear(vec![transform(10 * tick, "base", "tip", 0.01 * tick as f64)], 10 * tick);
    }
    let seen = sensors.observation(at(120), "wave", &GATES).expect("complete");
    let x = seen.observation.state["eef"][0];
    assert!((x - 0.095).abs() < 1e-12, "{x}");
    assert_eq!(seen.observation.stamp_ns, START + 95 * MS);
    let reading = seen.readings.last().expect("the pose");
    assert_eq!((reading.input.as_str(), reading.topic.as_str()), ("eef", "tf base tip"));
    assert_eq!(reading.stamp_ns, START + 95 * MS);
    // Transforms that are late give the newest pose there is.
    sensors.show(150);
    let seen = sensors.observation(at(160), "wave", &GATES).expect("complete");
    assert_eq!(seen.observation.state["eef"][0], 0.11);
    assert_eq!(seen.readings.last().map(|r| r.stamp_ns), Some(START + 110 * MS));
}

#[test]
fn what_is_missing_or_stale_is_said_like_that_of_joints() {
    let mut sensors = sensors();
    let text = sensors.waits(0);
    assert!(text.contains("camera 'ego' (topic /ego): no frame yet"), "{text}");
    assert!(text.contains("state eef (tf base tip): no sample yet"), "{text}");
    sensors.show(0);
    sensors.hear(vec![transform(0, "base", "arm", 0.0)], 0);
    let text = sensors.waits(10);
    assert!(text.starts_with("state eef (tf base tip): no pose: frame 'tip' is in no"), "{text}");

    sensors.hear(vec![transform(0, "arm", "tip", 0.0)], 0);
    assert!(sensors.observation(at(10), "wave", &GATES).is_ok());
    sensors.show(250);
    let text = sensors.waits(250);
    assert!(text.contains("0.250 s old (limit 0.200 s), nothing received for 0.250 s"), "{text}");
    sensors.hear(vec![transform(250, "base", "arm", 0.0)], 250);
    assert!(sensors.waits(250).contains("0.250 s old"), "one link of the chain still is");
}

#[test]
fn transforms_are_refused_one_by_one() {
    let mut sensors = sensors();
    sensors.show(0);
    let mut doubled = transform(0, "arm", "tip", 0.0);
    doubled.rotation_xyzw = [0.0, 0.0, 0.0, 2.0];
    let mut unstamped = transform(0, "arm", "lamp", 0.0);
    unstamped.stamp_ns = 0;
    let other_clock = transform(-3_600_000, "arm", "lamp", 0.0);
    let good = transform(0, "base", "arm", 0.0);
    let refused = sensors.hear(vec![doubled, unstamped, good, other_clock], 0);
    assert_eq!(refused.len(), 3);
    assert!(refused[0].contains("frame 'tip': its quaternion") && refused[0].contains("2.0000"));
    assert!(refused[1].contains("frame 'lamp': header.stamp is 0"), "{refused:?}");
    assert!(refused[2].contains("3600.000 s behind"), "{refused:?}");
    let text = sensors.waits(0);
    assert!(
        text.contains("frame 'tip' is in no transform") && text.contains("; refused was"),
        "{text}"
    );
    sensors.hear(vec![transform(0, "arm", "tip", 1.0)], 0);
    assert!(sensors.observation(at(1), "wave", &GATES).is_ok());
}

#[test]
fn stamps_of_fixed_transforms_mean_nothing_and_outlive_the_clock() {
    let mut sensors = sensors();
    let mut fixed = transform(0, "base", "tip", 4.0);
    fixed.stamp_ns = 0;
    let message = TfMessage { transforms: vec![fixed] };
    assert_eq!(sensors.insert_transforms(&message, true, at(0), STAMP), [] as [&str; 0]);
    sensors.hear(vec![transform(0, "base", "wheel", 0.0)], 0);
    // The clock goes back an hour.
    let now = Moment { ros_ns: START - 3_600_000 * MS, steady_ns: 20 * MS };
    let frame = Arc::new(Frame::new(64, 64, vec![7; 3 * 64 * 64]).expect("valid"));
    sensors.history.insert_frame(0, now.ros_ns, frame, now, STAMP).expect("new");
    let seen = sensors.observation(now, "wave", &GATES).expect("complete");
    assert_eq!(seen.observation.state["eef"][0], 4.0);
    let query = Query { base: "base", tip: "wheel", at_ns: START, max_gap_ns: MS };
    assert!(sensors.transforms.lookup(&query).is_err(), "moving ones are forgotten");
}

#[test]
fn two_publishers_on_a_topic_of_states_are_one_too_many() {
    let mut sensors = sensors();
    let mut inputs = sensors.history.inputs().clone();
    let topic = |name: &str| StateInput {
        topic: name.to_owned(),
        groups: vec![name[1..].to_owned()],
        stamped: true,
        ..Default::default()
    };
    inputs.states = vec![topic("/arm"), topic("/hand")];
    sensors.history = History::new(inputs);
    (sensors.wanted, sensors.publishers) = (vec![], vec![vec![]; 2]);
    sensors.show(0);
    for (source, group) in ["arm", "hand"].into_iter().enumerate() {
        let sample = [(group.to_owned(), vec![0.0])].into();
        sensors.history.insert_state(source, Some(START), sample, at(0), STAMP, 0.0).expect("new");
    }
    let limited = |limit| Gates { state_publishers_max: limit, ..GATES };
    assert!(sensors.observation(at(0), "wave", &limited(1)).is_ok(), "nobody has looked yet");
    sensors.note_publishers(0, vec!["/driver".to_owned()]);
    assert!(sensors.observation(at(0), "wave", &limited(1)).is_ok());
    sensors.note_publishers(0, vec!["/driver".to_owned(), "/fake".to_owned()]);
    sensors.note_publishers(9, vec!["/nowhere".to_owned(); 5]);
    for limit in [0, 2] {
        assert!(sensors.observation(at(0), "wave", &limited(limit)).is_ok(), "{limit}");
    }
    let waiting = sensors.observation(at(0), "wave", &limited(1)).expect_err("two");
    let [lack] = &waiting.0[..] else { panic!("{waiting}") };
    assert_eq!((lack.cause(), lack.input(), lack.is_bad()), (Cause::Publishers, "/arm", true));
    let text = waiting.to_string();
    assert!(text.starts_with("state arm (topic /arm): 2 publishers (/driver, /fake)"), "{text}");
    assert!(text.contains("limit 1, `state_publishers_max`"), "{text}");
    sensors.note_publishers(0, vec!["/driver".to_owned()]);
    assert!(sensors.observation(at(0), "wave", &limited(1)).is_ok());
}

proptest! {
    /// Permuting the arrival of frames and transforms never changes what is seen.
    #[test]
    fn arrival_order_changes_nothing(
        order in Just((0i64..24).collect::<Vec<_>>()).prop_shuffle(),
        deltas in prop::sample::select(vec![vec![0], vec![-3, 0]]),
    ) {
        let see = |order: &[i64]| {
            let mut sensors = sensors();
            let mut inputs = sensors.history.inputs().clone();
            inputs.frame_deltas = deltas.clone();
            sensors.history = History::new(inputs);
            for &number in order {
                let ms = 10 * number;
                match number % 3 {
                    0 => {
                        let rgb = vec![number as u8; 3 * 64 * 64];
                        let frame = Arc::new(Frame::new(64, 64, rgb).expect("valid"));
                        let _ = sensors.history.insert_frame(0, START + ms * MS, frame, at(300), STAMP);
                    }
                    1 => drop(sensors.hear(vec![transform(ms, "base", "arm", 0.01 * number as f64)], 300)),
                    _ => drop(sensors.hear(vec![transform(ms, "arm", "tip", 0.1)], 300)),
                }
            }
            let seen = sensors.observation(at(300), "wave", &GATES).expect("complete");
            (seen.observation.stamp_ns, seen.observation.state, seen.observation.frames, seen.readings)
        };
        let straight: Vec<i64> = (0..24).collect();
        prop_assert_eq!(see(&order), see(&straight));
    }
}
