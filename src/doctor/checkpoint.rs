//! The checkpoint: can it be opened, is there the robot, is there its tokenizer.

use std::fs;

use super::finding::Finding;
use crate::checkpoint::{CheckpointError, Snapshot, fingerprint};
use crate::contract::Embodiment;
use crate::encode::FrameShapes;
use crate::encode::tokenizer::Tokenizer;
use crate::golden::{self, Gate, GateError};
use crate::policy::{self, PolicyError, PolicyOptions};

/// What the checks have found out for those that follow.
#[derive(Debug, Default)]
pub struct Opened {
    /// `None` if the robot is not known.
    pub embodiment: Option<Embodiment>,
    /// Of the frames that the robot's policy accepts.
    pub frame_shapes: FrameShapes,
    /// Size of the weights, bytes.
    pub bytes: Option<u64>,
}

/// Opens the checkpoint of the options. `must_choose` if the node would, without a choice of the robot, not start.
pub fn check(options: &PolicyOptions, must_choose: bool) -> (Vec<Finding>, Opened) {
    const SUBJECT: &str = "checkpoint";
    let snapshot = match policy::open_snapshot(options) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            let finding = Finding::fail_as_told(SUBJECT, &error.to_string(), fix_of(&error));
            return (vec![finding], Opened::default());
        }
    };
    let served = snapshot.served().count();
    let found = format!("{} in {}, {served} robots", snapshot.version(), snapshot.dir().display());
    let mut findings = vec![Finding::ok(SUBJECT, found)];
    let mut opened = Opened { bytes: Some(weight_bytes(&snapshot)), ..Default::default() };
    match policy::choose_embodiment(&snapshot, options) {
        Ok(embodiment) => {
            findings.push(Finding::ok("embodiment", robot(embodiment)));
            opened.embodiment = Some(embodiment.clone());
            match FrameShapes::new(snapshot.network(), embodiment, options.letterbox) {
                Ok(shapes) => opened.frame_shapes = shapes,
                Err(error) => {
                    let fix = "give another checkpoint";
                    findings.push(Finding::fail_as_told(SUBJECT, &error.to_string(), fix));
                }
            }
        }
        Err(PolicyError::ChooseEmbodiment { .. }) if !must_choose => {}
        Err(error) => {
            let fix = "give one of them as the parameter embodiment";
            findings.push(Finding::fail_as_told("embodiment", &error.to_string(), fix));
        }
    }
    findings.push(tokenizer(options, &snapshot));
    (findings, opened)
}

fn fix_of(error: &PolicyError) -> &'static str {
    match error {
        PolicyError::Checkpoint(
            CheckpointError::MissingShards { .. } | CheckpointError::Shard { .. },
        ) => "download the files that are named again",
        PolicyError::Checkpoint(CheckpointError::Io { .. }) => {
            "give the checkpoint's folder, with files that this user can read"
        }
        _ => "give the folder of a released GR00T checkpoint, or of a fine-tune with all its files",
    }
}

fn robot(embodiment: &Embodiment) -> String {
    format!(
        "'{}': {} cameras, {} state groups, {} action groups",
        embodiment.tag,
        embodiment.cameras.len(),
        embodiment.state.len(),
        embodiment.action.len()
    )
}

fn tokenizer(options: &PolicyOptions, snapshot: &Snapshot) -> Finding {
    const SUBJECT: &str = "tokenizer";
    let dir = match policy::tokenizer_dir(options, snapshot) {
        Ok(dir) => dir,
        Err(error) => {
            let fix = "put the files into the snapshot as tokenizer/, or name their folder with the parameter tokenizer";
            return Finding::fail_as_told(SUBJECT, &error.to_string(), fix);
        }
    };
    match Tokenizer::open(&dir) {
        Ok(_) => Finding::ok(SUBJECT, format!("in {}", dir.display())),
        Err(error) => {
            let fix = "put vocab.json, merges.txt and added_tokens.json of NVIDIA's backbone into the snapshot as tokenizer/, \
                       or name their folder with the parameter tokenizer";
            Finding::fail(SUBJECT, error.to_string(), fix)
        }
    }
}

/// Whether the golden that the node would be held to can be one of this checkpoint; `None` without a golden. The node itself
/// predicts from it.
pub fn golden(gate: &Gate, options: &PolicyOptions, embodiment: &Embodiment) -> Option<Finding> {
    const SUBJECT: &str = "golden";
    let snapshot = policy::open_snapshot(options).ok()?;
    let tag = &embodiment.tag;
    let found = golden::find(gate.golden.as_deref(), snapshot.dir(), tag).map_err(GateError::from);
    let read = found.and_then(|dir| match dir {
        Some(dir) if gate.on => {
            golden::read_for(&dir, snapshot.version(), tag, fingerprint(snapshot.tensors()))
                .map(|_| Some(dir))
        }
        _ => Ok(None),
    });
    match read {
        Ok(dir) => dir.map(|dir| Finding::ok(SUBJECT, format!("in {}", dir.display()))),
        Err(error) => {
            let fix =
                "record one with gr00t_blackhole golden record, or set fidelity_gate to false";
            Some(Finding::fail_as_told(SUBJECT, &error.to_string(), fix))
        }
    }
}

/// Size of the weight files; those that vanish meanwhile count nothing.
fn weight_bytes(snapshot: &Snapshot) -> u64 {
    let entries = fs::read_dir(snapshot.dir()).into_iter().flatten().flatten();
    let weights = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    // Files of a hub cache are links.
    weights.filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::finding::Level;
    use super::*;
    use crate::checkpoint::synth::{self, Size};
    use crate::contract::Version;

    fn options(snapshot: &Path) -> PolicyOptions {
        PolicyOptions { snapshot: snapshot.to_owned(), ..Default::default() }
    }

    fn tiny() -> (tempfile::TempDir, PolicyOptions) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let dir = folder.path().join("tiny");
        synth::write(Version::N16, Size::Tiny, &dir, &|_, _| {}).expect("checkpoint");
        let options = options(&dir);
        (folder, options)
    }

    #[test]
    fn a_golden_is_told_before_the_node_starts() {
        let (_folder, options) = tiny();
        let options = PolicyOptions { embodiment: Some("gr1".to_owned()), ..options };
        let embodiment = check(&options, true).1.embodiment.expect("robot");
        let gate = Gate { on: true, floor: 1.0, golden: None, times: 1 };
        assert_eq!(golden(&gate, &options, &embodiment), None);
        let place = golden::place(&options.snapshot, "gr1").expect("a name");
        let mut policy = policy::Policy::load(&options).expect("a policy");
        let observation = policy.made_up_observation().expect("an observation");
        let mut made = golden::Golden::record(&mut policy, observation, None).expect("a chunk");
        made.write(&place).expect("written");
        assert_eq!(golden(&gate, &options, &embodiment).expect("found").level, Level::Ok);
        made.answer.checkpoint = "another".to_owned();
        fs::remove_dir_all(&place).expect("removed");
        made.write(&place).expect("written");
        let found = golden(&gate, &options, &embodiment).expect("found");
        assert_eq!(found.level, Level::Fail);
        assert!(found.to_string().contains("golden record"), "{found}");
    }

    fn levels(findings: &[Finding]) -> Vec<Level> {
        findings.iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn a_checkpoint_with_its_robot() {
        let (_folder, options) = tiny();
        let with_robot = PolicyOptions { embodiment: Some("gr1".to_owned()), ..options.clone() };
        let (findings, opened) = check(&with_robot, true);
        assert_eq!(levels(&findings), [Level::Ok; 3], "{findings:?}");
        assert_eq!(opened.embodiment.expect("robot").tag, "gr1");
        assert!(opened.bytes.is_some_and(|bytes| bytes > 0));

        let (findings, opened) = check(&options, false);
        assert_eq!(levels(&findings), [Level::Ok; 2], "{findings:?}");
        assert!(opened.embodiment.is_none());
        let (findings, _) = check(&options, true);
        assert_eq!(levels(&findings), [Level::Ok, Level::Fail, Level::Ok]);
        assert_eq!(findings[1].fix.as_deref(), Some("choose one"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (findings, opened) = check(&options(Path::new("/no/such")), true);
        assert_eq!(levels(&findings), [Level::Fail]);
        assert!(findings[0].to_string().contains("/no/such is not a directory — a checkpoint is"));
        assert!(opened.bytes.is_none());

        let (_folder, options) = tiny();
        let other = PolicyOptions { embodiment: Some("gr2".to_owned()), ..options.clone() };
        let (findings, _) = check(&other, false);
        assert_eq!(levels(&findings), [Level::Ok, Level::Fail, Level::Ok]);
        let elsewhere = PolicyOptions { tokenizer: Some("/no/such".into()), ..options };
        let (findings, _) = check(&elsewhere, false);
        assert_eq!(levels(&findings), [Level::Ok, Level::Fail]);
    }
}
