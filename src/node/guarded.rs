//! The guard in the running node: its live parameter and its counters.

use std::sync::atomic::Ordering;

use super::guard::{ObservedState, Violation};
use super::runtime::{Shared, locked};
use super::settings;
use crate::contract::ActionChunk;

/// Checks a chunk that is to be published, and brings it to its limits if the parameters say so.
///
/// # Errors
/// A limit that is not kept; the chunk is not to be published.
pub fn guarded(
    shared: &Shared,
    observed: &ObservedState,
    chunk: &mut ActionChunk,
) -> Result<(), Violation> {
    let on_violation = settings::on_violation(&locked(&shared.params));
    let counters = &shared.counters;
    match shared.settings.guard.check(chunk, observed, on_violation) {
        Ok(0) => {}
        Ok(limited) => {
            counters.limited_values.fetch_add(limited as u64, Ordering::Relaxed);
            counters.limited_chunks.fetch_add(1, Ordering::Relaxed);
        }
        Err(violation) => {
            counters.refused_chunks.fetch_add(1, Ordering::Relaxed);
            return Err(violation);
        }
    }
    Ok(())
}
