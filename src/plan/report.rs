//! A plan as `plan.json` has it. Times are seconds.

use serde::Serialize;

use super::cores::CoreLoad;
use super::host::Host;
use crate::backend::blackhole::cost::{BANKS, Bound, ChangedRate, Group, OpCost, Rates};
use crate::backend::blackhole::lower::Summary;

/// Of `plan.json`.
pub const SCHEMA: u32 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub schema: u32,
    pub program: String,
    pub version: String,
    /// Such as `released network` or `snapshot out/tiny`.
    pub network: String,
    pub layout: LayoutFacts,
    pub dtype_policy: &'static str,
    pub math_fidelity: &'static str,
    /// Where the readers of the persistent program stand.
    pub core_layout: &'static str,
    pub rates: Rates,
    /// Those of them that are not the documented ones.
    pub changed_rates: Vec<ChangedRate>,
    pub stages: Vec<StageReport>,
    /// Of the stages that count.
    pub total: Total,
    /// The goal of this layout, where there is one.
    pub goal: Option<Goal>,
    /// Totals with all weights as each policy has them.
    pub policies: Vec<PolicyTotal>,
    /// The most expensive operations, those of equal blocks together.
    pub largest: Vec<Group>,
    /// Bytes that every bank delivers or takes.
    pub bank_bytes: [u64; BANKS],
    pub host: Host,
    pub cores: Cores,
    /// The program of the Euler steps, lowered; null if there is none that a card could run.
    pub persistent: Option<Summary>,
    /// What has to be known before the numbers are read, in sentences.
    pub notices: Vec<String>,
    /// What the plan says, in sentences.
    pub findings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayoutFacts {
    pub images: usize,
    /// Rows and columns of patches of a picture.
    pub grid: [usize; 2],
    /// Of the whole sequence, and of the instruction in it.
    pub tokens: usize,
    pub text_tokens: usize,
    /// Whether what depends on the instruction alone is computed.
    pub new_instruction: bool,
    /// Whether what the frames of before were seen as is still there.
    pub history_cache: bool,
}

/// A stage; `operations` are in their order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageReport {
    pub stage: &'static str,
    /// It depends on the instruction alone.
    pub of_instruction: bool,
    /// What it wrote is still there: it is not in any total.
    pub kept: bool,
    pub programs: usize,
    /// Of weights, as often as they are read.
    pub weight_bytes: u64,
    pub bank_bytes: [u64; BANKS],
    pub memory_s: f64,
    pub noc_s: f64,
    pub arithmetic_s: f64,
    pub dispatch_s: f64,
    /// The larger of the three, operation by operation, and the starts of programs.
    pub total_s: f64,
    pub rates_alone_s: f64,
    pub bound: Bound,
    /// Measured by the serving documents; for a stage in two parts, both together with the last of them.
    pub documents_s: Option<f64>,
    pub groups: Vec<Group>,
    pub operations: Vec<OpCost>,
}

/// Sums over the stages that count, each with more in it than the one before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// The larger of DRAM and matrix engine, operation by operation.
    pub rates_alone_s: f64,
    /// With whole tiles on whole cores.
    pub whole_tiles_s: f64,
    /// With vector unit and network.
    pub operations_s: f64,
    /// With the starts of programs.
    pub total_s: f64,
    /// Of weights, as often as they are read.
    pub weight_bytes: u64,
    /// Of weights and tables in DRAM, each once.
    pub card_bytes: u64,
    /// What reading AdaLN and the cross blocks' keys and values in every Euler step would add to them.
    pub hoisted_bytes: u64,
    /// Measured by the serving documents.
    pub documents_s: Option<f64>,
}

/// What is to be reached at the documents' streaming rates and half of HiFi2.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    pub goal_s: f64,
    /// By `rates_alone_s`, which is what the goal speaks of.
    pub met_at_the_rates: bool,
    /// By `total_s`.
    pub met: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyTotal {
    pub dtype_policy: &'static str,
    /// Of weights, as often as they are read.
    pub weight_bytes: u64,
    /// Of weights and tables in DRAM, each once.
    pub card_bytes: u64,
    pub rates_alone_s: f64,
    pub total_s: f64,
    pub met_at_the_rates: Option<bool>,
}

/// Loads of all cores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cores {
    /// Of vision, language model and adapter.
    pub traced: Vec<CoreLoad>,
    /// Of the Euler steps; empty if no card could run their program.
    pub persistent: Vec<CoreLoad>,
}
