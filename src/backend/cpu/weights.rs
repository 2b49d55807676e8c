//! Where instructions find their weights.

use std::collections::HashMap;
use std::sync::Arc;

use half::bf16;

use super::card;
use super::mat::WeightBlock;
use super::numerics::Numerics;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::program::{Orientation, Program, WeightSpec};

/// The checkpoint, and what products read in its place.
pub struct Weights {
    checkpoint: Arc<Checkpoint>,
    /// `[inputs, outputs]`, of those that the card holds otherwise.
    changed: HashMap<WeightSpec, Vec<bf16>>,
}

impl Weights {
    pub fn new(checkpoint: Arc<Checkpoint>) -> Self {
        Self { checkpoint, changed: HashMap::new() }
    }

    /// Forgets what was made for products.
    pub fn forget_changed(&mut self) {
        self.changed = HashMap::new();
    }

    pub fn checkpoint(&self) -> &Arc<Checkpoint> {
        &self.checkpoint
    }

    /// Makes what the products of `program` need and no program before it needed; on all threads of the current pool.
    pub fn add(&mut self, program: &Program, numerics: Numerics) -> Result<(), CheckpointError> {
        let Numerics::Card(numerics) = numerics else { return Ok(()) };
        for weight in card::factors(program) {
            let spec = &program.weights[weight.0];
            if card::is_changed(spec, &numerics) && !self.changed.contains_key(spec) {
                let values = card::dequantised(self.values(spec)?, spec, &numerics);
                self.changed.insert(spec.clone(), values);
            }
        }
        Ok(())
    }

    /// As it lies in the checkpoint.
    pub fn values(&self, spec: &WeightSpec) -> Result<&[bf16], CheckpointError> {
        spec.values(&self.checkpoint)
    }

    /// As it lies in the checkpoint.
    pub fn block(&self, spec: &WeightSpec) -> Result<WeightBlock<'_>, CheckpointError> {
        Ok(WeightBlock::new(self.values(spec)?, spec.rows, spec.cols, spec.orientation))
    }

    /// What rows are multiplied by.
    pub fn factor(&self, spec: &WeightSpec) -> Result<WeightBlock<'_>, CheckpointError> {
        match self.changed.get(spec) {
            Some(values) => {
                let (inputs, outputs) = (spec.inputs(), spec.outputs());
                Ok(WeightBlock::new(values, inputs, outputs, Orientation::InOut))
            }
            None => self.block(spec),
        }
    }
}
