//! The readings of one topic and what is known about its messages.

use super::track::Track;
use super::{Forgotten, Lack, Moment, Refused, Timeline};

/// From the newest reading to one that is to be taken in, each with its stamp.
pub(super) type Step<'a, T> = [(i64, &'a T); 2];

/// One topic's readings and what is known about its messages.
#[derive(Debug)]
pub(super) struct Source<T> {
    pub track: Track<T>,
    pub received_steady_ns: Option<i64>,
    /// Why the latest message was refused; `None` once one is accepted.
    pub refusal: Option<String>,
    /// Readings from before this are of an earlier goal.
    pub not_before_ns: i64,
    /// Why, and when on the steady clock, all readings were forgotten.
    forgotten: Option<(Forgotten, i64)>,
}

impl<T> Source<T> {
    pub fn new(track: Track<T>) -> Self {
        Self {
            track,
            received_steady_ns: None,
            refusal: None,
            not_before_ns: i64::MIN,
            forgotten: None,
        }
    }

    /// Forgets every reading for a reason; `steady_ns` is now.
    pub fn forget(&mut self, what: Forgotten, steady_ns: i64) {
        // An input that was silent before does not miss anything.
        if self.track.newest_stamp().is_some() {
            self.forgotten = Some((what, steady_ns));
        }
        self.track.clear();
        self.refusal = None;
        self.not_before_ns = i64::MIN;
    }

    /// Takes in a reading, unless `check` refuses the step from the newest one to it. Gives back its stamp.
    pub fn accept(
        &mut self,
        stamp_ns: i64,
        value: T,
        at: Moment,
        timeline: Timeline,
        check: impl FnOnce(Step<T>) -> Result<(), Refused>,
    ) -> Result<i64, Refused> {
        self.received_steady_ns = Some(at.steady_ns);
        let accepted = timeline.stamp(stamp_ns, at).and_then(|stamp| {
            if stamp < self.not_before_ns {
                return Ok(stamp);
            }
            if let Some(newest) = self.track.newest() {
                check([newest, (stamp, &value)])?;
            }
            self.track.insert(stamp, value, timeline == Timeline::Receive).map(|()| stamp)
        });
        match &accepted {
            Ok(_) => self.refusal = None,
            Err(reason) => self.refusal = Some(reason.to_string()),
        }
        accepted
    }

    /// Notes that a message came but could not be read.
    pub fn refuse(&mut self, reason: String, at: Moment) {
        self.received_steady_ns = Some(at.steady_ns);
        self.refusal = Some(reason);
    }

    /// What keeps the newest reading from being used, if anything does.
    pub fn lack(&self, now: Moment, max_age_ns: i64) -> Option<Lack> {
        let silent_ns = self.received_steady_ns.map(|received| now.steady_ns - received);
        let refusal = self.refusal.clone();
        match self.track.newest_stamp() {
            None => Some(match self.forgotten {
                None => Lack::Nothing { refusal },
                Some((what, at_ns)) => {
                    let ago_ns = now.steady_ns.saturating_sub(at_ns);
                    Lack::NothingSince { what, ago_ns, refusal }
                }
            }),
            Some(stamp) if now.ros_ns.saturating_sub(stamp) > max_age_ns => {
                let age_ns = now.ros_ns.saturating_sub(stamp);
                Some(Lack::Stale { age_ns, max_age_ns, silent_ns, refusal })
            }
            Some(_) => None,
        }
    }
}
