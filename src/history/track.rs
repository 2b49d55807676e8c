//! The readings of one topic, ordered by stamp.

use std::collections::BTreeMap;

use super::Refused;

/// Beyond the earliest delta, readings are kept for this long: the nearest one to a delta can lie on its far side.
const MARGIN_NS: i64 = 500_000_000;

/// Readings kept per control step; of those that share a place on this grid, the newest stays.
const PER_STEP: i64 = 2;

/// Grid of the recent readings, the ones that cameras are paired by: fine enough for every frame at 60 Hz.
const RECENT_GRID_NS: i64 = 16_000_000;

/// Readings by stamp: the newest, and as far back as the deltas and the pairing of cameras reach.
///
/// What a track holds is a function of the set of stamps inserted, not of their order.
#[derive(Debug)]
pub(super) struct Track<T> {
    readings: BTreeMap<i64, T>,
    keep_ns: i64,
    /// How long before the newest reading the fine grid ends.
    recent_ns: i64,
    fine_ns: i64,
    /// A multiple of `fine_ns`, so that a place of the fine grid is never parted.
    coarse_ns: i64,
}

impl<T> Track<T> {
    /// A track that reaches back `span_ns`, in control steps of `step_ns`, from each of its readings that is at most
    /// `recent_ns` older than the newest.
    pub(super) fn spanning(span_ns: i64, step_ns: i64, recent_ns: i64) -> Self {
        let back_ns = if span_ns == 0 { 0 } else { span_ns.saturating_add(MARGIN_NS) };
        let step_part_ns = (step_ns / PER_STEP).max(1);
        let parts = if recent_ns == 0 { 1 } else { (step_part_ns - 1) / RECENT_GRID_NS + 1 };
        let fine_ns = step_part_ns / parts;
        Self {
            readings: BTreeMap::new(),
            keep_ns: back_ns.saturating_add(recent_ns),
            recent_ns,
            fine_ns,
            coarse_ns: fine_ns * parts,
        }
    }

    pub(super) fn clear(&mut self) {
        self.readings.clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// The newest reading and its stamp.
    pub(super) fn newest(&self) -> Option<(i64, &T)> {
        self.readings.last_key_value().map(|(&stamp, value)| (stamp, value))
    }

    /// Stamp of the newest reading.
    pub(super) fn newest_stamp(&self) -> Option<i64> {
        self.newest().map(|(stamp, _)| stamp)
    }

    /// Puts a reading in its place. One that has its stamp already is refused, or takes the old one's place if
    /// `replace`.
    pub(super) fn insert(&mut self, stamp_ns: i64, value: T, replace: bool) -> Result<(), Refused> {
        if !replace && self.readings.contains_key(&stamp_ns) {
            return Err(Refused::Repeated { stamp_ns });
        }
        let newest = self.newest_stamp().unwrap_or(stamp_ns);
        let behind_ns = newest.saturating_sub(stamp_ns);
        if behind_ns > self.keep_ns {
            return Err(Refused::Late { behind_ns });
        }
        self.readings.insert(stamp_ns, value);
        let newest = newest.max(stamp_ns);
        self.thin_out(newest);
        let horizon = newest.saturating_sub(self.keep_ns);
        self.readings = self.readings.split_off(&horizon);
        Ok(())
    }

    /// Leaves only the newest reading in each place: of the fine grid for recent ones, else of the coarse one.
    fn thin_out(&mut self, newest: i64) {
        let recent_from = if self.recent_ns == 0 {
            i64::MAX
        } else {
            let oldest = newest.saturating_sub(self.recent_ns);
            oldest.div_euclid(self.fine_ns).saturating_mul(self.fine_ns)
        };
        let (fine_ns, coarse_ns) = (self.fine_ns, self.coarse_ns);
        let place = |stamp: i64| {
            let is_recent = stamp >= recent_from;
            (is_recent, stamp.div_euclid(if is_recent { fine_ns } else { coarse_ns }))
        };
        let mut taken = None;
        let from_newest = self.readings.keys().rev().copied();
        let crowded: Vec<i64> = from_newest
            .filter(|&stamp| taken.replace(place(stamp)) == Some(place(stamp)))
            .collect();
        for stamp in crowded {
            self.readings.remove(&stamp);
        }
    }

    /// The reading that is nearest to `target_ns`; of two that are equally near, the older.
    pub(super) fn nearest(&self, target_ns: i64) -> Option<(i64, &T)> {
        let before = self.readings.range(..=target_ns).next_back();
        let after = self.readings.range(target_ns..).next();
        let (&stamp, value) = match (before, after) {
            (Some(before), Some(after)) if after.0 - target_ns < target_ns - before.0 => after,
            (Some(before), _) => before,
            (None, after) => after?,
        };
        Some((stamp, value))
    }
}
