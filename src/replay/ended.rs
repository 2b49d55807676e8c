//! From a replay that has ended to its report.

use super::alternative::{Fidelity, fidelity};
use super::bounds::Measures;
use super::commands::Commands;
use super::events::Events;
use super::facts::Facts;
use super::instructions::Origin;
use super::labels::Labels;
use super::moments::When;
use super::output::Previous;
use super::report::{self, Report};
use super::setup::Setup;
use super::{
    Request, borders, equality, findings, measures, open_loop, outages, resets, seconds_since,
};
use crate::policy::{Policy, PolicyOptions};

/// A replay that has ended, and everything that its report is made of.
pub struct Ended<'a> {
    pub request: &'a Request,
    pub setup: &'a Setup,
    pub policy: &'a Policy,
    /// Of the policy that it is compared with.
    pub other: Option<&'a PolicyOptions>,
    pub when: When,
    pub seed: u64,
    pub origin: Origin,
    pub span: [i64; 2],
    pub commands: Option<&'a Commands>,
    pub labels: &'a Labels,
}

impl Ended<'_> {
    /// The report, with every bound held against what was measured.
    pub fn report(&self, events: &Events, previous: Option<Previous>) -> Report {
        let [start_ns, end_ns] = self.span;
        let settings = &self.setup.settings;
        let facts = Facts { events, start_ns };
        let (start, refused) = facts.start_and_refused();
        let (after_resets, others) = resets::split(events, refused);
        let executed =
            open_loop::executed_rows(&events.predicted, self.setup.execute_steps(), settings.dt_ns);
        let commands = self.setup.wiring.commands.as_ref().zip(self.commands);
        let commands = commands.map(|(topic, commands)| {
            let predicted = &events.predicted;
            open_loop::compare(topic, commands, predicted, &executed, self.labels, settings.dt_ns)
        });
        let chunk_topic = self.setup.wiring.chunks.as_deref().unwrap_or_default();
        let mut report = Report {
            schema: report::SCHEMA,
            program: concat!("gr00t_blackhole ", env!("CARGO_PKG_VERSION")).to_owned(),
            recording: report::RecordingFacts {
                path: self.request.bag.display().to_string(),
                start_ns,
                duration_s: seconds_since(start_ns, end_ns),
                notes: events.notes.clone(),
                unread: events.unread.iter().flat_map(|log| facts.kinds(&log.refusals)).collect(),
            },
            policy: self.policy_facts(),
            moments: self.moments(events, &start, refused.len()),
            instructions: facts.instructions(&after_resets),
            inputs: facts.inputs(),
            clock_jumps: facts.clock_jumps(&after_resets),
            refusals: facts.refusals(refused),
            outages: outages::outages(events, &others, start_ns, end_ns),
            start,
            failures: facts.failures(),
            borders: borders::measure(
                &events.predicted,
                settings,
                self.request.latency_ns,
                start_ns,
            ),
            commands,
            recorded_chunks: equality::with_recorded(
                chunk_topic,
                &events.predicted,
                self.labels,
                start_ns,
            ),
            previous: previous.map(|Previous { name, chunks, .. }| {
                equality::with_run(&name, &events.predicted, chunks, self.labels, start_ns)
            }),
            against: self.against(events),
            measures: Measures::new(),
            bounds: Vec::new(),
            unmeasured: Vec::new(),
            findings: Vec::new(),
        };
        report.measures = measures::measures(&report);
        for bound in &self.request.bounds {
            match bound.checked(&report.measures) {
                Ok(checked) => report.bounds.push(checked),
                Err(complaint) => report.unmeasured.push(complaint),
            }
        }
        report.findings = findings::findings(&report);
        report
    }

    fn against(&self, events: &Events) -> Option<Fidelity> {
        let (alternative, other) = self.request.against.as_ref().zip(self.other)?;
        Some(fidelity(alternative, other.numerics, &events.predicted))
    }

    fn policy_facts(&self) -> report::PolicyFacts {
        let settings = &self.setup.settings;
        let simulated = self.setup.params.bool("use_sim_time");
        report::PolicyFacts {
            version: self.policy.version().name().to_owned(),
            embodiment: self.policy.embodiment().tag.clone(),
            snapshot: self.policy.snapshot().display().to_string(),
            backend: self.setup.options.backend_name().to_owned(),
            numerics: self.setup.options.numerics.to_string(),
            seed: self.seed,
            horizon: self.policy.embodiment().horizon,
            dt_ms: settings.dt_ns as f64 / 1e6,
            timeline: self.setup.params.text("timeline").to_owned(),
            clock: if simulated { "simulated" } else { "system" }.to_owned(),
            latency_ms: self.request.latency_ns as f64 / 1e6,
            instructions_from: self.origin.name().to_owned(),
        }
    }

    fn moments(
        &self,
        events: &Events,
        start: &report::StartFacts,
        refused: usize,
    ) -> report::Moments {
        let [chunks, refused, failed] =
            [events.predicted.len(), refused, events.failed.len()].map(|count| count as u64);
        let when = match self.when {
            When::Period(period_ns) => format!("a prediction every {} s", period_ns as f64 / 1e9),
            When::Frames(1) => "a prediction at every frame of the first camera".to_owned(),
            When::Frames(every) => {
                format!("a prediction at every {every} frames of the first camera")
            }
            When::Goals => "predictions where recorded chunks were predicted".to_owned(),
        };
        report::Moments {
            when,
            wanted: chunks + refused + failed + events.unchanged + start.waited,
            chunks,
            refused,
            unchanged: events.unchanged,
            failed,
            limited: events.predicted.iter().filter(|p| p.limited > 0).count() as u64,
        }
    }
}
