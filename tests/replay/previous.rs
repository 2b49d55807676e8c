//! Runs against each other, and against the chunks of the node that ran while a recording was made.

use std::fs;
use std::path::Path;

use gr00t_blackhole::bag::Bag;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::node::params::Value;
use gr00t_blackhole::recording::message::{
    CompressedImage, Float64, JointState, RosMessage, TfMessage, deserialize,
};
use gr00t_blackhole::replay::{self, Alternative, Given, Pace, Predicted, Replay, Request};

use super::messages::{ActionChunk, Age, Group};
use super::rig::{MS, Recorder, Rig, header, refusal, run, time};

const CHUNKS: &str = "/policy/action_chunk";

/// The bundled recording of the arm under this name in the folder of the rig.
fn bundled(rig: &Rig) -> Request {
    let request = rig.request("droid.yaml", "none", &[]);
    Request {
        bag: Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/droid_pear_to_plate"),
        instructions: Given {
            first: Some("pick the pear".to_owned()),
            later: vec![(2.5, "put it back".to_owned())],
        },
        pace: Pace::Rate(2.0),
        ..request
    }
}

#[test]
fn a_run_is_the_same_as_itself_and_another_names_the_first_difference() {
    let rig = Rig::new(Version::N17);
    let mut request = bundled(&rig);
    let first = run(&request);
    replay::write(&first, &rig.path("first")).expect("written");
    request.previous = Some(rig.path("first"));
    let again = run(&request);
    let equality = again.report.previous.as_ref().expect("compared");
    let chunks = again.predicted().len();
    assert!(equality.is_exact() && equality.compared == chunks, "{equality:?}");
    assert_eq!(equality.first_difference, None);

    // Another seed, at half of the moments.
    request.overrides.push(("seed".to_owned(), Value::Integer(7)));
    request.pace = Pace::Rate(1.0);
    let other = run(&request);
    let equality = other.report.previous.as_ref().expect("compared");
    let compared = other.predicted().len();
    assert_eq!((equality.compared, equality.equal, equality.only_here), (compared, 0, 0));
    assert_eq!((equality.only_there, equality.other_observation), (chunks - compared, 0));
    let difference = equality.first_difference.as_ref().expect("another seed");
    assert_eq!((difference.chunk, difference.same_observation), (0, true));
    let value = other.predicted()[0].chunk.groups[0].values[0];
    let expected = format!("group eef_9d, row 0, eef_9d[0] (column 0): {value:?} here, ");
    assert!(difference.text.starts_with(&expected), "{}", difference.text);
}

#[test]
fn what_was_not_compared_is_different_and_another_robot_is_refused() {
    let rig = Rig::new(Version::N17);
    let mut request = bundled(&rig);
    replay::write(&run(&request), &rig.path("first")).expect("written");
    request.previous = Some(rig.path("first"));
    request.bounds = vec!["previous.different==0".parse().expect("a bound")];
    assert_eq!(run(&request).broken(), [] as [String; 0]);
    // Moments that the earlier run does not have.
    request.pace = Pace::Rate(0.77);
    let broken = run(&request).broken();
    assert!(broken.len() == 1 && broken[0].contains("previous.different"), "{broken:?}");

    request.pace = Pace::Rate(2.0);
    request.overrides.push(("action_rate_hz".to_owned(), Value::Double(5.0)));
    let error = refusal(&request);
    assert!(
        error.is_usage() && error.to_string().contains("a control step of 200000000 ns"),
        "{error}"
    );
}

#[test]
fn what_is_no_chunk_file_is_refused_by_name() {
    let rig = Rig::new(Version::N17);
    let mut request = bundled(&rig);
    for (name, bytes) in [("empty", &b""[..]), ("text", b"no chunks in here"), ("gone", b"")] {
        let path = rig.path(name);
        if name != "gone" {
            fs::write(&path, bytes).expect("written");
        }
        request.previous = Some(path);
        let error = refusal(&request).to_string();
        assert!(error.contains(name), "{error}");
    }
    // A checkpoint is a safetensors file too.
    let shard = fs::read_dir(rig.path("tiny")).expect("a checkpoint").map(|e| e.unwrap().path());
    request.previous =
        shard.into_iter().find(|p| p.extension().is_some_and(|e| e == "safetensors"));
    let error = refusal(&request).to_string();
    assert!(error.contains("no chunk file of a replay"), "{error}");
}

#[test]
fn another_number_of_threads_is_compared_and_another_robot_refused() {
    let rig = Rig::new(Version::N17);
    let mut request = bundled(&rig);
    let against = |text: &str| Some(text.parse::<Alternative>().expect("known"));
    request.against = against("threads=1");
    let replay = run(&request);
    let fidelity = replay.report.against.as_ref().expect("compared");
    let chunks = replay.predicted().len();
    assert_eq!((fidelity.chunks, fidelity.equal, fidelity.failed), (chunks, chunks, 0));
    assert!(
        fidelity.groups.values().all(|of| of.max_abs == 0.0 && of.pcc == Some(1.0)),
        "{fidelity:?}"
    );

    assert!(replay.report.findings.iter().any(|text| text.starts_with("Against threads=1: ")));

    let other = Rig::new(Version::N16);
    let snapshot = other.path("tiny");
    request.against = against(&format!("snapshot={}", snapshot.display()));
    let error = refusal(&request).to_string();
    assert!(error.starts_with("--against: "), "{error}");
}

#[test]
fn the_numbers_of_another_policy_are_told() {
    let rig = Rig::new(Version::N17);
    let mut request = Request { pace: Pace::Rate(1.0), ..bundled(&rig) };
    request.against = Some("numerics=card,dtype_policy=mixed".parse().expect("known"));
    let report = run(&request).report;
    let fidelity = report.against.as_ref().expect("compared");
    let numerics = "card numerics: mixed, hifi2, f32 sums";
    assert_eq!((fidelity.numerics.as_str(), fidelity.equal), (numerics, 0));
    assert!(fidelity.groups.values().all(|of| of.max_abs > 0.0), "{fidelity:?}");
    let expected = format!(
        "Against numerics=card,dtype_policy=mixed ({numerics}; here f32): 0 of {} chunks are equal bit for bit, \
         since other numbers round otherwise; ",
        fidelity.chunks
    );
    assert!(report.findings.iter().any(|text| text.starts_with(&expected)), "{report:?}");
}

/// A node's message about a chunk that it has made from this.
fn message(number: usize, prediction: &Predicted) -> ActionChunk {
    let begin_ns = prediction.moment.ros_ns;
    let chunk = &prediction.chunk;
    let group = |group: &gr00t_blackhole::contract::ActionGroup| Group {
        name: group.name.clone(),
        representation: 2,
        dim: group.dim as u32,
        joint_names: vec![],
        columns: vec![],
        frame_id: "panda_link0".to_owned(),
        values: group.values.clone(),
    };
    let age = |reading: &gr00t_blackhole::history::Reading| Age {
        input: reading.input.clone(),
        topic: reading.topic.clone(),
        delta: reading.delta,
        stamp: time(reading.stamp_ns),
        age: (begin_ns - reading.stamp_ns) as f64 / 1e9,
    };
    ActionChunk {
        header: header(chunk.stamp_ns),
        sequence: number as u64,
        goal_id: [0; 16],
        version: chunk.version.name().to_owned(),
        embodiment: chunk.embodiment.clone(),
        backend: "cpu".to_owned(),
        instruction: chunk.instruction.clone(),
        seed: chunk.seed.expect("a seed"),
        noise_given: false,
        horizon: chunk.horizon as u32,
        dt: 1.0 / 15.0,
        groups: chunk.groups.iter().map(group).collect(),
        timings: vec![],
        ages: prediction.readings.iter().map(age).collect(),
        completed: time(begin_ns + 80 * MS),
    }
}

/// The bundled recording with the chunks of a node that ran at these moments, each message of which the recorder got
/// `recorder_lag_ns` later than the node.
fn with_chunks(
    rig: &Rig,
    live: &Replay,
    recorder_lag_ns: i64,
    change: impl Fn(usize, &mut ActionChunk),
) {
    let bag = Bag::read(&bundled(rig).bag).expect("a bag");
    let mut recorder = Recorder::default();
    fn copy<M: RosMessage + serde::de::DeserializeOwned + 'static>(
        recorder: &mut Recorder,
        bag: &Bag,
        lag_ns: i64,
    ) {
        for (number, topic) in bag.topics.iter().enumerate() {
            if topic.message_type != M::TYPE {
                continue;
            }
            let channel = recorder.topic::<M>(&topic.name);
            for message in bag.messages.iter().filter(|message| message.topic == number) {
                let log_ns = message.log_time_ns as i64 + lag_ns;
                recorder.add(&channel, log_ns, deserialize::<M>(&message.data).expect("valid"));
            }
        }
    }
    copy::<CompressedImage>(&mut recorder, &bag, recorder_lag_ns);
    copy::<JointState>(&mut recorder, &bag, recorder_lag_ns);
    copy::<Float64>(&mut recorder, &bag, recorder_lag_ns);
    copy::<TfMessage>(&mut recorder, &bag, recorder_lag_ns);
    let chunks = recorder.topic::<ActionChunk>(CHUNKS);
    for (number, prediction) in live.predicted().iter().enumerate() {
        let mut chunk = message(number, prediction);
        change(number, &mut chunk);
        recorder.add(&chunks, prediction.moment.log_ns + 90 * MS, chunk);
    }
    recorder.write(&rig.path("bag"));
}

#[test]
fn recorded_chunks_are_reproduced_bit_for_bit_with_their_instructions() {
    let rig = Rig::new(Version::N17);
    let live = run(&bundled(&rig));
    with_chunks(&rig, &live, 0, |_, _| {});
    let request = Request {
        pace: Pace::Goals,
        instructions: Given::default(),
        bag: rig.path("bag"),
        ..bundled(&rig)
    };
    let replay = run(&request);
    let equality = replay.report.recorded_chunks.as_ref().expect("compared");
    let chunks = live.predicted().len();
    assert!(chunks >= 8);
    assert_eq!((equality.compared, equality.equal), (chunks, chunks), "{equality:?}");
    assert_eq!(equality.other_observation, 0);
    let texts: Vec<_> = replay.report.instructions.iter().map(|i| i.text.as_str()).collect();
    assert_eq!(texts, ["pick the pear", "put it back"]);
    assert_eq!(replay.report.policy.instructions_from, "recorded chunks");
    // They are commands too, and the predicted ones are these very ones.
    let commands = replay.report.commands.as_ref().expect("chunks");
    assert!(
        commands.groups.iter().all(|group| group.executed.max_abs == Some(0.0)),
        "{commands:?}"
    );
}

#[test]
fn a_recorder_that_is_later_than_the_node_changes_nothing() {
    let rig = Rig::new(Version::N17);
    let live = run(&bundled(&rig));
    with_chunks(&rig, &live, 15 * MS, |_, _| {});
    let request = Request {
        pace: Pace::Goals,
        instructions: Given::default(),
        bag: rig.path("bag"),
        ..bundled(&rig)
    };
    let replay = run(&request);
    let equality = replay.report.recorded_chunks.as_ref().expect("compared");
    // The stamp of the gripper's message, which has none of its own, is the time of reception: no observation is the same.
    assert_eq!(equality.compared, live.predicted().len());
    assert_eq!(equality.other_observation, equality.compared);
    assert_eq!(equality.equal, 0);
    let first = equality.first_difference.as_ref().expect("another observation");
    assert!(!first.same_observation, "{first:?}");
}

#[test]
fn a_recorded_value_that_is_another_one_is_named() {
    let rig = Rig::new(Version::N17);
    let live = run(&bundled(&rig));
    with_chunks(&rig, &live, 0, |number, chunk| {
        if number == 3 {
            let joints = &mut chunk.groups[2];
            assert_eq!((joints.name.as_str(), joints.dim), ("joint_position", 7));
            joints.values[7 * 5 + 4] += 0.5;
        }
    });
    let request = Request { pace: Pace::Goals, bag: rig.path("bag"), ..bundled(&rig) };
    let replay = run(&request);
    let equality = replay.report.recorded_chunks.as_ref().expect("compared");
    assert_eq!(equality.compared - equality.equal, 1);
    let difference = equality.first_difference.as_ref().expect("one");
    assert_eq!(difference.chunk, 3);
    let place = "group joint_position, row 5, panda_joint5 (column 4): ";
    assert!(difference.text.starts_with(place), "{}", difference.text);
    assert!((equality.max_abs["joint_position"] - 0.5).abs() < 1e-6);
}
