//! SQLite bags of all schemas and states.

use std::fs;
use std::path::Path;

use gr00t_blackhole::bag::{Bag, BagReader};
use rusqlite::Connection;

use super::support::{
    SECOND, bytes, fill, notes, numbers, read_until_error, refusal, rows, sqlite,
};

const STATES: (i64, &str, &str) = (1, "/states", "cdr");

#[test]
fn schemas_of_all_versions_are_read() {
    let first = "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL{columns});
        CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE INDEX timestamp_idx ON messages (timestamp ASC);";
    let qos = ", offered_qos_profiles TEXT NOT NULL DEFAULT ''";
    let hash = ", offered_qos_profiles TEXT NOT NULL DEFAULT '', type_description_hash TEXT NOT NULL DEFAULT ''";
    let tables = "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL); INSERT INTO schema VALUES (4, 'jazzy');
        CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);
        CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL, encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);
        INSERT INTO message_definitions VALUES (1, 'sensor_msgs/msg/JointState', 'ros2msg', 'float64 unstamped', '');";
    for (columns, more, stamped) in [("", "", true), (qos, "", true), (hash, tables, false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bag_0.db3");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(&first.replace("{columns}", columns)).unwrap();
        connection.execute_batch(more).unwrap();
        fill(&connection, &[STATES], &rows(&[1, 2, 3]));
        drop(connection);
        let bag = Bag::read(&path).unwrap();
        assert_eq!(numbers(&bag), [1, 2, 3]);
        assert_eq!(bag.topics[0].stamped, stamped, "{columns}");
        assert_eq!(notes(&bag), "");
    }
}

#[test]
fn rows_come_in_the_order_of_time_and_then_of_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    let mut disordered = rows(&[5, 1, 4, 2, 3]);
    // Many of one time, over several pages.
    disordered.extend((0..3000).map(|number| (1, 6 * SECOND as i64, bytes(number))));
    sqlite(&path, &[STATES], &disordered);
    let expected: Vec<i32> = [1, 2, 3, 4, 5].into_iter().chain(0..3000).collect();
    assert_eq!(numbers(&Bag::read(&path).unwrap()), expected);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the file");
}

#[test]
fn without_an_index_reading_is_slow_and_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    sqlite(&path, &[STATES], &rows(&[3, 1, 2]));
    Connection::open(&path).unwrap().execute_batch("DROP INDEX timestamp_idx").unwrap();
    let bag = Bag::read(&path).unwrap();
    assert_eq!(numbers(&bag), [1, 2, 3]);
    assert!(notes(&bag).contains("no index over time"), "{}", notes(&bag));
}

#[test]
fn large_messages_come_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    let blobs = (0..40).map(|number| (1, number, vec![number as u8; 1 << 20]));
    sqlite(&path, &[STATES], &blobs.collect::<Vec<_>>());
    let found: Vec<u8> = Bag::read(&path).unwrap().messages.iter().map(|m| m.data[0]).collect();
    assert_eq!(found, (0..40).collect::<Vec<u8>>());
}

/// A copy of a file that is being written, with the log that SQLite keeps beside it.
fn copy_while_open(from: &Path, to: &Path, suffixes: &[&str]) {
    for suffix in suffixes {
        let beside = |path: &Path| format!("{}{suffix}", path.display());
        fs::copy(beside(from), beside(to)).unwrap();
    }
}

#[test]
fn what_is_in_the_log_only_is_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let (open, path) = (folder.path().join("open.db3"), folder.path().join("bag.db3"));
    sqlite(&open, &[STATES], &rows(&[1, 2]));
    let connection = Connection::open(&open).unwrap();
    connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;").unwrap();
    fill(&connection, &[], &rows(&[3, 4]));
    copy_while_open(&open, &path, &["", "-wal"]);
    let bag = Bag::read(&path).unwrap();
    assert_eq!(numbers(&bag), [1, 2, 3, 4]);
    assert!(notes(&bag).contains("write-ahead log"), "{}", notes(&bag));
}

#[test]
fn a_cut_or_flipped_file_is_refused_and_invents_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    let seconds: Vec<i32> = (1..200).collect();
    sqlite(&path, &[STATES], &rows(&seconds));
    let whole = fs::read(&path).unwrap();
    for length in [17, 100, 4096, whole.len() / 3, whole.len() - 4096, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let (bag, error) = read_until_error(&path);
        let error =
            error.unwrap_or_else(|| panic!("cut to {length} of {}", whole.len())).to_string();
        assert!(error.contains("bag.db3"), "{error}");
        assert!(seconds.starts_with(&numbers(&bag)), "cut to {length}");
    }
}

#[test]
fn rows_that_make_no_sense_are_refused_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let case = |name: &str, rows: &[(i64, i64, Vec<u8>)]| {
        let path = folder.path().join(name);
        sqlite(&path, &[STATES], rows);
        refusal(&path)
    };
    let stray = case("stray.db3", &[(1, 5, bytes(1)), (9, 6, bytes(2))]);
    assert!(stray.contains("message 2 is of topic 9"), "{stray}");
    let early = case("early.db3", &[(1, -5, bytes(1))]);
    assert!(early.contains("-5 ns, before 1970"), "{early}");
    let path = folder.path().join("other.db3");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE things(a)").unwrap();
    assert!(refusal(&path).contains("no such table: topics"), "{}", refusal(&path));
}

#[test]
fn topics_of_other_encodings_and_names_with_odd_characters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a bag?with #odd%20 name.db3");
    sqlite(&path, &[STATES, (2, "/status", "cbor")], &rows(&[1]));
    let reader = BagReader::open(&path).unwrap();
    assert_eq!(reader.topics()[0].messages, Some(1));
    assert_eq!(reader.topics()[1].messages, Some(0));
    assert!(reader.messages(|topic| topic.encoding == "cbor").is_err());
    assert_eq!(reader.messages(|topic| topic.encoding == "cdr").unwrap().count(), 1);
}
