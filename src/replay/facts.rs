//! From what happened to the facts of the report.

use std::collections::{BTreeMap, BTreeSet};

use super::events::{Events, Refused};
use super::input_log::{InputLog, Kind};
use super::report::{
    Ages, ClockJumpFacts, FailureFacts, GapFacts, InputFacts, InstructionFacts, MessageKind,
    RefusalFacts, Refusals, StartFacts,
};
use super::seconds_since;

/// Facts need to know when the recording began.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub events: &'a Events,
    pub start_ns: i64,
}

impl Facts<'_> {
    fn seconds(&self, log_ns: i64) -> f64 {
        seconds_since(self.start_ns, log_ns)
    }

    /// Refusals before the first observation, and those after it. Where there never was one, none is of the start.
    pub fn start_and_refused(&self) -> (StartFacts, &[Refused]) {
        let events = self.events;
        let predicted = events.predicted.iter().map(|prediction| prediction.moment.log_ns);
        let failed = events.failed.iter().map(|failure| failure.moment.log_ns);
        let Some(complete_ns) = predicted.chain(failed).min() else {
            return (StartFacts::default(), &events.refused);
        };
        let waited = events.refused.partition_point(|refused| refused.moment.log_ns < complete_ns);
        let (start, later) = events.refused.split_at(waited);
        let inputs: BTreeSet<&str> =
            start.iter().flat_map(|refused| &refused.lacks).map(|lack| &*lack.input).collect();
        let facts = StartFacts {
            waited: waited as u64,
            complete_s: Some(self.seconds(complete_ns)),
            waited_for: inputs.into_iter().map(str::to_owned).collect(),
        };
        (facts, later)
    }

    pub fn refusals(&self, refused: &[Refused]) -> Refusals {
        let mut facts = Refusals::default();
        for Refused { moment, lacks } in refused {
            let causes: BTreeSet<&str> = lacks.iter().map(|lack| lack.cause.name()).collect();
            let inputs: BTreeSet<&str> = lacks.iter().map(|lack| &*lack.input).collect();
            let count = |into: &mut BTreeMap<String, u64>, names: &BTreeSet<&str>| {
                names.iter().for_each(|name| *into.entry((*name).to_owned()).or_default() += 1);
            };
            count(&mut facts.by_cause, &causes);
            count(&mut facts.by_input, &inputs);
            let texts: Vec<&str> = lacks.iter().map(|lack| lack.text.as_str()).collect();
            facts.list.push(RefusalFacts {
                at_s: self.seconds(moment.log_ns),
                causes: causes.into_iter().map(str::to_owned).collect(),
                text: texts.join("; "),
            });
        }
        facts
    }

    pub fn failures(&self) -> Vec<FailureFacts> {
        let fact = |failed: &super::events::Failed| FailureFacts {
            at_s: self.seconds(failed.moment.log_ns),
            kind: failed.kind.to_owned(),
            text: failed.text.clone(),
        };
        self.events.failed.iter().map(fact).collect()
    }

    pub fn clock_jumps(&self, after_resets: &BTreeMap<i64, u64>) -> Vec<ClockJumpFacts> {
        let fact = |jump: &super::events::Jumped| ClockJumpFacts {
            at_s: self.seconds(jump.log_ns),
            by_s: jump.by_ns as f64 / 1e9,
            refused: after_resets.get(&jump.log_ns).copied().unwrap_or(0),
        };
        self.events.jumps.iter().map(fact).collect()
    }

    pub fn instructions(&self, after_resets: &BTreeMap<i64, u64>) -> Vec<InstructionFacts> {
        let given = &self.events.instructions;
        let fact = |(number, instructed): (usize, &super::events::Instructed)| {
            let until_ns = given.get(number + 1).map_or(i64::MAX, |next| next.log_ns);
            let is_its = |log_ns: i64| instructed.log_ns <= log_ns && log_ns < until_ns;
            let chunks = self.events.predicted.iter().filter(|prediction| {
                is_its(prediction.moment.log_ns) && prediction.chunk.instruction == instructed.text
            });
            InstructionFacts {
                from_s: self.seconds(instructed.log_ns),
                text: instructed.text.clone(),
                chunks: chunks.count() as u64,
                refused: after_resets.get(&instructed.log_ns).copied().unwrap_or(0),
            }
        };
        given.iter().enumerate().map(fact).collect()
    }

    pub fn inputs(&self) -> Vec<InputFacts> {
        self.events.inputs().map(|log| self.input(log)).collect()
    }

    fn input(&self, log: &InputLog) -> InputFacts {
        let gap = log
            .longest_gap()
            .map(|[from, to]| GapFacts { from_s: self.seconds(from), to_s: self.seconds(to) });
        InputFacts {
            name: log.name.clone(),
            topic: log.topic.clone(),
            message_type: log.message_type.clone(),
            received: log.stats.received(),
            taken: log.taken_ns.len() as u64,
            refused: log.stats.refused_count(),
            lost: log.stats.lost(),
            mean_hz: log.mean_hz(),
            sent_hz: log.stats.expected_hz(),
            longest_gap: gap,
            age_ms: ages(&age_list(self.events, log)),
            refusals: self.kinds(&log.refusals),
            formats: self.kinds(&log.formats),
            order_changes_s: log.order_changes_ns.iter().map(|ns| self.seconds(*ns)).collect(),
            notes: log.notes.clone(),
        }
    }

    pub fn kinds(&self, kinds: &[Kind]) -> Vec<MessageKind> {
        let fact = |kind: &Kind| MessageKind {
            text: kind.text.clone(),
            count: kind.count,
            first_s: self.seconds(kind.first_ns),
            last_s: self.seconds(kind.last_ns),
        };
        kinds.iter().map(fact).collect()
    }
}

/// Ages of the newest readings of an input, one per prediction that it went into: time of reception, milliseconds.
pub fn age_list(events: &Events, log: &InputLog) -> Vec<(i64, f64)> {
    let of_prediction = |prediction: &super::events::Predicted| {
        let is_its = |reading: &&crate::history::Reading| {
            let is_transform = reading.topic.starts_with(crate::history::TRANSFORM);
            let fits = match log.name.as_str() {
                "transforms" => is_transform,
                _ => reading.topic == log.topic && !is_transform,
            };
            fits && reading.delta == 0
        };
        let newest = prediction.readings.iter().filter(is_its).map(|reading| reading.stamp_ns);
        // Of several transforms, the oldest tells.
        let age_ns = prediction.moment.ros_ns - newest.min()?;
        Some((prediction.moment.log_ns, age_ns as f64 / 1e6))
    };
    events.predicted.iter().filter_map(of_prediction).collect()
}

fn ages(list: &[(i64, f64)]) -> Option<Ages> {
    let mut sorted: Vec<f64> = list.iter().map(|(_, age)| *age).collect();
    sorted.sort_by(f64::total_cmp);
    let max = *sorted.last()?;
    let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
    Some(Ages { p50: at(50), p99: at(99), max })
}
