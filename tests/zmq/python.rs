//! Python's own clients. The packages come from PyPI: pyzmq, numpy, msgpack and msgpack-numpy, in the Python that
//! `ZMQ_PYTHON` names, or `python3`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use gr00t_blackhole::serve::zmq::Settings;

use crate::client::Serving;
use crate::stub::Stub;

/// A Python with the packages, or `None` with a line that says so. One that is named must have them.
fn python() -> Option<OsString> {
    let named = std::env::var_os("ZMQ_PYTHON");
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let program = "import zmq, numpy, msgpack, msgpack_numpy";
    let output = Command::new(&python).args(["-c", program]).output();
    if output.as_ref().is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(named.is_none(), "ZMQ_PYTHON has no {program}: {output:?}");
    println!("skipped: python3 has no pyzmq, numpy, msgpack or msgpack-numpy");
    None
}

#[test]
fn python_clients_of_every_generation_are_served() {
    let Some(python) = python() else { return };
    let serving = Serving::start(Stub::default(), Settings::default());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zmq/clients.py");
    let output = Command::new(python)
        .arg(script)
        .args([serving.address.ip().to_string(), serving.address.port().to_string()])
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(out.matches("passed: ").count(), 6, "{out}{err}");
}
