//! Bags of tests/data/bags, which `rosbags` has written.

use std::path::{Path, PathBuf};

use gr00t_blackhole::bag::{Bag, BagReader};
use gr00t_blackhole::recording::message::{JointState, deserialize};

use super::support::notes;

const KINDS: [&str; 7] = [
    "mcap",
    "mcap_chunk_zstd",
    "mcap_file_zstd",
    "mcap_message_zstd",
    "sqlite3",
    "sqlite3_file_zstd",
    "sqlite3_message_zstd",
];
const MILLISECOND: u64 = 1_000_000;
const START: u64 = 100_000 * MILLISECOND;
const STATES: u64 = 25;

fn bag_path(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bags").join(kind)
}

/// Every message is what `make.py` wrote, in its order.
fn check(bag: &Bag, kind: &str) {
    let names: Vec<_> = bag.topics.iter().map(|t| (t.name.as_str(), t.stamped)).collect();
    assert_eq!(names, [("/joint_states", true), ("/words", false)], "{kind}");
    let mut messages = bag.messages.iter();
    for number in 0..STATES {
        let message = messages.next().unwrap();
        let received = START + number * 100 * MILLISECOND + 2 * MILLISECOND;
        assert_eq!((message.topic, message.log_time_ns), (0, received), "{kind}");
        let state: JointState = deserialize(&message.data).unwrap();
        let stamp = START + number * 100 * MILLISECOND;
        assert_eq!(state.header.stamp.nanoseconds() as u64, stamp, "{kind}");
        assert_eq!(state.name, ["elbow", "wrist"], "{kind}");
        assert_eq!(state.position, [number as f64 / 8.0, -(number as f64) / 8.0], "{kind}");
        if number % 10 == 0 {
            let message = messages.next().unwrap();
            assert_eq!((message.topic, message.log_time_ns), (1, received), "{kind}");
            let word = format!("second {}\0", number / 10);
            assert!(message.data[8..].starts_with(word.as_bytes()), "{kind}: {:?}", message.data);
        }
    }
    assert!(messages.next().is_none(), "{kind}");
}

#[test]
fn every_kind_of_a_stranger_is_read_to_the_last_message() {
    for kind in KINDS {
        let bag = Bag::read(&bag_path(kind)).unwrap();
        check(&bag, kind);
        assert_eq!(notes(&bag), "", "{kind}");
    }
}

#[test]
fn counts_and_span_are_known_without_reading() {
    for kind in KINDS {
        let bag = BagReader::open(&bag_path(kind)).unwrap();
        let counts: Vec<_> = bag.topics().iter().map(|topic| topic.messages).collect();
        assert_eq!(counts, [Some(STATES), Some(3)], "{kind}");
        assert_eq!(bag.duration().as_millis(), 2400, "{kind}");
        assert_eq!(bag.span_ns().unwrap().0, START + 2 * MILLISECOND, "{kind}");
    }
}

#[test]
fn a_single_file_is_read_without_its_metadata() {
    for kind in KINDS {
        let mut files =
            std::fs::read_dir(bag_path(kind)).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|file| file.file_name().unwrap() != "metadata.yaml").unwrap();
        let bag = Bag::read(&file).unwrap();
        check(&bag, kind);
        let counts: Vec<_> = bag.topics.iter().map(|topic| topic.messages).collect();
        assert_eq!(counts, [Some(STATES), Some(3)], "{kind}");
        assert_eq!(notes(&bag), "", "{kind}");
    }
}

#[test]
fn only_wanted_topics_come() {
    for kind in KINDS {
        let bag = BagReader::open(&bag_path(kind)).unwrap();
        let words = bag.messages(|topic| topic.name == "/words").unwrap();
        assert_eq!(
            words.map(|message| message.unwrap().topic).collect::<Vec<_>>(),
            [1; 3],
            "{kind}"
        );
    }
}
