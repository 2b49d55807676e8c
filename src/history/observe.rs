//! What there is to see at one moment.

use std::sync::Arc;

use super::{Gates, History, Moment, Reading, Sighting, Waiting, WaitingFor};
use crate::contract::Observation;

impl History {
    /// What there is to see now.
    ///
    /// Of each camera, the frame that is nearest to the moment up to which all cameras have sent something, so that what
    /// is seen together was taken together; with one camera, the newest. From there, for every earlier delta, the frame
    /// that is nearest in time; before there are enough, the oldest one is repeated. Of each state source, the newest
    /// sample. The observation is dated by the newest header stamp in it.
    ///
    /// # Errors
    /// [`Waiting`] names every input that cannot be used, and why.
    pub fn observation(
        &mut self,
        now: Moment,
        instruction: &str,
        gates: &Gates,
    ) -> Result<Sighting, Waiting> {
        self.advance(now);
        let waiting = self.waiting(now, instruction, gates);
        if !waiting.0.is_empty() {
            return Err(waiting);
        }
        let mut observation =
            Observation { instruction: instruction.to_owned(), ..Default::default() };
        let mut readings = Vec::new();
        let mut newest_ns = None;
        let shown = self.paired_stamps();
        for ((input, camera), &from_ns) in self.inputs.cameras.iter().zip(&self.cameras).zip(&shown)
        {
            let mut frames = Vec::with_capacity(self.inputs.frame_deltas.len());
            for &delta in &self.inputs.frame_deltas {
                let target_ns = from_ns.saturating_add(i64::from(delta) * self.inputs.step_ns);
                let Some((stamp_ns, frame)) = camera.source.track.nearest(target_ns) else {
                    continue;
                };
                frames.push(Arc::clone(frame));
                newest_ns = newest_ns.max(Some(stamp_ns));
                let (key, topic) = (input.key.clone(), input.topic.clone());
                readings.push(Reading { input: key, topic, delta, stamp_ns });
            }
            observation.frames.insert(input.key.clone(), frames);
        }
        for (input, state) in self.inputs.states.iter().zip(&self.states) {
            let Some((stamp_ns, sample)) = state.source.track.newest() else {
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
        let camera_skew_ns = shown.iter().max().zip(shown.iter().min());
        let camera_skew_ns = camera_skew_ns.map_or(0, |(newest, oldest)| newest - oldest);
        Ok(Sighting { observation, readings, camera_skew_ns })
    }

    /// Stamps of the frames that the cameras show as those of now, one per camera; none of them is without frames.
    fn paired_stamps(&self) -> Vec<i64> {
        let newest = self.cameras.iter().filter_map(|camera| camera.source.track.newest_stamp());
        let Some(all_have) = newest.min() else { return Vec::new() };
        let nearest =
            self.cameras.iter().filter_map(|camera| camera.source.track.nearest(all_have));
        nearest.map(|(stamp_ns, _)| stamp_ns).collect()
    }

    fn waiting(&self, now: Moment, instruction: &str, gates: &Gates) -> Waiting {
        let mut waiting = Waiting::default();
        if now.ros_ns == 0 {
            waiting.0.push(WaitingFor::Clock);
        }
        if instruction.trim().is_empty() {
            waiting.0.push(WaitingFor::Instruction);
        }
        for (input, camera) in self.inputs.cameras.iter().zip(&self.cameras) {
            if let Some(lack) = camera.lack(now, gates) {
                let (key, topic) = (input.key.clone(), input.topic.clone());
                waiting.0.push(WaitingFor::Camera { key, topic, lack });
            }
        }
        let no_camera_lacks =
            !waiting.0.iter().any(|lack| matches!(lack, WaitingFor::Camera { .. }));
        if no_camera_lacks {
            waiting.0.extend(self.skew(gates.camera_skew_max_ns));
        }
        for (input, state) in self.inputs.states.iter().zip(&self.states) {
            if let Some(lack) = state.lack(now, gates.state_max_age_ns) {
                let (groups, topic) = (input.groups.clone(), input.topic.clone());
                waiting.0.push(WaitingFor::State { groups, topic, lack });
            }
        }
        waiting
    }

    /// The two cameras whose newest frames are farthest apart, if that is too far.
    fn skew(&self, limit_ns: i64) -> Option<WaitingFor> {
        let newest = self.inputs.cameras.iter().zip(&self.cameras).filter_map(|(input, camera)| {
            camera.source.track.newest_stamp().map(|stamp_ns| (stamp_ns, input))
        });
        let (older_ns, older) = newest.clone().min_by_key(|(stamp_ns, _)| *stamp_ns)?;
        let (newer_ns, newer) = newest.max_by_key(|(stamp_ns, _)| *stamp_ns)?;
        let skew_ns = newer_ns - older_ns;
        let (older, newer) = (older.key.clone(), newer.key.clone());
        let skewed = limit_ns > 0 && skew_ns > limit_ns;
        skewed.then_some(WaitingFor::Skew { older, newer, skew_ns, limit_ns })
    }
}
