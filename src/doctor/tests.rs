use std::path::Path;

use super::system::testing::Fake;
use super::*;
use crate::checkpoint::synth::{self, Size};
use crate::contract::Version;

/// A machine on which all is well.
fn healthy() -> Fake {
    let files = [
        ("/proc/cpuinfo", "processor : 0\nflags : avx2 fma\nprocessor : 1\n"),
        ("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\n"),
        ("/proc/sys/net/core/rmem_max", "16777216"),
        ("/proc/sys/net/ipv4/ipfrag_high_thresh", "134217728"),
        ("/proc/sys/net/ipv4/ipfrag_time", "3"),
        ("/proc/self/status", "Uid:\t1\t1\t1\t1\n"),
        ("/home/user/.ros/log/x", ""),
        ("/dev/shm/x", ""),
    ];
    Fake::new(&files, &[("HOME", "/home/user")])
}

fn examined(fake: &Fake, overrides: &[(&str, &Path)]) -> Report {
    let owned = |(name, path): &(&str, &Path)| {
        ((*name).to_owned(), Value::Text(path.display().to_string()))
    };
    let overrides = overrides.iter().map(owned).collect();
    examine(&fake.system, &Request { overrides, ..Default::default() }).expect("a report")
}

fn level(report: &Report, subject: &str) -> Option<Level> {
    report.findings.iter().find(|finding| finding.subject == subject).map(|finding| finding.level)
}

#[test]
fn without_a_checkpoint_the_machine_is_examined() {
    let report = examined(&healthy(), &[]);
    assert_eq!(report.failures(), 0, "{}", report.text());
    let warned: Vec<&str> = report
        .findings
        .iter()
        .filter(|finding| finding.level == Level::Warn)
        .map(|finding| finding.subject.as_str())
        .filter(|subject| !["disk", "shared memory"].contains(subject))
        .collect();
    // What nobody has asked for is said, too. (The room on the test machine's disk is anybody's guess.)
    assert_eq!(warned, ["checkpoint", "topics"]);
}

#[test]
fn a_checkpoint_alone() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let dir = folder.path().join("tiny");
    synth::write(Version::N17, Size::Tiny, &dir, &|_, _| {}).expect("checkpoint");
    let report = examined(&healthy(), &[("snapshot", &dir)]);
    assert_eq!(report.failures(), 0, "{}", report.text());
    assert_eq!(level(&report, "checkpoint"), Some(Level::Ok));
    assert_eq!(level(&report, "tokenizer"), Some(Level::Ok));

    std::fs::remove_file(dir.join("config.json")).expect("remove");
    let report = examined(&healthy(), &[("snapshot", &dir)]);
    assert_eq!(report.failures(), 1, "{}", report.text());
    assert_eq!(level(&report, "checkpoint"), Some(Level::Fail));
}

#[test]
fn every_line_that_is_not_fine_says_what_to_do() {
    let empty = Fake::new(&[], &[("ROS_DOMAIN_ID", "x"), ("ROS_LOCALHOST_ONLY", "1")]);
    let report = examined(&empty, &[("snapshot", Path::new("/no/such"))]);
    assert!(report.failures() >= 2, "{}", report.text());
    for finding in &report.findings {
        assert_eq!(finding.level == Level::Ok, finding.fix.is_none(), "{finding}");
    }
}

#[cfg(not(feature = "ros"))]
#[test]
fn a_build_without_ros_says_so() {
    let report = examined(&healthy(), &[]);
    let topics = report.findings.last().expect("the last line");
    assert_eq!(topics.found, "left out, since this build is without ROS");

    let ros_args = vec!["--ros-args".to_owned()];
    let request = Request { ros_args, ..Default::default() };
    let error = examine(&healthy().system, &request).expect_err("no ROS");
    assert!(error.downcast_ref::<WrongUsage>().is_some(), "{error}");
}
