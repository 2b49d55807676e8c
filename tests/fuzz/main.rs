//! What strangers send, changed at random: bodies in JSON, MessagePack, npy files, base64 and pictures.
//!
//! A case is a seed that is answered as it stands, with up to eight changes. Cases are counted from 0 and each is made from
//! its number alone, so that a failure can be repeated. `GR00T_FUZZ_CASES=1000000 cargo test --test fuzz -- --nocapture` makes a
//! million of each target, with a line now and then; `GR00T_FUZZ_FROM` is the number of the first.

mod mutate;
#[path = "../zmq/rig.rs"]
#[allow(dead_code)] // The tests of the ZeroMQ server use all of it.
mod rig;
mod seeds;
#[path = "../zmq/stored.rs"]
#[allow(dead_code)] // As above.
mod stored;
#[path = "../zmq/stub.rs"]
#[allow(dead_code)] // As above.
mod stub;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use mutate::Mutator;

/// Of each target, where nothing else is asked for.
const CASES: u64 = 2_000;
/// No case may take longer: a stranger's bytes must not keep a server busy.
const SLOW: Duration = Duration::from_secs(5);
const TOLD: Duration = Duration::from_secs(10);

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is '{text}', no number")),
        Err(_) => default,
    }
}

/// How many cases were answered and how many refused.
#[derive(Default)]
struct Tally {
    accepted: u64,
    refused: u64,
}

/// Runs `target`, which tells whether a case was accepted, on seeds with changes; `words` stand in for what random bytes
/// would never hit.
fn run(name: &str, seeds: &[Vec<u8>], words: &[&[u8]], target: impl Fn(&[u8]) -> bool) {
    for (at, seed) in seeds.iter().enumerate() {
        assert!(target(seed), "{name}: seed {at} is refused");
    }
    let (first, cases) = (number("GR00T_FUZZ_FROM", 0), number("GR00T_FUZZ_CASES", CASES));
    let (start, mut told, mut tally) = (Instant::now(), Instant::now(), Tally::default());
    for case in first..first + cases {
        let data = Mutator::of_case(case).change(seeds, words);
        let begun = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| target(&data))) {
            Ok(true) => tally.accepted += 1,
            Ok(false) => tally.refused += 1,
            Err(panic) => {
                eprintln!("{name}: case {case}: {}", data.escape_ascii());
                resume_unwind(panic);
            }
        }
        assert!(begun.elapsed() < SLOW, "{name}: case {case} took {:?}", begun.elapsed());
        if told.elapsed() > TOLD {
            told = Instant::now();
            eprintln!("{name}: {} of {cases} cases", case + 1 - first);
        }
    }
    let Tally { accepted, refused } = tally;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{name}: {accepted} accepted, {refused} refused of {cases} cases in {seconds:.1} s");
    // Changes that are always, or never, noticed would show little.
    assert!(accepted > cases / 1000 && refused > cases / 1000, "{name}: {accepted}, {refused}");
}

#[test]
fn json_bodies() {
    let words: [&[u8]; 12] = [
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"null",
        b"[[",
        b"]]",
        b"\"seed\":1,",
        b"\"noise\":[[0]],",
        b"\\ud800",
        b"\\u0000",
        b"18446744073709551616",
        b"\"images\":{},",
    ];
    run("json", &seeds::bodies(), &words, targets::json);
}

#[test]
fn messages() {
    let words: [&[u8]; 11] = [
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91\x91\x91\x91",
        b"\xc1",
        b"\xd9\x01\xff",
        b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
        b"|O",
        b">f8",
        b"\xc0",
        b"<U9",
    ];
    run("messages", &seeds::messages(), &words, targets::message);
}

#[test]
fn npy_files() {
    let words: [&[u8]; 9] = [
        b"True",
        b"'|O'",
        b"'>f8'",
        b"(0, 4294967296)",
        b"18446744073709551615",
        b"((((",
        b"'<U9'",
        b"'fortran_order'",
        b"\xff\xff",
    ];
    run("npy", &seeds::npy_files(), &words, targets::npy);
}

#[test]
fn base64() {
    let words: [&[u8]; 6] = [b"=", b"==", b"\r\n", b"-_", b"iVBORw0KGgo", b"\xc3\xa9"];
    run("base64", &seeds::base64(), &words, targets::base64);
}

#[test]
fn pictures() {
    let words: [&[u8]; 9] = [
        b"\xff\xd9",
        b"\xff\xda",
        b"\xff\xc2",
        b"\xff\xdd\0\x04\0\x01",
        b"\xff\xff",
        b"IEND",
        b"PLTE",
        b"tRNS",
        b"acTL",
    ];
    run("pictures", &seeds::pictures(), &words, targets::picture);
}
