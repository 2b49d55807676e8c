//! From what is seen to a chunk: the policy, its guard, and another policy beside it.

use std::time::Duration;

use super::digest::digest;
use super::events::{Events, Failed, Predicted, Seen};
use crate::contract::{ActionChunk, Noise, Observation, PredictOptions, StageTimings};
use crate::node::guard::OnViolation;
use crate::node::settings::Settings;
use crate::policy::Policy;

/// Predicts, and remembers how long it took on this machine.
pub struct Predictions<'a> {
    policy: Policy,
    other: Option<Policy>,
    settings: &'a Settings,
    on_violation: OnViolation,
    /// Of every prediction that gave a chunk: its number among the predicted ones, and the time of each stage.
    pub timings: Vec<(usize, StageTimings)>,
    /// The same of the other policy.
    pub other_timings: Vec<Duration>,
}

impl<'a> Predictions<'a> {
    pub fn new(
        policy: Policy,
        other: Option<Policy>,
        settings: &'a Settings,
        on_violation: OnViolation,
    ) -> Self {
        let (timings, other_timings) = (Vec::new(), Vec::new());
        Self { policy, other, settings, on_violation, timings, other_timings }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn other(&self) -> Option<&Policy> {
        self.other.as_ref()
    }

    /// Makes a chunk of what is seen, and notes it among the events.
    pub fn predict(&mut self, events: &mut Events, seen: Seen) {
        let Seen { moment, observation, readings, camera_skew_ns, seed, goal } = seen;
        let Some(seed) = seed else {
            let text = "the recorded chunk was made from noise of its own, which is not recorded";
            return events.failed.push(Failed { moment, kind: "policy", text: text.to_owned() });
        };
        let mut chunk = match chunk(&mut self.policy, &observation, seed) {
            Ok(chunk) => chunk,
            Err(text) => return events.failed.push(Failed { moment, kind: "policy", text }),
        };
        let timings = chunk.timings;
        let other = self.other.as_mut().map(|other| self::chunk(other, &observation, seed));
        if let Some(Ok(other)) = &other {
            self.other_timings.push(other.timings.total());
        }
        let unguarded = other.is_some().then(|| chunk.clone());
        let checked = self.settings.guard.check(&mut chunk, &observation.state, self.on_violation);
        let limited = match checked {
            Ok(limited) => limited,
            Err(violation) => {
                let text = violation.to_string();
                return events.failed.push(Failed { moment, kind: "limit", text });
            }
        };
        // Backends are compared by what they compute, before limits.
        let other = other.zip(unguarded).map(|(other, unguarded)| OtherChunk { unguarded, other });
        self.timings.push((events.predicted.len(), timings));
        events.predicted.push(Predicted {
            moment,
            observation: digest(&observation),
            readings,
            camera_skew_ns,
            chunk,
            goal,
            limited,
            other,
        });
    }
}

/// What another policy makes of the same observation.
#[derive(Clone, Debug)]
pub struct OtherChunk {
    /// The chunk of the first policy, before it was brought to any limit.
    pub unguarded: ActionChunk,
    pub other: Result<ActionChunk, String>,
}

fn chunk(policy: &mut Policy, observation: &Observation, seed: u64) -> Result<ActionChunk, String> {
    let options = PredictOptions { noise: Some(Noise::Seed(seed)), ..Default::default() };
    policy.predict(observation, &options).map_err(|error| error.to_string())
}
