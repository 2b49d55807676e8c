//! What is computed at load or once in a request stays out of the steps.

use std::collections::BTreeSet;

use gr00t_blackhole::backend::blackhole::arena::{
    ArenaError, ArenaPlan, HoistRules, PER_REQUEST, PER_STEP, PartSpec,
};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::WeightSpec;

use super::rig::{Model, spread};

const VERSIONS: [Version; 3] = [Version::N15, Version::N16, Version::N17];
/// All tiny checkpoints have so many blocks; the even ones are cross blocks.
const BLOCKS: usize = 4;
const HEAD: &str = "action_head";

fn plan(model: &Model, rules: &HoistRules, parts: &[PartSpec]) -> Result<ArenaPlan, ArenaError> {
    ArenaPlan::new(&model.weights(), DtypePolicy::default(), parts, vec![], rules)
}

/// A part that holds just this weight.
fn holding(name: &str, model: &Model, wanted: &WeightSpec) -> PartSpec {
    let weights = model.weights();
    let id = weights.iter().position(|weight| weight == wanted).expect("a weight of the model");
    spread(name, &weights, [id], 3)
}

/// The only weights of this name.
fn named(model: &Model, tensor: &str) -> WeightSpec {
    let weights = model.weights();
    let mut found = weights.into_iter().filter(|weight| weight.tensor == tensor);
    let weight = found.next().unwrap_or_else(|| panic!("{tensor} is not there"));
    assert_eq!(found.next(), None, "{tensor} is there once");
    weight
}

/// The tensor and part that an arena was refused for.
fn refused(result: Result<ArenaPlan, ArenaError>) -> (String, String) {
    match result.expect_err("it is not hoisted") {
        ArenaError::NotHoisted { tensor, part, .. } => (tensor, part),
        other => panic!("{other}"),
    }
}

/// Names of what a step multiplies by, as the model's description has it.
fn weights_of_a_step() -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        ["action_encoder.W1", "action_encoder.W2", "action_encoder.W3"]
            .into_iter()
            .chain(["action_decoder.layer1", "action_decoder.layer2"])
            .map(|layer| format!("{HEAD}.{layer}.W"))
            .collect();
    names.insert(format!("{HEAD}.model.proj_out_2.weight"));
    for block in 0..BLOCKS {
        let mut layers = vec!["attn1.to_q", "attn1.to_out.0", "ff.net.0.proj", "ff.net.2"];
        if block % 2 == 1 {
            layers.extend(["attn1.to_k", "attn1.to_v"]);
        }
        let name = |layer| format!("{HEAD}.model.transformer_blocks.{block}.{layer}.weight");
        names.extend(layers.into_iter().map(name));
    }
    names
}

#[test]
fn rules_are_those_of_the_models() {
    for version in VERSIONS {
        let model = Model::tiny(version);
        let rules = model.rules();
        let weights = &model.request.weights;
        let products = model.product_weights();
        let steps = products.iter().filter(|id| !rules.per_request.contains(&weights[**id]));
        let steps: BTreeSet<String> = steps.map(|id| weights[*id].tensor.clone()).collect();
        assert_eq!(steps, weights_of_a_step(), "{version:?}");

        let at_load: BTreeSet<&str> =
            rules.at_load.iter().map(|weight| weight.tensor.as_str()).collect();
        let mut expected: BTreeSet<String> = (0..BLOCKS)
            .map(|block| format!("{HEAD}.model.transformer_blocks.{block}.norm1.linear.weight"))
            .collect();
        let embedder = format!("{HEAD}.model.timestep_encoder.timestep_embedder");
        expected.extend([1, 2].map(|layer| format!("{embedder}.linear_{layer}.weight")));
        expected.insert(format!("{HEAD}.model.proj_out_1.weight"));
        expected.insert(format!("{HEAD}.action_encoder.W2.W"));
        assert!(at_load.iter().copied().eq(expected.iter().map(String::as_str)), "{at_load:?}");
    }
}

/// Every weight alone: those of a step pass, all others do not, in whichever part they do not belong.
#[test]
fn each_weight_is_let_through_or_refused() {
    for version in VERSIONS {
        let model = Model::tiny(version);
        let rules = model.rules();
        let check = |part: &str, weight: &WeightSpec| {
            plan(&model, &rules, &[holding(part, &model, weight)])
        };
        for weight in &rules.at_load {
            for part in [PER_STEP, PER_REQUEST] {
                let found = refused(check(part, weight));
                assert_eq!(found, (weight.tensor.clone(), part.to_owned()));
            }
        }
        for weight in &rules.per_request {
            let found = refused(check(PER_STEP, weight));
            assert_eq!(found, (weight.tensor.clone(), PER_STEP.to_owned()));
            assert!(check(PER_REQUEST, weight).is_ok());
        }
        for id in model.product_weights() {
            let weight = &model.request.weights[id];
            if !rules.per_request.contains(weight) {
                assert!(check(PER_STEP, weight).is_ok(), "{}", weight.tensor);
            }
        }
    }
}

#[test]
fn a_linear_too_much_in_the_steps_is_found() {
    for version in VERSIONS {
        let model = Model::tiny(version);
        let rules = model.rules();
        let weights = model.weights();
        let products = model.product_weights();
        let steps = products.into_iter().filter(|id| !rules.per_request.contains(&weights[*id]));
        let steps: Vec<usize> = steps.collect();
        let good = spread(PER_STEP, &weights, steps.iter().copied(), 13);
        assert!(plan(&model, &rules, &[good]).is_ok());
        for tensor in [
            "model.transformer_blocks.2.norm1.linear.weight",
            "model.transformer_blocks.2.attn1.to_k.weight",
            "model.transformer_blocks.0.attn1.to_v.weight",
            "model.proj_out_1.weight",
            "state_encoder.layer2.W",
        ] {
            let tensor = format!("{HEAD}.{tensor}");
            let wanted = named(&model, &tensor);
            let id = weights.iter().position(|weight| *weight == wanted).expect("it is there");
            let mutated = spread(PER_STEP, &weights, [steps.as_slice(), &[id]].concat(), 13);
            assert_eq!(refused(plan(&model, &rules, &[mutated])), (tensor, PER_STEP.to_owned()));
        }
    }
}

/// The second layer of the action encoder is one tensor: its upper half reads the actions, its lower half the timestep.
#[test]
fn halves_of_a_tensor_are_told_apart() {
    let model = Model::tiny(Version::N16);
    let rules = model.rules();
    let tensor = format!("{HEAD}.action_encoder.W2.W");
    let halves: Vec<WeightSpec> =
        model.weights().into_iter().filter(|weight| weight.tensor == tensor).collect();
    assert_eq!(halves.len(), 2);
    let check = |weight: &WeightSpec| {
        let step = [holding(PER_STEP, &model, weight)];
        plan(&model, &rules, &step)
    };
    assert!(check(&halves[0]).is_ok());
    assert_eq!(refused(check(&halves[1])).0, tensor);
    // Both at once hold the lower one too.
    let both = WeightSpec { rows: 2 * halves[0].rows, ..halves[0].clone() };
    let weights = [both];
    let parts = [spread(PER_STEP, &weights, [0], 3)];
    let result = ArenaPlan::new(&weights, DtypePolicy::default(), &parts, vec![], &rules);
    assert_eq!(refused(result).0, tensor);
}
