//! Files that are cut off or damaged: nothing is invented, and what is lost is told.

use std::fs;

use gr00t_blackhole::bag::{Bag, BagReader};
use proptest::prelude::*;

use super::support::{Records, notes, numbers, read_until_error, refusal, written};

const CHUNKS: i32 = 5;
const MESSAGES_PER_CHUNK: i32 = 8;

/// Chunks of all compressions, one after the other in time.
fn chunked() -> Records {
    let mut records = Records::default();
    for chunk in 0..CHUNKS {
        let first = 1 + chunk * MESSAGES_PER_CHUNK;
        let mut inner = Records::default();
        inner.declared();
        for number in first..first + MESSAGES_PER_CHUNK {
            inner.state(number);
        }
        let packing = ["zstd", "lz4", ""][chunk as usize % 3];
        records.chunk(first, first + MESSAGES_PER_CHUNK - 1, packing, &inner);
    }
    records
}

#[test]
fn a_file_cut_anywhere_gives_what_is_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.mcap");
    let whole = chunked().finished();
    let expected: Vec<i32> = (1..=CHUNKS * MESSAGES_PER_CHUNK).collect();
    let mut most = 0;
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (bag, error) = read_until_error(&path);
        if length < mcap::MAGIC.len() {
            assert!(error.is_some(), "cut to {length}");
            continue;
        }
        assert!(error.is_none(), "cut to {length}: {error:?}");
        let found = numbers(&bag);
        assert!(expected.starts_with(&found), "cut to {length}: {found:?}");
        assert!(found.len() >= most, "cut to {length}: fewer messages than of a shorter file");
        most = found.len();
        let notes = notes(&bag);
        assert!(
            notes.contains("is cut off") || notes.contains("never finished"),
            "{length}: {notes}"
        );
    }
    assert_eq!(most, expected.len());
}

#[test]
fn a_cut_is_told_in_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.mcap");
    let mut inner = Records::default();
    inner.declared();
    for number in 1..=100 {
        inner.state(number);
    }
    let mut records = Records::default();
    records.chunk(1, 100, "", &inner);
    let whole = records.unfinished();
    fs::write(&path, &whole[..whole.len() - 10]).unwrap();
    let bag = Bag::read(&path).unwrap();
    assert_eq!(numbers(&bag), (1..100).collect::<Vec<_>>());
    let notes = notes(&bag);
    assert!(
        notes.contains("of its last chunk, which is cut off, 99 message(s) are read"),
        "{notes}"
    );
    assert!(notes.contains("from 1000000000 to 100000000000 ns"), "{notes}");
    assert_eq!(bag.topics[0].messages, Some(99));
    let reader = BagReader::open(&path).unwrap();
    assert_eq!(reader.duration().as_secs(), 98);
}

#[test]
fn our_own_bags_survive_a_cut() {
    let folder = tempfile::tempdir().unwrap();
    let seconds: Vec<i32> = (1..2000).collect();
    let path = written(&folder.path().join("bag"), &seconds);
    let whole = fs::read(&path).unwrap();
    for length in (mcap::MAGIC.len()..whole.len()).step_by(whole.len() / 61) {
        fs::write(&path, &whole[..length]).unwrap();
        let (bag, error) = read_until_error(&folder.path().join("bag"));
        assert!(error.is_none(), "cut to {length}: {error:?}");
        assert!(seconds.starts_with(&numbers(&bag)), "cut to {length}");
        assert!(!bag.notes.is_empty(), "cut to {length}");
    }
}

#[test]
fn zeros_at_the_end_of_an_unfinished_file_are_no_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.mcap");
    let mut bytes = chunked().unfinished();
    bytes.extend([0; 4096]);
    fs::write(&path, &bytes).unwrap();
    let bag = Bag::read(&path).unwrap();
    assert_eq!(bag.messages.len() as i32, CHUNKS * MESSAGES_PER_CHUNK);
    assert!(notes(&bag).contains("the last 4096 are not"), "{}", notes(&bag));
    // A disk that has lost the end of the last chunk, which is not compressed.
    let mut bytes = chunked();
    bytes.0.truncate(bytes.0.len());
    let mut tail = Records::default();
    tail.declared().state(90).state(91);
    bytes.chunk(90, 91, "", &tail);
    let mut bytes = bytes.unfinished();
    let length = bytes.len();
    bytes[length - 40..].fill(0);
    fs::write(&path, &bytes).unwrap();
    let bag = Bag::read(&path).unwrap();
    assert_eq!(bag.messages.len() as i32, CHUNKS * MESSAGES_PER_CHUNK);
    assert!(notes(&bag).contains("is left out: the checksum"), "{}", notes(&bag));
}

#[test]
fn damage_inside_is_an_error_even_if_the_index_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let seconds: Vec<i32> = (1..2000).collect();
    let path = written(&folder.path().join("bag"), &seconds);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    assert!(refusal(&folder.path().join("bag")).contains("is damaged"));
}

#[test]
fn a_damaged_index_is_replaced_by_the_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder.path().join("bag"), &[1, 2, 3]);
    let mut bytes = fs::read(&path).unwrap();
    // The footer ends with the checksum of the summary, before the magic.
    let at = bytes.len() - mcap::MAGIC.len() - 1;
    bytes[at] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let bag = Bag::read(&folder.path().join("bag")).unwrap();
    assert_eq!(numbers(&bag), [1, 2, 3]);
    assert!(notes(&bag).contains("index at its end is not used"), "{}", notes(&bag));
}

#[test]
fn a_packed_file_that_is_cut_gives_what_is_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.mcap.zstd");
    // Too varied to be compressed into one block.
    let mut records = Records::default();
    records.declared();
    let mut noise = 1u32;
    for number in 1..=40u64 {
        let data: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        })
        .take(20_000)
        .collect();
        records.message(1, number, &data);
    }
    let packed = zstd::encode_all(&records.finished()[..], 1).unwrap();
    fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    let bag = Bag::read(&path).unwrap();
    assert!((10..40).contains(&bag.messages.len()), "{}", bag.messages.len());
    assert!(bag.messages.iter().enumerate().all(|(i, m)| m.log_time_ns == i as u64 + 1));
    assert!(notes(&bag).contains("is cut off"), "{}", notes(&bag));
}

/// Where the records of a whole file say what they are.
fn kinds_of_records(bytes: &[u8]) -> Vec<usize> {
    const HEAD: usize = 1 + size_of::<u64>();
    let mut kinds = Vec::new();
    let mut at = mcap::MAGIC.len();
    while let Some(head) = bytes.get(at..at + HEAD) {
        kinds.push(at);
        let len = u64::from_le_bytes(head[1..].try_into().unwrap());
        at += HEAD + len as usize;
    }
    kinds
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A flipped byte is found, or hits something that does not matter; no message is invented, altered or moved. Only a
    /// record that has become one of another kind may be missed: such records are passed over, as the format asks, and
    /// nothing but a checksum over all of them would tell, which rosbag2 does not write.
    #[test]
    fn flipped_bytes_change_no_message(at in any::<prop::sample::Index>(), flip in 1u8..=255, kind in 0..3) {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<i32> = (1..=CHUNKS * MESSAGES_PER_CHUNK).collect();
        let (path, mut bytes) = match kind {
            0 => (folder.path().join("bag.mcap"), chunked().finished()),
            1 => (folder.path().join("bag.mcap"), chunked().unfinished()),
            // With a summary.
            _ => {
                let path = written(&folder.path().join("bag"), &all);
                (path.clone(), fs::read(path).unwrap())
            }
        };
        let at = at.index(bytes.len());
        let changes_a_kind = kinds_of_records(&bytes).contains(&at);
        bytes[at] ^= flip;
        fs::write(&path, &bytes).unwrap();
        let (bag, error) = read_until_error(&path);
        let found = numbers(&bag);
        let mut rest = all.iter();
        let in_order = found.iter().all(|number| rest.any(|other| other == number));
        prop_assert!(in_order, "byte {at}: {found:?}");
        let complete = found.len() == all.len();
        let heard = error.is_some() || !bag.notes.is_empty();
        prop_assert!(complete || heard || changes_a_kind, "byte {at}: a loss that nobody hears of");
    }

    /// Bytes of any kind are no bag, and no panic.
    #[test]
    fn any_bytes_behind_the_magic_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bag.mcap");
        fs::write(&path, [mcap::MAGIC, &bytes].concat()).unwrap();
        let (bag, _) = read_until_error(&path);
        prop_assert!(bag.messages.is_empty());
    }
}
