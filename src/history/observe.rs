//! What there is to see at one moment.

use std::sync::Arc;

use super::{Freshness, History, Moment, Reading, Sighting, Waiting, WaitingFor};
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
        let shown = self.paired_stamps();
        for ((camera, source), &from_ns) in
            self.inputs.cameras.iter().zip(&self.cameras).zip(&shown)
        {
            let mut frames = Vec::with_capacity(self.inputs.frame_deltas.len());
            for &delta in &self.inputs.frame_deltas {
                let target_ns = from_ns.saturating_add(i64::from(delta) * self.inputs.step_ns);
                let Some((stamp_ns, frame)) = source.track.nearest(target_ns) else {
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
            let Some((stamp_ns, sample)) = source.track.newest() else {
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
        let newest = self.cameras.iter().filter_map(|camera| camera.track.newest_stamp());
        let Some(all_have) = newest.min() else { return Vec::new() };
        let nearest = self.cameras.iter().filter_map(|camera| camera.track.nearest(all_have));
        nearest.map(|(stamp_ns, _)| stamp_ns).collect()
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
