//! Chunks as GR00T's clients expect them.

use super::error::RequestError;
use super::observation::Style;
use crate::contract::ActionChunk;
use crate::serve::arrays::{Array, Map, Value};

/// The actions of a chunk, f32, `[1, horizon, dim]` for each group; without its axes of length 1 where the request had no
/// batch axis, as the reference does for N1.5.
///
/// # Errors
/// A group has not as many values as it says.
pub(super) fn actions(chunk: &ActionChunk, style: Style) -> Result<Value<'static>, RequestError> {
    let mut actions = Map::default();
    for group in &chunk.groups {
        let mut shape = vec![1, chunk.horizon, group.dim];
        if !style.batched {
            shape.retain(|axis| *axis != 1);
        }
        let array = Array::of_f32(shape, &group.values)
            .map_err(|error| RequestError::Chunk { group: group.name.clone(), error })?;
        let prefix = if style.nested { "" } else { "action." };
        actions = actions.with(format!("{prefix}{}", group.name), Value::Array(array));
    }
    let actions = Value::Map(actions);
    Ok(if style.enveloped {
        // Behind the actions stands what else there is to say, which is nothing in the reference.
        Value::List(vec![actions, Value::Map(Map::default())])
    } else {
        actions
    })
}

/// What clients take for a failure.
pub(super) fn error(text: String) -> Value<'static> {
    Value::Map(Map::default().with("error", text))
}

/// An answer that says that all is well.
pub(super) fn status(message: &'static str) -> Value<'static> {
    Value::Map(Map::default().with("status", "ok").with("message", message))
}
