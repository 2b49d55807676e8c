//! Processes that have a card open without our lock: programs that are none of ours.

use std::fs;
use std::path::{Path, PathBuf};

/// The file through which the driver gives out a card.
pub fn device_file(device: u32) -> PathBuf {
    PathBuf::from(format!("/dev/tenstorrent/{device}"))
}

/// A process other than this one that has the file open. Those of other users are seen by root only, those outside of a
/// container by nobody in it.
pub fn holder(file: &Path) -> Option<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| *pid != own).find(|pid| has_open(*pid, file))
}

fn has_open(pid: u32, file: &Path) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::testing::soon;

    #[test]
    fn case_84_a_program_that_is_none_of_ours_is_found() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().canonicalize().expect("its path");
        assert!(soon(|| holder(&path).is_none()), "this process does not count");
        let input = Stdio::from(fs::File::open(&path).expect("the file"));
        let mut other = Command::new("sleep").arg("60").stdin(input).spawn().expect("a process");
        assert!(soon(|| holder(&path) == Some(other.id())));
        other.kill().expect("a signal");
        other.wait().expect("its end");
        assert!(soon(|| holder(&path).is_none()));
    }

    #[test]
    fn a_card_that_is_not_there_is_held_by_nobody() {
        assert_eq!(holder(&device_file(9999)), None);
    }
}
