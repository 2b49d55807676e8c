//! Python's own clients. `GR00T_CLIENTS_PYTHON` names a Python with the packages of `tests/clients.lock`; `scripts/test.sh`
//! makes one and names it.

use std::path::Path;
use std::process::Command;

use crate::rig::{Serving, Setup};
use crate::stub::Stub;

const VARIABLE: &str = "GR00T_CLIENTS_PYTHON";

#[test]
fn python_clients_of_every_generation_are_served() {
    let Some(python) = std::env::var_os(VARIABLE) else {
        println!("passed over: {VARIABLE} names no Python");
        return;
    };
    let serving = Serving::stub(Stub::default(), Setup::default());
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
