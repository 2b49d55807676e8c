use super::*;
use crate::checkpoint::{n15, n16, n17};

fn built_in() -> Lock {
    Lock::parse(BUILT_IN, Origin::BuiltIn).expect("the built-in lock")
}

#[test]
fn the_built_in_lock_has_the_released_networks() {
    let lock = built_in();
    let networks = [
        n15::tensors(&n15::Config::released()),
        n16::tensors(&n16::Config::released()),
        n17::tensors(&n17::Config::released()),
    ];
    for (version, tensors) in Version::ALL.into_iter().zip(networks) {
        let release = lock.release(version).expect("version");
        let size = |shape: &[usize]| 2 * shape.iter().product::<usize>() as u64;
        assert_eq!(release.tensors, tensors.len(), "{version}");
        let bytes: u64 = tensors.iter().map(|tensor| size(&tensor.shape)).sum();
        assert_eq!(release.tensor_bytes, bytes, "{version}");
        assert!(release.weights.files.contains_key("config.json"));
        assert!(release.weights.files.contains_key(&release.licence.file));
    }
    let shards = lock.release(Version::N16).expect("n16").weights.files.values();
    assert_eq!(shards.filter_map(|file| file.size).sum::<u64>(), 6_573_374_552);
}

/// The built-in lock with one change.
fn changed(from: &str, to: &str) -> String {
    assert!(BUILT_IN.contains(from), "{from}");
    let text = BUILT_IN.replacen(from, to, 1);
    Lock::parse(&text, Origin::BuiltIn).expect_err(to).to_string()
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let unknown_key = changed("tensors = 899", "tensor_count = 899");
    assert!(unknown_key.contains("tensor_count"), "{unknown_key}");
    let size = changed("size = 4_991_091_456", "size = -1");
    assert!(size.contains("size = -1"), "{size}");
    let syntax = changed("[n16]", "[n16");
    assert!(syntax.contains("line"), "{syntax}");
    let twice = changed("[n16]", "[n15]");
    assert!(twice.contains("n15"), "{twice}");
}

#[test]
fn values_that_would_lead_elsewhere_are_refused() {
    for (from, to, key) in [
        ("nvidia/GR00T-N1.5-3B", "GR00T", "n15.repo"),
        ("nvidia/GR00T-N1.5-3B", "../../etc", "n15.repo"),
        ("nvidia/GR00T-N1.5-3B", "a/b/c", "n15.repo"),
        ("869830fc749c35f34771aa5209f923ac57e4564e", "main", "n15.revision"),
        ("\"config.json\"", "\"../config.json\"", "n15.files"),
        ("\"config.json\"", "\"/etc/passwd\"", "n15.files"),
        ("\"config.json\"", "\"a//b\"", "n15.files"),
        ("\"config.json\" = {}", "\"config.json\" = { sha256 = \"12\" }", "sha256"),
        ("repo = \"nvidia/Cosmos-Reason2-2B\"", "", "n17.tokenizer.repo"),
    ] {
        let message = changed(from, to);
        assert!(message.contains(key), "{to}: {message}");
        assert!(message.contains("accepted"), "{to}: {message}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", at in 0..BUILT_IN.len()) {
        let _ = Lock::parse(&text, Origin::BuiltIn);
        if BUILT_IN.is_char_boundary(at) {
            let _ = Lock::parse(&(BUILT_IN[..at].to_owned() + &text), Origin::BuiltIn);
        }
    }
}

#[test]
fn a_version_that_the_file_does_not_have_is_named() {
    let lock = Lock::parse("", Origin::File("/some/weights.lock".into())).expect("empty");
    let message = lock.release(Version::N17).expect_err("unknown").to_string();
    assert!(message.starts_with("/some/weights.lock does not know n17"), "{message}");
}
