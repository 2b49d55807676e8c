//! The bundled recordings are what their generator makes, and bags survive a round trip or say what is wrong with them.

use std::fs;
use std::path::{Path, PathBuf};

use gr00t_blackhole::bag::{Bag, BagError, BagWriter};
use gr00t_blackhole::recording::droid;
use gr00t_blackhole::recording::gr1::{
    CAMERA_HZ, CAMERA_TOPIC, JOINT_HZ, JOINT_TOPIC, frame_at, joint_state_at,
};
use gr00t_blackhole::recording::message::{
    CompressedImage, Float64, Header, JointState, RosMessage, TfMessage, Time, deserialize,
    read_stamp,
};

/// Rendering is slow, so that one frame in so many is made again.
const FRAMES_PER_CHECK: usize = 10;
const DURATION_S: u32 = 5;
/// Each.
const MAX_BUNDLED_BYTES: u64 = 2_000_000;

fn bundled() -> PathBuf {
    demo("pear_to_plate")
}

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name)
}

#[test]
fn the_bundled_recording_is_what_the_generator_makes() {
    let bag = Bag::read(&bundled()).unwrap();
    let topics: Vec<_> =
        bag.topics.iter().map(|t| (t.name.as_str(), t.message_type.as_str(), t.stamped)).collect();
    assert!(topics.contains(&(CAMERA_TOPIC, "sensor_msgs/msg/CompressedImage", true)));
    assert!(topics.contains(&(JOINT_TOPIC, "sensor_msgs/msg/JointState", true)));
    let topics = &bag.topics;
    let of = |name| bag.messages.iter().filter(move |m| topics[m.topic].name == name);

    let states: Vec<_> = of(JOINT_TOPIC).collect();
    assert_eq!(states.len() as u32, JOINT_HZ * DURATION_S);
    for message in states {
        let stamp = read_stamp(&message.data).unwrap();
        let found: JointState = deserialize(&message.data).unwrap();
        assert_eq!(found, joint_state_at(stamp.nanoseconds()).unwrap());
    }

    let frames: Vec<_> = of(CAMERA_TOPIC).collect();
    assert_eq!(frames.len() as u32, CAMERA_HZ * DURATION_S);
    for message in frames.into_iter().step_by(FRAMES_PER_CHECK) {
        let stamp = read_stamp(&message.data).unwrap();
        let found: CompressedImage = deserialize(&message.data).unwrap();
        let picture = image::load_from_memory(&found.data).unwrap();
        assert_eq!((picture.width(), picture.height()), (256, 256));
        assert!(found == frame_at(stamp.nanoseconds()).unwrap(), "frame at {stamp:?}");
    }
}

#[test]
fn the_recording_of_the_arm_is_what_the_generator_makes() {
    let bag = Bag::read(&demo("droid_pear_to_plate")).unwrap();
    let of = |name: &str| -> Vec<_> {
        bag.messages.iter().filter(|m| bag.topics[m.topic].name == name).collect()
    };
    for (topic, hz, message_type) in [
        (droid::EXTERIOR_TOPIC, droid::EXTERIOR_HZ, CompressedImage::TYPE),
        (droid::WRIST_TOPIC, droid::WRIST_HZ, CompressedImage::TYPE),
        (droid::JOINT_TOPIC, droid::JOINT_HZ, JointState::TYPE),
        (droid::GRIPPER_TOPIC, droid::GRIPPER_HZ, Float64::TYPE),
        ("/tf", droid::TRANSFORM_HZ, TfMessage::TYPE),
    ] {
        assert_eq!(of(topic).len() as u32, hz * DURATION_S, "{topic}");
        let found = bag.topics.iter().find(|known| known.name == topic).unwrap();
        assert_eq!(found.message_type, message_type);
    }
    for (topic, make) in [
        (droid::EXTERIOR_TOPIC, droid::exterior_at as fn(i64) -> _),
        (droid::WRIST_TOPIC, droid::wrist_at),
    ] {
        for message in of(topic).into_iter().step_by(4 * FRAMES_PER_CHECK) {
            let stamp = read_stamp(&message.data).unwrap().nanoseconds();
            let found: CompressedImage = deserialize(&message.data).unwrap();
            let picture = image::load_from_memory(&found.data).unwrap();
            assert_eq!((picture.width(), picture.height()), (320, 180));
            assert!(found == make(stamp).unwrap(), "{topic} at {stamp}");
        }
    }
    for message in of("/tf") {
        let found: TfMessage = deserialize(&message.data).unwrap();
        let stamp = found.transforms[0].header.stamp.nanoseconds();
        assert_eq!(found, droid::transforms_at(stamp).unwrap());
        let turn = found.transforms[1].rotation;
        let squared = turn.x * turn.x + turn.y * turn.y + turn.z * turn.z + turn.w * turn.w;
        assert!((squared - 1.0).abs() < 1e-12);
    }
    let metadata = fs::read_to_string(demo("droid_pear_to_plate").join("metadata.yaml")).unwrap();
    let latched = metadata.split("topic_metadata").filter(|topic| topic.contains("durability: 1"));
    let latched: Vec<_> = latched.collect();
    assert!(latched.len() == 1 && latched[0].contains("/tf_static"), "{latched:?}");
}

#[test]
fn the_bundled_recording_is_small_and_in_order() {
    for name in ["pear_to_plate", "droid_pear_to_plate"] {
        let files = fs::read_dir(demo(name)).unwrap();
        let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes < MAX_BUNDLED_BYTES, "{name}: {bytes} bytes");
    }
    let bag = Bag::read(&bundled()).unwrap();
    for message in &bag.messages {
        let latency_ns =
            message.log_time_ns as i64 - read_stamp(&message.data).unwrap().nanoseconds();
        assert!((0..50_000_000).contains(&latency_ns), "received {latency_ns} ns after its stamp");
    }
    let metadata = fs::read_to_string(bundled().join("metadata.yaml")).unwrap();
    assert!(metadata.contains("message_count: 350"), "{metadata}");
    assert!(metadata.contains("- pear_to_plate_0.mcap"), "{metadata}");
}

fn state(seconds: i32) -> JointState {
    JointState {
        header: Header { stamp: Time { sec: seconds, nanosec: 5 }, frame_id: "base".into() },
        name: vec!["knee".into()],
        position: vec![f64::from(seconds)],
        velocity: vec![],
        effort: vec![],
    }
}

fn write_bag(directory: &Path, seconds: &[i32]) {
    let mut writer = BagWriter::create(directory).unwrap();
    let topic = writer.add_topic::<JointState>("/states").unwrap();
    for second in seconds {
        writer.write(topic, *second as u64 * 1_000_000_000, &state(*second)).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_bag_gives_back_its_messages_in_the_order_of_their_arrival() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("bag");
    write_bag(&directory, &[3, 1, 2]);
    for path in [directory.clone(), directory.join("bag_0.mcap")] {
        let bag = Bag::read(&path).unwrap();
        let states: Vec<JointState> =
            bag.messages.iter().map(|message| deserialize(&message.data).unwrap()).collect();
        assert_eq!(states, [1, 2, 3].map(state));
        assert_eq!(bag.duration().as_secs(), 2);
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let error = BagWriter::create(folder.path()).err().unwrap();
    assert!(matches!(error, BagError::Exists(_)), "{error}");
    assert!(error.to_string().contains("is there already"), "{error}");
}

#[test]
fn a_bag_is_in_its_place_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("bag");
    let mut writer = BagWriter::create(&directory).unwrap();
    writer.add_topic::<JointState>("/states").unwrap();
    assert!(!directory.exists());
    // As a run that was killed leaves it.
    std::mem::forget(writer);
    write_bag(&directory, &[1]);
    assert_eq!(Bag::read(&directory).unwrap().messages.len(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn missing_and_damaged_bags_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| Bag::read(path).unwrap_err().to_string();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(refusal(&empty).contains("is no bag"), "{}", refusal(&empty));
    assert!(refusal(&folder.path().join("none")).contains("none"));

    let directory = folder.path().join("bag");
    write_bag(&directory, &[1, 2, 3]);
    let file = directory.join("bag_0.mcap");
    fs::write(&file, &fs::read(&file).unwrap()[..7]).unwrap();
    assert!(refusal(&directory).contains("bag_0.mcap"), "{}", refusal(&directory));
}
