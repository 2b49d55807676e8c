//! Sensor readings by header stamp, and the observation that they make up at one moment.
//!
//! Header stamps carry the meaning, times of receipt only tell whether a topic is alive. What an observation holds
//! depends on the stamps alone: the order in which messages arrive never changes it.

mod clock;
mod source;
mod track;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contract::{Frame, Observation};

pub use clock::{ClockJump, Moment, Refused, Timeline, seconds};
pub use waiting::{Lack, TRANSFORM, Waiting, WaitingFor};

use clock::{CLOCK_SLACK_NS, FORWARD_JUMP_NS};
use source::Source;
use track::Track;

/// State groups of one sample, raw values by group name.
pub type StateSample = BTreeMap<String, Vec<f64>>;

/// What a policy needs to see, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    pub cameras: Vec<CameraInput>,
    pub states: Vec<StateInput>,
    /// Frame times in control steps relative to the newest frame of the camera, oldest first.
    pub frame_deltas: Vec<i32>,
    /// Length of a control step, nanoseconds.
    pub step_ns: i64,
}

/// One camera.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraInput {
    /// The checkpoint's key.
    pub key: String,
    pub topic: String,
}

/// One source of state groups; each of its samples has all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateInput {
    pub topic: String,
    pub groups: Vec<String>,
    /// Whether its messages have a header stamp. Those without are dated by their receipt, which never dates an
    /// observation.
    pub stamped: bool,
}

/// Ages beyond which a reading is stale, and what stamps mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    pub camera_max_age_ns: i64,
    pub state_max_age_ns: i64,
    pub timeline: Timeline,
}

/// Which input a reading belongs to: a place in [`Inputs::cameras`] or [`Inputs::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Camera(usize),
    State(usize),
}

/// An observation, and every reading in it.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub observation: Observation,
    pub readings: Vec<Reading>,
}

/// A reading that went into an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Camera key or state group.
    pub input: String,
    /// Where it came from; [`TRANSFORM`] and two frames for a transform.
    pub topic: String,
    /// Control steps relative to now.
    pub delta: i32,
    pub stamp_ns: i64,
}

/// The readings that an observation can still need, each kept once per stamp. Memory is bounded by the span of the
/// frame deltas, whatever the rate of a camera.
#[derive(Debug)]
pub struct History {
    inputs: Inputs,
    cameras: Vec<Source<Arc<Frame>>>,
    states: Vec<Source<StateSample>>,
    now: Option<Moment>,
    jump: Option<ClockJump>,
    jumps: u64,
}

impl History {
    pub fn new(inputs: Inputs) -> Self {
        let oldest = inputs.frame_deltas.iter().copied().min().unwrap_or(0).min(0);
        let span_ns = -i64::from(oldest) * inputs.step_ns;
        let camera = |_: &CameraInput| Source::new(Track::spanning(span_ns, inputs.step_ns));
        let state = |_: &StateInput| Source::new(Track::spanning(0, inputs.step_ns));
        Self {
            cameras: inputs.cameras.iter().map(camera).collect(),
            states: inputs.states.iter().map(state).collect(),
            inputs,
            now: None,
            jump: None,
            jumps: 0,
        }
    }

    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Takes in a frame of camera number `camera`.
    ///
    /// # Errors
    /// The stamp cannot be used, see [`Refused`]; the history is as before.
    pub fn insert_frame(
        &mut self,
        camera: usize,
        stamp_ns: i64,
        frame: Arc<Frame>,
        at: Moment,
        timeline: Timeline,
    ) -> Result<(), Refused> {
        self.advance(at);
        match self.cameras.get_mut(camera) {
            Some(source) => source.accept(stamp_ns, frame, at, timeline),
            None => Err(Refused::NoSuchInput { number: camera }),
        }
    }

    /// Takes in a sample of state source number `source`. One without header stamp is dated by its receipt.
    ///
    /// # Errors
    /// The stamp cannot be used, see [`Refused`]; the history is as before.
    pub fn insert_state(
        &mut self,
        source: usize,
        stamp_ns: Option<i64>,
        sample: StateSample,
        at: Moment,
        timeline: Timeline,
    ) -> Result<(), Refused> {
        self.advance(at);
        let timeline = if stamp_ns.is_none() { Timeline::Receive } else { timeline };
        match self.states.get_mut(source) {
            Some(source) => source.accept(stamp_ns.unwrap_or(0), sample, at, timeline),
            None => Err(Refused::NoSuchInput { number: source }),
        }
    }

    /// Begins a new goal: where a policy looks back in time, what was seen until now is of another goal, and neither it
    /// nor a frame that was taken before and comes later is ever shown again. A policy that sees the newest frame alone
    /// goes on as before.
    pub fn begin_goal(&mut self, at: Moment) {
        self.advance(at);
        if self.inputs.frame_deltas.iter().all(|delta| *delta == 0) {
            return;
        }
        for camera in &mut self.cameras {
            camera.clear();
            camera.not_before_ns = at.ros_ns;
        }
    }

    /// Notes that a message came but could not be read: a topic that sends only such messages is not silent, and
    /// `reason` is what its user has to know.
    pub fn refuse(&mut self, input: Input, reason: String, at: Moment) {
        self.advance(at);
        let (received, refusal) = match input {
            Input::Camera(i) => match self.cameras.get_mut(i) {
                Some(source) => (&mut source.received_steady_ns, &mut source.refusal),
                None => return,
            },
            Input::State(i) => match self.states.get_mut(i) {
                Some(source) => (&mut source.received_steady_ns, &mut source.refusal),
                None => return,
            },
        };
        *received = Some(at.steady_ns);
        *refusal = Some(reason);
    }

    /// Forgets every reading.
    pub fn clear(&mut self) {
        self.cameras.iter_mut().for_each(Source::clear);
        self.states.iter_mut().for_each(Source::clear);
    }

    /// Tells the history the time. A clock that jumps clears it: its stamps and later ones are not comparable.
    pub fn advance(&mut self, now: Moment) {
        if let Some(last) = self.now.filter(|last| last.ros_ns != 0) {
            let elapsed = now.ros_ns.saturating_sub(last.ros_ns);
            let unexplained = elapsed.saturating_sub(now.steady_ns - last.steady_ns);
            if elapsed < -CLOCK_SLACK_NS || unexplained > FORWARD_JUMP_NS {
                self.clear();
                self.jump = Some(ClockJump { by_ns: elapsed });
                self.jumps += 1;
            }
        }
        self.now = Some(now);
    }

    /// The newest sample of state source number `source`, and its stamp.
    pub fn newest_state(&self, source: usize) -> Option<(i64, &StateSample)> {
        self.states.get(source)?.track.at(0)
    }

    /// The newest reading of every input that has one.
    pub fn newest(&self) -> Vec<Reading> {
        let reading = |input: &str, topic: &str, stamp_ns: Option<i64>| {
            let (input, topic) = (input.to_owned(), topic.to_owned());
            stamp_ns.map(|stamp_ns| Reading { input, topic, delta: 0, stamp_ns })
        };
        let cameras = self.inputs.cameras.iter().zip(&self.cameras);
        let frames = cameras
            .filter_map(|(camera, source)| reading(&camera.key, &camera.topic, source.track.newest()));
        let states = self.inputs.states.iter().zip(&self.states);
        let samples = states.flat_map(|(state, source)| {
            let stamp_ns = source.track.newest();
            state.groups.iter().filter_map(move |group| reading(group, &state.topic, stamp_ns))
        });
        frames.chain(samples).collect()
    }

    /// How often the clock has jumped.
    pub fn clock_jumps(&self) -> u64 {
        self.jumps
    }

    /// The latest jump of the clock since the last call.
    pub fn take_clock_jump(&mut self) -> Option<ClockJump> {
        self.jump.take()
    }

    /// What there is to see now.
    ///
    /// Of each camera, the newest frame and, for every earlier delta, the frame that is nearest in time; before there
    /// are enough, the oldest one is repeated. Of each state source, the newest sample. The observation is dated by the
    /// newest header stamp in it.
    ///
    /// # Errors
    /// [`Waiting`] names every input that is missing or stale.
    pub fn observation(
        &mut self,
        now: Moment,
        instruction: &str,
        freshness: &Freshness,
    ) -> Result<Sighting, Waiting> {
        self.advance(now);
        let waiting = self.waiting(now, instruction, freshness);
        if !waiting.0.is_empty() {
            return Err(waiting);
        }
        let mut observation =
            Observation { instruction: instruction.to_owned(), ..Default::default() };
        let mut readings = Vec::new();
        let mut newest_ns = None;
        for (camera, source) in self.inputs.cameras.iter().zip(&self.cameras) {
            let mut frames = Vec::with_capacity(self.inputs.frame_deltas.len());
            for &delta in &self.inputs.frame_deltas {
                let Some((stamp_ns, frame)) =
                    source.track.at(i64::from(delta) * self.inputs.step_ns)
                else {
                    continue;
                };
                frames.push(Arc::clone(frame));
                newest_ns = newest_ns.max(Some(stamp_ns));
                let (input, topic) = (camera.key.clone(), camera.topic.clone());
                readings.push(Reading { input, topic, delta, stamp_ns });
            }
            observation.frames.insert(camera.key.clone(), frames);
        }
        for (input, source) in self.inputs.states.iter().zip(&self.states) {
            let Some((stamp_ns, sample)) = source.track.at(0) else {
                continue;
            };
            if input.stamped {
                newest_ns = newest_ns.max(Some(stamp_ns));
            }
            for (group, values) in sample {
                observation.state.insert(group.clone(), values.clone());
                let topic = input.topic.clone();
                readings.push(Reading { input: group.clone(), topic, delta: 0, stamp_ns });
            }
        }
        observation.stamp_ns = newest_ns.unwrap_or(now.ros_ns);
        Ok(Sighting { observation, readings })
    }

    fn waiting(&self, now: Moment, instruction: &str, freshness: &Freshness) -> Waiting {
        let mut waiting = Waiting::default();
        if now.ros_ns == 0 {
            waiting.0.push(WaitingFor::Clock);
        }
        if instruction.trim().is_empty() {
            waiting.0.push(WaitingFor::Instruction);
        }
        for (camera, source) in self.inputs.cameras.iter().zip(&self.cameras) {
            if let Some(lack) = source.lack(now, freshness.camera_max_age_ns) {
                let (key, topic) = (camera.key.clone(), camera.topic.clone());
                waiting.0.push(WaitingFor::Camera { key, topic, lack });
            }
        }
        for (state, source) in self.inputs.states.iter().zip(&self.states) {
            if let Some(lack) = source.lack(now, freshness.state_max_age_ns) {
                let (groups, topic) = (state.groups.clone(), state.topic.clone());
                waiting.0.push(WaitingFor::State { groups, topic, lack });
            }
        }
        waiting
    }
}

#[cfg(test)]
mod tests;
