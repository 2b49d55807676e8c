//! Work that does not belong into every Euler step.

use std::collections::HashSet;

use super::{ArenaError, PER_REQUEST, PER_STEP};
use crate::program::dataflow::{self, Product};
use crate::program::{Input, Program, StageKind, WeightId, WeightSpec};

/// Weights whose products are computed less often than once in a step: read in every step, they would take memory
/// traffic for the same result again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoistRules {
    /// Nothing of a request changes their products: the AdaLN linears.
    pub at_load: Vec<WeightSpec>,
    /// No step changes them: the keys and values of cross-attention, the state encoder, all stages before the action
    /// head.
    pub per_request: Vec<WeightSpec>,
}

impl HoistRules {
    /// As the programs of a model have it: what the prepare program multiplies with is used at load, and a product of
    /// the request program is one of the steps if the noise, which becomes the actions step by step, can reach it.
    pub fn of(prepare: &Program, request: &Program) -> Self {
        let products = dataflow::products(request, Input::Noise);
        let in_step = |product: &Product| product.stage == StageKind::Denoise && product.depends;
        let (steps, once): (Vec<Product>, Vec<Product>) = products.into_iter().partition(in_step);
        let steps = weights_of(request, &steps);
        let requests = weights_of(request, &once);
        let loads = weights_of(prepare, &dataflow::products(prepare, Input::Noise));
        let elsewhere = [requests.as_slice(), &steps].concat();
        Self { at_load: without(loads, &elsewhere), per_request: without(requests, &steps) }
    }

    /// That a part may hold these values.
    pub(super) fn check(&self, part: &str, weight: &WeightSpec) -> Result<(), ArenaError> {
        let refuse = |fix| {
            let tensor = weight.tensor.clone();
            Err(ArenaError::NotHoisted { tensor, part: part.to_owned(), fix })
        };
        if [PER_STEP, PER_REQUEST].contains(&part) && shares_values(&self.at_load, weight) {
            return refuse("compute the product at load and keep its values");
        }
        if part == PER_STEP && shares_values(&self.per_request, weight) {
            return refuse("put it into a part that is read once in a request");
        }
        Ok(())
    }
}

/// Each of the weights of some products once, in the order of its first use.
fn weights_of(program: &Program, products: &[Product]) -> Vec<WeightSpec> {
    let mut seen: HashSet<WeightId> = HashSet::new();
    let first = products.iter().filter(|product| seen.insert(product.weight));
    first.map(|product| program.weights[product.weight.0].clone()).collect()
}

/// Those that share no value with any that is used more often.
fn without(weights: Vec<WeightSpec>, more_often: &[WeightSpec]) -> Vec<WeightSpec> {
    weights.into_iter().filter(|weight| !shares_values(more_often, weight)).collect()
}

/// Whether one of `blocks` has a value in common with `weight`.
fn shares_values(blocks: &[WeightSpec], weight: &WeightSpec) -> bool {
    let end =
        |block: &WeightSpec| block.offset.saturating_add(block.rows.saturating_mul(block.cols));
    blocks.iter().any(|block| {
        block.tensor == weight.tensor && block.offset < end(weight) && weight.offset < end(block)
    })
}
