//! What time it was: the times of reception, or `/clock` where the node would follow it.

use crate::history::Moment;

/// The clocks of the node while the recording was made.
#[derive(Debug)]
pub struct RecordedClock {
    /// `Some` where the node follows `/clock`: its last value, 0 before the first.
    simulated_ns: Option<i64>,
    log_ns: Option<i64>,
    /// Only ever goes forward.
    steady_ns: i64,
}

impl RecordedClock {
    pub fn new(simulated: bool) -> Self {
        Self { simulated_ns: simulated.then_some(0), log_ns: None, steady_ns: 0 }
    }

    pub fn is_simulated(&self) -> bool {
        self.simulated_ns.is_some()
    }

    /// The last time of reception.
    pub fn last_ns(&self) -> Option<i64> {
        self.log_ns
    }

    /// The moment of a time of reception. Where that goes back, the steady clock stands still, as a steady clock would
    /// show hardly any time between two messages that were received one after the other.
    pub fn at(&mut self, log_ns: i64) -> Moment {
        let forward = self.log_ns.map_or(0, |last| log_ns.saturating_sub(last).max(0));
        self.steady_ns = self.steady_ns.saturating_add(forward);
        self.log_ns = Some(log_ns);
        Moment { ros_ns: self.simulated_ns.unwrap_or(log_ns), steady_ns: self.steady_ns }
    }

    /// `/clock` says that it is `clock_ns`.
    pub fn tick(&mut self, clock_ns: i64) {
        if let Some(simulated_ns) = &mut self.simulated_ns {
            *simulated_ns = clock_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_reception_are_the_clock() {
        let mut clock = RecordedClock::new(false);
        clock.tick(7);
        assert_eq!(clock.at(1000), Moment { ros_ns: 1000, steady_ns: 0 });
        assert_eq!(clock.at(1500), Moment { ros_ns: 1500, steady_ns: 500 });
        assert_eq!(clock.at(200), Moment { ros_ns: 200, steady_ns: 500 });
        assert_eq!(clock.at(300), Moment { ros_ns: 300, steady_ns: 600 });
    }

    #[test]
    fn a_simulation_has_its_own_time() {
        let mut clock = RecordedClock::new(true);
        assert_eq!(clock.at(1000).ros_ns, 0);
        clock.tick(70);
        assert_eq!(clock.at(1500), Moment { ros_ns: 70, steady_ns: 500 });
    }
}
