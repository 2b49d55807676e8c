//! The recording, message by message, through the node's own conversion, history and gates.

use std::sync::Arc;

mod goals;

use super::chunks::Recorded;
use super::clock::RecordedClock;
use super::events::{Events, Instructed, Jumped, Lacking, Moment, Refused, Seen};
use super::formats::{self, JointOrder};
use super::input_log::InputLog;
use super::instructions::{Change, Due, Instructions};
use super::moments::{Moments, SEARCH_NS};
use super::setup::Setup;
use crate::encode::FrameShapes;
use crate::history::{self, Gates, Input, Reading, Sighting, Timeline, Waiting, WaitingFor};
use crate::node::frames::accepted_frame;
use crate::node::messages::TfMessage;
use crate::node::sensors::Sensors;
use crate::node::settings::{self, Settings};

/// What a replay is played with.
pub struct Player<'a> {
    settings: &'a Settings,
    frame_shapes: FrameShapes,
    gates: Gates,
    jump_max_rad_s: f64,
    clock: RecordedClock,
    sensors: Sensors,
    moments: Moments,
    instruction: String,
    changes: std::vec::IntoIter<Change>,
    next_change: Option<Change>,
    /// Of every chunk that is no recorded one's.
    seed: u64,
    joint_orders: Vec<Option<JointOrder>>,
    last_seen: Option<Vec<Reading>>,
    /// `Some` once the moment of the recorded prediction that is looked for has come: what there was to see then, should
    /// its own readings not be found.
    search: Option<Option<(Moment, Sighting)>>,
    pub events: Events,
}

/// Who makes a chunk of what is seen.
pub type Predict<'p> = dyn FnMut(&mut Events, Seen) + 'p;

impl<'a> Player<'a> {
    pub fn new(
        setup: &'a Setup,
        frame_shapes: FrameShapes,
        seed: u64,
        moments: Moments,
        instructions: Instructions,
        start_ns: i64,
    ) -> Self {
        let Setup { settings, params, .. } = setup;
        let mut events = Events::default();
        for camera in &settings.cameras {
            let message_type = camera.transport.message_type();
            events.cameras.push(InputLog::new(&camera.key, &camera.topic, message_type));
        }
        for state in &settings.states {
            // A topic that feeds many groups goes by its own name.
            let name = match state.reader.groups()[..] {
                [only] => only,
                _ => &state.topic,
            };
            let message_type = state.reader.message_type();
            events.states.push(InputLog::new(name, &state.topic, message_type));
        }
        if !settings.transforms.is_empty() {
            events.transforms = Some(InputLog::new("transforms", "/tf", TfMessage::TYPE));
        }
        let Instructions { first, later, .. } = instructions;
        if !first.trim().is_empty() {
            events.instructions.push(Instructed { log_ns: start_ns, text: first.clone() });
        }
        let mut changes = later.into_iter();
        Self {
            settings,
            frame_shapes,
            gates: settings::gates(params),
            jump_max_rad_s: settings::state_jump_max_rad_s(params),
            clock: RecordedClock::new(params.bool("use_sim_time")),
            sensors: Sensors::new(settings),
            moments,
            instruction: first,
            next_change: changes.next(),
            changes,
            seed,
            joint_orders: vec![None; settings.states.len()],
            last_seen: None,
            search: None,
            events,
        }
    }

    /// Does what is due before a message that was received at `log_ns`.
    pub fn until(&mut self, log_ns: i64, predict: &mut Predict) {
        if !self.clock.is_simulated() {
            while let Some(at_ns) = self.due_before(log_ns) {
                // What should have been before the first message is done at it.
                let at_ns = at_ns.max(self.clock.last_ns().unwrap_or(log_ns));
                self.instruct(at_ns, at_ns);
                if let Some(next) = self.moments.next_on_grid(log_ns, at_ns, true) {
                    self.look(next, predict);
                }
                self.look_for_goal(at_ns, predict);
            }
        }
        let now = self.clock.at(log_ns);
        self.instruct(log_ns, now.ros_ns);
    }

    /// The node's clock at a time of reception.
    pub fn now_ns(&mut self, log_ns: i64) -> i64 {
        self.clock.at(log_ns).ros_ns
    }

    /// The next thing that is due before `log_ns`, where the times of reception are the clock.
    fn due_before(&mut self, log_ns: i64) -> Option<i64> {
        let grid = match &mut self.moments {
            Moments::Grid { next_ns, .. } => Some(*next_ns.get_or_insert(log_ns)),
            Moments::Goals(goals) => goals.front().map(|(begin_ns, _)| match self.search {
                None => *begin_ns,
                Some(_) => begin_ns.saturating_add(SEARCH_NS),
            }),
            Moments::Frames { .. } => None,
        };
        grid.filter(|at_ns| *at_ns < log_ns)
    }

    /// `/clock` has come.
    pub fn tick(&mut self, clock_ns: i64, log_ns: i64, predict: &mut Predict) {
        self.clock.tick(clock_ns);
        let now = self.clock.at(log_ns);
        self.sensors.history.advance(now);
        self.follow_clock(log_ns);
        if !self.clock.is_simulated() || now.ros_ns == 0 {
            return;
        }
        self.instruct(log_ns, now.ros_ns);
        if self.moments.passes_grid(now.ros_ns) {
            self.look(log_ns, predict);
        }
        self.look_for_goal(log_ns, predict);
    }

    /// A message of camera number `number`.
    pub fn camera(&mut self, number: usize, log_ns: i64, data: Vec<u8>, predict: &mut Predict) {
        let at = self.clock.at(log_ns);
        let settings = &self.settings.cameras[number];
        let log = &mut self.events.cameras[number];
        // Decoding takes the bytes, and the format is told by the message and the size together.
        let described = data.clone();
        let read = accepted_frame(settings, &self.frame_shapes, data).map(|(stamp_ns, decoded)| {
            decoded.notes.iter().for_each(|note| log.note_once(note.to_string()));
            (stamp_ns, Arc::new(decoded.frame))
        });
        let size = read.as_ref().ok().map(|(_, frame)| [frame.width(), frame.height()]);
        if let Some(format) = formats::of_frame(settings, &described, size) {
            log.has_format(format, log_ns);
        }
        let stamp_ns = read.as_ref().ok().map(|(stamp_ns, _)| *stamp_ns);
        let taken = self.sensors.take_frame(number, read, at, self.settings.timeline);
        self.follow_clock(log_ns);
        let is_taken = taken.is_ok();
        self.note(Input::Camera(number), taken.map(|()| stamp_ns), log_ns, at);
        if is_taken && number == 0 && self.moments.frame() {
            self.look(log_ns, predict);
        }
        self.look_for_goal(log_ns, predict);
    }

    /// A message of state source number `number`.
    pub fn state(&mut self, number: usize, log_ns: i64, data: &[u8], predict: &mut Predict) {
        let at = self.clock.at(log_ns);
        let settings = &self.settings.states[number];
        let read = settings.reader.read(data);
        if let Some(order) = formats::of_state(settings, data) {
            let log = &mut self.events.states[number];
            let before = self.joint_orders[number].replace(order.clone());
            if before.is_some_and(|before| before != order) {
                log.order_changes_ns.push(log_ns);
            }
            log.has_format(order.text(), log_ns);
        }
        let taken =
            self.sensors.take_state(number, read, at, self.settings.timeline, self.jump_max_rad_s);
        self.follow_clock(log_ns);
        self.note(Input::State(number), taken, log_ns, at);
        self.look_for_goal(log_ns, predict);
    }

    /// A message of transforms.
    pub fn transforms(&mut self, fixed: bool, log_ns: i64, data: &[u8], predict: &mut Predict) {
        let at = self.clock.at(log_ns);
        let refused = match TfMessage::from_cdr(data) {
            Ok(message) => {
                let timeline = self.settings.timeline;
                let refused = self.sensors.insert_transforms(&message, fixed, at, timeline);
                if let Some(log) = &mut self.events.transforms {
                    log.stats.taken_unstamped(at.steady_ns);
                    log.taken_ns.push(log_ns);
                }
                refused
            }
            Err(error) => vec![error.to_string()],
        };
        self.follow_clock(log_ns);
        if let Some(log) = &mut self.events.transforms {
            refused.iter().for_each(|reason| log.refused(reason, log_ns, at.steady_ns));
        }
        self.look_for_goal(log_ns, predict);
    }

    /// The recording has ended at `log_ns`.
    pub fn finish(&mut self, log_ns: i64, predict: &mut Predict) {
        self.until(log_ns, predict);
        if !self.clock.is_simulated()
            && let Some(next) = self.moments.next_on_grid(log_ns, log_ns, true)
        {
            self.look(next, predict);
        }
        // What was looked for until here is not found any more.
        while let Moments::Goals(goals) = &mut self.moments {
            let Some((_, goal)) = goals.pop_front() else { break };
            let sighting = self.search.take().flatten();
            self.goal_ends(goal, sighting, log_ns, predict);
        }
    }

    /// What became of a message: its header stamp, or why it was refused.
    fn note(
        &mut self,
        input: Input,
        taken: Result<Option<i64>, String>,
        log_ns: i64,
        at: history::Moment,
    ) {
        let log = match input {
            Input::Camera(number) => &mut self.events.cameras[number],
            Input::State(number) => &mut self.events.states[number],
        };
        match taken {
            Ok(header_ns) => {
                let header_ns = header_ns.filter(|stamp_ns| *stamp_ns != 0);
                let stamp_ns = match self.settings.timeline {
                    Timeline::Stamp => header_ns.unwrap_or(at.ros_ns),
                    Timeline::Receive => at.ros_ns,
                };
                log.stats.taken(header_ns, stamp_ns, at.steady_ns, Default::default());
                log.taken_ns.push(log_ns);
            }
            Err(reason) => log.refused(&reason, log_ns, at.steady_ns),
        }
    }

    /// As the node does when its clock jumps.
    fn follow_clock(&mut self, log_ns: i64) {
        let Some(jump) = self.sensors.history.take_clock_jump() else { return };
        self.events.jumps.push(Jumped { log_ns, by_ns: jump.by_ns });
        self.moments.jumped();
        self.search = None;
        let logs = self.events.cameras.iter_mut().chain(&mut self.events.states);
        logs.chain(&mut self.events.transforms).for_each(|log| log.stats.forget_stamps());
    }

    /// Another instruction is another goal.
    fn instruct(&mut self, log_ns: i64, ros_ns: i64) {
        let is_due = |change: &mut Change| match change.due {
            Due::Log(at_ns) => at_ns <= log_ns,
            Due::Node(at_ns) => ros_ns != 0 && at_ns <= ros_ns,
        };
        while let Some(change) = self.next_change.take_if(is_due) {
            self.next_change = self.changes.next();
            if change.text == self.instruction {
                continue;
            }
            let at_ns = match change.due {
                Due::Log(at_ns) => at_ns,
                Due::Node(_) => log_ns,
            };
            let mut at = self.clock.at(log_ns);
            let due_ns = match change.due {
                Due::Log(_) if self.clock.is_simulated() => at.ros_ns,
                Due::Log(due_ns) | Due::Node(due_ns) => due_ns,
            };
            // The clock has not jumped by that little.
            at.ros_ns = due_ns.max(at.ros_ns.saturating_sub(SEARCH_NS));
            self.sensors.history.begin_goal(at);
            self.follow_clock(log_ns);
            self.events.instructions.push(Instructed { log_ns: at_ns, text: change.text.clone() });
            self.instruction = change.text;
        }
    }

    /// A chunk is wanted now.
    fn look(&mut self, log_ns: i64, predict: &mut Predict) {
        let now = self.clock.at(log_ns);
        let seen = self.sensors.observation(now, &self.instruction, &self.gates);
        self.follow_clock(log_ns);
        let moment = Moment { log_ns, ros_ns: now.ros_ns, era: self.events.jumps.len() };
        match seen {
            Err(waiting) => self.refuse(moment, &waiting),
            Ok(sighting) if self.last_seen.as_ref() == Some(&sighting.readings) => {
                self.events.unchanged += 1;
            }
            Ok(sighting) => self.predict(moment, sighting, Some(self.seed), None, predict),
        }
    }

    fn predict(
        &mut self,
        moment: Moment,
        sighting: Sighting,
        seed: Option<u64>,
        goal: Option<(Recorded, bool)>,
        predict: &mut Predict,
    ) {
        let Sighting { observation, readings, camera_skew_ns } = sighting;
        self.last_seen = Some(readings.clone());
        let seen = Seen { moment, observation, readings, camera_skew_ns, seed, goal };
        predict(&mut self.events, seen);
    }

    fn refuse(&mut self, moment: Moment, waiting: &Waiting) {
        let lacking = |lack: &WaitingFor| Lacking {
            input: lack.input().to_owned(),
            cause: lack.cause(),
            text: lack.to_string(),
        };
        let lacks = waiting.0.iter().map(lacking).collect();
        self.events.refused.push(Refused { moment, lacks });
    }
}
