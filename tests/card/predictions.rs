//! Predictions with the numbers of the card against the answers of NVIDIA's own code in f32.

use std::path::{Path, PathBuf};

use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::backend::blackhole::numerics::{Accumulation, DtypePolicy, MathFidelity};
use gr00t_blackhole::backend::cpu::Numerics;
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::checkpoint::{Network, Snapshot};
use gr00t_blackhole::contract::{ActionGroup, PredictOptions, Representation, Version};
use gr00t_blackhole::fidelity::normalised_groups;
use gr00t_blackhole::golden::{Agreement, GroupAgreement};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use tempfile::TempDir;

use super::common::golden::{Case, Tap, Taps};
use super::common::stored_network::StoredNetwork;
use super::common::{n15, n16, n17, shared, tokenizer};

/// Lowest correlation of an action group.
const FLOOR: f64 = 0.999;

fn card() -> Numerics {
    Numerics::Card(CardNumerics::default())
}

fn compare(expected: &[ActionGroup], found: &[ActionGroup]) -> Vec<GroupAgreement> {
    Agreement::of(expected, found).unwrap().0
}

/// A tap as the one group of a chunk.
fn as_group(name: &str, tap: &Tap) -> Vec<ActionGroup> {
    let (name, values) = (name.to_owned(), tap.values.clone());
    vec![ActionGroup { name, representation: Representation::Absolute, dim: tap.cols, values }]
}

/// Prints every group and the intermediate value that agrees least; gives the groups that agree too little.
fn report(case: &str, groups: &[GroupAgreement], reference: &Taps, found: &Taps) -> Vec<String> {
    let taps = reference
        .0
        .iter()
        .flat_map(|(name, tap)| compare(&as_group(name, tap), &as_group(name, &found.0[name])));
    let moving = taps.filter(|tap| tap.pcc.is_some());
    let worst = moving.min_by(|a, b| a.pcc.unwrap().total_cmp(&b.pcc.unwrap())).unwrap();
    for group in groups {
        println!("{case}: {group}");
    }
    println!("{case}: of {} values, worst {worst}", reference.0.len());
    let below = |group: &&GroupAgreement| match group.pcc {
        Some(pcc) => pcc < FLOOR,
        None => !group.reaches(FLOOR),
    };
    groups.iter().filter(below).map(|group| format!("{case}: {group}")).collect()
}

#[test]
fn the_stored_cases_are_answered() {
    let mut below = Vec::new();
    for version in Version::ALL {
        let network = StoredNetwork::of(version);
        let options = PredictOptions::default();
        let mut reference = Taps::default();
        let mut backend = network.load(0, None);
        backend.run(&network.input, &options, Some(&mut reference)).unwrap();
        let mut taps = Taps::default();
        let mut backend = backend.with_numerics(card());
        let output = backend.run(&network.input, &options, Some(&mut taps)).unwrap();

        let golden = network.case.f32("action_pred");
        let groups = |chunk: &[f32]| normalised_groups(&network.embodiment, chunk, golden.cols);
        let agreement = compare(&groups(&golden.values), &groups(&output.actions));
        assert!(!agreement.is_empty());
        let case = format!("{version} {}", network.case.name);
        below.extend(report(&case, &agreement, &reference, &taps));
    }
    assert!(below.is_empty(), "{below:#?}");
}

/// The policy of a case, without values that are computed at load.
fn policy(snapshot: &Path, tokenizer: &TempDir, case: &Case, numerics: Numerics) -> Policy {
    let options = PolicyOptions {
        snapshot: snapshot.to_owned(),
        tokenizer: Some(tokenizer.path().to_owned()),
        embodiment: Some(case.embodiment().to_owned()),
        numerics,
        ..PolicyOptions::default()
    };
    Policy::load(&options).unwrap()
}

/// Predicts one case in f32 and with the card's numbers; gives the groups that agree too little with the golden.
fn below_floor(
    version: Version,
    snapshot: &Path,
    tokenizer: &TempDir,
    case: &Case,
    numerics: CardNumerics,
) -> Vec<String> {
    let options = PredictOptions { noise: Some(case.noise()), ..Default::default() };
    let observation = case.observation();
    let mut reference = Taps::default();
    let policy_of = |numerics| policy(snapshot, tokenizer, case, numerics);
    policy_of(Numerics::F32)
        .predict_with_taps(&observation, &options, Some(&mut reference))
        .unwrap();
    let mut taps = Taps::default();
    let mut policy = policy_of(Numerics::Card(numerics));
    let chunk = policy.predict_with_taps(&observation, &options, Some(&mut taps)).unwrap();

    let golden = case.f32("action_pred");
    let normalised = |chunk: &[f32]| normalised_groups(policy.embodiment(), chunk, golden.cols);
    let mut groups = compare(&normalised(&golden.values), &normalised(&chunk.normalized));
    let expected: Vec<ActionGroup> = chunk
        .groups
        .iter()
        .map(|group| {
            let values = case.f32(&format!("action.{}", group.name)).values;
            ActionGroup { values, ..group.clone() }
        })
        .collect();
    for group in compare(&expected, &chunk.groups) {
        groups.push(GroupAgreement { name: format!("{} (physical)", group.name), ..group });
    }
    let name = format!("{version} {} {numerics}", case.name);
    report(&name, &groups, &reference, &taps)
}

/// The tiny cases of a version with their snapshot; none where the reference data is not here.
fn tiny_cases(version: Version) -> Option<(PathBuf, Vec<Case>)> {
    let root = shared(&format!("golden/{version}"))?;
    Some(match version {
        Version::N15 => (root.join("snapshot-tiny"), n15::tiny_cases()),
        Version::N16 => {
            let dir = root.join("tiny");
            let cases = n16::TINY_CASES.map(|name| Case::open(&dir, name));
            (dir.join("snapshot"), cases.into())
        }
        Version::N17 => {
            let dir = root.join("snapshot");
            let snapshot = Snapshot::open(&dir).unwrap();
            let Network::N17(config, _) = snapshot.network() else { panic!("not N1.7") };
            let layers = config.vision.layers;
            (dir, n17::TINY_CASES.map(|name| n17::open(&root, name, layers)).into())
        }
    })
}

fn check_tiny_cases(version: Version) {
    let (Some((snapshot, cases)), Some(tokenizer)) =
        (tiny_cases(version), tokenizer::real(version.name()))
    else {
        return;
    };
    let numerics = CardNumerics::default();
    let below: Vec<String> = cases
        .iter()
        .flat_map(|case| below_floor(version, &snapshot, &tokenizer, case, numerics))
        .collect();
    assert!(below.is_empty(), "{below:#?}");
}

#[test]
fn tiny_cases_of_n15_are_answered() {
    check_tiny_cases(Version::N15);
}

#[test]
fn tiny_cases_of_n16_are_answered() {
    check_tiny_cases(Version::N16);
}

#[test]
fn tiny_cases_of_n17_are_answered() {
    check_tiny_cases(Version::N17);
}

/// What the stored network answers on so many threads.
fn answer(network: &StoredNetwork, threads: usize, numerics: CardNumerics) -> Vec<u32> {
    let mut backend = network.load(threads, None).with_numerics(Numerics::Card(numerics));
    assert!(!backend.is_reference());
    let counted = ["all threads", "1 thread", "2 threads"][threads];
    let expected = format!("cpu ({counted}, card numerics: {numerics})");
    assert_eq!(backend.describe(), expected);
    let mut run = || backend.run(&network.input, &PredictOptions::default(), None).unwrap();
    let (first, again) = (run().actions, run().actions);
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(&first), bits(&again), "{numerics}: the second run");
    bits(&first)
}

#[test]
fn bytes_depend_on_the_numbers_alone() {
    let default = CardNumerics::default();
    let every = [
        default,
        CardNumerics { policy: DtypePolicy::Bf16, ..default },
        CardNumerics { policy: DtypePolicy::Mixed, ..default },
        CardNumerics { fidelity: MathFidelity::LoFi, ..default },
        CardNumerics { fidelity: MathFidelity::HiFi4, ..default },
        CardNumerics { accumulation: Accumulation::Bf16, ..default },
    ];
    for version in Version::ALL {
        let network = StoredNetwork::of(version);
        let mut answers: Vec<Vec<u32>> = Vec::new();
        for numerics in every {
            let one = answer(&network, 1, numerics);
            assert_eq!(one, answer(&network, 2, numerics), "{version} {numerics}: threads");
            assert!(!answers.contains(&one), "{version}: {numerics} changes nothing");
            answers.push(one);
        }
    }
}

/// What a buffer holds shows in the taps of it.
#[test]
fn buffers_are_bf16_but_for_sums() {
    let network = StoredNetwork::of(Version::N16);
    let mut taps = Taps::default();
    let mut backend = network.load(0, None).with_numerics(card());
    backend.run(&network.input, &PredictOptions::default(), Some(&mut taps)).unwrap();
    let is_bf16 = |name: &str| {
        let values = &taps.0.get(name).unwrap_or_else(|| panic!("no {name}")).values;
        values.iter().all(|value| value.to_bits() & 0xffff == 0)
    };
    for rounded in [
        "vit.pos_embed",
        "vit.block0.ln1",
        "vit.block1.mlp",
        "connector.out",
        "llm.rope_cos",
        "llm.embeds",
        "llm.layer0.q_norm",
        "llm.layer1.attn",
        "backbone_features",
        "vlln_out",
        "state_encoder_out",
        "k0.dit_block0.norm1",
        "k1.dit_block1.attn",
        "k3.dit_out",
    ] {
        assert!(is_bf16(rounded), "{rounded}");
    }
    for sum in ["vit.block0", "llm.layer0", "k0.dit_in", "k2.dit_block3", "k1.velocity"] {
        assert!(!is_bf16(sum), "{sum}");
    }
    assert_eq!(taps.0["actions.step0"].values, network.input.noise);
}
