//! Arenas as files: written whole, read when they are what they should be, handed over in pieces.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gr00t_blackhole::backend::blackhole::arena::{
    Arena, ArenaError, ArenaPlan, FileProblem, STAGING_BYTES,
};
use tempfile::TempDir;

use super::rig::{COMPRESSED, Drawn, PLAIN, blob, part, plan, stream, weight};

const KEY: &str = "made for a test";
/// Where the banks begin in a file of few parts and blobs.
const HEADER_BYTES: usize = 4096;

/// A small arena of two parts in three banks, and where its file will be.
struct Small {
    drawn: Drawn,
    plan: ArenaPlan,
    folder: TempDir,
}

impl Small {
    fn new() -> Self {
        let drawn = Drawn::new(20_000);
        let weights = [weight(COMPRESSED, 520, 33), weight(PLAIN, 100, 70)];
        let streams = vec![
            stream(0, 0, &[(0, 0, 0), (1, 1, 2)]),
            stream(1, 4, &[(0, 0, 1), (1, 1, 0)]),
            stream(2, 0, &[(1, 1, 1)]),
        ];
        let parts = [
            part("per_step", true, streams),
            part("other", false, vec![stream(0, 4, &[(0, 1, 0)])]),
        ];
        let blobs = vec![blob("bias", 4, b"twelve bytes"), blob("table", 7, &[9; 200])];
        let plan = plan(&weights, &parts, blobs).unwrap();
        Self { drawn, plan, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("not/there/yet/arena")
    }

    fn write(&self) -> PathBuf {
        self.write_to(&self.path()).unwrap();
        self.path()
    }

    /// The file, and what has to live as long.
    fn write_and_keep(self) -> (Self, PathBuf) {
        let path = self.write();
        (self, path)
    }

    fn write_to(&self, path: &Path) -> Result<(), ArenaError> {
        Arena::write(&self.plan, &self.drawn.checkpoint, KEY, path, &|_, _| ())
    }
}

/// What is wrong with a file; the message has to name it and say what to do.
fn problem(path: &Path, key: &str) -> FileProblem {
    let error = Arena::open(path, key).expect_err("the file is damaged");
    let text = error.to_string();
    assert!(text.starts_with(&path.display().to_string()), "{text}");
    assert!(text.ends_with("delete it, it is made again"), "{text}");
    match error {
        ArenaError::File { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn a_file_holds_what_the_image_holds() {
    let small = Small::new();
    let heard = std::cell::RefCell::new(vec![]);
    let progress = |done, total| heard.borrow_mut().push((done, total));
    Arena::write(&small.plan, &small.drawn.checkpoint, KEY, &small.path(), &progress).unwrap();
    let whole = small.plan.bytes();
    assert_eq!(heard.borrow().last(), Some(&(whole, whole)));
    assert!(heard.borrow().is_sorted());
    let permissions = fs::metadata(small.path()).unwrap().permissions().mode();
    assert_eq!(permissions & 0o777, 0o644);

    let image = small.plan.image(&small.drawn.checkpoint).unwrap();
    let arena = Arena::open(&small.path(), KEY).unwrap();
    for bank in 0..8 {
        assert_eq!(arena.bank(bank).len() as u64, small.plan.bank_bytes(bank));
        assert!(arena.bank(bank) == image.bank(bank), "bank {bank}");
    }
    assert_eq!(arena.blob("bias"), Some(b"twelve bytes".as_slice()));
    assert_eq!(image.blob("table"), Some([9; 200].as_slice()));
    assert_eq!(arena.blob("bia"), None);
    for part in small.plan.parts() {
        for packet in (0..8).flat_map(|bank| part.packets(bank)) {
            assert_eq!(arena.packet(packet).len() as u64, packet.bytes);
        }
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let (first, second) = (Small::new(), Small::new());
    assert!(fs::read(first.write()).unwrap() == fs::read(second.write()).unwrap());
}

#[test]
fn every_flipped_byte_is_found() {
    let (_small, path) = Small::new().write_and_keep();
    let whole = fs::read(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let every_byte = 0..HEADER_BYTES;
    for at in every_byte.chain((HEADER_BYTES..whole.len()).step_by(61)) {
        for flip in [1, 0x80] {
            file.write_all_at(&[whole[at] ^ flip], at as u64).unwrap();
            let found = problem(&path, KEY);
            let expected = match at {
                0..8 => matches!(found, FileProblem::Magic { .. }),
                8..16 => matches!(found, FileProblem::Version { .. }),
                // Another length: beyond the end, or not what was hashed.
                16..24 => {
                    matches!(found, FileProblem::Cut { .. } | FileProblem::HeaderHash { .. })
                }
                24..HEADER_BYTES => matches!(found, FileProblem::HeaderHash { .. }),
                _ => matches!(found, FileProblem::Bank { .. }),
            };
            assert!(expected, "byte {at}: {found}");
        }
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    assert!(Arena::open(&path, KEY).is_ok(), "all bytes are as they were");
}

#[test]
fn every_cut_is_found() {
    let (_small, path) = Small::new().write_and_keep();
    let whole = fs::read(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let banks = (whole.len() - HEADER_BYTES) as u64;
    for length in (HEADER_BYTES..whole.len()).rev().step_by(997).chain((0..HEADER_BYTES).rev()) {
        file.set_len(length as u64).unwrap();
        let found = problem(&path, KEY);
        let expected = match length {
            0..HEADER_BYTES => FileProblem::Cut { found: length },
            _ => FileProblem::Length { expected: banks, found: (length - HEADER_BYTES) as u64 },
        };
        assert_eq!(found, expected);
    }
    fs::write(&path, [whole.as_slice(), &[0]].concat()).unwrap();
    let longer = FileProblem::Length { expected: banks, found: banks + 1 };
    assert_eq!(problem(&path, KEY), longer);
}

#[test]
fn another_key_is_told() {
    let (small, path) = Small::new().write_and_keep();
    let expected = FileProblem::Key { expected: "another".to_owned(), found: KEY.to_owned() };
    assert_eq!(problem(&path, "another"), expected);

    // The key that a plan gives itself is of weights, geometry and blobs.
    let weights = [weight(PLAIN, 64, 64)];
    let key = |order, bytes: &[u8], drawn: &Drawn| {
        let parts = [part("p", true, vec![stream(0, 0, &[(order, 0, 0)])])];
        let plan = plan(&weights, &parts, vec![blob("b", 0, bytes)]).unwrap();
        plan.key(&drawn.checkpoint).unwrap()
    };
    let first = key(0, b"b", &small.drawn);
    assert_eq!(first, key(0, b"b", &Drawn::new(20_000)));
    assert_ne!(first, key(1, b"b", &small.drawn));
    assert_ne!(first, key(0, b"c", &small.drawn));
    // The second tensor begins with other values.
    assert_ne!(first, key(0, b"b", &Drawn::new(10_000)));
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let small = Small::new();
    let missing = Arena::open(&small.path(), KEY).unwrap_err();
    assert!(
        matches!(&missing, ArenaError::Read { error, .. }
            if error.kind() == std::io::ErrorKind::NotFound),
        "{missing}"
    );
    let folder = Arena::open(small.folder.path(), KEY).unwrap_err();
    assert!(folder.to_string().contains("not a regular file"), "{folder}");

    let in_the_way = small.folder.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    for out in [in_the_way.join("arena"), PathBuf::from("/proc/self/arena")] {
        let error = small.write_to(&out).unwrap_err();
        assert!(matches!(&error, ArenaError::Write { path, .. } if *path == out), "{error}");
    }
    // A folder of that name stays, and nothing is left beside it.
    let occupied = small.folder.path().join("occupied");
    fs::create_dir(&occupied).unwrap();
    let error = small.write_to(&occupied).unwrap_err();
    assert!(matches!(error, ArenaError::Write { .. }), "{error}");
    assert_eq!(fs::read_dir(small.folder.path()).unwrap().count(), 2);
}

#[test]
fn several_writers_leave_one_whole_file() {
    let small = Small::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| small.write());
        }
    });
    assert!(Arena::open(&small.path(), KEY).is_ok());
    let folder = small.path();
    assert_eq!(fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn an_open_arena_outlives_its_file() {
    let small = Small::new();
    let arena = Arena::open(&small.write(), KEY).unwrap();
    let before = arena.bank(4).to_vec();
    Arena::write(&small.plan, &small.drawn.checkpoint, "new", &small.path(), &|_, _| ()).unwrap();
    fs::remove_file(small.path()).unwrap();
    assert!(arena.bank(4) == before);
}

#[test]
fn what_killed_writers_have_left_is_removed() {
    let small = Small::new();
    let folder = small.path().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    let names = [".partial-arena-old", ".partial-arena-new", ".partial-b-old"];
    let [old, new, of_another] = names.map(|name| folder.join(name));
    for path in [&old, &new, &of_another] {
        fs::write(path, "").unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(25 * 3600);
    for path in [&old, &of_another] {
        File::open(path).unwrap().set_modified(long_ago).unwrap();
    }
    small.write();
    assert_eq!([&old, &new, &of_another].map(|path| path.exists()), [false, true, true]);
}

#[test]
fn uploads_come_in_ascending_pieces() {
    let small = Small::new();
    let arena = small.plan.image(&small.drawn.checkpoint).unwrap();
    for (staging, largest) in [(1000, 960), (0, 64), (usize::MAX, STAGING_BYTES)] {
        let mut banks: Vec<Vec<u8>> = vec![vec![]; 8];
        let mut last = (0, 0);
        let heard = std::cell::Cell::new((0, 0));
        let progress = |done, total| heard.set((done, total));
        arena
            .upload(staging, &progress, |bank, offset, bytes| -> Result<(), ()> {
                assert!(bytes.len() <= largest && !bytes.is_empty());
                assert!((bank, offset) >= last);
                last = (bank, offset);
                assert_eq!(banks[usize::from(bank)].len() as u64, offset);
                banks[usize::from(bank)].extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
        for bank in 0..8 {
            assert!(banks[usize::from(bank)] == arena.bank(bank), "bank {bank} by {staging}");
        }
        assert_eq!(heard.get(), (small.plan.bytes(), small.plan.bytes()));
    }
}

#[test]
fn an_error_ends_an_upload() {
    let small = Small::new();
    let arena = small.plan.image(&small.drawn.checkpoint).unwrap();
    let mut pieces = 0;
    let result = arena.upload(64, &|_, _| (), |_, _, _| {
        pieces += 1;
        if pieces == 3 { Err("the card is gone") } else { Ok(()) }
    });
    assert_eq!((result, pieces), (Err("the card is gone"), 3));
}
