//! The client with a whole worker of this repository, on a card that is a piece of memory.

mod common;

use common::{dram, memory, options, program};
use rustix::process::{Pid, Signal, kill_process};
use tt_metal_sys::protocol::{Place, Rectangle, RefusalCode};
use tt_metal_sys::{Buffer, Device, Error, Exit};

struct Card {
    device: Device,
    _dir: tempfile::TempDir,
}

fn card() -> Card {
    let dir = tempfile::tempdir().expect("a directory");
    let device = Device::open(&memory(), &options(dir.path())).expect("a device");
    Card { device, _dir: dir }
}

/// Two buffers of `pages` pages and a program that copies one to the other.
fn copying(device: &mut Device, pages: u32) -> (Buffer, Buffer, u32) {
    let from = dram(device, "from", pages).expect("a buffer");
    let to = dram(device, "to", pages).expect("a buffer");
    let args = [from.address, to.address, from.bytes].map(|value| value as u32);
    let copy = device.build(&program(&args)).expect("a program");
    (from, to, copy)
}

fn refusal<T>(result: Result<T, Error>) -> RefusalCode {
    match result {
        Err(Error::Refused { code, .. }) => code,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn bytes_come_back_piece_by_piece() {
    let Card { mut device, _dir } = card();
    // Larger than the staging memory of the tests.
    let (from, to, copy) = copying(&mut device, 500);
    let data: Vec<u8> = (0..from.bytes).map(|index| (index % 251) as u8).collect();
    device.upload(&from, 0, &data).expect("an upload");
    device.run(&[copy]).expect("a run");
    let mut read = vec![0; data.len()];
    device.read(&to, 0, &mut read).expect("a reading");
    assert!(read == data);
    let end = from.bytes - from.bytes % from.granule;
    let mut read = vec![0; (from.bytes - end) as usize];
    device.read(&to, end, &mut read).expect("its end");
    assert!(read == data[end as usize..]);
    assert_eq!(device.close().ok(), Some(Exit::Status(0)));
}

#[test]
fn traced_equals_untraced() {
    let Card { mut device, _dir } = card();
    let (from, to, copy) = copying(&mut device, 32);
    device.run(&[copy]).expect("a run");
    device.begin_capture().expect("a capture");
    device.run(&[copy]).expect("a record");
    let trace = device.end_capture().expect("a trace");
    for value in [3_u8, 4] {
        let (first, second) = ([value; 1024], [value + 1; 1024]);
        let inputs: [(&Buffer, u64, &[u8]); 2] = [(&from, 0, &first), (&from, 1024, &second)];
        let event = device.write_inputs(&inputs).expect("inputs");
        device.replay(trace, Some(event), None).expect("a replay");
        let mut read = [0; 2048];
        device.read(&to, 0, &mut read).expect("a reading");
        assert!(read[..1024] == first && read[1024..] == second);
    }
    assert_eq!(refusal(device.replay(trace, Some(1), None)), RefusalCode::Unknown);
    let told = device.telemetry().expect("telemetry");
    assert_eq!((told.buffers, told.programs, told.traces, told.driver), (2, 1, 1, None));
}

#[test]
fn case_24_nothing_is_allocated_after_a_capture() {
    let Card { mut device, _dir } = card();
    let (from, _, copy) = copying(&mut device, 32);
    device.begin_capture().expect("a capture");
    assert_eq!(refusal(device.run(&[copy])), RefusalCode::NotWarm);
    device.end_capture().expect("a trace");
    assert_eq!(refusal(dram(&mut device, "late", 1)), RefusalCode::Captured);
    assert_eq!(refusal(device.upload(&from, 0, &[0; 1024])), RefusalCode::Captured);
    assert_eq!(refusal(device.build(&program(&[0, 0, 0]))), RefusalCode::Captured);
    assert!(device.is_alive());
}

#[test]
fn l1_lies_at_one_address_on_all_cores() {
    let Card { mut device, _dir } = card();
    let cores = Rectangle { start: [0, 0], end: [10, 9] };
    let l1 = device.allocate("l1", Place::L1 { bytes_per_core: 128, cores }).expect("a buffer");
    assert_eq!((l1.bytes, l1.granule), (110 * 128, 110 * 128));
    let problem = device
        .upload(&l1, 0, &vec![0; l1.bytes as usize])
        .expect_err("it is larger than the staging");
    assert!(problem.to_string().contains("open the device with more"), "{problem}");
}

#[test]
fn the_callers_mistakes_cost_nothing() {
    let Card { mut device, _dir } = card();
    let buffer = dram(&mut device, "x", 32).expect("a buffer");
    for (offset, bytes) in [(0, 2049), (1, 1024), (0, 0), (u64::MAX, 1)] {
        let problem = device.upload(&buffer, offset, &vec![0; bytes]).expect_err("a mistake");
        assert!(matches!(problem, Error::Argument { .. }) && !problem.ends_worker(), "{problem}");
        assert!(problem.to_string().contains("'x'"), "{problem}");
    }
    let (large, bytes) = (dram(&mut device, "large", 200).expect("a buffer"), vec![0; 12800]);
    let problem = device.write_inputs(&[(&large, 0, &bytes)]).expect_err("too much at once");
    assert!(problem.to_string().contains("inputs of 12800 bytes"), "{problem}");
    assert_eq!(refusal(dram(&mut device, "huge", 1 << 20)), RefusalCode::Memory);
    assert!(device.is_alive());
}

#[test]
fn a_worker_that_is_killed_between_two_requests() {
    let Card { mut device, _dir } = card();
    let pid = i32::try_from(device.worker_pid()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::KILL).expect("a signal");
    let error = device.telemetry().expect_err("nobody answers");
    let Error::WorkerGone { exit: Exit::Signal(9), request: "telemetry", .. } = error else {
        panic!("{error}")
    };
}

#[test]
fn a_device_may_be_handed_to_another_thread() {
    let Card { mut device, _dir } = card();
    let counted = std::thread::spawn(move || device.telemetry().map(|told| told.buffers)).join();
    assert_eq!(counted.expect("no panic").ok(), Some(0));
}

#[test]
fn case_87_a_cache_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let mut options = options(dir.path());
    options.cache_dir = Some(file.join("cache"));
    let Err(error) = Device::open(&memory(), &options) else { panic!("it was opened") };
    let Error::Refused { request: "open", code: RefusalCode::Cache, message } = &error else {
        panic!("{error}")
    };
    assert!(message.contains("file/cache"), "{message}");
}
