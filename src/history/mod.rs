//! Sensor readings by header stamp, and the observation that they make up at one moment.
//!
//! Header stamps carry the meaning, times of receipt only tell whether a topic is alive. What an observation holds
//! depends on the stamps alone: the order in which messages arrive never changes it.

mod camera;
mod cause;
mod clock;
mod gates;
mod observe;
mod source;
mod state;
mod track;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contract::{Frame, Observation};

pub use cause::Cause;
pub use clock::{ClockJump, Moment, Refused, Timeline, seconds};
pub use gates::Gates;
pub use waiting::{Forgotten, Lack, TRANSFORM, Waiting, WaitingFor};

use camera::Camera;
use clock::{CLOCK_SLACK_NS, FORWARD_JUMP_NS};
use state::State;
use track::Track;

/// State groups of one sample, raw values by group name.
pub type StateSample = BTreeMap<String, Vec<f64>>;

/// What a policy needs to see, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    pub cameras: Vec<CameraInput>,
    pub states: Vec<StateInput>,
    /// Frame times in control steps relative to the frame that the camera shows as that of now, oldest first.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateInput {
    pub topic: String,
    pub groups: Vec<String>,
    /// Joint names of the groups whose values are positions of joints in rad, by group.
    pub joints: BTreeMap<String, Vec<String>>,
    /// Whether its messages have a header stamp. Those without are dated by their receipt, which never dates an
    /// observation.
    pub stamped: bool,
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
    /// Between the oldest and the newest of the frames that the cameras show as those of now; 0 for a single camera.
    pub camera_skew_ns: i64,
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

/// How far apart the newest frames of two cameras may be for both to show what was taken at the same time. Frames of
/// several cameras are kept for so long.
const PAIRING_NS: i64 = 500_000_000;

/// The readings that an observation can still need, each kept once per stamp. Memory is bounded by the span of the
/// frame deltas and by `PAIRING_NS`, whatever the rate of a camera.
#[derive(Debug)]
pub struct History {
    inputs: Inputs,
    cameras: Vec<Camera>,
    states: Vec<State>,
    now: Option<Moment>,
    jump: Option<ClockJump>,
    jumps: u64,
}

impl History {
    pub fn new(inputs: Inputs) -> Self {
        let oldest = inputs.frame_deltas.iter().copied().min().unwrap_or(0).min(0);
        let span_ns = -i64::from(oldest) * inputs.step_ns;
        let pairing_ns = if inputs.cameras.len() > 1 { PAIRING_NS } else { 0 };
        let camera =
            |_: &CameraInput| Camera::new(Track::spanning(span_ns, inputs.step_ns, pairing_ns));
        let state = |_: &StateInput| State::new(Track::spanning(0, inputs.step_ns, 0));
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
            Some(camera) => camera.accept(stamp_ns, frame, at, timeline),
            None => Err(Refused::NoSuchInput { number: camera }),
        }
    }

    /// Takes in a sample of state source number `source`. One without header stamp is dated by its receipt. A joint that
    /// has moved faster than `jump_max_rad_s` since the last sample is a fault; 0 for no such limit.
    ///
    /// # Errors
    /// The stamp or the sample cannot be used, see [`Refused`]; the history is as before.
    pub fn insert_state(
        &mut self,
        source: usize,
        stamp_ns: Option<i64>,
        sample: StateSample,
        at: Moment,
        timeline: Timeline,
        jump_max_rad_s: f64,
    ) -> Result<(), Refused> {
        self.advance(at);
        let timeline = if stamp_ns.is_none() { Timeline::Receive } else { timeline };
        let known = self.inputs.states.get(source).zip(self.states.get_mut(source));
        let Some((input, state)) = known else {
            return Err(Refused::NoSuchInput { number: source });
        };
        state.accept(input, stamp_ns.unwrap_or(0), sample, at, timeline, jump_max_rad_s)
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
            camera.forget(Forgotten::NewGoal, at.steady_ns);
            camera.source.not_before_ns = at.ros_ns;
        }
    }

    /// Notes that a message came but could not be read: a topic that sends only such messages is not silent, and
    /// `reason` is what its user has to know.
    pub fn refuse(&mut self, input: Input, reason: String, at: Moment) {
        self.advance(at);
        match input {
            Input::Camera(number) => {
                if let Some(camera) = self.cameras.get_mut(number) {
                    camera.source.refuse(reason, at);
                }
            }
            Input::State(number) => {
                if let Some(state) = self.states.get_mut(number) {
                    state.source.refuse(reason, at);
                }
            }
        }
    }

    /// The clock has jumped: forgets every reading.
    fn forget(&mut self, steady_ns: i64) {
        let what = Forgotten::ClockJump;
        self.cameras.iter_mut().for_each(|camera| camera.forget(what, steady_ns));
        self.states.iter_mut().for_each(|state| state.forget(what, steady_ns));
    }

    /// Tells the history the time. A clock that jumps clears it: its stamps and later ones are not comparable. What was
    /// received before the last call, but took longer to read, says nothing about the clock.
    pub fn advance(&mut self, now: Moment) {
        if self.now.is_some_and(|last| now.steady_ns < last.steady_ns) {
            return;
        }
        if let Some(last) = self.now.filter(|last| last.ros_ns != 0) {
            let elapsed = now.ros_ns.saturating_sub(last.ros_ns);
            let unexplained = elapsed.saturating_sub(now.steady_ns - last.steady_ns);
            if elapsed < -CLOCK_SLACK_NS || unexplained > FORWARD_JUMP_NS {
                self.forget(now.steady_ns);
                self.jump = Some(ClockJump { by_ns: elapsed });
                self.jumps += 1;
            }
        }
        self.now = Some(now);
    }

    /// The newest sample of state source number `source`, and its stamp.
    pub fn newest_state(&self, source: usize) -> Option<(i64, &StateSample)> {
        self.states.get(source)?.source.track.newest()
    }

    /// The newest reading of every input that has one.
    pub fn newest(&self) -> Vec<Reading> {
        let reading = |input: &str, topic: &str, stamp_ns: Option<i64>| {
            let (input, topic) = (input.to_owned(), topic.to_owned());
            stamp_ns.map(|stamp_ns| Reading { input, topic, delta: 0, stamp_ns })
        };
        let cameras = self.inputs.cameras.iter().zip(&self.cameras);
        let frames = cameras.filter_map(|(camera, seen)| {
            let stamp_ns = seen.source.track.newest().map(|(stamp_ns, _)| stamp_ns);
            reading(&camera.key, &camera.topic, stamp_ns)
        });
        let states = self.inputs.states.iter().zip(&self.states);
        let samples = states.flat_map(|(state, seen)| {
            let stamp_ns = seen.source.track.newest().map(|(stamp_ns, _)| stamp_ns);
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
}

#[cfg(test)]
mod tests;
