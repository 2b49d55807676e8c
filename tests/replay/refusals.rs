//! Recordings that are not as the parameters say, and gates.

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::node::params::Value;
use gr00t_blackhole::recording::gr1;
use gr00t_blackhole::recording::message::{CompressedImage, JointState};
use gr00t_blackhole::replay::{Given, Pace, Request};

use super::rig::{MS, Recorder, Rig, START, header, refusal, run, text};

const END_MS: i64 = 3_000;

/// What is wrong with a recording from 1 s on.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// The camera sends the same picture for so long.
    frozen_ms: i64,
    /// Joint states lack a joint for so long.
    damaged_ms: i64,
    /// The camera's stamps are off by this until the end.
    shifted_ms: i64,
}

/// Camera and states.
fn record(rig: &Rig, faults: Faults) {
    let Faults { frozen_ms, damaged_ms, shifted_ms } = faults;
    let mut recorder = Recorder::default();
    let drawn: Vec<CompressedImage> =
        (0..3).map(|n| gr1::frame_at(START + n * 1_000 * MS).expect("drawn")).collect();
    let camera = recorder.topic::<CompressedImage>(gr1::CAMERA_TOPIC);
    let states = recorder.topic::<JointState>(gr1::JOINT_TOPIC);
    for ms in (0..END_MS).step_by(20) {
        let is_frozen = (1_000..1_000 + frozen_ms).contains(&ms);
        let place = if is_frozen { 0 } else { (ms / 20) as usize % drawn.len() };
        let mut frame = drawn[place].clone();
        let shift_ms = if ms < 1_000 { 0 } else { shifted_ms };
        frame.header = header(START + (ms + shift_ms) * MS);
        recorder.add(&camera, START + (ms + 5) * MS, frame);
        let mut state = gr1::joint_state_at(START + ms * MS).expect("a state");
        if (1_000..1_000 + damaged_ms).contains(&ms) {
            let waist = state.name.iter().position(|name| name == "waist_yaw_joint").expect("it");
            state.name[waist] = "robot1/waist_yaw_joint".to_owned();
        }
        recorder.add(&states, START + (ms + 1) * MS, state);
    }
    recorder.write(&rig.path("bag"));
}

fn request(rig: &Rig, params: &[(&str, Value)]) -> Request {
    Request {
        instructions: Given { first: Some("wave".to_owned()), later: vec![] },
        pace: Pace::Rate(10.0),
        ..rig.request("gr1.yaml", "bag", params)
    }
}

#[test]
fn case_01_a_camera_that_repeats_its_bytes_is_an_outage() {
    let rig = Rig::new(Version::N16);
    record(&rig, Faults { frozen_ms: 1_000, ..Faults::default() });
    let replay = run(&request(&rig, &[]));
    let [outage] = &replay.report.outages[..] else { panic!("{:#?}", replay.report.outages) };
    assert_eq!(outage.input, "ego_view_bg_crop_pad_res256_freq20");
    // Thirty repeats after the frame of 1.00 s: that of 1.60 s, which comes at 1.605 s; the next other one at 2.005 s. The
    // grid begins with the first message, at 1 ms.
    assert_eq!((outage.first_refused_s, outage.last_refused_s, outage.refused), (1.7, 2.0, 4));
    assert!(outage.text.contains("frozen"), "{outage:?}");
    let open = run(&request(&rig, &[("frozen_camera_frames", Value::Integer(0))]));
    assert_eq!(open.report.moments.refused, 0);
}

#[test]
fn case_03_joint_states_without_a_joint_are_refused_and_named() {
    let rig = Rig::new(Version::N16);
    record(&rig, Faults { damaged_ms: 1_000, ..Faults::default() });
    let replay = run(&request(&rig, &[]));
    let states = &replay.report.inputs[1];
    assert_eq!((states.received, states.taken, states.refused), (150, 100, 50));
    let [kind] = &states.refusals[..] else { panic!("{:#?}", states.refusals) };
    assert!(kind.text.contains("joint 'waist_yaw_joint' (group 'waist') is missing"), "{kind:?}");
    assert_eq!((kind.count, kind.first_s, kind.last_s), (50, 1.0, 1.98));
    let [outage] = &replay.report.outages[..] else { panic!("{:#?}", replay.report.outages) };
    assert_eq!((outage.from_s, outage.to_s), (0.98, 2.0));
    // Older than half a second from 1.48 s on.
    assert_eq!((outage.first_refused_s, outage.last_refused_s, outage.refused), (1.5, 1.9, 5));
    let sentence = replay.report.findings.iter().find(|text| text.contains("nothing usable"));
    assert!(sentence.is_some_and(|text| text.contains("waist_yaw_joint")), "{sentence:?}");
    assert_eq!(replay.report.measures["refused_messages"], 50.0);
    assert_eq!(replay.report.measures["refusals.refused"], 5.0);
}

#[test]
fn topics_that_the_recording_lacks_are_named_with_what_it_has() {
    let rig = Rig::new(Version::N16);
    record(&rig, Faults::default());
    let params = [
        ("camera.ego_view_bg_crop_pad_res256_freq20.topic", text("/front/image")),
        ("joint_states_topic", text("/camera/ego_view/image/compressed")),
    ];
    let error = refusal(&request(&rig, &params));
    assert!(error.is_usage());
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    let [camera, states] = &lines[..] else { panic!("{lines:#?}") };
    assert!(
        camera.starts_with(
            "camera 'ego_view_bg_crop_pad_res256_freq20': the recording has no topic /front/image"
        ) && camera.contains(gr1::CAMERA_TOPIC),
        "{camera}"
    );
    assert!(
        states.contains("is of type sensor_msgs/msg/CompressedImage")
            && states.contains(gr1::JOINT_TOPIC),
        "{states}"
    );
    let clock = refusal(&request(&rig, &[("use_sim_time", Value::Bool(true))]));
    assert!(clock.to_string().contains("/clock"), "{clock}");
    let goals = Request { pace: Pace::Goals, ..request(&rig, &[]) };
    assert!(refusal(&goals).to_string().contains("--at-goals needs recorded chunks"));
}

#[test]
fn without_an_instruction_there_is_nothing_to_predict() {
    let rig = Rig::new(Version::N16);
    record(&rig, Faults::default());
    let mut request = request(&rig, &[]);
    request.instructions = Given::default();
    assert!(refusal(&request).to_string().contains("--instruction"));
    request.overrides.push(("instruction".to_owned(), text("wave")));
    assert_eq!(run(&request).report.policy.instructions_from, "parameter");
}

#[test]
fn frames_are_counted_where_every_nth_is_wanted() {
    let rig = Rig::new(Version::N16);
    record(&rig, Faults::default());
    let replay = run(&Request { pace: Pace::Frames(25), ..request(&rig, &[]) });
    // 150 frames, each 5 ms after its stamp; the first message comes 1 ms after the first stamp.
    let times: Vec<f64> =
        replay.predicted().iter().map(|p| (p.moment.log_ns - START) as f64 / 1e9).collect();
    assert_eq!(times, [0.005, 0.505, 1.005, 1.505, 2.005, 2.505]);
    assert_eq!(replay.report.moments.wanted, 6);
}

#[test]
fn case_54_stamps_that_jump_are_refused_as_they_are_live() {
    for (shifted_ms, expected) in [
        (-5_000, "its header.stamp is 4.980 s older than that of a message received before"),
        (5_000, "header.stamp is 4.995 s ahead of the node's clock"),
    ] {
        let rig = Rig::new(Version::N16);
        record(&rig, Faults { shifted_ms, ..Faults::default() });
        let replay = run(&request(&rig, &[]));
        let camera = &replay.report.inputs[0];
        assert_eq!((camera.taken, camera.refused), (50, 100));
        let [kind] = &camera.refusals[..] else { panic!("{:#?}", camera.refusals) };
        assert!(kind.text.contains(expected) && kind.first_s == 1.004, "{kind:?}");
        let [outage] = &replay.report.outages[..] else { panic!("{:#?}", replay.report.outages) };
        assert_eq!((outage.from_s, outage.to_s, outage.lasts), (0.984, 2.984, true));
        // The newest frame, of 0.98 s, is half a second old then.
        assert_eq!((outage.first_refused_s, outage.last_refused_s), (1.5, 2.9));
        assert!(outage.text.contains("latest message was refused"), "{outage:?}");
    }
}

#[test]
fn a_message_that_was_dated_wrongly_keeps_nobody_waiting() {
    let rig = Rig::new(Version::N16);
    let mut recorder = Recorder::default();
    let states = recorder.topic::<JointState>(gr1::JOINT_TOPIC);
    for log_ns in [0, START] {
        recorder.add(&states, log_ns, gr1::joint_state_at(START).expect("a state"));
    }
    recorder.write(&rig.path("bag"));
    let error = refusal(&request(&rig, &[])).to_string();
    assert!(error.contains("spans 20458") && error.contains("from 0 to"), "{error}");
}
