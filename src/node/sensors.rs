//! Everything that the robot's topics have said: readings, transforms, and the observation that they make up together.

use std::sync::Arc;

use super::messages::{TfMessage, TransformStamped};
use super::rigid::rigid;
use super::settings::{Settings, TransformSettings};
use super::state::{ReadError, StateMessage};
use super::tf::{Found, Query, Transforms};
use crate::contract::Frame;
use crate::history::{
    Gates, History, Input, Lack, Moment, Reading, Sighting, StateInput, TRANSFORM, Timeline,
    Waiting, WaitingFor,
};

/// Readings and transforms.
#[derive(Debug)]
pub struct Sensors {
    pub history: History,
    transforms: Transforms,
    wanted: Vec<TransformSettings>,
    /// Per state source, the nodes that publish on its topic.
    publishers: Vec<Vec<String>>,
    received_steady_ns: Option<i64>,
    /// The frame whose latest transform was refused, and why.
    refusal: Option<(String, String)>,
    /// Jumps of the clock that the transforms have followed.
    clock_jumps: u64,
}

/// Where the pose of a group comes from, as readings and contract name it.
pub fn transform_name(wanted: &TransformSettings) -> String {
    format!("{TRANSFORM}{} {}", wanted.base_frame, wanted.tip_frame)
}

impl Sensors {
    pub fn new(settings: &Settings) -> Self {
        let ends = settings.transforms.iter().flat_map(|t| [t.base_frame.as_str(), &t.tip_frame]);
        Self {
            history: History::new(settings.inputs()),
            transforms: Transforms::new(ends),
            wanted: settings.transforms.clone(),
            publishers: vec![Vec::new(); settings.states.len()],
            received_steady_ns: None,
            refusal: None,
            clock_jumps: 0,
        }
    }

    /// Takes in what a message of camera number `camera` has turned out to be: stamp and frame, or why it is of no use.
    ///
    /// # Errors
    /// Why there is no new reading.
    pub fn take_frame(
        &mut self,
        camera: usize,
        read: Result<(i64, Arc<Frame>), String>,
        at: Moment,
        timeline: Timeline,
    ) -> Result<(), String> {
        let (stamp_ns, frame) = self.readable(Input::Camera(camera), read, at)?;
        let taken = self.history.insert_frame(camera, stamp_ns, frame, at, timeline);
        taken.map_err(|refused| refused.to_string())
    }

    /// As [`Sensors::take_frame`], for a message of state source number `source`. Gives back its header stamp, if it has
    /// one.
    ///
    /// # Errors
    /// Why there is no new reading.
    pub fn take_state(
        &mut self,
        source: usize,
        read: Result<StateMessage, ReadError>,
        at: Moment,
        timeline: Timeline,
        jump_max_rad_s: f64,
    ) -> Result<Option<i64>, String> {
        let read = read.map_err(|error| error.to_string());
        let StateMessage { stamp_ns, sample } = self.readable(Input::State(source), read, at)?;
        let taken =
            self.history.insert_state(source, stamp_ns, sample, at, timeline, jump_max_rad_s);
        taken.map(|()| stamp_ns).map_err(|refused| refused.to_string())
    }

    /// The history hears of a message that could not be read.
    fn readable<T>(
        &mut self,
        input: Input,
        read: Result<T, String>,
        at: Moment,
    ) -> Result<T, String> {
        if let Err(reason) = &read {
            self.history.refuse(input, reason.clone(), at);
        }
        read
    }

    /// Takes in the transforms of a message, each by itself; gives back why some were refused.
    pub fn insert_transforms(
        &mut self,
        message: &TfMessage,
        fixed: bool,
        at: Moment,
        timeline: Timeline,
    ) -> Vec<String> {
        self.history.advance(at);
        self.follow_clock();
        self.received_steady_ns = Some(at.steady_ns);
        let mut refused = Vec::new();
        for transform in &message.transforms {
            match insert(&mut self.transforms, transform, fixed, at, timeline) {
                Ok(()) => {
                    let mended = |refusal: &mut (String, String)| refusal.0 == transform.child;
                    self.refusal.take_if(mended);
                }
                Err(reason) => {
                    self.refusal = Some((transform.child.clone(), reason.clone()));
                    refused.push(reason);
                }
            }
        }
        refused
    }

    /// Notes which nodes publish on the topic of state source number `source`, by name.
    pub fn note_publishers(&mut self, source: usize, names: Vec<String>) {
        if let Some(known) = self.publishers.get_mut(source) {
            *known = names;
        }
    }

    /// What there is to see now: see [`History::observation`]. Poses of transforms are those of the observation's
    /// stamp, or of the newest moment until then that is known.
    ///
    /// # Errors
    /// [`Waiting`] names everything that cannot be used, and why.
    pub fn observation(
        &mut self,
        now: Moment,
        instruction: &str,
        gates: &Gates,
    ) -> Result<Sighting, Waiting> {
        let mut seen = self.history.observation(now, instruction, gates);
        self.follow_clock();
        if now.ros_ns == 0 {
            return seen;
        }
        for crowded in self.crowded(gates.state_publishers_max) {
            lacks(&mut seen, crowded);
        }
        let at_ns = seen.as_ref().map_or(now.ros_ns, |sighting| sighting.observation.stamp_ns);
        for wanted in &self.wanted {
            let topic = transform_name(wanted);
            match (self.find(wanted, at_ns, now, gates), &mut seen) {
                (Ok(found), Ok(Sighting { observation, readings, .. })) => {
                    let (input, stamp_ns) = (wanted.group.clone(), found.at_ns);
                    observation.state.insert(input.clone(), wanted.layout.values(&found.pose));
                    readings.push(Reading { input, topic, delta: 0, stamp_ns });
                }
                (Ok(_), Err(_)) => {}
                (Err(lack), seen) => {
                    let groups = vec![wanted.group.clone()];
                    lacks(seen, WaitingFor::State { groups, topic, lack });
                }
            }
        }
        seen
    }

    /// The topics of states that have more than `limit` publishers; 0 for no limit.
    fn crowded(&self, limit: usize) -> Vec<WaitingFor> {
        let sources = self.history.inputs().states.iter().zip(&self.publishers);
        let crowded = sources.filter(|(_, names)| limit > 0 && names.len() > limit);
        let lack = |(input, names): (&StateInput, &Vec<String>)| WaitingFor::State {
            groups: input.groups.clone(),
            topic: input.topic.clone(),
            lack: Lack::Publishers { names: names.clone(), limit },
        };
        crowded.map(lack).collect()
    }

    fn find(
        &self,
        wanted: &TransformSettings,
        at_ns: i64,
        now: Moment,
        gates: &Gates,
    ) -> Result<Found, Lack> {
        let max_age_ns = gates.state_max_age_ns;
        let query = Query {
            base: &wanted.base_frame,
            tip: &wanted.tip_frame,
            at_ns,
            max_gap_ns: max_age_ns,
        };
        let refusal = || self.refusal.as_ref().map(|(_, reason)| reason.clone());
        let found = match self.transforms.lookup(&query) {
            Ok(found) => found,
            Err(_) if self.received_steady_ns.is_none() => {
                return Err(Lack::Nothing { refusal: None });
            }
            Err(error) => {
                return Err(Lack::NoPose { reason: error.to_string(), refusal: refusal() });
            }
        };
        let age_ns = found.newest_ns.map_or(0, |newest_ns| now.ros_ns.saturating_sub(newest_ns));
        if age_ns > max_age_ns {
            let silent_ns = self.received_steady_ns.map(|received| now.steady_ns - received);
            return Err(Lack::Stale { age_ns, max_age_ns, silent_ns, refusal: refusal() });
        }
        Ok(found)
    }

    /// After a jump of the clock, stamps before it mean nothing.
    fn follow_clock(&mut self) {
        let jumps = self.history.clock_jumps();
        if self.clock_jumps != jumps {
            self.clock_jumps = jumps;
            self.transforms.clear_moving();
            self.refusal = None;
        }
    }
}

/// One more thing that keeps the observation from being made.
fn lacks(seen: &mut Result<Sighting, Waiting>, lack: WaitingFor) {
    match seen {
        Ok(_) => *seen = Err(Waiting(vec![lack])),
        Err(waiting) => waiting.0.push(lack),
    }
}

fn insert(
    transforms: &mut Transforms,
    transform: &TransformStamped,
    fixed: bool,
    at: Moment,
    timeline: Timeline,
) -> Result<(), String> {
    let TransformStamped { stamp_ns, parent, child, .. } = transform;
    let named =
        |reason: &dyn std::fmt::Display| format!("the transform of frame '{child}': {reason}");
    let pose = rigid(transform.translation, transform.rotation_xyzw).map_err(|e| named(&e))?;
    let inserted = if fixed {
        transforms.insert_static(*stamp_ns, parent, child, pose)
    } else {
        let stamp_ns = timeline.stamp(*stamp_ns, at).map_err(|e| named(&e))?;
        transforms.insert(stamp_ns, parent, child, pose, timeline == Timeline::Receive)
    };
    inserted.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
