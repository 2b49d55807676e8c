//! The client with the worker on the wheel and a simulator. Needs `TT_METAL_SIMULATOR` and, in `GR00T_DEVICE_PYTHON`, a
//! Python that has `device/requirements.txt`: `cargo test -p tt-metal-sys --test simulator -- --ignored`.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{options, program};
use tt_metal_sys::protocol::{CircularBuffer, DataFormat, Place, Program, Rectangle};
use tt_metal_sys::{Buffer, Device, Error, Exit, OpenOptions, WorkerCommand};

const PAGE: u32 = 1024;
const BANKS: u32 = 8;

fn wheel() -> WorkerCommand {
    let python = std::env::var_os("GR00T_DEVICE_PYTHON")
        .expect("GR00T_DEVICE_PYTHON names a Python with ttnn");
    let mut command = WorkerCommand::ttnn_wheel(python);
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device");
    command.env.push(("PYTHONPATH".into(), package.into()));
    command
}

fn patient(dir: &Path) -> OpenOptions {
    let mut options = options(dir);
    options.staging_bytes = 1 << 20;
    options.trace_region_size = 8 << 20;
    // Firmware is compiled once for all tests where a directory is named.
    let cache = std::env::var_os("TT_METAL_CACHE").map(Into::into);
    options.cache_dir = Some(cache.unwrap_or_else(|| dir.join("cache")));
    options.deadlines = options.deadlines.scaled(4);
    options
}

fn pages(device: &mut Device, name: &str, pages: u32) -> Buffer {
    device.allocate(name, Place::Dram { page_bytes: PAGE, pages }).expect("a buffer")
}

/// One of the kernels of the worker's tests on core (0, 0), with room for a page.
fn on_core(source: &str, args: &[u32]) -> Program {
    let mut program = program(args);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/tests/kernels");
    let kernel = &mut program.kernels[0];
    kernel.source = folder.join(source);
    kernel.compile_time_args = vec![PAGE, BANKS];
    program.circular_buffers.push(CircularBuffer {
        index: 0,
        cores: vec![Rectangle { start: [0, 0], end: [0, 0] }],
        total_bytes: PAGE,
        page_bytes: PAGE,
        format: DataFormat::Bf16,
    });
    program
}

#[test]
#[ignore = "needs a simulator"]
fn traced_equals_untraced() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut device = Device::open(&wheel(), &patient(dir.path())).expect("a device");
    let opened = device.opened().clone();
    assert_eq!((opened.arch.as_str(), opened.dram_banks), ("blackhole", BANKS));
    let (from, to) = (pages(&mut device, "from", 40), pages(&mut device, "to", 40));
    let args = [from.address as u32, to.address as u32, 0, 40];
    let copy = device.build(&on_core("copy.cpp", &args)).expect("a program");
    let data: Vec<u8> = (0..from.bytes).map(|index| (index % 253) as u8).collect();
    device.upload(&from, 0, &data).expect("an upload");
    device.run(&[copy]).expect("a run");
    let mut untraced = vec![0; data.len()];
    device.read(&to, 0, &mut untraced).expect("a reading");
    assert!(untraced == data);
    device.begin_capture().expect("a capture");
    device.run(&[copy]).expect("a record");
    let trace = device.end_capture().expect("a trace");
    let other: Vec<u8> = data.iter().rev().copied().collect();
    for value in [&other, &data] {
        let event = device.write_inputs(&[(&from, 0, value)]).expect("inputs");
        device.replay(trace, Some(event), None).expect("a replay");
        let mut traced = vec![0; data.len()];
        device.read(&to, 0, &mut traced).expect("a reading");
        assert!(traced == *value);
    }
    assert_eq!(device.close().ok(), Some(Exit::Status(0)));
}

#[test]
#[ignore = "needs a simulator"]
fn a_simulator_that_ends_is_told_with_its_last_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut device = Device::open(&wheel(), &patient(dir.path())).expect("a device");
    let stray = device.build(&on_core("stray.cpp", &[])).expect("a program");
    let error = device.run(&[stray]).expect_err("an end");
    let Error::WorkerGone { request: "run", stderr, .. } = &error else { panic!("{error}") };
    assert!(!stderr.trim().is_empty(), "the simulator says why");
    // Whoever lets it go frees the card.
    drop(device);
    let again = Device::open(&wheel(), &patient(dir.path())).expect("another worker");
    assert!(again.is_alive());
}

#[test]
#[ignore = "needs a simulator"]
fn case_49_a_program_that_never_ends_is_given_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let wait = Duration::from_secs(20);
    let mut options = patient(dir.path());
    options.deadlines.run = wait;
    let mut device = Device::open(&wheel(), &options).expect("a device");
    let endless = device.build(&on_core("endless.cpp", &[])).expect("a program");
    let begin = Instant::now();
    let error = device.run(&[endless]).expect_err("a hang");
    assert!(matches!(error, Error::Timeout { request: "run", .. }), "{error}");
    assert!(begin.elapsed() < wait + Duration::from_secs(10), "{:?}", begin.elapsed());
}
