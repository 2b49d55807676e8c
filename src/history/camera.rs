//! One camera: its frames, and whether they still change.

use std::sync::Arc;

use super::source::Source;
use super::track::Track;
use super::{Forgotten, Gates, Lack, Moment, Refused, Timeline};
use crate::contract::Frame;

/// The frames of one topic.
#[derive(Debug)]
pub(super) struct Camera {
    pub source: Source<Arc<Frame>>,
    sameness: Sameness,
}

impl Camera {
    pub fn new(track: Track<Arc<Frame>>) -> Self {
        Self { source: Source::new(track), sameness: Sameness::default() }
    }

    pub fn accept(
        &mut self,
        stamp_ns: i64,
        frame: Arc<Frame>,
        at: Moment,
        timeline: Timeline,
    ) -> Result<(), Refused> {
        let shown = Arc::clone(&frame);
        let stamp_ns = self.source.accept(stamp_ns, frame, at, timeline, |_| Ok(()))?;
        self.sameness.note(stamp_ns, shown);
        Ok(())
    }

    /// Forgets every frame; a picture that does not change is remembered.
    pub fn forget(&mut self, what: Forgotten, steady_ns: i64) {
        self.source.forget(what, steady_ns);
        self.sameness.forget_stamps();
    }

    /// What keeps the camera from being seen, if anything does.
    pub fn lack(&self, now: Moment, gates: &Gates) -> Option<Lack> {
        let of_source = self.source.lack(now, gates.camera_max_age_ns);
        of_source.or_else(|| self.sameness.lack(gates.frozen_camera_frames))
    }
}

/// How often in a row a camera has sent the same picture. A sensor has noise, so that equal bytes come from a driver that
/// repeats a buffer. Only complete sameness counts: a scene at rest is no fault.
#[derive(Debug, Default)]
struct Sameness {
    newest: Option<(i64, Arc<Frame>)>,
    /// Frames that were the same as the one before, since the last other one.
    repeats: u64,
}

impl Sameness {
    /// Notes a frame; one that is not newer than the newest says nothing.
    fn note(&mut self, stamp_ns: i64, frame: Arc<Frame>) {
        let is_same = match &self.newest {
            Some((newest_ns, _)) if *newest_ns >= stamp_ns => return,
            Some((_, newest)) => *newest == frame,
            None => false,
        };
        self.repeats = if is_same { self.repeats.saturating_add(1) } else { 0 };
        self.newest = Some((stamp_ns, frame));
    }

    /// After a jump of the clock, any stamp is newer.
    fn forget_stamps(&mut self) {
        if let Some((stamp_ns, _)) = &mut self.newest {
            *stamp_ns = i64::MIN;
        }
    }

    fn lack(&self, limit: u64) -> Option<Lack> {
        let repeats = self.repeats;
        (limit > 0 && repeats >= limit).then_some(Lack::Frozen { repeats, limit })
    }
}
