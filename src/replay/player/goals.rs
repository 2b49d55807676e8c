//! Looking for the moment at which a recorded chunk was predicted.

use super::super::chunks::{Recorded, same_readings};
use super::super::events::Moment;
use super::super::moments::{Moments, SEARCH_NS};
use super::{Player, Predict};
use crate::history::Sighting;

impl Player<'_> {
    /// Whether what was seen for the next recorded prediction is there by now.
    pub(super) fn look_for_goal(&mut self, log_ns: i64, predict: &mut Predict) {
        loop {
            let now = self.clock.at(log_ns);
            let Moments::Goals(goals) = &mut self.moments else { return };
            let Some((begin_ns, goal)) = goals.front() else { return };
            let (begin_ns, chunk) = (*begin_ns, &goal.chunk);
            if now.ros_ns == 0 || now.ros_ns < begin_ns.saturating_sub(SEARCH_NS) {
                return;
            }
            let seen = self.sensors.observation(now, &chunk.instruction, &self.gates);
            let found = seen.as_ref().is_ok_and(|seen| same_readings(chunk, &seen.readings));
            let moment = Moment { log_ns, ros_ns: now.ros_ns, era: self.events.jumps.len() };
            let is_over = now.ros_ns >= begin_ns.saturating_add(SEARCH_NS);
            if !found && !is_over {
                if now.ros_ns >= begin_ns && self.search.is_none() {
                    self.search = Some(seen.ok().map(|sighting| (moment, sighting)));
                }
                return;
            }
            let Some((_, goal)) = goals.pop_front() else { return };
            let at_begin = self.search.take().flatten();
            match seen {
                Ok(sighting) if found => {
                    let seed = goal.chunk.seed;
                    self.predict(moment, sighting, seed, Some((goal, true)), predict);
                }
                seen => {
                    let now_seen = seen.ok().map(|sighting| (moment, sighting));
                    self.goal_ends(goal, at_begin.or(now_seen), log_ns, predict);
                }
            }
        }
    }

    /// The readings of a recorded chunk were not found together.
    pub(super) fn goal_ends(
        &mut self,
        goal: Recorded,
        sighting: Option<(Moment, Sighting)>,
        log_ns: i64,
        predict: &mut Predict,
    ) {
        match sighting {
            Some((moment, sighting)) => {
                let seed = goal.chunk.seed;
                self.predict(moment, sighting, seed, Some((goal, false)), predict);
            }
            None => {
                let now = self.clock.at(log_ns);
                let instruction = &goal.chunk.instruction;
                let seen = self.sensors.observation(now, instruction, &self.gates);
                let moment = Moment { log_ns, ros_ns: now.ros_ns, era: self.events.jumps.len() };
                match seen {
                    Err(waiting) => self.refuse(moment, &waiting),
                    Ok(sighting) => {
                        let seed = goal.chunk.seed;
                        self.predict(moment, sighting, seed, Some((goal, false)), predict);
                    }
                }
            }
        }
    }
}
