//! `get_modality_config`: what a client has to send and gets back.

use serde_json::{Value as Json, json};

use crate::contract::{
    ActionGroupSpec, ActionNormalization, ActionReference, ActionScaling, Embodiment, PoseFormat,
    StateEncoding, StateScaling, Version,
};
use crate::serve::arrays::{Map, Value};

/// Marks of a modality's map: N1.5's, N1.6's and the first of N1.7's clients look for the one, later ones for the other.
const MARKS: [&str; 2] = ["__ModalityConfig_class__", "__ModalityConfig__"];

/// The four modalities as clients of the version read them: as JSON text with prefixed keys for N1.5, as maps for the
/// others.
///
/// Where the checkpoint leaves something to a default, the default stands here.
pub(super) fn configs(version: Version, embodiment: &Embodiment) -> Value<'static> {
    let (state, action) = (&embodiment.state, &embodiment.action);
    let horizon: Vec<usize> = (0..embodiment.horizon).collect();
    let state_keys: Vec<&str> = state.iter().map(|group| group.name.as_str()).collect();
    let action_keys: Vec<&str> = action.iter().map(|group| group.name.as_str()).collect();
    let instruction = json!([embodiment.language_key]);
    if version == Version::N15 {
        let prefixed = |prefix: &str, keys: &[&str]| -> Json {
            keys.iter().map(|key| format!("{prefix}.{key}")).collect()
        };
        let cameras: Vec<&str> = embodiment.cameras.iter().map(String::as_str).collect();
        let text = |deltas: Json, keys: Json| {
            marked(Value::from(json!({"delta_indices": deltas, "modality_keys": keys}).to_string()))
        };
        let map = Map::default()
            .with("video", text(json!(embodiment.frame_deltas), prefixed("video", &cameras)))
            .with("state", text(json!([0]), prefixed("state", &state_keys)))
            .with("action", text(json!(horizon), prefixed("action", &action_keys)))
            .with("language", text(json!([0]), instruction));
        return Value::Map(map);
    }
    let of = |deltas: Json, keys: Json, sin_cos: Json, mean_std: Json, actions: Json| {
        marked(from_json(&json!({
            "delta_indices": deltas,
            "modality_keys": keys,
            "sin_cos_embedding_keys": sin_cos,
            "mean_std_embedding_keys": mean_std,
            "action_configs": actions,
        })))
    };
    let none = || Json::Null;
    let state_with = |is: fn(&StateEncoding) -> bool| {
        or_null(state.iter().filter(|g| is(&g.encoding)).map(|g| &g.name).collect())
    };
    let action_with = |is: fn(&ActionNormalization) -> bool| {
        or_null(action.iter().filter(|g| is(&g.normalization)).map(|g| &g.name).collect())
    };
    let map = Map::default()
        .with(
            "video",
            of(json!(embodiment.frame_deltas), json!(embodiment.cameras), none(), none(), none()),
        )
        .with(
            "state",
            of(json!([0]), json!(state_keys), state_with(sin_cos), state_with(mean_std), none()),
        )
        .with(
            "action",
            of(
                json!(horizon),
                json!(action_keys),
                none(),
                action_with(action_mean_std),
                action.iter().map(action_config).collect(),
            ),
        )
        .with("language", of(json!([0]), instruction, none(), none(), none()));
    Value::Map(map)
}

fn marked(config: Value<'static>) -> Value<'static> {
    let map = MARKS.iter().fold(Map::default(), |map, mark| map.with(*mark, Value::Bool(true)));
    Value::Map(map.with("as_json", config))
}

fn or_null(names: Vec<&String>) -> Json {
    if names.is_empty() { Json::Null } else { json!(names) }
}

fn sin_cos(encoding: &StateEncoding) -> bool {
    matches!(
        encoding,
        StateEncoding::SinCos | StateEncoding::Double { scaling: StateScaling::SinCos, .. }
    )
}

fn mean_std(encoding: &StateEncoding) -> bool {
    matches!(encoding, StateEncoding::MeanStd { .. })
}

fn action_mean_std(normalization: &ActionNormalization) -> bool {
    match normalization {
        ActionNormalization::MeanStd { .. } | ActionNormalization::MeanStdPerStep { .. } => true,
        ActionNormalization::Single { scaling, .. } => {
            matches!(scaling, ActionScaling::MeanStd { .. })
        }
        ActionNormalization::MinMax { .. } | ActionNormalization::MinMaxPerStep { .. } => false,
    }
}

/// With the names of the checkpoint's `action_configs`.
fn action_config(group: &ActionGroupSpec) -> Json {
    let (rep, state_key) = match &group.reference {
        ActionReference::Absolute => ("ABSOLUTE", None),
        ActionReference::Delta => ("DELTA", None),
        ActionReference::RelativeJoint { state_group }
        | ActionReference::RelativePose { state_group, .. } => ("RELATIVE", Some(state_group)),
    };
    let format = match group.pose {
        Some(PoseFormat::Rot6d) => "XYZ_ROT6D",
        Some(PoseFormat::Rotvec) => "XYZ_ROTVEC",
        Some(PoseFormat::Matrix) | None => "DEFAULT",
    };
    let kind = if group.pose.is_some() { "EEF" } else { "NON_EEF" };
    json!({"rep": rep, "type": kind, "format": format, "state_key": state_key})
}

fn from_json(json: &Json) -> Value<'static> {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Value::Unsigned(value),
            (None, Some(value)) => Value::Negative(value),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(from_json).collect()),
        Json::Object(object) => Value::Map(
            object
                .iter()
                .fold(Map::default(), |map, (key, value)| map.with(key.clone(), from_json(value))),
        ),
    }
}
