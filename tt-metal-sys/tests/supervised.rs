//! A device under a supervisor: given up when it hangs, and started again.

mod common;

use std::time::{Duration, Instant};

use common::{options, scripted};
use tt_metal_sys::{BackOff, Device, Error, NotReady, Supervisor, WatchdogOptions};

#[test]
fn case_49_a_replay_that_hangs_is_given_up_and_the_device_started_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(dir.path());
    let mut starts = 0;
    let start = || {
        starts += 1;
        let stage = if starts == 1 { "replay" } else { "none" };
        Device::open(&scripted("hang", stage), &options)
    };
    let back_off = BackOff { first: Duration::from_millis(200), most: Duration::from_secs(1) };
    let watchdog = WatchdogOptions { first: Duration::from_millis(300), ..Default::default() };
    let mut supervisor = Supervisor::new(start, back_off, watchdog);
    let begin = Instant::now();
    let replay = |device: &mut Device, limit| device.replay(1, None, Some(limit));
    let failed = supervisor.run("denoise", replay).expect_err("a hang");
    let NotReady::Failed(Error::Timeout { request: "replay", waited, .. }) = failed else {
        panic!("{failed}")
    };
    assert!(waited >= Duration::from_millis(300) && begin.elapsed() < Duration::from_secs(5));
    let waiting = supervisor.run("denoise", replay).expect_err("a pause").to_string();
    assert!(waiting.contains("it was lost in 'denoise': no reply to 'replay'"), "{waiting}");
    std::thread::sleep(back_off.first);
    let time = supervisor.run("denoise", replay).expect("a replay on another worker");
    assert_eq!(time, Duration::from_micros(2));
    assert_eq!(supervisor.starts(), 2);
}
