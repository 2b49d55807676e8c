//! Schemathesis, which makes requests of what /openapi.json says. `GR00T_CLIENTS_PYTHON` names a Python with the packages of
//! `tests/clients.lock`; `scripts/test.sh` makes one and names it.

use std::path::Path;
use std::process::Command;

use gr00t_blackhole::contract::Version;

use super::rig::Rig;

const VARIABLE: &str = "GR00T_CLIENTS_PYTHON";

#[test]
fn no_request_is_answered_with_a_server_error() {
    let Some(python) = std::env::var_os(VARIABLE) else {
        println!("passed over: {VARIABLE} names no Python");
        return;
    };
    let rig = Rig::of(Version::N16);
    rig.ready();
    let output = Command::new(Path::new(&python).with_file_name("schemathesis"))
        .args(["run", &format!("http://{}/openapi.json", rig.address)])
        .args(["--checks", "not_a_server_error", "--max-examples", "200", "--seed", "1"])
        .args(["--no-color", "--generation-database", "none"])
        .current_dir(std::env::temp_dir())
        .output()
        .expect("schemathesis stands beside the Python");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // It has asked, and not given up on the document.
    assert!(text.contains("POST /predict") && text.contains(" passed"), "{text}");
}
