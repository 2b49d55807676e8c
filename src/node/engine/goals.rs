//! What the engine does about goals.

use std::time::Instant;

use r2r::gr00t_blackhole::action::PredictChunk;
use tracing::{info, warn};

use super::super::action::goal::{Asked, Ended, Goal, Terms};
use super::super::action::goals::{End, GoalId};
use super::super::instruction::INSTRUCTION;
use super::super::runtime::{from_message, locked};
use super::super::settings;
use super::ending::Reason;
use super::running::{Queued, Running};
use super::server::{ActionServer, Cancel, SendGoal};
use super::{Engine, Pace, STEP_LIMIT};
use crate::history::Moment;

const NS_PER_S: f64 = 1e9;

impl Engine {
    /// Accepts or rejects.
    pub(super) fn goal_arrived(&mut self, request: SendGoal) {
        let now_ns = self.core.clock.now().ros_ns;
        let refused = match self.server.arrived(&request) {
            None => "its id is all zero, or that of another goal".to_owned(),
            Some(arrived) => match self.judged(arrived.goal) {
                Ok(goal) => {
                    return self
                        .accept(request, Queued { id: arrived.id, goal, accepted_ns: now_ns });
                }
                Err(reason) => reason,
            },
        };
        warn!("a goal was rejected: {refused}");
        ActionServer::reject(request, now_ns);
    }

    /// The goal, if it can be worked on now.
    fn judged(&self, goal: PredictChunk::Goal) -> Result<Goal, String> {
        let Some(model) = self.model.as_ref().filter(|_| self.active && self.leaving.is_none())
        else {
            return Err("the node is not active; activate it first".to_owned());
        };
        let shared = &model.shared;
        let (terms, replaces) = {
            let params = locked(&shared.params);
            let [rows, columns] = shared.noise_shape;
            let terms = Terms {
                instruction: params.text(INSTRUCTION).to_owned(),
                seed: settings::seed(&params, shared.version),
                noise_shape: [rows, columns],
                max_duration_ns: (params.double("goal_max_duration_s") * NS_PER_S) as i64,
            };
            (terms, params.text("preemption") == "replace")
        };
        let goal = Goal::new(asked(goal), &terms).map_err(|error| error.to_string())?;
        (shared.instruction_check)(&goal.instruction).map_err(|error| error.to_string())?;
        if self.goal.is_some() && !replaces {
            return Err("another goal is running (parameter `preemption` is reject)".to_owned());
        }
        Ok(goal)
    }

    fn accept(&mut self, request: SendGoal, goal: Queued) {
        info!("goal accepted: '{}'", goal.goal.instruction);
        self.server.accept(request, goal.id, goal.accepted_ns);
        // Whatever is being predicted is for somebody else.
        self.drop_prediction();
        if let Some(earlier) = self.next.replace(goal) {
            self.end_queued(earlier, Reason::Replaced);
        }
        self.end_goal(Reason::Replaced);
    }

    pub(super) fn cancel(&mut self, request: Cancel) {
        let cancelled = self.server.cancel(request);
        if self.next.as_ref().is_some_and(|next| cancelled.contains(&next.id))
            && let Some(queued) = self.next.take()
        {
            self.end_queued(queued, Reason::Cancelled);
        }
        if self.goal.as_ref().is_some_and(|goal| cancelled.contains(&goal.id)) {
            self.end_goal(Reason::Cancelled);
        }
    }

    /// Takes up the goal that waits, if none is running.
    pub(super) fn begin_next_goal(&mut self, now: Moment) {
        if self.goal.is_some() {
            return;
        }
        let (Some(model), Some(queued)) = (&self.model, self.next.take()) else { return };
        self.set_goal_runs(true);
        locked(&model.shared.sensors).history.begin_goal(now);
        let pace = Pace::new(model.shared.settings.period_ns);
        self.server.execute(&queued.id);
        self.goal = Some(Running::new(queued, pace));
    }

    /// Begins the next chunk of the running goal, if it is due and everything is there.
    pub(super) fn work_on_goal(&mut self, now: Moment) {
        let Some(goal) = &mut self.goal else { return };
        if goal.ending.is_some() || !goal.pace.is_due(now.ros_ns) {
            return;
        }
        let (instruction, noise) = (goal.goal.instruction.clone(), goal.goal.noise.clone());
        let Some(seen) = self.observe(now, &instruction) else { return };
        let id = self.goal.as_ref().map(|goal| goal.id);
        let seen_before = seen.as_ref().is_ok_and(|sighting| self.was_seen(id, sighting));
        let Some(goal) = &mut self.goal else { return };
        match seen {
            Ok(_) if seen_before => goal.pace.retry(now.ros_ns),
            Ok(sighting) => {
                goal.pace.begun(now.ros_ns);
                goal.chunk_begins(&sighting.readings, now.ros_ns);
                let id = goal.id;
                self.predict(sighting, noise, Some(id), now);
            }
            Err(waiting) => {
                goal.pace.retry(now.ros_ns);
                let since_ns = *goal.lacking_since_ns.get_or_insert(now.ros_ns);
                let lacking = Reason::lacking(&waiting);
                goal.lacks = Some(lacking.clone());
                // Once it has moved the arm, a goal that is blind does not go on.
                let patience_ns = if goal.chunks == 0 { self.start_patience_ns() } else { 0 };
                if now.ros_ns.saturating_sub(since_ns) >= patience_ns {
                    self.end_goal(lacking);
                } else {
                    self.tell_waiting(&waiting.to_string(), now.ros_ns);
                }
            }
        }
    }

    fn start_patience_ns(&self) -> i64 {
        locked(&self.core.params).integer("goal_start_timeout_ms") * 1_000_000
    }

    fn tell_waiting(&mut self, waiting_for: &str, now_ns: i64) {
        let (Some(goal), Some(model)) = (&mut self.goal, &self.model) else { return };
        if goal.waiting_feedback.pass().is_some() {
            let newest = locked(&model.shared.sensors).history.newest();
            let feedback = goal.waits(waiting_for.to_owned(), &newest, now_ns);
            self.server.feedback(&goal.id, feedback);
        }
    }

    pub(super) fn stage_begins(&self, stage: &'static str) {
        if let Some(goal) = self.goal.as_ref().filter(|goal| goal.ending.is_none()) {
            let now_ns = self.core.clock.now().ros_ns;
            self.server.feedback(&goal.id, goal.in_stage(stage, now_ns));
        }
    }

    /// The time of a goal that was accepted before a simulated clock has started begins when it does.
    pub(super) fn begin_goal_time(&mut self, now: Moment) {
        if let Some(goal) = self.goal.as_mut().filter(|goal| goal.accepted_ns == 0) {
            goal.accepted_ns = now.ros_ns;
            goal.lacking_since_ns = None;
        }
        if let Some(queued) = self.next.as_mut().filter(|queued| queued.accepted_ns == 0) {
            queued.accepted_ns = now.ros_ns;
        }
    }

    /// Ends the running goal where its time is up or its chunks are made.
    pub(super) fn watch_goal_time(&mut self, now: Moment) {
        let Some(running) = &self.goal else { return };
        let Running { goal, chunks, accepted_ns, lacks: goal_lacks, .. } = running;
        let Some(ended) = goal.ended(*chunks, now.ros_ns.saturating_sub(*accepted_ns)) else {
            return;
        };
        let lacking = goal_lacks.clone();
        let reason = match (ended, lacking) {
            // Nothing was done, since nothing could be seen.
            (Ended::Succeeded, Some(lacking)) if *chunks == 0 => lacking,
            (Ended::Succeeded, None) if *chunks == 0 => {
                let limit_ns = goal.duration_ns.unwrap_or_default();
                Reason::Deadline { limit_ns, lacking: None }
            }
            (Ended::Succeeded, _) => Reason::Succeeded,
            (Ended::Deadline, lacking) => {
                let limit_ns = goal.deadline_ns.unwrap_or_default();
                Reason::Deadline { limit_ns, lacking: lacking.map(Box::new) }
            }
            (Ended::MaxDuration, _) => Reason::MaxDuration { limit_ns: goal.max_duration_ns },
        };
        self.end_goal(reason);
    }

    /// The running goal is to end; it has, once the prediction in work has ended. The first reason counts.
    pub(super) fn end_goal(&mut self, reason: Reason) {
        let Some(goal) = &mut self.goal else { return };
        if goal.ending.is_none() {
            goal.ending = Some((reason, Instant::now()));
            self.drop_prediction();
        }
        self.end_goal_that_is_over();
    }

    pub(super) fn end_goal_that_is_over(&mut self) {
        let Some((_, since)) = self.goal.as_ref().and_then(|goal| goal.ending.as_ref()) else {
            return;
        };
        if self.prediction.is_none() || since.elapsed() >= STEP_LIMIT {
            self.finish_goal();
        }
    }

    /// Stops the arm where that is called for, and then answers the client.
    pub(super) fn finish_goal(&mut self) {
        let Some(mut goal) = self.goal.take() else { return };
        let Some((reason, _)) = goal.ending.take() else {
            self.goal = Some(goal);
            return;
        };
        // One that ends without a chunk leaves the arm to what was published before it.
        if reason.stops_the_arm() || (goal.chunks == 0 && self.arm_moves && self.next.is_none()) {
            self.stop_arm();
        }
        let (chunks, message) = (goal.chunks, reason.message());
        match reason.end() {
            End::Aborted => warn!("goal ended after {chunks} chunks: {message}"),
            End::Succeeded | End::Canceled => info!("goal ended after {chunks} chunks: {message}"),
        }
        let id = goal.id;
        let result = goal.result(&reason, self.core.clock.now().ros_ns);
        self.set_goal_runs(false);
        self.wait_for_instruction(true);
        self.server.end(&id, reason.end(), result);
    }

    /// Ends a goal that was never begun.
    pub(super) fn end_queued(&mut self, queued: Queued, reason: Reason) {
        // It was to take over from a goal that, for its sake, ended without a stop.
        if reason != Reason::Replaced && self.arm_moves {
            self.stop_arm();
        }
        let id: GoalId = queued.id;
        let result =
            Running::new(queued, Pace::new(None)).result(&reason, self.core.clock.now().ros_ns);
        self.server.end(&id, reason.end(), result);
    }
}

fn asked(goal: PredictChunk::Goal) -> Asked {
    Asked {
        instruction: goal.instruction,
        seed: goal.seed_given.then_some(goal.seed),
        noise: goal.noise,
        chunks: goal.chunks,
        duration_ns: from_message(goal.duration.sec, goal.duration.nanosec),
        deadline_ns: from_message(goal.deadline.sec, goal.deadline.nanosec),
    }
}
