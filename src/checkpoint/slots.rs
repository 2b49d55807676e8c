//! `embodiment_id.json`: which row of the per-embodiment tensors belongs to which tag.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::CheckpointError;
use super::json;

/// File that maps tags to slots; it may be absent.
pub const SLOTS_FILE: &str = "embodiment_id.json";

/// Reads tag -> slot. Tags that the file leaves out, or all where it is absent, come from `built_in`.
pub(super) fn read(
    path: &Path,
    built_in: &[(&str, usize)],
) -> Result<Map<String, Value>, CheckpointError> {
    let mut slots = json::read_object_if_present(path)?.unwrap_or_default();
    for (tag, slot) in built_in {
        slots.entry(*tag).or_insert(json!(slot));
    }
    Ok(slots)
}
