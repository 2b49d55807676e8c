//! What a request costs: every operation, summed by stage.

use std::collections::HashMap;

use serde::Serialize;

use super::cores::{BANKS, Execution};
use super::launches::Launch;
use super::op::{Bound, OpCost, cost, work};
use super::placement::Placement;
use super::rates::Rates;
use super::work::Place;
use crate::backend::blackhole::numerics::{DtypePolicy, MathFidelity};
use crate::program::{Op, Program, Stage, StageKind};

/// What a plan assumes of the card and its kernels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumptions {
    pub policy: DtypePolicy,
    pub fidelity: MathFidelity,
    pub rates: Rates,
}

/// What the stages of a request cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub stages: Vec<StageCost>,
}

/// What the operations of a stage cost. Times are seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct StageCost {
    pub kind: StageKind,
    /// It depends on the instruction alone.
    pub of_instruction: bool,
    /// What it wrote for an instruction is still there: nothing of it counts.
    pub kept: bool,
    pub ops: Vec<OpCost>,
    /// Programs that are started.
    pub programs: usize,
    pub dispatch_s: f64,
    /// Seconds of arithmetic on every core, in the order in which work is given out.
    pub core_s: Vec<f64>,
}

/// Operations of a stage with the same label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub stage: &'static str,
    pub label: String,
    pub count: usize,
    pub total_s: f64,
    /// Of this, what DRAM and matrix engine take if they do nothing in vain.
    pub rates_alone_s: f64,
    /// What most of its time is spent waiting for.
    pub bound: Bound,
}

impl Plan {
    /// The plan of a program. A stage that depends on the instruction alone counts if `new_instruction`.
    pub fn new(program: &Program, assumptions: &Assumptions, new_instruction: bool) -> Self {
        let placement = Placement::new(program);
        let stages = program.stages.iter().enumerate().map(|(at, stage)| {
            let mut cost = stage_cost(program, &placement, at, stage, assumptions);
            cost.kept = cost.of_instruction && !new_instruction;
            cost
        });
        Self { stages: stages.filter(|stage| !stage.ops.is_empty()).collect() }
    }

    /// Takes the vision stage from another plan, whose program sees fewer pictures.
    pub fn replace_vision(&mut self, other: Plan) {
        let is_vision = |stage: &StageCost| stage.kind == StageKind::Vision;
        let of_other = other.stages.into_iter().find(is_vision);
        if let (Some(own), Some(other)) = (self.stages.iter_mut().find(|s| is_vision(s)), of_other)
        {
            *own = other;
        }
    }

    /// Stages that count.
    pub fn counted(&self) -> impl Iterator<Item = &StageCost> {
        self.stages.iter().filter(|stage| !stage.kept)
    }

    /// Sum over the stages that count.
    pub fn sum(&self, of: impl Fn(&StageCost) -> f64) -> f64 {
        self.counted().map(of).sum()
    }

    /// Bytes of every bank over all stages that count.
    pub fn bank_bytes(&self) -> [u64; BANKS] {
        sum_banks(self.counted().map(StageCost::bank_bytes))
    }

    /// Operations of the stages that count, those with the same label together; the most expensive first.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.counted().flat_map(StageCost::groups).collect();
        groups.sort_by(|a, b| b.total_s.total_cmp(&a.total_s));
        groups
    }
}

impl StageCost {
    fn sum(&self, of: impl Fn(&OpCost) -> f64) -> f64 {
        self.ops.iter().map(of).sum()
    }

    pub fn memory_s(&self) -> f64 {
        self.sum(|op| op.memory_s)
    }

    pub fn noc_s(&self) -> f64 {
        self.sum(|op| op.noc_s)
    }

    pub fn arithmetic_s(&self) -> f64 {
        self.sum(|op| op.arithmetic_s)
    }

    pub fn rates_alone_s(&self) -> f64 {
        self.sum(|op| op.rates_alone_s)
    }

    pub fn whole_tiles_s(&self) -> f64 {
        self.sum(|op| op.whole_tiles_s)
    }

    /// Operations one after the other, without what it takes to start them.
    pub fn operations_s(&self) -> f64 {
        self.sum(OpCost::total_s)
    }

    pub fn total_s(&self) -> f64 {
        self.operations_s() + self.dispatch_s
    }

    pub fn weight_bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.weight_bytes).sum()
    }

    pub fn bank_bytes(&self) -> [u64; BANKS] {
        sum_banks(self.ops.iter().map(|op| op.bank_bytes))
    }

    /// What most of the time is spent waiting for.
    pub fn bound(&self) -> Bound {
        bound(&self.ops.iter().collect::<Vec<_>>())
    }

    /// Operations with the same label together, in the order in which they first come.
    pub fn groups(&self) -> Vec<Group> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<Vec<&OpCost>> = Vec::new();
        for op in &self.ops {
            let place = *places.entry(op.label.as_str()).or_insert(members.len());
            if place == members.len() {
                members.push(Vec::new());
            }
            members[place].push(op);
        }
        let group = |ops: &Vec<&OpCost>| Group {
            stage: self.kind.name(),
            label: ops[0].label.clone(),
            count: ops.len(),
            total_s: ops.iter().map(|op| op.total_s()).sum(),
            rates_alone_s: ops.iter().map(|op| op.rates_alone_s).sum(),
            bound: bound(ops),
        };
        members.iter().map(group).collect()
    }
}

fn bound(ops: &[&OpCost]) -> Bound {
    let seconds = |bound: Bound| -> f64 {
        ops.iter().filter(|op| op.bound() == bound).map(|op| op.total_s()).sum()
    };
    let most = Bound::ALL.into_iter().max_by(|a, b| seconds(*a).total_cmp(&seconds(*b)));
    most.unwrap_or(Bound::Memory)
}

fn sum_banks(all: impl Iterator<Item = [u64; BANKS]>) -> [u64; BANKS] {
    all.fold([0; BANKS], |sum, banks| std::array::from_fn(|bank| sum[bank] + banks[bank]))
}

/// Which stages are one program: the Euler steps, whose weights are streamed through it.
fn execution(kind: StageKind) -> Execution {
    match kind {
        StageKind::Vision | StageKind::Llm | StageKind::Adapter => Execution::Traced,
        StageKind::Denoise => Execution::Persistent,
    }
}

fn stage_cost(
    program: &Program,
    placement: &Placement,
    at: usize,
    stage: &Stage,
    assumptions: &Assumptions,
) -> StageCost {
    let Assumptions { policy, fidelity, rates } = assumptions;
    let execution = execution(stage.kind);
    let mut launch = Launch::default();
    let mut started = 0;
    let mut core_s = vec![0.0; execution.cores()];
    let mut ops = Vec::new();
    for (number, op) in stage.ops.iter().enumerate() {
        if matches!(op, Op::Tap { .. }) {
            continue;
        }
        let joins = launch.joins(op);
        if !joins {
            launch = Launch::default();
            started += 1;
        }
        let place = Place {
            program,
            position: (at, number),
            execution,
            placement,
            launch: &launch,
            policy: *policy,
            rates,
        };
        let work = work(&place, op);
        let cost = cost(&place, op, &work, *fidelity, joins);
        let unit_s = cost.arithmetic_s / work.spread.busiest().max(1) as f64;
        for (seconds, load) in core_s[work.first_core..].iter_mut().zip(&work.spread.loads) {
            *seconds += unit_s * *load as f64;
        }
        ops.push(cost);
        launch.add(op);
    }
    let programs = match execution {
        Execution::Traced => started,
        Execution::Persistent => started.min(1),
    };
    let dispatch_s = programs as f64 * rates.dispatch * 1e-6;
    StageCost {
        kind: stage.kind,
        of_instruction: stage.leading_tokens.is_some(),
        kept: false,
        ops,
        programs,
        dispatch_s,
        core_s,
    }
}
