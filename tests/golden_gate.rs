//! Goldens of one's own: recorded, kept, and the gate that they open or shut.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::golden::Case;
use common::{shared, tokenizer};
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{CancelToken, Representation, Version};
use gr00t_blackhole::golden::{self, Gate, GateError, Golden, GoldenError, Verdict};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::prepared::Cache;
use tempfile::TempDir;

/// A tiny synthetic checkpoint.
fn snapshot(version: Version) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let snapshot = dir.path().join("tiny");
    synth::write(version, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    (dir, snapshot)
}

fn options(snapshot: &Path, embodiment: &str) -> PolicyOptions {
    PolicyOptions {
        snapshot: snapshot.to_owned(),
        embodiment: Some(embodiment.to_owned()),
        ..Default::default()
    }
}

fn embodiment(version: Version) -> &'static str {
    match version {
        Version::N15 | Version::N16 => "gr1",
        Version::N17 => "oxe_droid_relative_eef_relative_joint",
    }
}

/// Records a golden of a made-up observation.
fn record(policy: &mut Policy, dir: &Path) -> Golden {
    let observation = policy.made_up_observation().unwrap();
    let golden = Golden::record(policy, observation, None).unwrap();
    golden.write(dir).unwrap();
    golden
}

fn gate(golden: Option<&Path>) -> Gate {
    Gate { on: true, floor: golden::DEFAULT_FLOOR, golden: golden.map(Path::to_owned), times: 2 }
}

fn look_at(gate: &Gate, policy: &mut Policy) -> Result<Verdict, GateError> {
    gate.look_at(policy, || panic!("the CPU is not compared with itself"), &CancelToken::default())
}

#[test]
fn what_was_recorded_is_read_and_predicted_again() {
    for version in Version::ALL {
        let (dir, snapshot) = snapshot(version);
        let mut policy = Policy::load(&options(&snapshot, embodiment(version))).unwrap();
        assert_eq!(look_at(&gate(None), &mut policy).unwrap(), Verdict::Reference);
        let place = golden::place(policy.snapshot(), embodiment(version)).unwrap();
        let golden = record(&mut policy, &place);
        assert_eq!(Golden::read(&place).unwrap(), golden);
        assert!(matches!(golden.write(&place), Err(GoldenError::Exists(_))));

        // A policy that is loaded anew, warm or cold, finds it by itself.
        let cache = Cache::new(Some(dir.path().join("cache")));
        for _ in 0..2 {
            let options =
                PolicyOptions { cache: cache.clone(), ..options(&snapshot, embodiment(version)) };
            let mut again = Policy::load(&options).unwrap();
            match look_at(&gate(None), &mut again).unwrap() {
                Verdict::Golden { agreement, .. } => {
                    assert!(
                        agreement.0.iter().all(|group| group.max_difference == 0.0),
                        "{agreement}"
                    );
                }
                other => panic!("{other}"),
            }
        }
        assert_eq!(fs::read_dir(dir.path().join("cache")).unwrap().count(), 1);
        let off = Gate { on: false, ..gate(Some(Path::new("nowhere"))) };
        assert_eq!(look_at(&off, &mut policy).unwrap(), Verdict::Skipped);
    }
}

#[test]
fn a_chunk_that_is_not_the_known_one_shuts_the_gate_and_names_the_group() {
    let (dir, snapshot) = snapshot(Version::N16);
    let mut policy = Policy::load(&options(&snapshot, "gr1")).unwrap();
    let mut golden = record(&mut policy, &dir.path().join("right"));
    let groups = golden.answer.groups.clone();
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let [first, second, ..] = names[..] else { panic!("{names:?}") };
    let mut refusal = |golden: &Golden, name: &str| {
        let dir = dir.path().join(name);
        golden.write(&dir).unwrap();
        look_at(&gate(Some(&dir)), &mut policy).expect_err(name).to_string()
    };

    // Half as far: the correlation alone would see nothing.
    golden.answer.groups[1].values.iter_mut().for_each(|value| *value *= 0.5);
    let text = refusal(&golden, "half");
    assert!(text.contains(&format!("{second}: PCC 1.000000")), "{text}");
    assert!(text.contains("agreement below 0.999") && !text.contains(first), "{text}");

    golden.answer.groups = groups.clone();
    golden.answer.groups.swap(0, 1);
    assert!(refusal(&golden, "swapped").contains("does not fit"));
    golden.answer.groups = groups.clone();
    let group = &mut golden.answer.groups[0];
    group.values.truncate(group.dim);
    assert!(refusal(&golden, "short").contains(first));
    golden.answer.groups = groups.clone();
    golden.answer.groups[0].representation = Representation::PoseRot6d;
    assert!(refusal(&golden, "representation").contains("PoseRot6d in the golden"));
    golden.answer.groups = groups;
    golden.answer.version = Version::N17;
    assert!(refusal(&golden, "version").contains("is of n17, not of n16"));
    golden.answer.version = Version::N16;
    golden.answer.embodiment = "other".to_owned();
    assert!(refusal(&golden, "embodiment").contains("'other', not of 'gr1'"));
}

#[test]
fn another_checkpoint_is_not_held_to_a_golden() {
    let (dir, first) = snapshot(Version::N16);
    let mut policy = Policy::load(&options(&first, "gr1")).unwrap();
    let golden = dir.path().join("golden");
    record(&mut policy, &golden);
    // One changed value at the end of the last tensor.
    let (_other, second) = snapshot(Version::N16);
    let mut shards: Vec<PathBuf> = fs::read_dir(&second)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .collect();
    shards.sort();
    let last = shards.last().unwrap();
    let mut bytes = fs::read(last).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(last, bytes).unwrap();
    let mut other = Policy::load(&options(&second, "gr1")).unwrap();
    let refused = look_at(&gate(Some(&golden)), &mut other).expect_err("other weights");
    assert!(matches!(refused, GateError::OtherCheckpoint { .. }), "{refused}");
    assert!(refused.to_string().contains("golden record"), "{refused}");
}

#[test]
fn a_golden_that_cannot_be_reached_is_not_taken_for_none() {
    let (_dir, snapshot) = snapshot(Version::N16);
    let mut policy = Policy::load(&options(&snapshot, "gr1")).unwrap();
    let folder = snapshot.join("golden");
    std::os::unix::fs::symlink("nowhere", &folder).unwrap();
    let refused = look_at(&gate(None), &mut policy).expect_err("a dangling link").to_string();
    assert!(refused.contains("golden is no directory"), "{refused}");
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    assert_eq!(look_at(&gate(None), &mut policy).unwrap(), Verdict::Reference);
    fs::write(folder.join("gr1"), "").unwrap();
    assert!(look_at(&gate(None), &mut policy).is_err());
}

#[test]
fn damaged_goldens_are_named() {
    let (dir, snapshot) = snapshot(Version::N16);
    let mut policy = Policy::load(&options(&snapshot, "gr1")).unwrap();
    let golden = dir.path().join("golden");
    record(&mut policy, &golden);
    let mut refusal = |file: &str, change: &dyn Fn(String) -> String| {
        let path = golden.join(file);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, change(whole.clone())).unwrap();
        let refused = look_at(&gate(Some(&golden)), &mut policy).expect_err(file).to_string();
        fs::write(&path, whole).unwrap();
        assert!(refused.contains(file) && !refused.contains('\n'), "{refused}");
        refused
    };
    refusal("golden.json", &|text| text[..text.len() / 2].to_owned());
    refusal("observation.json", &|text| text[..text.len() / 2].to_owned());
    refusal("golden.json", &|text| text.replacen("\"dim\": 7", "\"dim\": 6", 1));
    assert!(
        refusal("observation.json", &|text| text.replace("\"seed\": 42", "\"seed\": null"))
            .contains("neither seed")
    );
    fs::remove_file(golden.join("camera0_frame0.png")).unwrap();
    let refused = look_at(&gate(Some(&golden)), &mut policy).expect_err("no picture");
    assert!(refused.to_string().contains("camera0_frame0.png"), "{refused}");
    let nowhere = look_at(&gate(Some(&dir.path().join("nowhere"))), &mut policy);
    assert!(nowhere.expect_err("no golden").to_string().contains("nowhere"));
}

/// The gate opens for what NVIDIA's own code has answered.
#[test]
fn nvidias_own_answers_open_the_gate() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n16/tiny"), tokenizer::real("n16")) else {
        return;
    };
    let case = Case::open(&dir, "c0_gr1_256");
    let mut policy = Policy::load(&PolicyOptions {
        tokenizer: Some(tokenizer.path().to_owned()),
        ..options(&dir.join("snapshot"), case.embodiment())
    })
    .unwrap();
    let mut golden = Golden::record(&mut policy, case.observation(), Some(case.noise())).unwrap();
    for group in &mut golden.answer.groups {
        group.values = case.f32(&format!("action.{}", group.name)).values;
    }
    let place = TempDir::new().unwrap();
    let place = place.path().join("golden");
    golden.write(&place).unwrap();
    match look_at(&gate(Some(&place)), &mut policy).unwrap() {
        Verdict::Golden { agreement, .. } => {
            assert!(agreement.0.iter().any(|group| group.max_difference > 0.0), "{agreement}");
            assert_eq!(agreement.below(0.99999).count(), 0, "{agreement}");
        }
        other => panic!("{other}"),
    }
}
