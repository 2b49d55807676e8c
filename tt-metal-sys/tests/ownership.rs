//! One card, one owner: another one is told who it is, and gets the card when all of the first one is gone.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{memory, options};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use tt_metal_sys::{Device, Error};

const LOCK_DIR: &str = "GR00T_TEST_LOCK_DIR";

/// Another node: this test program, which runs just [`the_other_node`].
struct Node {
    process: Child,
    worker: u32,
}

impl Node {
    fn start(lock_dir: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", "the_other_node", "--ignored", "--nocapture"])
            .env(LOCK_DIR, lock_dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("another node");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let worker = lines.map_while(Result::ok).find_map(|line| {
            line.split("worker=").nth(1).and_then(|number| number.trim().parse().ok())
        });
        Self { process, worker: worker.expect("its worker") }
    }

    fn kill(&mut self) {
        self.process.kill().expect("a signal");
        self.process.wait().expect("its end");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn the_other_node() {
    let dir = std::env::var_os(LOCK_DIR).expect("the directory of the lock");
    let device = Device::open(&memory(), &options(Path::new(&dir))).expect("a device");
    println!("worker={}", device.worker_pid());
    std::thread::sleep(Duration::from_secs(60));
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    kill_process(pid, signal).expect("a signal");
}

/// Process that the card is said to be held by.
fn holder(lock_dir: &Path) -> Option<u32> {
    let begin = Instant::now();
    match Device::open(&memory(), &options(lock_dir)) {
        Err(Error::Busy { pid, .. }) => {
            assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
            Some(pid.expect("the number of the holder"))
        }
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

/// Waits until the card is free.
fn wait_for_the_card(lock_dir: &Path) {
    let begin = Instant::now();
    while holder(lock_dir).is_some() {
        assert!(begin.elapsed() < Duration::from_secs(10), "the card stays taken");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn case_84_a_second_node_is_told_of_the_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut node = Node::start(dir.path());
    assert_eq!(holder(dir.path()), Some(node.process.id()));
    node.kill();
    // Its worker sees the end of its line.
    wait_for_the_card(dir.path());
}

#[test]
fn case_84_a_worker_that_outlives_its_node_still_owns_the_card() {
    let dir = tempfile::tempdir().expect("a directory");
    // A stopped process without a parent in its session would be ended by the kernel, which is not what is tested.
    set_child_subreaper(Some(getpid())).expect("to be the parent of orphans");
    let mut node = Node::start(dir.path());
    // As if in a call that does not return.
    signal(node.worker, Signal::STOP);
    node.kill();
    assert_eq!(holder(dir.path()), Some(node.worker));
    signal(node.worker, Signal::CONT);
    wait_for_the_card(dir.path());
}

#[test]
fn one_process_opens_a_card_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let device = Device::open(&memory(), &options(dir.path())).expect("a device");
    assert_eq!(holder(dir.path()), Some(std::process::id()));
    drop(device);
    assert_eq!(holder(dir.path()), None);
}
