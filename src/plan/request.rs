//! From what is asked for to a report.

use super::documents::Documents;
use super::error::PlanError;
use super::host::Host;
use super::layout::Wanted;
use super::network::Planned;
use super::report::{Cores, Goal, LayoutFacts, PolicyTotal, Report, SCHEMA, StageReport, Total};
use super::{cores, findings, held, hoisted, persistent};
use crate::backend::blackhole::core_map::{self, CoreMap};
use crate::backend::blackhole::cost::{Assumptions, Plan, StageCost};
use crate::backend::blackhole::numerics::DtypePolicy;
use crate::contract::Version;
use crate::program::{Layout, Program, StageKind};

/// Operations in the list of the most expensive ones.
const LARGEST: usize = 5;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub wanted: Wanted,
    pub assumptions: Assumptions,
    /// What depends on the instruction alone is computed anew.
    pub new_instruction: bool,
    /// Half of the pictures are frames that have been seen before.
    pub history_cache: bool,
    /// Where the readers stand.
    pub core_layout: core_map::Layout,
}

/// The programs of a request.
struct Programs {
    request: Program,
    /// That of a request for the new pictures only, where others are kept.
    new_pictures: Option<Program>,
}

impl Programs {
    /// Bytes of DRAM that weights and tables take.
    fn card_bytes(&self, policy: DtypePolicy) -> u64 {
        held::bytes(&self.request, policy)
    }

    fn plan(&self, assumptions: &Assumptions, new_instruction: bool) -> Plan {
        let mut plan = Plan::new(&self.request, assumptions, new_instruction);
        if let Some(program) = &self.new_pictures {
            plan.replace_vision(Plan::new(program, assumptions, new_instruction));
        }
        plan
    }
}

/// The plan of a network.
///
/// # Errors
/// A layout that no request has, or a history where there is none.
pub fn report(planned: &Planned, request: &Request) -> Result<Report, PlanError> {
    let (text_tokens, layout) = planned.layout(request.wanted)?;
    let programs = Programs {
        request: planned.request(layout)?,
        new_pictures: if request.history_cache {
            Some(planned.request(new_pictures(planned, request, layout)?)?)
        } else {
            None
        },
    };
    let Request { assumptions, new_instruction, history_cache, .. } = request;
    let plan = programs.plan(assumptions, *new_instruction);
    let documents = planned.documents(layout, text_tokens);
    let goal_ms = documents.as_ref().and_then(|documents| {
        if *history_cache { documents.goal_with_history_ms } else { Some(documents.goal_ms) }
    });
    let goal_s = goal_ms.map(|goal| goal / 1e3);
    let hoisted_bytes = hoisted::bytes(&planned.prepare()?, &programs.request, assumptions.policy);
    // They saw all pictures in every request.
    let all_seen = documents.as_ref().filter(|_| !history_cache);
    let measured_s = |kind: StageKind| {
        let of = if kind == StageKind::Vision { all_seen } else { documents.as_ref() };
        of.map(|documents| documents.stage_s(kind))
    };
    let total = Total {
        rates_alone_s: plan.sum(StageCost::rates_alone_s),
        whole_tiles_s: plan.sum(StageCost::whole_tiles_s),
        operations_s: plan.sum(StageCost::operations_s),
        total_s: plan.sum(StageCost::total_s),
        weight_bytes: weight_bytes(&plan),
        card_bytes: programs.card_bytes(assumptions.policy),
        hoisted_bytes,
        documents_s: all_seen.map(Documents::total_s),
    };
    let goal = goal_s.map(|goal_s| Goal {
        goal_s,
        met_at_the_rates: total.rates_alone_s <= goal_s,
        met: total.total_s <= goal_s,
    });
    let policies = DtypePolicy::ALL.map(|policy| {
        let assumptions = Assumptions { policy, ..assumptions.clone() };
        let plan = programs.plan(&assumptions, *new_instruction);
        policy_total(policy, &plan, programs.card_bytes(policy), goal_s)
    });
    let mut largest = plan.groups();
    largest.truncate(LARGEST);
    let (policy, core_layout) = (assumptions.policy, request.core_layout);
    let (persistent, no_program) =
        match persistent::summary(planned, &programs.request, policy, core_layout)? {
            Ok(summary) => (Some(summary), None),
            Err(error) => (None, Some(error)),
        };
    let on_cores = match &persistent {
        Some(_) => cores::persistent(&plan, &CoreMap::new(core_layout)),
        None => Vec::new(),
    };
    let pictures = programs.new_pictures.as_ref().unwrap_or(&programs.request);
    let mut report = Report {
        schema: SCHEMA,
        program: concat!("gr00t_blackhole ", env!("CARGO_PKG_VERSION")).to_owned(),
        version: planned.version.to_string(),
        network: planned.name.clone(),
        layout: LayoutFacts {
            images: layout.images,
            grid: layout.grid,
            tokens: layout.tokens,
            text_tokens,
            new_instruction: *new_instruction,
            history_cache: *history_cache,
        },
        dtype_policy: assumptions.policy.name(),
        math_fidelity: assumptions.fidelity.name(),
        core_layout: core_layout.name(),
        rates: assumptions.rates.clone(),
        changed_rates: assumptions.rates.changed(),
        stages: stages(&plan, measured_s),
        total,
        goal,
        policies: policies.into(),
        largest,
        bank_bytes: plan.bank_bytes(),
        host: Host::new(&programs.request, pictures, &assumptions.rates),
        cores: Cores { traced: cores::traced(&plan), persistent: on_cores },
        persistent,
        notices: Vec::new(),
        findings: Vec::new(),
    };
    report.findings = findings::findings(&report, &plan, &planned.served());
    report.notices = findings::notices(&report, no_program.as_ref());
    Ok(report)
}

/// The layout with the newest frame of every camera only.
fn new_pictures(planned: &Planned, request: &Request, layout: Layout) -> Result<Layout, PlanError> {
    let version = planned.version;
    if version != Version::N17 {
        return Err(PlanError::NoHistory { version });
    }
    if !layout.images.is_multiple_of(2) {
        return Err(PlanError::OddHistory { images: layout.images });
    }
    let wanted = Wanted { images: Some(layout.images / 2), ..request.wanted };
    Ok(planned.layout(wanted)?.1)
}

fn weight_bytes(plan: &Plan) -> u64 {
    plan.counted().map(StageCost::weight_bytes).sum()
}

fn policy_total(
    policy: DtypePolicy,
    plan: &Plan,
    card_bytes: u64,
    goal_s: Option<f64>,
) -> PolicyTotal {
    let rates_alone_s = plan.sum(StageCost::rates_alone_s);
    PolicyTotal {
        dtype_policy: policy.name(),
        weight_bytes: weight_bytes(plan),
        card_bytes,
        rates_alone_s,
        total_s: plan.sum(StageCost::total_s),
        met_at_the_rates: goal_s.map(|goal_s| rates_alone_s <= goal_s),
    }
}

/// Of all stages; a time that was measured stands with the last part of its stage.
fn stages(plan: &Plan, measured_s: impl Fn(StageKind) -> Option<f64>) -> Vec<StageReport> {
    let reports = plan.stages.iter().enumerate().map(|(at, stage)| {
        let is_last = plan.stages[at + 1..].iter().all(|later| later.kind != stage.kind);
        StageReport {
            stage: stage.kind.name(),
            of_instruction: stage.of_instruction,
            kept: stage.kept,
            programs: stage.programs,
            weight_bytes: stage.weight_bytes(),
            bank_bytes: stage.bank_bytes(),
            memory_s: stage.memory_s(),
            noc_s: stage.noc_s(),
            arithmetic_s: stage.arithmetic_s(),
            dispatch_s: stage.dispatch_s,
            total_s: stage.total_s(),
            rates_alone_s: stage.rates_alone_s(),
            bound: stage.bound(),
            documents_s: measured_s(stage.kind).filter(|_| is_last),
            groups: stage.groups(),
            operations: stage.ops.clone(),
        }
    });
    reports.collect()
}
