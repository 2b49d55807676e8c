//! `modality_configs` of one embodiment: keys, times and representations, as N1.6 and N1.7 declare them.

use serde_json::{Map, Value, json};

use super::embodiments::EmbodimentProblem;
use super::json::brief;

/// Keys of a modality that are read. `exclude_state` must be false.
const READ: [&str; 6] = [
    "delta_indices",
    "modality_keys",
    "sin_cos_embedding_keys",
    "mean_std_embedding_keys",
    "action_configs",
    "exclude_state",
];

/// Modalities that are for training only.
const TRAINING_ONLY: [&str; 1] = ["rl_info"];

/// The four modalities of an embodiment.
pub(super) struct Modalities<'a> {
    pub video: Modality<'a>,
    pub state: Modality<'a>,
    pub action: Modality<'a>,
    pub language: Modality<'a>,
}

/// One modality.
pub(super) struct Modality<'a> {
    pub deltas: Vec<i32>,
    pub keys: Vec<&'a str>,
    pub sin_cos: Vec<&'a str>,
    pub mean_std: Vec<&'a str>,
    /// One per key, or `None` where nothing is composed.
    pub actions: Option<Vec<ActionDeclaration<'a>>>,
}

/// How an action group is represented.
pub(super) struct ActionDeclaration<'a> {
    pub representation: Declared,
    pub end_effector: bool,
    pub format: Format,
    pub state_key: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Relative,
    Absolute,
    Delta,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Default,
    XyzRot6d,
    XyzRotvec,
}

impl<'a> Modalities<'a> {
    pub(super) fn parse(config: &'a Value) -> Result<Self, EmbodimentProblem> {
        let object = as_object("modality_configs", config)?;
        let modalities = ["video", "state", "action", "language"];
        for (name, value) in object {
            let known = modalities.contains(&name.as_str());
            if !known && !TRAINING_ONLY.contains(&name.as_str()) {
                return Err(refuse(name, value, "one of video, state, action, language"));
            }
        }
        let [video, state, action, language] =
            modalities.map(|name| Modality::parse(name, object.get(name)));
        Ok(Self { video: video?, state: state?, action: action?, language: language? })
    }
}

impl<'a> Modality<'a> {
    fn parse(name: &'static str, config: Option<&'a Value>) -> Result<Self, EmbodimentProblem> {
        let config = config.ok_or(EmbodimentProblem::NoModality { modality: name })?;
        let object = as_object(name, config)?;
        for (key, value) in object {
            if !READ.contains(&key.as_str()) && !value.is_null() {
                let accepted = "no such key: what it does is not implemented";
                return Err(refuse(&format!("{name}.{key}"), value, accepted));
            }
        }
        if let Some(value) = object.get("exclude_state").filter(|value| is_set(value)) {
            return Err(refuse(&format!("{name}.exclude_state"), value, "false"));
        }

        check_applicable(name, object)?;

        let keys = strings(name, object, "modality_keys")?;
        if keys.is_empty() {
            return Err(EmbodimentProblem::NoKeys { modality: name });
        }
        for (position, key) in keys.iter().enumerate() {
            if keys[..position].contains(key) {
                let key = (*key).to_owned();
                return Err(EmbodimentProblem::RepeatedKey { modality: name, key });
            }
        }
        Ok(Self {
            deltas: deltas(name, object)?,
            sin_cos: embedding_keys(name, object, "sin_cos_embedding_keys", &keys)?,
            mean_std: embedding_keys(name, object, "mean_std_embedding_keys", &keys)?,
            actions: action_declarations(name, object, keys.len())?,
            keys,
        })
    }
}

/// Checks that a modality declares nothing that the reference would not obey there.
fn check_applicable(name: &str, object: &Map<String, Value>) -> Result<(), EmbodimentProblem> {
    const APPLICABLE: [(&str, &[&str]); 3] = [
        ("sin_cos_embedding_keys", &["state"]),
        ("mean_std_embedding_keys", &["state", "action"]),
        ("action_configs", &["action"]),
    ];
    for (key, modalities) in APPLICABLE {
        let declared = object.get(key).filter(|value| !value.is_null() && **value != json!([]));
        if let Some(value) = declared.filter(|_| !modalities.contains(&name)) {
            return Err(refuse(&format!("{name}.{key}"), value, "null in this modality"));
        }
    }
    Ok(())
}

fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn refuse(key: &str, found: &Value, accepted: &str) -> EmbodimentProblem {
    EmbodimentProblem::Field {
        key: key.to_owned(),
        found: brief(found),
        accepted: accepted.to_owned(),
    }
}

fn as_object<'a>(key: &str, value: &'a Value) -> Result<&'a Map<String, Value>, EmbodimentProblem> {
    value.as_object().ok_or_else(|| refuse(key, value, "an object"))
}

/// A list of strings; empty where the key is absent or null.
fn strings<'a>(
    modality: &str,
    object: &'a Map<String, Value>,
    key: &str,
) -> Result<Vec<&'a str>, EmbodimentProblem> {
    let value = match object.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(value) => value,
    };
    value
        .as_array()
        .and_then(|list| list.iter().map(Value::as_str).collect())
        .ok_or_else(|| refuse(&format!("{modality}.{key}"), value, "a list of strings"))
}

fn embedding_keys<'a>(
    modality: &'static str,
    object: &'a Map<String, Value>,
    list: &'static str,
    keys: &[&str],
) -> Result<Vec<&'a str>, EmbodimentProblem> {
    let named = strings(modality, object, list)?;
    match named.iter().find(|name| !keys.contains(name)) {
        Some(name) => {
            Err(EmbodimentProblem::UnknownEmbeddingKey { modality, list, key: (*name).to_owned() })
        }
        None => Ok(named),
    }
}

fn deltas(modality: &str, object: &Map<String, Value>) -> Result<Vec<i32>, EmbodimentProblem> {
    let value = object.get("delta_indices").unwrap_or(&Value::Null);
    let integer = |value: &Value| value.as_i64().and_then(|delta| i32::try_from(delta).ok());
    value
        .as_array()
        .and_then(|list| list.iter().map(integer).collect())
        .ok_or_else(|| refuse(&format!("{modality}.delta_indices"), value, "a list of integers"))
}

fn action_declarations<'a>(
    modality: &str,
    object: &'a Map<String, Value>,
    keys: usize,
) -> Result<Option<Vec<ActionDeclaration<'a>>>, EmbodimentProblem> {
    let at = format!("{modality}.action_configs");
    let list = match object.get("action_configs") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(refuse(&at, other, "null or a list of objects")),
    };
    if list.len() != keys {
        return Err(EmbodimentProblem::ActionConfigs { keys, configs: list.len() });
    }
    list.iter()
        .enumerate()
        .map(|(position, config)| ActionDeclaration::parse(&format!("{at}[{position}]"), config))
        .collect::<Result<_, _>>()
        .map(Some)
}

impl<'a> ActionDeclaration<'a> {
    fn parse(at: &str, config: &'a Value) -> Result<Self, EmbodimentProblem> {
        let object = as_object(at, config)?;
        let known = ["rep", "type", "format", "state_key"];
        if let Some((key, value)) =
            object.iter().find(|(key, value)| !known.contains(&key.as_str()) && !value.is_null())
        {
            let accepted = "no such key: what it does is not implemented";
            return Err(refuse(&format!("{at}.{key}"), value, accepted));
        }
        let field = |key: &str| object.get(key).unwrap_or(&Value::Null);
        let wrong =
            |key: &str, accepted: &str| refuse(&format!("{at}.{key}"), field(key), accepted);

        let representation = match field("rep").as_str() {
            Some("RELATIVE") => Declared::Relative,
            Some("ABSOLUTE") => Declared::Absolute,
            Some("DELTA") => Declared::Delta,
            _ => return Err(wrong("rep", "RELATIVE, ABSOLUTE or DELTA")),
        };
        let end_effector = match field("type").as_str() {
            Some("EEF") => true,
            Some("NON_EEF") => false,
            _ => return Err(wrong("type", "EEF or NON_EEF")),
        };
        let format = match field("format").as_str() {
            Some("DEFAULT") => Format::Default,
            Some("XYZ_ROT6D") => Format::XyzRot6d,
            Some("XYZ_ROTVEC") => Format::XyzRotvec,
            _ => return Err(wrong("format", "DEFAULT, XYZ_ROT6D or XYZ_ROTVEC")),
        };
        if !end_effector && format != Format::Default {
            return Err(wrong("format", "DEFAULT, because type is NON_EEF"));
        }
        let state_key = match field("state_key") {
            Value::Null => None,
            Value::String(key) => Some(key.as_str()),
            _ => return Err(wrong("state_key", "null or a state group")),
        };
        Ok(Self { representation, end_effector, format, state_key })
    }
}
