//! Which files a bag consists of, and what its metadata says of them.

use std::fs;
use std::path::Path;

use gr00t_blackhole::bag::{Bag, BagReader};
use proptest::prelude::*;

use super::support::{
    SECOND, metadata, notes, numbers, read_until_error, refusal, rows, sqlite, written,
};

const STATES: (i64, &str, &str) = (1, "/states", "cdr");

/// An MCAP file of a bag, written elsewhere and moved to its place.
fn mcap_file(path: &Path, seconds: &[i32]) {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(written(&folder.path().join("bag"), seconds), path).unwrap();
}

fn packed(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let name = format!("{}.zstd", path.display());
    fs::write(name, zstd::encode_all(&bytes[..], 3).unwrap()).unwrap();
    fs::remove_file(path).unwrap();
}

#[test]
fn split_bags_are_one_bag_with_or_without_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["bag_0.mcap", "bag_1.mcap", "bag_2.mcap", "bag_10.mcap"];
    // Files overlap at their borders.
    for (name, seconds) in names.iter().zip([[1, 2, 4], [3, 5, 7], [6, 8, 10], [9, 11, 12]]) {
        mcap_file(&folder.path().join(name), &seconds);
    }
    let expected: Vec<i32> = (1..=12).collect();
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!(numbers(&bag), expected);
    assert_eq!(notes(&bag), "no metadata.yaml: 4 bag file(s) read by their own words\n");
    metadata(folder.path(), "mcap", &names, "");
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!(numbers(&bag), expected);
    let reader = BagReader::open(folder.path()).unwrap();
    assert_eq!(reader.span_ns(), Some((SECOND, 12 * SECOND)));
    assert_eq!(reader.topics()[0].messages, Some(12));
}

#[test]
fn files_of_several_bags_are_not_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seconds) in [("a_0.mcap", [1, 2]), ("b_0.mcap", [3, 4])] {
        mcap_file(&folder.path().join(name), &seconds);
    }
    let text = refusal(folder.path());
    assert!(text.contains("a_0.mcap and b_0.mcap are not named as parts of one bag"), "{text}");
    metadata(folder.path(), "mcap", &["a_0.mcap", "b_0.mcap"], "");
    assert_eq!(numbers(&Bag::read(folder.path()).unwrap()), [1, 2, 3, 4]);
}

#[test]
fn messages_of_one_time_follow_the_order_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["bag_1.db3", "bag_0.db3"] {
        sqlite(&folder.path().join(name), &[STATES], &rows(&[1]));
    }
    let with_marks = |name: &str, mark: u8| {
        let connection = rusqlite::Connection::open(folder.path().join(name)).unwrap();
        connection.execute("UPDATE messages SET data = ?1", [vec![mark]]).unwrap();
    };
    with_marks("bag_1.db3", 1);
    with_marks("bag_0.db3", 2);
    let marks = || -> Vec<u8> {
        Bag::read(folder.path()).unwrap().messages.iter().map(|m| m.data[0]).collect()
    };
    assert_eq!(marks(), [2, 1]);
    metadata(folder.path(), "sqlite3", &["bag_1.db3", "bag_0.db3"], "");
    assert_eq!(marks(), [1, 2]);
}

#[test]
fn a_recorder_that_compresses_files_leaves_the_last_one_plain_when_killed() {
    let folder = tempfile::tempdir().unwrap();
    sqlite(&folder.path().join("bag_0.db3"), &[STATES], &rows(&[1, 2]));
    packed(&folder.path().join("bag_0.db3"));
    sqlite(&folder.path().join("bag_1.db3"), &[STATES], &rows(&[3, 4]));
    assert_eq!(numbers(&Bag::read(folder.path()).unwrap()), [1, 2, 3, 4]);
}

#[test]
fn files_that_may_hold_the_same_messages_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    mcap_file(&folder.path().join("bag_0.mcap"), &[1, 2]);
    sqlite(&folder.path().join("bag_0.db3"), &[STATES], &rows(&[1, 2]));
    let error = refusal(folder.path());
    assert!(error.contains("bag_0.db3 and bag_0.mcap"), "{error}");
    metadata(folder.path(), "mcap", &["bag_0.mcap"], "");
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!(numbers(&bag), [1, 2]);
    assert!(notes(&bag).contains("bag_0.db3 is not read"), "{}", notes(&bag));
}

#[test]
fn a_missing_file_is_a_hole_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    mcap_file(&folder.path().join("bag_1.mcap"), &[2]);
    metadata(folder.path(), "mcap", &["bag_0.mcap", "bag_1.mcap", "bag_2.mcap"], "");
    let error = refusal(folder.path());
    assert!(error.contains("lacks bag_0.mcap, bag_2.mcap"), "{error}");
    fs::remove_file(folder.path().join("metadata.yaml")).unwrap();
    assert_eq!(numbers(&Bag::read(folder.path()).unwrap()), [2]);
}

#[test]
fn a_file_under_the_name_without_its_compression_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    mcap_file(&folder.path().join("bag_0.mcap"), &[1]);
    let more = "  compression_format: zstd\n  compression_mode: FILE\n";
    metadata(folder.path(), "mcap", &["bag_0.mcap.zstd"], more);
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!(numbers(&bag), [1]);
    assert!(
        notes(&bag).contains("bag_0.mcap is read in place of bag_0.mcap.zstd"),
        "{}",
        notes(&bag)
    );
    packed(&folder.path().join("bag_0.mcap"));
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!((numbers(&bag), notes(&bag)), (vec![1], disagreement()));
}

/// What the short metadata of these tests leaves out.
fn disagreement() -> String {
    "type of /states: metadata.yaml says nothing, the files say sensor_msgs/msg/JointState\n".into()
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bag = folder.path().join("bag");
    fs::create_dir(&bag).unwrap();
    mcap_file(&folder.path().join("secret.mcap"), &[1]);
    let absolute = folder.path().join("secret.mcap");
    for name in ["../secret.mcap", absolute.to_str().unwrap(), "x/../../secret.mcap", "."] {
        metadata(&bag, "mcap", &[name], "");
        let error = refusal(&bag);
        assert!(error.contains(name) && error.contains("not beside it"), "{error}");
    }
}

#[test]
fn old_metadata_names_its_own_directory_even_after_a_renaming() {
    let folder = tempfile::tempdir().unwrap();
    sqlite(&folder.path().join("old_0.db3"), &[STATES], &rows(&[1]));
    metadata(folder.path(), "sqlite3", &["old/old_0.db3"], "");
    let path = folder.path().join("metadata.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("version: 5", "version: 2")).unwrap();
    assert_eq!(numbers(&Bag::read(folder.path()).unwrap()), [1]);
}

#[test]
fn every_disagreement_with_the_files_is_told() {
    let folder = tempfile::tempdir().unwrap();
    mcap_file(&folder.path().join("bag_0.mcap"), &[1, 2, 3]);
    let more = "  starting_time:\n    nanoseconds_since_epoch: 7\n  duration:\n    nanoseconds: 8\n  message_count: 9\n  topics_with_message_count:\n    - topic_metadata: {name: /states, type: sensor_msgs/msg/JointState, serialization_format: cdr}\n      message_count: 4\n    - topic_metadata: {name: /gone, type: a/msg/B, serialization_format: cdr}\n      message_count: 5\n";
    metadata(folder.path(), "sqlite3", &["bag_0.mcap"], more);
    let path = folder.path().join("metadata.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("version: 5", "version: 12")).unwrap();
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!(numbers(&bag), [1, 2, 3]);
    let notes = notes(&bag);
    for expected in [
        "version 12, newer than 9",
        "storage of bag_0.mcap: metadata.yaml says sqlite3, the files say mcap",
        "messages of /states: metadata.yaml says 4, the files say 3",
        "messages of /gone: metadata.yaml says 5 of a/msg/B, the files say none",
        "time of the first message, ns: metadata.yaml says 7, the files say 1000000000",
        "duration, ns: metadata.yaml says 8, the files say 2000000000",
        "number of messages: metadata.yaml says 9, the files say 3",
    ] {
        assert!(notes.contains(expected), "{expected} in\n{notes}");
    }
}

#[test]
fn counts_of_metadata_are_compared_with_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    sqlite(&folder.path().join("bag_0.db3"), &[STATES], &rows(&[1, 2]));
    let more = "  topics_with_message_count:\n    - topic_metadata: {name: /states, type: sensor_msgs/msg/JointState, serialization_format: cdr}\n      message_count: 4\n";
    metadata(folder.path(), "sqlite3", &["bag_0.db3"], more);
    let bag = Bag::read(folder.path()).unwrap();
    assert_eq!(notes(&bag), "/states: the bag counts 4 message(s), 2 are there\n");
}

#[test]
fn kinds_that_are_not_read_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    mcap_file(&folder.path().join("bag_0.mcap"), &[1]);
    let more = "  compression_format: lz4\n  compression_mode: FILE\n";
    metadata(folder.path(), "mcap", &["bag_0.mcap"], more);
    assert!(refusal(folder.path()).contains("lz4"), "{}", refusal(folder.path()));
    fs::write(folder.path().join("notes.txt"), "no bag at all").unwrap();
    metadata(folder.path(), "mcap", &["notes.txt"], "");
    assert!(
        refusal(folder.path()).contains("notes.txt is no bag file"),
        "{}",
        refusal(folder.path())
    );
    let ros1 = folder.path().join("old.bag");
    fs::write(&ros1, "#ROSBAG V2.0\nand so on").unwrap();
    assert!(refusal(&ros1).contains("a bag of ROS 1"), "{}", refusal(&ros1));
    assert!(refusal(Path::new("/dev/null")).contains("/dev/null is no bag"));
    metadata(folder.path(), "mcap", &[], "");
    assert!(refusal(folder.path()).contains("names no bag file"), "{}", refusal(folder.path()));
    metadata(folder.path(), "mcap", &["bag_0.mcap", "bag_0.mcap"], "");
    assert!(refusal(folder.path()).contains("bag_0.mcap twice"), "{}", refusal(folder.path()));
}

#[test]
fn an_empty_metadata_file_counts_as_none() {
    let folder = tempfile::tempdir().unwrap();
    mcap_file(&folder.path().join("bag_0.mcap"), &[1]);
    fs::write(folder.path().join("metadata.yaml"), "\n").unwrap();
    assert_eq!(numbers(&Bag::read(folder.path()).unwrap()), [1]);
}

fn whole_metadata() -> String {
    let bag = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bags/sqlite3/metadata.yaml");
    fs::read_to_string(bag).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever stands in metadata.yaml, there is no panic, and messages come from the file alone.
    #[test]
    fn any_metadata_is_read_or_refused(
        cuts in prop::collection::vec((0usize..1054, 0usize..60, "[ \\-:\\[\\]{}&*!|>'\"a-z0-9\n/.]{0,12}"), 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = whole_metadata().replace("sqlite3.db3", "bag_0.mcap");
        for (at, length, insert) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.replace_range(at..end, &insert);
        }
        mcap_file(&folder.path().join("bag_0.mcap"), &[1, 2]);
        fs::write(folder.path().join("metadata.yaml"), &text).unwrap();
        let (bag, error) = read_until_error(folder.path());
        match error {
            Some(error) => prop_assert!(!error.to_string().is_empty()),
            None => prop_assert_eq!(bag.messages.len(), 2),
        }
    }
}
