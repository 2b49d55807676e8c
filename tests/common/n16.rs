//! The goldens of N1.6 with the embodiments that their processor files and statistics declare.

use std::os::unix::fs::symlink;
use std::path::Path;

use gr00t_blackhole::checkpoint::{PROCESSOR_FILE, STATISTICS_FILE, Snapshot};
use gr00t_blackhole::contract::Embodiment;
use tempfile::TempDir;

use super::golden::Case;
use super::shared;

/// Cases of the tiny checkpoint.
pub const TINY_CASES: [&str; 5] =
    ["c0_gr1_256", "c1_gr1_640x480", "c2_gr1_1280x720", "c3_libero_2cam", "c4_eef_2cam_2t"];

/// Folders of the goldens and the cases in them.
const CASES: [(&str, &[&str]); 3] =
    [("tiny", &TINY_CASES), ("mid", &["m0_gr1_256"]), ("full", &["f0_gr1_256"])];

/// Every case with its embodiment; none, and a line that says so, where the reference data is not here.
pub fn every_case() -> Vec<(Case, Embodiment)> {
    let Some(root) = shared("golden/n16") else { return vec![] };
    let mut cases = vec![];
    for (folder, names) in CASES {
        let snapshot = processing_of(&root, folder);
        for name in names {
            let case = Case::open(&root.join(folder), name);
            let embodiment = snapshot.embodiment(case.embodiment()).unwrap().clone();
            cases.push((case, embodiment));
        }
    }
    cases
}

/// The processing of one folder's checkpoint on the tensors of the tiny one, since the larger ones come without.
fn processing_of(root: &Path, folder: &str) -> Snapshot {
    let root = root.canonicalize().unwrap();
    let dir = TempDir::new().unwrap();
    for entry in root.join("tiny/snapshot").read_dir().unwrap() {
        let file = entry.unwrap().file_name();
        let processing = file == PROCESSOR_FILE || file == STATISTICS_FILE;
        let source = if processing { folder } else { "tiny" };
        let target = dir.path().join(&file);
        symlink(root.join(source).join("snapshot").join(&file), target).unwrap();
    }
    Snapshot::open(dir.path()).unwrap()
}
