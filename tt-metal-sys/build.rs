//! Builds the C++ worker, where the feature `metalium` asks for it. Without the feature nothing is done.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

const PREFIX: &str = "TT_METALIUM_PREFIX";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_METALIUM").is_none() {
        return;
    }
    println!("cargo:rerun-if-env-changed={PREFIX}");
    println!("cargo:rerun-if-changed=../device/cpp");
    match build() {
        Ok(worker) => println!("cargo:rustc-env=GR00T_METALIUM_WORKER={}", worker.display()),
        Err(problem) => {
            eprintln!("the feature 'metalium' cannot be built: {problem}");
            exit(1);
        }
    }
}

/// The program that was built.
fn build() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/cpp");
    let out = std::env::var_os("OUT_DIR").ok_or("cargo names no folder for it")?;
    let folder = Path::new(&out).join("metalium");
    let mut configure = vec![
        "-S".into(),
        source.into_os_string(),
        "-B".into(),
        folder.clone().into_os_string(),
        "-DCMAKE_BUILD_TYPE=Release".into(),
    ];
    if let Some(prefix) = std::env::var_os(PREFIX) {
        let mut setting = OsString::from("-DCMAKE_PREFIX_PATH=");
        setting.push(prefix);
        configure.push(setting);
    }
    cmake(&configure)?;
    cmake(&["--build".into(), folder.clone().into_os_string()])?;
    Ok(folder.join("gr00t_device_worker"))
}

fn cmake(args: &[OsString]) -> Result<(), String> {
    let status = Command::new("cmake").args(args).status();
    let status = status.map_err(|error| format!("cmake cannot be run: {error}; install it"))?;
    if status.success() { Ok(()) } else { Err(format!("cmake has failed ({status}), see above")) }
}
