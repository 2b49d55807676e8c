//! When the next prediction is due.

/// A grid of moments on the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `None`: always.
    period_ns: Option<i64>,
    due_ns: Option<i64>,
    /// Something was missing when it was due last; the grid begins anew once it is there.
    waits: bool,
}

/// What is missing is looked for again after this time, where the next moment of the grid is later.
const RETRY_NS: i64 = 50_000_000;

impl Pace {
    /// A grid that begins with the first question.
    pub fn new(period_ns: Option<i64>) -> Self {
        Self { period_ns, due_ns: None, waits: false }
    }

    pub fn has_period(&self) -> bool {
        self.period_ns.is_some()
    }

    /// Whether a prediction is due.
    pub fn is_due(&mut self, now_ns: i64) -> bool {
        *self.due_ns.get_or_insert(now_ns) <= now_ns
    }

    /// A prediction begins: the next one is due at the first moment of the grid that is still to come. Returns how many
    /// moments have been missed.
    pub fn begun(&mut self, now_ns: i64) -> u64 {
        let Some(period_ns) = self.period_ns else {
            self.due_ns = Some(now_ns);
            return 0;
        };
        let waited = std::mem::take(&mut self.waits);
        let due_ns = self.due_ns.filter(|_| !waited).unwrap_or(now_ns);
        let missed = now_ns.saturating_sub(due_ns).max(0) / period_ns;
        self.due_ns = Some(due_ns.saturating_add((missed + 1).saturating_mul(period_ns)));
        missed as u64
    }

    /// Something is missing now.
    pub fn retry(&mut self, now_ns: i64) {
        let wait_ns = self.period_ns.unwrap_or(RETRY_NS).min(RETRY_NS);
        self.due_ns = Some(now_ns.saturating_add(wait_ns));
        self.waits = true;
    }

    /// How long until the next one is due; 0 if it is.
    pub fn wait_ns(&self, now_ns: i64) -> i64 {
        self.due_ns.map_or(0, |due_ns| due_ns.saturating_sub(now_ns).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_grid_that_does_not_drift() {
        let mut pace = Pace::new(Some(100 * MS));
        assert!(pace.is_due(5 * MS));
        assert_eq!(pace.begun(5 * MS), 0);
        assert!(!pace.is_due(104 * MS));
        assert_eq!(pace.wait_ns(104 * MS), MS);
        // A late start does not move what follows.
        assert!(pace.is_due(112 * MS));
        assert_eq!(pace.begun(112 * MS), 0);
        assert_eq!(pace.wait_ns(112 * MS), 93 * MS);
        // Two whole periods too late: 205 is begun, 305 and 405 are missed.
        assert!(pace.is_due(411 * MS));
        assert_eq!(pace.begun(411 * MS), 2);
        assert_eq!(pace.wait_ns(411 * MS), 94 * MS);
    }

    #[test]
    fn what_is_missing_is_looked_for_again_soon() {
        for (period, wait) in
            [(Some(10 * MS), 10 * MS), (Some(5_000 * MS), 50 * MS), (None, 50 * MS)]
        {
            let mut pace = Pace::new(period);
            assert!(pace.is_due(7));
            pace.retry(7);
            assert_eq!(pace.wait_ns(7), wait);
            // However long it took, no moment was missed.
            assert_eq!(pace.begun(1_000_000 * 1000 * MS), 0);
        }
    }

    #[test]
    fn without_a_period_it_is_always_due() {
        let mut pace = Pace::new(None);
        assert!(pace.is_due(9));
        assert_eq!(pace.begun(9), 0);
        assert!(pace.is_due(9));
    }
}
