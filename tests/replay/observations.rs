//! A replay sees what the node would have seen, byte for byte: what the messages say, and nothing else.

use std::sync::Arc;

use gr00t_blackhole::bag::Bag;
use gr00t_blackhole::contract::{Frame, Observation, Version};
use gr00t_blackhole::history::{Moment, Timeline};
use gr00t_blackhole::node::frames::frame;
use gr00t_blackhole::node::params::{Params, Value};
use gr00t_blackhole::node::remap::Remaps;
use gr00t_blackhole::node::sensors::Sensors;
use gr00t_blackhole::node::settings::{self, Settings};
use gr00t_blackhole::policy::{PolicyOptions, choose_embodiment, open_snapshot};
use gr00t_blackhole::recording::gr1;
use gr00t_blackhole::recording::message::JointState;
use gr00t_blackhole::replay::{Given, Pace, Request, digest};

use super::messages::Image;
use super::rig::{MS, Recorder, Rig, START, header, joint_state, run, text};

const CAMERA: &str = "ego_view_bg_crop_pad_res256_freq20";
const TOPIC: &str = "/ego";
const WIDTH: u32 = 100;
const HEIGHT: u32 = 70;
const INSTRUCTION: &str = "wave";

fn pixel(ms: i64, row: u32, column: u32) -> [u8; 3] {
    [(ms / 50) as u8, row as u8, column as u8]
}

/// The joints of `config/gr1.yaml` and one more, each with a value of its own.
fn joints(ms: i64) -> Vec<(String, f64)> {
    let names = gr1::joint_state_at(START).expect("a state").name;
    let value = |number: usize| (0.1 * number as f64 + 0.001 * ms as f64).sin();
    names.into_iter().enumerate().map(|(number, name)| (name, value(number))).collect()
}

fn record(rig: &Rig, stamped: bool) {
    let mut recorder = Recorder::default();
    let camera = recorder.topic::<Image>(TOPIC);
    let states = recorder.topic::<JointState>(gr1::JOINT_TOPIC);
    let stamp = |ms: i64| if stamped { START + ms * MS } else { 0 };
    for ms in (0..2_000).step_by(50) {
        let mut data = Vec::new();
        for row in 0..HEIGHT {
            (0..WIDTH).for_each(|column| data.extend(pixel(ms, row, column)));
            data.extend([9; 4]);
        }
        let image = Image {
            header: header(stamp(ms)),
            height: HEIGHT,
            width: WIDTH,
            encoding: "rgb8".to_owned(),
            is_bigendian: 0,
            step: 3 * WIDTH + 4,
            data,
        };
        recorder.add(&camera, START + (ms + 12) * MS, image);
        for ms in [ms, ms + 20] {
            recorder.add(&states, START + (ms + 1) * MS, joint_state(stamp(ms), joints(ms)));
        }
    }
    recorder.write(&rig.path("bag"));
}

fn request(rig: &Rig, timeline: &str) -> Request {
    let params = [
        ("camera.ego_view_bg_crop_pad_res256_freq20.topic", text(TOPIC)),
        ("camera.ego_view_bg_crop_pad_res256_freq20.transport", text("raw")),
        ("timeline", text(timeline)),
    ];
    Request {
        instructions: Given { first: Some(INSTRUCTION.to_owned()), later: vec![] },
        pace: Pace::Rate(5.0),
        ..rig.request("gr1.yaml", "bag", &params)
    }
}

/// The groups of `config/gr1.yaml` out of named joints.
fn state(
    params: &[(String, Value)],
    joints: &[(String, f64)],
) -> std::collections::BTreeMap<String, Vec<f64>> {
    let groups = ["left_arm", "right_arm", "left_hand", "right_hand", "waist"];
    let values = |group: &str| {
        let name = format!("state.{group}.joints");
        let (_, value) = params.iter().find(|(known, _)| *known == name).expect("joints");
        let Value::Texts(names) = value else { panic!("{value}") };
        let of = |name: &String| joints.iter().find(|(joint, _)| joint == name).expect(name).1;
        names.iter().map(of).collect()
    };
    groups.map(|group| (group.to_owned(), values(group))).into()
}

#[test]
fn an_observation_holds_the_newest_pixels_and_joints_until_its_moment() {
    let rig = Rig::new(Version::N16);
    record(&rig, true);
    let request = request(&rig, "stamp");
    let replay = run(&request);
    let predicted = replay.predicted();
    // The grid begins with the first message, 1 ms after the first stamp; there is no frame yet.
    let times: Vec<i64> = predicted.iter().map(|p| (p.moment.log_ns - START) / MS).collect();
    assert_eq!(times, [201, 401, 601, 801, 1001, 1201, 1401, 1601, 1801]);
    for (prediction, ms) in predicted.iter().zip(times) {
        // Frames of the moments 0, 50 ... come 12 ms later, states of 0, 20, 50, 70 ... 1 ms later.
        let (frame_ms, state_ms) = (ms - 51, ms - 1);
        let rows = (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |column| (row, column)));
        let rgb: Vec<u8> = rows.flat_map(|(row, column)| pixel(frame_ms, row, column)).collect();
        let frame = Arc::new(Frame::new(WIDTH, HEIGHT, rgb).expect("valid"));
        let expected = Observation {
            stamp_ns: START + state_ms * MS,
            frames: [(CAMERA.to_owned(), vec![frame])].into(),
            state: state(&request.overrides, &joints(state_ms)),
            instruction: INSTRUCTION.to_owned(),
        };
        assert_eq!(prediction.observation, digest(&expected), "{ms} ms");
    }
}

#[test]
fn without_stamps_the_time_of_reception_counts() {
    let rig = Rig::new(Version::N16);
    record(&rig, false);
    let replay = run(&request(&rig, "receive"));
    assert_eq!(replay.report.moments.chunks, 9);
    assert!(replay.predicted().iter().all(|p| p.chunk.stamp_ns == p.moment.ros_ns));
    let by_stamp = run(&request(&rig, "stamp"));
    assert_eq!(by_stamp.report.moments.chunks, 0);
    let refused = &by_stamp.report.inputs[0].refusals[0];
    assert!(refused.count == 40 && refused.text.contains("header.stamp is 0"), "{refused:?}");
    let last = by_stamp.report.findings.iter().find(|text| text.starts_with("No observation"));
    assert!(last.is_some_and(|text| text.contains("timeline")), "{last:?}");
}

#[test]
fn the_road_of_the_node_gives_the_same_bytes() {
    let rig = Rig::new(Version::N16);
    record(&rig, true);
    let request = request(&rig, "stamp");
    let replay = run(&request);

    let mut params = Params::new(request.overrides.clone()).expect("parameters");
    let options: PolicyOptions = settings::policy_options(&params).expect("a snapshot");
    let snapshot = open_snapshot(&options).expect("opens");
    let embodiment = choose_embodiment(&snapshot, &options).expect("served");
    params.declare_robot(&settings::names(embodiment)).expect("they fit");
    let mut settings = Settings::new(&params, embodiment).expect("they fit");
    settings.resolve_topics(&Remaps::new(&[], "/", "/policy"));
    let gates = settings::gates(&params);
    let mut sensors = Sensors::new(&settings);
    let bag = Bag::read(&request.bag).expect("a bag");
    let mut messages = bag.messages.iter().peekable();
    for prediction in replay.predicted() {
        let moment_ns = prediction.moment.log_ns;
        let at = |log_ns: i64| Moment { ros_ns: log_ns, steady_ns: log_ns - START };
        while let Some(message) =
            messages.next_if(|message| message.log_time_ns as i64 <= moment_ns)
        {
            let at = at(message.log_time_ns as i64);
            if bag.topics[message.topic].name == TOPIC {
                let (stamp_ns, decoded) =
                    frame(&settings.cameras[0], message.data.clone()).expect("a frame");
                let frame = Arc::new(decoded.frame);
                let taken = sensors.history.insert_frame(0, stamp_ns, frame, at, Timeline::Stamp);
                taken.expect("taken in");
            } else {
                let read = settings.states[0].reader.read(&message.data).expect("a state");
                let taken = sensors.history.insert_state(
                    0,
                    read.stamp_ns,
                    read.sample,
                    at,
                    Timeline::Stamp,
                    settings::state_jump_max_rad_s(&params),
                );
                taken.expect("taken in");
            }
        }
        let seen = sensors.observation(at(moment_ns), INSTRUCTION, &gates).expect("complete");
        assert_eq!(prediction.observation, digest(&seen.observation));
        assert_eq!(prediction.readings, seen.readings);
    }
}
