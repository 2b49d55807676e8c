//! One source of states: its newest sample, and whether its joints move as joints can.

use super::source::{Source, Step};
use super::track::Track;
use super::{Forgotten, Lack, Moment, Refused, StateInput, StateSample, Timeline, seconds};

/// After a longer time without samples, nothing tells how a joint has moved meanwhile.
const MAX_GAP_NS: i64 = 1_000_000_000;
/// Samples that are closer together count as so far apart: stamps have jitter.
const SHORTEST_BY_STAMP_NS: i64 = 1_000_000;
/// As above, where the time of receipt is the stamp: messages arrive in bursts.
const SHORTEST_BY_RECEIPT_NS: i64 = 20_000_000;

/// The samples of one topic.
#[derive(Debug)]
pub(super) struct State {
    pub source: Source<StateSample>,
    /// Stamp of the latest sample that was compared with the newest, taken in or not.
    compared_ns: Option<i64>,
    /// Why that sample was refused, if that was for a jump.
    jumped: Option<String>,
}

impl State {
    pub fn new(track: Track<StateSample>) -> Self {
        Self { source: Source::new(track), compared_ns: None, jumped: None }
    }

    /// Takes in a sample. None of its joints may have moved faster than `jump_max_rad_s` since the last one that was
    /// taken in; 0 for no such limit.
    pub fn accept(
        &mut self,
        input: &StateInput,
        stamp_ns: i64,
        sample: StateSample,
        at: Moment,
        timeline: Timeline,
        jump_max_rad_s: f64,
    ) -> Result<(), Refused> {
        let shortest_ns = match timeline {
            Timeline::Stamp => SHORTEST_BY_STAMP_NS,
            Timeline::Receive => SHORTEST_BY_RECEIPT_NS,
        };
        let compared_ns = &mut self.compared_ns;
        let check = |step: Step<StateSample>| {
            let [(newest_ns, _), (stamp_ns, _)] = step;
            let heard_ns = compared_ns.replace(stamp_ns).unwrap_or(newest_ns).max(newest_ns);
            let is_gap = stamp_ns.saturating_sub(heard_ns) > MAX_GAP_NS;
            if jump_max_rad_s > 0.0 && stamp_ns >= newest_ns && !is_gap {
                no_jump(input, &step, shortest_ns, jump_max_rad_s)?;
            }
            Ok(())
        };
        let accepted = self.source.accept(stamp_ns, sample, at, timeline, check);
        match &accepted {
            Ok(_) => self.jumped = None,
            Err(jump @ Refused::Jumped { .. }) => self.jumped = Some(jump.to_string()),
            Err(_) => {}
        }
        accepted.map(drop)
    }

    pub fn forget(&mut self, what: Forgotten, steady_ns: i64) {
        self.source.forget(what, steady_ns);
        self.compared_ns = None;
        self.jumped = None;
    }

    /// What keeps the newest sample from being used, if anything does.
    pub fn lack(&self, now: Moment, max_age_ns: i64) -> Option<Lack> {
        let of_source = self.source.lack(now, max_age_ns);
        match (&self.jumped, of_source) {
            (Some(_), Some(silent)) if silent.is_silence() => Some(silent),
            (Some(reason), _) => Some(Lack::Jumped { reason: reason.clone() }),
            (None, of_source) => of_source,
        }
    }
}

/// Whether every joint has moved slowly enough between two samples.
fn no_jump(
    input: &StateInput,
    [(before_ns, before), (after_ns, after)]: &Step<StateSample>,
    shortest_ns: i64,
    max_rad_s: f64,
) -> Result<(), Refused> {
    let in_s = seconds((after_ns - before_ns).max(shortest_ns));
    for (group, joints) in &input.joints {
        let (Some(before), Some(after)) = (before.get(group), after.get(group)) else { continue };
        for ((joint, before), after) in joints.iter().zip(before).zip(after) {
            let moved_rad = (after - before).abs();
            if moved_rad / in_s > max_rad_s {
                return Err(Refused::Jumped { joint: joint.clone(), moved_rad, in_s, max_rad_s });
            }
        }
    }
    Ok(())
}
