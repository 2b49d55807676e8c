//! Constants that stand in more than one language.

use std::path::Path;

use tt_metal_sys::TT_METAL_VERSION;
use tt_metal_sys::protocol::{MAX_FRAME_BYTES, VERSION};

fn text(relative: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// That each file has this line, or a line that begins with it.
fn all_say(lines: &[(&str, String)]) {
    for (file, line) in lines {
        let found = text(file).lines().any(|text| text.trim_start().starts_with(line.as_str()));
        assert!(found, "{file} has no line '{line}'");
    }
}

#[test]
fn workers_are_pinned_to_the_version_that_is_expected() {
    let version = TT_METAL_VERSION;
    all_say(&[
        ("device/requirements.txt", format!("ttnn=={version} ")),
        ("device/gr00t_device_worker/pin.py", format!("TTNN = \"{version}\"")),
        ("device/cpp/CMakeLists.txt", format!("set(GR00T_TT_METAL_VERSION \"{version}\" ")),
    ]);
}

#[test]
fn workers_speak_the_same_protocol() {
    all_say(&[
        ("device/gr00t_device_worker/limits.py", format!("PROTOCOL = {VERSION}")),
        ("device/cpp/src/session.hpp", format!("constexpr std::uint32_t PROTOCOL = {VERSION};")),
        ("tt-metal-sys/PROTOCOL.md", format!("# The device protocol, version {VERSION}")),
    ]);
}

#[test]
fn frames_have_the_same_limit() {
    assert_eq!(MAX_FRAME_BYTES, 4 * 1024 * 1024);
    all_say(&[
        ("device/gr00t_device_worker/limits.py", "MAX_FRAME_BYTES = 4 * 1024 * 1024".to_owned()),
        (
            "device/cpp/src/line.cpp",
            "constexpr std::size_t MAX_FRAME_BYTES = 4 * 1024 * 1024;".to_owned(),
        ),
    ]);
}
