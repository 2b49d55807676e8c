//! Workers of the tests, and requests to them.
#![allow(dead_code, reason = "not every test needs everything")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tt_metal_sys::protocol::{Kernel, Place, Processor, Program, Rectangle, RuntimeArgs};
use tt_metal_sys::{Buffer, Device, Error, Expected, OpenOptions, WorkerCommand};

/// Every request in the order in which [`drive`] makes them, behind `start` and `hello`.
pub const STAGES: [&str; 14] = [
    "start",
    "hello",
    "open",
    "allocate",
    "upload",
    "build",
    "run",
    "begin_capture",
    "end_capture",
    "write_inputs",
    "replay",
    "read",
    "telemetry",
    "close",
];

fn script(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// The interpreter itself: what stands first on `PATH` may be a slow wrapper.
fn interpreter() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let asked =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let told = String::from_utf8(asked.expect("python3 is needed").stdout).expect("a path");
        PathBuf::from(told.trim())
    };
    FOUND.get_or_init(find).clone()
}

fn python(script: PathBuf, args: &[&str], worker: &str) -> WorkerCommand {
    let mut all: Vec<OsString> = ["-S", "-E"].map(OsString::from).to_vec();
    all.push(script.into_os_string());
    all.extend(args.iter().map(OsString::from));
    let expected = Expected { worker: worker.to_owned(), tt_metal: "1.2.3".to_owned() };
    WorkerCommand { program: interpreter(), args: all, env: Vec::new(), expected }
}

/// The worker that misbehaves when the request `stage` comes.
pub fn scripted(fault: &str, stage: &str) -> WorkerCommand {
    python(script("tests/scripted_worker.py"), &[fault, stage], "scripted")
}

/// Another worker on a piece of memory that the same tests are run on, such as that of `device/cpp`.
const OTHER_WORKER: &str = "GR00T_DEVICE_MEMORY_WORKER";

/// The Python worker, whole, on a card that is a piece of memory.
pub fn memory() -> WorkerCommand {
    if let Some(other) = std::env::var_os(OTHER_WORKER) {
        let expected = Expected { worker: "memory".to_owned(), tt_metal: "1.2.3".to_owned() };
        return WorkerCommand {
            program: other.into(),
            args: Vec::new(),
            env: Vec::new(),
            expected,
        };
    }
    python(script("../device/tests/memory_worker.py"), &[], "memory")
}

/// With a lock and staging memory of its own.
pub fn options(lock_dir: &Path) -> OpenOptions {
    OpenOptions {
        staging_bytes: 8192,
        lock_dir: Some(lock_dir.to_owned()),
        ..OpenOptions::default()
    }
}

/// Of [`options`], but the reply to one request is not waited for longer than this.
pub fn impatient(lock_dir: &Path, stage: &str, wait: Duration) -> OpenOptions {
    let mut options = options(lock_dir);
    let deadlines = &mut options.deadlines;
    *match stage {
        "start" | "hello" => &mut deadlines.hello,
        "open" => &mut deadlines.open,
        "allocate" => &mut deadlines.allocate,
        "upload" | "write_inputs" | "read" => &mut deadlines.transfer,
        "build" => &mut deadlines.build,
        "run" => &mut deadlines.run,
        "begin_capture" | "end_capture" => &mut deadlines.capture,
        "replay" => &mut deadlines.replay,
        "telemetry" => &mut deadlines.telemetry,
        "close" => &mut deadlines.close,
        _ => panic!("there is no stage {stage}"),
    } = wait;
    options
}

/// One kernel on one core, whose source is this file.
pub fn program(args: &[u32]) -> Program {
    let core = [0, 0];
    let kernel = Kernel {
        source: script("tests/common/mod.rs"),
        processor: Processor::Brisc,
        cores: vec![Rectangle { start: core, end: core }],
        compile_time_args: Vec::new(),
        defines: vec![("NAME".to_owned(), "1".to_owned())],
        include_dirs: Vec::new(),
        common_runtime_args: Vec::new(),
        runtime_args: vec![RuntimeArgs { core, args: args.to_vec() }],
        compute: None,
    };
    let (circular_buffers, semaphores) = (Vec::new(), Vec::new());
    Program { name: "test".to_owned(), kernels: vec![kernel], circular_buffers, semaphores }
}

pub fn dram(device: &mut Device, name: &str, pages: u32) -> Result<Buffer, Error> {
    device.allocate(name, Place::Dram { page_bytes: 64, pages })
}

/// Makes every request once, as far as it goes.
pub fn drive(command: &WorkerCommand, options: &OpenOptions) -> Result<(), Error> {
    let mut device = Device::open(command, options)?;
    let result = drive_open(&mut device);
    if let Err(error) = &result {
        assert_eq!(error.ends_worker(), !device.is_alive(), "{error}");
        let again = device.telemetry().expect_err("a worker that is lost");
        assert!(matches!(again, Error::WorkerGone { .. }), "{again}");
        return result;
    }
    device.close().map(|_| ())
}

fn drive_open(device: &mut Device) -> Result<(), Error> {
    let buffer = dram(device, "x", 64)?;
    device.upload(&buffer, 0, &[7; 4096])?;
    let program = device.build(&program(&[0, 0, 0]))?;
    device.run(&[program])?;
    device.begin_capture()?;
    let trace = device.end_capture()?;
    let event = device.write_inputs(&[(&buffer, 0, &[1; 64])])?;
    device.replay(trace, Some(event), None)?;
    device.read(&buffer, 0, &mut [0; 64])?;
    device.telemetry()?;
    Ok(())
}
