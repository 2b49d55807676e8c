//! One recording with everything in it that makes reports hard to write: padded bgr8 rows beside JPEG, another order of
//! the joints, a camera that is gone for two seconds, a clock that jumps back, and a second instruction.
//!
//! | seconds | |
//! |---|---|
//! | 0 | the simulation's clock shows 100 s, at 100 Hz |
//! | 2.5 | the joints come in the reverse order from here on |
//! | 3 to 5 | no frame of the camera beside the robot |
//! | 6 | the clock jumps back to 50 s |
//! | 7 | another instruction |
//! | 10 | the end |
//!
//! Predictions are wanted four times a second, at 0.00, 0.25 ... 9.75 s.

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::node::params::Value;
use gr00t_blackhole::recording::droid;
use gr00t_blackhole::recording::message::{CompressedImage, Float64, JointState, TfMessage};
use gr00t_blackhole::replay::{Given, Replay, Request};

use super::messages::{Clock, Image};
use super::rig::{MS, Recorder, Rig, START, header, run, time};

const CLOCK_TOPIC: &str = "/clock";
const EXTERIOR: &str = "/camera/exterior_1/image";
const WIDTH: u32 = 320;
const HEIGHT: u32 = 180;
const STEP: u32 = 976;
const END_MS: i64 = 10_000;
const JUMP_MS: i64 = 6_000;

/// What the simulation's clock shows, nanoseconds.
fn simulated(ms: i64) -> i64 {
    if ms < JUMP_MS { (100_000 + ms) * MS } else { (50_000 + ms - JUMP_MS) * MS }
}

/// Every so many milliseconds.
fn every(ms: i64) -> impl Iterator<Item = i64> {
    (0..END_MS / ms).map(move |number| number * ms)
}

/// A picture in which every pixel says where and when it is, blue first and with padding behind every row.
fn padded(ms: i64) -> Image {
    let mut data = Vec::with_capacity((STEP * HEIGHT) as usize);
    for row in 0..HEIGHT {
        for column in 0..WIDTH {
            data.extend([column as u8, row as u8, (ms / 50) as u8]);
        }
        data.resize(((row + 1) * STEP) as usize, 0xEE);
    }
    Image {
        header: header(simulated(ms)),
        height: HEIGHT,
        width: WIDTH,
        encoding: "bgr8".to_owned(),
        is_bigendian: 0,
        step: STEP,
        data,
    }
}

fn record(rig: &Rig) {
    let mut recorder = Recorder::default();
    let clock = recorder.topic::<Clock>(CLOCK_TOPIC);
    for ms in every(10) {
        recorder.add(&clock, START + ms * MS, Clock { clock: time(simulated(ms)) });
    }
    let exterior = recorder.topic::<Image>(EXTERIOR);
    for ms in every(50).filter(|ms| !(3_000..5_000).contains(ms)) {
        recorder.add(&exterior, START + (ms + 10) * MS, padded(ms));
    }
    // Pictures are slow to draw, so that a few take turns.
    let drawn: Vec<CompressedImage> =
        (0..4).map(|n| droid::wrist_at(START + n * 1_000 * MS).expect("drawn")).collect();
    let wrist = recorder.topic::<CompressedImage>(droid::WRIST_TOPIC);
    for ms in every(50) {
        let mut frame = drawn[(ms / 50) as usize % drawn.len()].clone();
        frame.header = header(simulated(ms));
        recorder.add(&wrist, START + (ms + 7) * MS, frame);
    }
    let joints = recorder.topic::<JointState>(droid::JOINT_TOPIC);
    for ms in every(20) {
        let mut state = droid::joint_state_at(START + (ms % 5_000) * MS).expect("a state");
        state.header = header(simulated(ms));
        if ms >= 2_500 {
            state.name.reverse();
            state.position.reverse();
            state.velocity.reverse();
        }
        recorder.add(&joints, START + (ms + 1) * MS, state);
    }
    let gripper = recorder.topic::<Float64>(droid::GRIPPER_TOPIC);
    for ms in every(40) {
        recorder.add(&gripper, START + (ms + 2) * MS, Float64 { data: 0.07 });
    }
    let moving = recorder.topic::<TfMessage>("/tf");
    for ms in every(20) {
        let mut transforms = droid::transforms_at(START + (ms % 5_000) * MS).expect("transforms");
        for transform in &mut transforms.transforms {
            transform.header.stamp = time(simulated(ms));
        }
        recorder.add(&moving, START + (ms + 3) * MS, transforms);
    }
    let fixed = recorder.topic::<TfMessage>("/tf_static");
    recorder.add(&fixed, START, droid::fixed_at(simulated(0)).expect("a transform"));
    recorder.write(&rig.path("bag"));
}

fn request(rig: &Rig) -> Request {
    let params = [
        ("use_sim_time", Value::Bool(true)),
        ("camera.exterior_image_1_left.topic", super::rig::text(EXTERIOR)),
        ("camera.exterior_image_1_left.transport", super::rig::text("raw")),
    ];
    Request {
        instructions: Given {
            first: Some("pick the pear".to_owned()),
            later: vec![(7.0, "put it back".to_owned())],
        },
        ..rig.request("droid.yaml", "bag", &params)
    }
}

fn replayed() -> (Rig, Replay) {
    let rig = Rig::new(Version::N17);
    record(&rig);
    let replay = run(&request(&rig));
    (rig, replay)
}

fn has(replay: &Replay, sentence: &str) {
    let findings = &replay.report.findings;
    assert!(findings.iter().any(|finding| finding == sentence), "no '{sentence}' in {findings:#?}");
}

#[test]
fn the_report_says_what_a_person_would_write() {
    let (_rig, replay) = replayed();
    let report = &replay.report;
    // 0.00 waits; 3.25 to 5.00, 6.00 and 7.00 are refused.
    let moments = &report.moments;
    assert_eq!((moments.wanted, moments.chunks, moments.refused), (40, 29, 10));
    assert_eq!((moments.unchanged, moments.failed, report.start.waited), (0, 0, 1));

    let [outage] = &report.outages[..] else { panic!("{:#?}", report.outages) };
    assert_eq!(outage.input, "exterior_image_1_left");
    assert_eq!((outage.from_s, outage.to_s, outage.refused), (2.96, 5.01, 8));
    assert_eq!((outage.first_refused_s, outage.last_refused_s), (3.25, 5.0));
    let causes: Vec<_> =
        outage.causes.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(causes, [("skewed", 1), ("stale", 7)]);
    has(
        &replay,
        "exterior_image_1_left: nothing from 2.960 s to 5.010 s; 8 predictions refused (3.250 s to 5.000 s: skewed 1, stale 7).",
    );

    let [jump] = &report.clock_jumps[..] else { panic!("{:#?}", report.clock_jumps) };
    assert_eq!((jump.at_s, jump.by_s, jump.refused), (6.0, -55.99, 1));
    has(
        &replay,
        "The clock jumped back by 55.990 s at 6.000 s; all readings until then were forgotten, and 1 prediction refused.",
    );

    let instructions: Vec<_> = report
        .instructions
        .iter()
        .map(|i| (i.from_s, i.text.as_str(), i.chunks, i.refused))
        .collect();
    assert_eq!(instructions, [(0.0, "pick the pear", 18, 0), (7.0, "put it back", 11, 1)]);

    has(&replay, "exterior_image_1_left: 320x180 bgr8, rows of 960 bytes padded to 976.");
    has(&replay, "wrist_image_left: 320x180 JPEG (format 'jpeg').");
    has(
        &replay,
        "joint_position: the joints came in another order at 2.501 s; they are read by name, so that no value moved.",
    );
}

#[test]
fn inputs_are_counted() {
    let (_rig, replay) = replayed();
    let counts: Vec<_> = replay
        .report
        .inputs
        .iter()
        .map(|input| (input.name.as_str(), input.received, input.taken, input.refused, input.lost))
        .collect();
    let expected = [
        ("exterior_image_1_left", 160, 160, 0, 0),
        ("wrist_image_left", 200, 200, 0, 0),
        ("joint_position", 500, 500, 0, 0),
        ("gripper_position", 250, 250, 0, 0),
        ("transforms", 501, 501, 0, 0),
    ];
    assert_eq!(counts, expected);
    let refusals = &replay.report.refusals;
    assert_eq!(refusals.by_cause.get("stale"), Some(&7));
    // After the jump everything, after the new instruction both cameras.
    assert_eq!(refusals.by_cause.get("missing"), Some(&2));
    assert_eq!(refusals.by_input.get("wrist_image_left"), Some(&2));
    let times: Vec<f64> = refusals.list.iter().map(|refusal| refusal.at_s).collect();
    assert_eq!(times, [3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 6.0, 7.0]);
    let exterior = &replay.report.inputs[0];
    let gap = exterior.longest_gap.as_ref().expect("a gap");
    assert_eq!((gap.from_s, gap.to_s), (2.96, 5.01));
    assert!((exterior.sent_hz.expect("known") - 20.0).abs() < 1e-9);
}

#[test]
fn no_chunk_is_predicted_from_what_was_before_the_jump_or_the_instruction() {
    let (_rig, replay) = replayed();
    for prediction in replay.predicted() {
        let at_ms = (prediction.moment.log_ns - START) / MS;
        let oldest =
            prediction.readings.iter().map(|reading| reading.stamp_ns).min().expect("some");
        if at_ms >= JUMP_MS {
            assert!(oldest >= simulated(JUMP_MS), "{at_ms} ms");
        }
        if at_ms >= 7_000 {
            let frames =
                prediction.readings.iter().filter(|reading| reading.input.contains("image"));
            let oldest = frames.map(|reading| reading.stamp_ns).min().expect("frames");
            assert!(oldest >= simulated(7_000), "{at_ms} ms");
        }
    }
}

#[test]
fn the_same_bytes_twice_and_with_any_number_of_threads() {
    let (rig, first) = replayed();
    let second = run(&request(&rig));
    let mut alone = request(&rig);
    alone.overrides.push(("threads".to_owned(), Value::Integer(1)));
    let alone = run(&alone);
    let report = |replay: &Replay| serde_json::to_string(&replay.report).expect("JSON");
    for other in [&second, &alone] {
        assert!(first.chunks == other.chunks, "chunks differ");
        assert_eq!(report(&first), report(other));
    }
}
