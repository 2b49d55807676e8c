//! Predicted against recorded commands.

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::node::params::Value;
use gr00t_blackhole::recording::gr1;
use gr00t_blackhole::recording::message::{CompressedImage, JointState};
use gr00t_blackhole::replay::{Bound, Given, Pace, Replay, Request};

use super::messages::{JointTrajectory, Point};
use super::rig::{MS, Recorder, Rig, START, header, joint_state, refusal, run, time};

const TRAJECTORIES: &str = "/controller/joint_trajectory";
const TARGETS: &str = "/controller/targets";
const WAIST: [&str; 3] = ["waist_yaw_joint", "waist_pitch_joint", "waist_roll_joint"];
/// Control steps of `config/gr1.yaml`.
const DT_MS: i64 = 50;
const END_MS: i64 = 2_000;

/// What the waist is commanded at a moment: the first joint moves steadily, the others rest.
fn commanded(joint: usize, at_ns: i64) -> f64 {
    let seconds = (at_ns - START) as f64 / 1e9;
    [0.1 + 0.2 * seconds, -0.3, 0.5][joint]
}

fn record(rig: &Rig, with: impl Fn(&mut Recorder)) {
    let mut recorder = Recorder::default();
    let drawn: Vec<CompressedImage> =
        (0..3).map(|n| gr1::frame_at(START + n * 1_000 * MS).expect("drawn")).collect();
    let camera = recorder.topic::<CompressedImage>(gr1::CAMERA_TOPIC);
    let states = recorder.topic::<JointState>(gr1::JOINT_TOPIC);
    for ms in (0..END_MS).step_by(50) {
        let mut frame = drawn[(ms / 50) as usize % drawn.len()].clone();
        frame.header = header(START + ms * MS);
        recorder.add(&camera, START + (ms + 5) * MS, frame);
        let state = gr1::joint_state_at(START + ms * MS).expect("a state");
        recorder.add(&states, START + (ms + 1) * MS, state);
    }
    with(&mut recorder);
    recorder.write(&rig.path("bag"));
}

/// Trajectories of the waist alone, a new one every half second, each longer than that.
fn trajectories(recorder: &mut Recorder) {
    let topic = recorder.topic::<JointTrajectory>(TRAJECTORIES);
    for start_ms in (0..END_MS + 2_000).step_by(500) {
        let point = |ms: i64| Point {
            positions: (0..3).map(|j| commanded(j, START + (start_ms + ms) * MS)).collect(),
            velocities: vec![],
            accelerations: vec![],
            effort: vec![],
            time_from_start: time(ms * MS),
        };
        let message = JointTrajectory {
            header: header(START + start_ms * MS),
            joint_names: WAIST.map(str::to_owned).into(),
            points: vec![point(0), point(130), point(900)],
        };
        recorder.add(&topic, START + start_ms * MS, message);
    }
}

fn request(rig: &Rig) -> Request {
    Request {
        instructions: Given { first: Some("wave".to_owned()), later: vec![] },
        pace: Pace::Rate(5.0),
        ..rig.request("gr1.yaml", "bag", &[])
    }
}

/// Mean absolute and squared error, and the largest, of the waist over the first `rows` rows of every chunk; a row is due
/// `steps` control steps after the one that it is in.
fn by_hand(replay: &Replay, rows: usize, steps: i64, column: Option<usize>) -> [f64; 3] {
    let (mut absolute, mut square, mut largest, mut count) = (0.0, 0.0, 0.0f64, 0.0);
    for prediction in replay.predicted() {
        let waist = prediction.chunk.groups.iter().find(|group| group.name == "waist").expect("it");
        for row in 0..rows {
            for joint in 0..3 {
                if column.is_some_and(|column| column != joint) {
                    continue;
                }
                let at_ns = prediction.chunk.stamp_ns + (row as i64 + steps) * DT_MS * MS;
                let error = f64::from(waist.values[row * 3 + joint]) - commanded(joint, at_ns);
                absolute += error.abs();
                square += error * error;
                largest = largest.max(error.abs());
                count += 1.0;
            }
        }
    }
    [absolute / count, square / count, largest]
}

fn near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-9 * expected.abs().max(1.0))
}

#[test]
fn errors_against_a_trajectory_are_those_that_a_hand_computes() {
    let rig = Rig::new(Version::N16);
    record(&rig, trajectories);
    let replay = run(&request(&rig));
    let commands = replay.report.commands.as_ref().expect("found by its type");
    assert_eq!((commands.topic.as_str(), commands.messages), (TRAJECTORIES, 8));
    let waist = commands.groups.iter().find(|group| group.group == "waist").expect("compared");
    // Predictions are 200 ms apart, four rows.
    for (errors, rows) in [(&waist.executed, 4), (&waist.horizon, 16)] {
        let [mae, mse, largest] = by_hand(&replay, rows, 1, None);
        assert_eq!(errors.values, (replay.predicted().len() * rows * 3) as u64);
        assert!(near(errors.mae, mae), "{errors:?}, {mae}");
        assert!(near(errors.mse, mse), "{errors:?}, {mse}");
        assert!(near(errors.max_abs, largest), "{errors:?}, {largest}");
    }
    for (column, dimension) in waist.dimensions.iter().enumerate() {
        assert_eq!(dimension.label, WAIST[column]);
        let [mae, ..] = by_hand(&replay, 4, 1, Some(column));
        assert!(near(dimension.executed.mae, mae), "{dimension:?}, {mae}");
    }
    // The arms are in no trajectory.
    let arm = commands.groups.iter().find(|group| group.group == "left_arm").expect("joints");
    assert_eq!((arm.executed.values, arm.executed.mae), (0, None));
    let measured = replay.report.measures["mae.waist"];
    assert_eq!((measured, Some(measured)), (replay.report.measures["mae"], waist.executed.mae));
}

#[test]
fn execute_steps_says_how_many_rows_are_executed() {
    let rig = Rig::new(Version::N16);
    record(&rig, trajectories);
    let mut request = request(&rig);
    request.overrides.push(("execute_steps".to_owned(), Value::Integer(7)));
    let replay = run(&request);
    let commands = replay.report.commands.as_ref().expect("commands");
    let waist = commands.groups.iter().find(|group| group.group == "waist").expect("compared");
    let [mae, ..] = by_hand(&replay, 7, 1, None);
    assert!(near(waist.executed.mae, mae), "{:?}, {mae}", waist.executed);
}

#[test]
fn targets_are_commands_of_the_control_step_that_they_begin() {
    let rig = Rig::new(Version::N16);
    record(&rig, |recorder| {
        let topic = recorder.topic::<JointState>(TARGETS);
        // One per millisecond: the nearest is the exact one.
        for ms in 0..END_MS + 1_000 {
            let at_ns = START + ms * MS;
            let joints = WAIST.iter().enumerate();
            let joints =
                joints.map(|(j, name)| ((*name).to_owned(), commanded(j, at_ns))).collect();
            recorder.add(&topic, at_ns, joint_state(at_ns, joints));
        }
    });
    let mut request = request(&rig);
    let without = run(&request);
    assert!(without.report.commands.is_none(), "measured states are no commands");
    request.commands = Some(TARGETS.to_owned());
    request.bounds = vec![Bound::max_mae("waist=0.000001").expect("a bound")];
    let replay = run(&request);
    let commands = replay.report.commands.as_ref().expect("named");
    let waist = commands.groups.iter().find(|group| group.group == "waist").expect("compared");
    let [mae, ..] = by_hand(&replay, 4, 0, None);
    assert!(near(waist.executed.mae, mae), "{:?}, {mae}", waist.executed);
    let broken = replay.broken();
    let expected = format!(
        "mae.waist <= 0.000001 is expected, and {} was measured",
        waist.executed.mae.unwrap()
    );
    assert_eq!(broken, [expected]);
}

#[test]
fn the_measured_states_are_no_commands() {
    let rig = Rig::new(Version::N16);
    record(&rig, trajectories);
    for (topic, expected) in [
        (gr1::JOINT_TOPIC, "the topic of the measured states"),
        (gr1::CAMERA_TOPIC, "it is of type sensor_msgs/msg/CompressedImage"),
        ("/nowhere", "no such topic"),
    ] {
        let request = Request { commands: Some(topic.to_owned()), ..request(&rig) };
        let error = refusal(&request);
        assert!(error.is_usage() && error.to_string().contains(expected), "{topic}: {error}");
    }
}
