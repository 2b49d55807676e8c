//! What the engine does about predictions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tracing::{info, warn};

use super::super::action::goals::GoalId;
use super::super::blame::Blamed;
use super::super::guarded::guarded;
use super::super::instruction::INSTRUCTION;
use super::super::publish::Ticket;
use super::super::runtime::{and_more, locked};
use super::super::settings;
use super::super::worker::{Failure, Occupied, Span};
use super::ending::{Outcome, Reason};
use super::{Engine, Event, Prediction};
use crate::contract::{ActionChunk, CancelToken, Noise, PredictOptions, Progress};
use crate::encode::Culprit;
use crate::history::{Moment, Sighting, Waiting};
use crate::policy::PolicyError;

impl Engine {
    /// Begins the timer's next chunk, if it is due and everything is there.
    pub(super) fn work_on_timer(&mut self, now: Moment) {
        let Some(model) = &self.model else { return };
        if model.shared.settings.period_ns.is_none() || !self.timer.is_due(now.ros_ns) {
            return;
        }
        let (instruction, seed) = {
            let params = locked(&model.shared.params);
            (params.text(INSTRUCTION).to_owned(), settings::seed(&params, model.shared.version))
        };
        match self.observe(now, &instruction) {
            None => {}
            Some(Ok(sighting)) if self.was_seen(None, &sighting) => self.timer.retry(now.ros_ns),
            Some(Ok(sighting)) => {
                let missed = self.timer.begun(now.ros_ns);
                self.count_missed_ticks(missed);
                self.predict(sighting, Noise::Seed(seed), None, now);
            }
            Some(Err(waiting)) => {
                self.timer.retry(now.ros_ns);
                if self.waiting_notes.pass().is_some() {
                    warn!("waiting for {waiting}");
                }
            }
        }
    }

    /// Moments of the timer that pass while a prediction is running.
    pub(super) fn count_missed(&mut self, now: Moment) {
        if self.goal.is_some() || self.timer_waits {
            return;
        }
        let Some(model) = &self.model else { return };
        if model.shared.settings.period_ns.is_some() && self.timer.is_due(now.ros_ns) {
            let missed = 1 + self.timer.begun(now.ros_ns);
            self.count_missed_ticks(missed);
        }
    }

    fn count_missed_ticks(&self, missed: u64) {
        if let Some(model) = &self.model {
            model.shared.counters.missed_ticks.fetch_add(missed, Ordering::Relaxed);
            if missed > 0 {
                let at_ns = self.core.clock.now().steady_ns;
                model.shared.monitor.engine().missed(at_ns);
            }
        }
    }

    /// What there is to see; `None` without a policy.
    pub(super) fn observe(
        &self,
        now: Moment,
        instruction: &str,
    ) -> Option<Result<Sighting, Waiting>> {
        let shared = &self.model.as_ref()?.shared;
        let gates = settings::gates(&locked(&shared.params));
        let seen = locked(&shared.sensors).observation(now, instruction, &gates);
        if let Err(waiting) = &seen {
            shared.counters.waiting_ticks.fetch_add(1, Ordering::Relaxed);
            shared.counters.refused_observations.count_all(waiting);
        }
        Some(seen)
    }

    /// Whether the last prediction for the same goal was made from the very same readings: where nothing new comes, as
    /// while a simulation is paused, nothing new is commanded.
    pub(super) fn was_seen(&self, goal: Option<GoalId>, sighting: &Sighting) -> bool {
        let last = self.last_seen.as_ref();
        last.is_some_and(|(of, readings)| *of == goal && *readings == sighting.readings)
    }

    pub(super) fn predict(
        &mut self,
        sighting: Sighting,
        noise: Noise,
        goal: Option<GoalId>,
        now: Moment,
    ) {
        let Some(model) = &self.model else { return };
        let Sighting { observation, readings, .. } = sighting;
        let cancel = CancelToken::default();
        let progress = match goal {
            None => Progress::default(),
            Some(_) => {
                let events = self.sender.clone();
                Progress::to(move |stage| drop(events.send(Event::Stage(stage))))
            }
        };
        let options =
            PredictOptions { noise: Some(noise.clone()), cancel: cancel.clone(), progress };
        let observation = Arc::new(observation);
        let seen = readings.clone();
        let sessions = self.sessions();
        let observed = observation.clone();
        let ticket = Ticket { observation: observed, readings, noise, begin: now, goal, sessions };
        match model.worker.begin(observation, options, ticket) {
            Ok(()) => {
                self.last_seen = Some((goal, seen));
                model.shared.counters.predictions.fetch_add(1, Ordering::Relaxed);
                self.prediction = Some(Prediction { cancel, unwanted: false });
            }
            Err(occupied @ Occupied::Recovering) => {
                self.failed(goal, Reason::Backend { message: occupied.to_string() });
            }
            // One that is abandoned still runs; a worker that has ended has said so.
            Err(occupied) => warn!("no prediction was begun: {occupied}"),
        }
    }

    /// A prediction has ended.
    pub(super) fn predicted(&mut self, ticket: &Ticket, span: Span, outcome: Outcome) {
        let prediction = self.prediction.take();
        self.record(ticket, &outcome);
        let wanted = prediction.is_some_and(|prediction| !prediction.unwanted) && self.active;
        match outcome {
            Ok(_) if wanted && ticket.sessions != self.sessions() => {
                info!(
                    "a chunk is dropped: the device was started meanwhile, its observation is old"
                );
                self.count_dropped();
            }
            Ok(chunk) if wanted => self.publish(ticket, span, chunk),
            Ok(_) | Err(Failure::Cancelled) => self.count_dropped(),
            Err(failure) => {
                let input = self.blamed(&failure).map(|blamed| blamed.name);
                self.failed(ticket.goal, Reason::of_failure(&failure, input));
            }
        }
        self.end_goal_that_is_over();
    }

    /// Sessions of the device that have begun; 0 without one.
    fn sessions(&self) -> u64 {
        self.core.device().map_or(0, |device| device.sessions())
    }

    /// Keeps the prediction as the policy has made it, before limits change its chunk.
    fn record(&self, ticket: &Ticket, outcome: &Outcome) {
        let Some(model) = &self.model else { return };
        if let Some(recorder) = &*locked(&model.shared.recorder) {
            let options =
                PredictOptions { noise: Some(ticket.noise.clone()), ..Default::default() };
            let outcome = outcome.as_ref().map_err(ToString::to_string);
            recorder.record(&ticket.observation, &options, outcome);
        }
    }

    /// The input for which the policy has refused an observation; its diagnostics say so from now on.
    fn blamed(&self, failure: &Failure<PolicyError>) -> Option<Blamed> {
        let Failure::Policy(error) = failure else { return None };
        let (culprit, reason) = match error {
            PolicyError::Observation(error) => (error.culprit()?, error.to_string()),
            PolicyError::State(error) => {
                (Culprit::StateGroup(error.state_group()?), error.to_string())
            }
            _ => return None,
        };
        let shared = &self.model.as_ref()?.shared;
        let blamed = Blamed::new(culprit, &shared.settings);
        if let Some(input) = blamed.input {
            let at_ns = self.core.clock.now().steady_ns;
            shared.monitor.input(input).useless(&reason, at_ns);
        }
        Some(blamed)
    }

    fn count_dropped(&self) {
        if let Some(model) = &self.model {
            model.shared.counters.dropped_predictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn publish(&mut self, ticket: &Ticket, span: Span, mut chunk: ActionChunk) {
        let Some(model) = &self.model else { return };
        if let Err(violation) = guarded(&model.shared, &ticket.observation.state, &mut chunk) {
            return self.failed(ticket.goal, Reason::Limit { message: violation.to_string() });
        }
        match model.publishers.publish(&model.shared, ticket, &chunk, self.sequence) {
            Err(error) => warn!("the chunk could not be published: {error}"),
            Ok(message) => {
                self.sequence += 1;
                self.arm_moves = true;
                model.publishers.timing.published(&model.shared, ticket, span, &chunk);
                model.debug_images.show(&model.shared, &ticket.observation);
                if let Some(goal) = self.goal.as_mut().filter(|goal| ticket.goal == Some(goal.id)) {
                    goal.chunk_made(message, &chunk.timings);
                }
            }
        }
        let now = self.core.clock.now();
        self.watch_goal_time(now);
    }

    /// A prediction for this goal has given no chunk, or could not begin.
    fn failed(&mut self, of: Option<GoalId>, reason: Reason) {
        if let Some(model) = &self.model {
            model.shared.counters.failed_predictions.fetch_add(1, Ordering::Relaxed);
            let at_ns = self.core.clock.now().steady_ns;
            model.shared.monitor.engine().failed(reason.kind(), &reason.message(), at_ns);
        }
        if let Some(held_back) = self.failure_notes.pass() {
            warn!("no chunk: {}{}", reason.message(), and_more(held_back));
        }
        if self.goal.as_ref().is_some_and(|goal| of == Some(goal.id)) {
            self.end_goal(reason);
        }
    }
}
