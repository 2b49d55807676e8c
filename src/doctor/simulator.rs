//! The simulator of a card that the environment names.

use std::path::Path;

use super::finding::Finding;
use super::system::System;
use crate::backend::blackhole::device::{DeviceKind, DeviceOptions, SIMULATOR};

const SUBJECT: &str = "simulator";
/// Describes the chip; tt-metal looks for it beside the library, or in the folder.
const DESCRIPTOR: &str = "soc_descriptor.yaml";

/// `wanted` is the device of the node's parameters.
pub fn check(system: &System, wanted: Option<&DeviceOptions>) -> Option<Finding> {
    let wanted = wanted.map(|device| device.kind);
    let Some(path) = system.variable(SIMULATOR) else {
        let fix = format!(
            "set {SIMULATOR} to ttsim's library, libttsim_bh.so, or choose another backend"
        );
        let missing = Finding::fail(SUBJECT, format!("{SIMULATOR} is not set"), fix);
        return (wanted == Some(DeviceKind::Simulator)).then_some(missing);
    };
    if wanted == Some(DeviceKind::Card) {
        let found = format!("{SIMULATOR} names {path}, so tt-metal would not open the card");
        let fix = format!("unset {SIMULATOR}, or choose the backend sim");
        return Some(Finding::fail(SUBJECT, found, fix));
    }
    Some(match problem(system, Path::new(path)) {
        None => Finding::ok(SUBJECT, format!("{path}, with its {DESCRIPTOR}")),
        Some((found, fix)) if wanted.is_some() => Finding::fail(SUBJECT, found, fix),
        Some((found, fix)) => Finding::warn(SUBJECT, found, fix),
    })
}

/// What is wrong with the simulator, and what to do about it.
fn problem(system: &System, path: &Path) -> Option<(String, String)> {
    let name = path.display();
    let use_library = || format!("set {SIMULATOR} to ttsim's library, libttsim_bh.so");
    if !system.exists(path) {
        return Some((format!("{SIMULATOR} names {name}, which is not there"), use_library()));
    }
    if system.path(path).is_dir() {
        let found = if system.exists(path.join(DESCRIPTOR)) {
            format!(
                "{name} is a simulator in a folder, such as wolfpine: it has no traces, so it runs kernels and no predictions"
            )
        } else {
            format!("{name} is a folder without a {DESCRIPTOR}: no simulator")
        };
        return Some((found, use_library()));
    }
    if !system.exists(path.with_file_name(DESCRIPTOR)) {
        let found = format!("{name} has no {DESCRIPTOR} beside it");
        let fix = format!(
            "copy blackhole_140_arch.yaml of the ttnn wheel (tt_metal/soc_descriptors) there as {DESCRIPTOR}"
        );
        return Some((found, fix));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    const LIBRARY: &str = "/opt/ttsim/libttsim_bh.so";
    const BESIDE: &str = "/opt/ttsim/soc_descriptor.yaml";

    fn finding(files: &[&str], variable: &str, wanted: Option<DeviceKind>) -> Option<Finding> {
        let files: Vec<(&str, &str)> = files.iter().map(|path| (*path, "")).collect();
        let fake = Fake::new(&files, &[(SIMULATOR, variable)]);
        check(&fake.system, wanted.map(DeviceOptions::new).as_ref())
    }

    #[test]
    fn nothing_is_said_where_nobody_wants_one() {
        assert_eq!(finding(&[], "", None), None);
        assert_eq!(finding(&[], "", Some(DeviceKind::Card)), None);
    }

    #[test]
    fn a_simulator_that_is_wanted_has_to_be_whole() {
        use DeviceKind::{Card, Simulator};
        for (files, variable, wanted, level, text) in [
            (&[LIBRARY, BESIDE][..], LIBRARY, Some(Simulator), Level::Ok, "soc_descriptor.yaml"),
            (&[LIBRARY, BESIDE], LIBRARY, None, Level::Ok, LIBRARY),
            (&[LIBRARY, BESIDE], LIBRARY, Some(Card), Level::Fail, "would not open the card"),
            (&[], "", Some(Simulator), Level::Fail, "TT_METAL_SIMULATOR is not set"),
            (&[], LIBRARY, Some(Simulator), Level::Fail, "which is not there"),
            (&[], LIBRARY, None, Level::Warn, "which is not there"),
            (&[LIBRARY], LIBRARY, Some(Simulator), Level::Fail, "blackhole_140_arch.yaml"),
            (&[BESIDE], "/opt/ttsim", Some(Simulator), Level::Fail, "has no traces"),
            (&[LIBRARY], "/opt/ttsim", None, Level::Warn, "no simulator"),
        ] {
            let found = finding(files, variable, wanted).expect(text);
            assert_eq!(found.level, level, "{found}");
            assert!(found.to_string().contains(text), "{found}");
        }
    }
}
