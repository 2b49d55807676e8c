//! The readings of one topic, ordered by stamp.

use std::collections::BTreeMap;

use super::Refused;

/// Beyond the earliest delta, readings are kept for this long: the nearest one to a delta can lie on its far side.
const MARGIN_NS: i64 = 500_000_000;

/// Readings kept per control step; of those that share a place on this grid, the newest stays.
const PER_STEP: i64 = 2;

/// Readings by stamp: the newest, and as far back as the deltas reach.
///
/// What a track holds is a function of the set of stamps inserted, not of their order.
#[derive(Debug)]
pub(super) struct Track<T> {
    readings: BTreeMap<i64, T>,
    keep_ns: i64,
    grid_ns: i64,
}

impl<T> Track<T> {
    /// A track that reaches back `span_ns` from its newest reading, in control steps of `step_ns`.
    pub(super) fn spanning(span_ns: i64, step_ns: i64) -> Self {
        let keep_ns = if span_ns == 0 { 0 } else { span_ns.saturating_add(MARGIN_NS) };
        Self { readings: BTreeMap::new(), keep_ns, grid_ns: (step_ns / PER_STEP).max(1) }
    }

    pub(super) fn clear(&mut self) {
        self.readings.clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// Stamp of the newest reading.
    pub(super) fn newest(&self) -> Option<i64> {
        self.readings.last_key_value().map(|(&stamp, _)| stamp)
    }

    /// Puts a reading in its place. One that has its stamp already is refused, or takes the old one's place if
    /// `replace`.
    pub(super) fn insert(&mut self, stamp_ns: i64, value: T, replace: bool) -> Result<(), Refused> {
        if !replace && self.readings.contains_key(&stamp_ns) {
            return Err(Refused::Repeated { stamp_ns });
        }
        let newest = self.newest().unwrap_or(stamp_ns);
        let behind_ns = newest.saturating_sub(stamp_ns);
        if behind_ns > self.keep_ns {
            return Err(Refused::Late { behind_ns });
        }
        self.readings.insert(stamp_ns, value);
        self.thin_out(stamp_ns);
        let horizon = newest.max(stamp_ns).saturating_sub(self.keep_ns);
        self.readings = self.readings.split_off(&horizon);
        Ok(())
    }

    /// Leaves only the newest reading in the grid place of `stamp_ns`.
    fn thin_out(&mut self, stamp_ns: i64) {
        let start = stamp_ns.div_euclid(self.grid_ns).saturating_mul(self.grid_ns);
        let place = start..start.saturating_add(self.grid_ns);
        let newest = self.readings.range(place.clone()).next_back().map(|(&stamp, _)| stamp);
        let older: Vec<i64> = self
            .readings
            .range(place)
            .map(|(&stamp, _)| stamp)
            .filter(|&stamp| Some(stamp) != newest)
            .collect();
        for stamp in older {
            self.readings.remove(&stamp);
        }
    }

    /// The reading that is nearest to `delta_ns` from the newest one; of two that are equally near, the older.
    pub(super) fn at(&self, delta_ns: i64) -> Option<(i64, &T)> {
        let target = self.newest()?.saturating_add(delta_ns);
        let before = self.readings.range(..=target).next_back();
        let after = self.readings.range(target..).next();
        let (&stamp, value) = match (before, after) {
            (Some(before), Some(after)) if after.0 - target < target - before.0 => after,
            (Some(before), _) => before,
            (None, after) => after?,
        };
        Some((stamp, value))
    }
}
