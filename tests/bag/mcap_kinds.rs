//! What MCAP allows beyond what our writer writes.

use std::fs;
use std::path::PathBuf;

use gr00t_blackhole::bag::{Bag, BagReader};
use tempfile::TempDir;

use super::support::{Records, SECOND, bytes, notes, numbers, refusal};

fn file(folder: &TempDir, content: &[u8]) -> PathBuf {
    let path = folder.path().join("bag.mcap");
    fs::write(&path, content).unwrap();
    path
}

fn declared_states(numbers: &[i32]) -> Records {
    let mut records = Records::default();
    records.declared();
    for number in numbers {
        records.state(*number);
    }
    records
}

#[test]
fn chunks_of_every_compression_and_messages_outside_of_chunks_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::default();
    for (first, packing) in [(1, ""), (3, "zstd"), (5, "lz4")] {
        records.chunk(first, first + 1, packing, &declared_states(&[first, first + 1]));
    }
    records.0.extend(declared_states(&[7, 8]).0);
    let bag = Bag::read(&file(&folder, &records.finished())).unwrap();
    assert_eq!(numbers(&bag), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bag.topics[0].messages, Some(8));
    assert_eq!(notes(&bag), "");
}

#[test]
fn chunks_that_overlap_and_messages_out_of_order_come_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::default();
    records.chunk(4, 9, "zstd", &declared_states(&[9, 4, 6]));
    records.chunk(1, 7, "", &declared_states(&[7, 1, 5]));
    records.chunk(2, 8, "lz4", &declared_states(&[2, 8, 3]));
    let path = file(&folder, &records.finished());
    assert_eq!(numbers(&Bag::read(&path).unwrap()), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let reader = BagReader::open(&path).unwrap();
    assert_eq!(reader.span_ns(), Some((SECOND, 9 * SECOND)));
}

#[test]
fn messages_of_one_time_stay_in_the_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Records::default();
    first.declared();
    let mut second = Records::default();
    for number in 0..20 {
        first.message(1, SECOND, &bytes(number));
        second.message(1, SECOND, &bytes(20 + number));
    }
    let mut records = Records::default();
    records.chunk(1, 1, "zstd", &first).chunk(1, 1, "zstd", &second);
    let bag = Bag::read(&file(&folder, &records.finished())).unwrap();
    assert_eq!(numbers(&bag), (0..40).collect::<Vec<_>>());
}

#[test]
fn many_small_runs_outside_of_chunks_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    // Large enough for several runs.
    let mut records = Records::default();
    records
        .schema(1, "my_msgs/msg/Blob", "ros2msg", "uint8[] data\n")
        .channel(1, 1, "/blobs", "cdr");
    for number in 0..24u64 {
        records.message(1, (24 - number) * SECOND, &vec![number as u8; 1 << 20]);
    }
    let bag = Bag::read(&file(&folder, &records.finished())).unwrap();
    let found: Vec<u8> = bag.messages.iter().map(|message| message.data[0]).collect();
    assert_eq!(found, (0..24).rev().collect::<Vec<u8>>());
}

#[test]
fn channels_of_one_topic_are_one_topic() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = declared_states(&[1]);
    records.channel(2, 1, "/states", "cdr").message(2, 2 * SECOND, &bytes(2));
    let bag = Bag::read(&file(&folder, &records.finished())).unwrap();
    assert_eq!(bag.topics.len(), 1);
    assert_eq!(numbers(&bag), [1, 2]);
}

#[test]
fn a_name_with_two_types_is_two_topics_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = declared_states(&[1]);
    records.schema(2, "my_msgs/msg/Other", "ros2msg", "int32 a\n").channel(2, 2, "/states", "cdr");
    records.message(2, 2 * SECOND, &bytes(2));
    let bag = Bag::read(&file(&folder, &records.finished())).unwrap();
    assert_eq!(bag.topics.len(), 2);
    assert!(
        notes(&bag)
            .contains("/states is recorded as sensor_msgs/msg/JointState and as my_msgs/msg/Other")
    );
}

#[test]
fn other_encodings_are_noted_and_refused_only_for_who_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = declared_states(&[1]);
    records.channel(2, 0, "/status", "json").message(2, 2 * SECOND, b"{}");
    let path = file(&folder, &records.finished());
    let reader = BagReader::open(&path).unwrap();
    let told: Vec<String> = reader.notes().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["/status holds \"json\" messages, which are not read"]);
    let states = reader.messages(|topic| topic.name == "/states").unwrap();
    assert_eq!(states.filter(Result::is_ok).count(), 1);
    let error = reader.messages(|_| true).err().unwrap().to_string();
    assert!(error.contains("/status") && error.contains("json"), "{error}");
}

#[test]
fn an_empty_chunk_and_an_empty_file_hold_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::default();
    records.chunk(0, 0, "zstd", &declared_states(&[]));
    let path = file(&folder, &records.finished());
    let reader = BagReader::open(&path).unwrap();
    assert_eq!((reader.span_ns(), reader.duration().as_secs()), (None, 0));
    assert!(Bag::read(&path).unwrap().messages.is_empty());
    let path = file(&folder, &Records::default().finished());
    assert_eq!(Bag::read(&path).unwrap(), Bag::default());
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let of = |records: &Records| refusal(&file(&folder, &records.finished()));

    let mut late = Records::default();
    late.chunk(1, 2, "", &declared_states(&[1, 3]));
    assert!(of(&late).contains("a message of 3000000000 ns in a chunk"), "{}", of(&late));

    let mut stray = declared_states(&[1]);
    stray.message(7, 2 * SECOND, &bytes(2));
    assert!(of(&stray).contains("no channel 7 is known"), "{}", of(&stray));

    let mut renamed = declared_states(&[1]);
    renamed.channel(1, 1, "/others", "cdr").state(2);
    assert!(of(&renamed).contains("channel 1 is /states and /others"), "{}", of(&renamed));

    let mut orphan = Records::default();
    orphan.channel(1, 9, "/states", "cdr").state(1);
    assert!(of(&orphan).contains("lacks its schema 9"), "{}", of(&orphan));

    let mut unknown = Records::default();
    unknown.chunk(1, 1, "brotli", &declared_states(&[1]));
    assert!(of(&unknown).contains("brotli"), "{}", of(&unknown));
}

#[test]
fn a_chunk_that_unpacks_to_more_than_it_says_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut bomb = Records(vec![0; 32 << 20]);
    bomb.0[..9].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0]);
    for packing in ["zstd", "lz4"] {
        let mut records = Records::default();
        records.chunk(1, 1, packing, &bomb);
        // The unpacked length stands behind the head of the record and two times.
        records.0[25..33].copy_from_slice(&1024u64.to_le_bytes());
        let error = refusal(&file(&folder, &records.finished()));
        assert!(error.contains("unpacks to more than 1024 bytes"), "{packing}: {error}");
    }
    let mut records = Records::default();
    records.chunk(1, 1, "zstd", &bomb);
    records.0[25..33].copy_from_slice(&u64::MAX.to_le_bytes());
    let error = refusal(&file(&folder, &records.finished()));
    assert!(error.contains("a chunk has 18446744073709551615 bytes"), "{error}");
}
