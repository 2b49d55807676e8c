//! `processor_config.json`: how pictures, text, state and actions are processed. N1.6 and N1.7 share its schema.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::CheckpointError;
use super::json::{self, Fields};
use super::network::HeadConfig;

/// File that says how inputs and outputs are processed.
pub const PROCESSOR_FILE: &str = "processor_config.json";

/// Widest state or action vector, and longest chunk, that a processor may ask for.
const WIDTHS: RangeInclusive<usize> = 1..=1 << 16;

/// How a camera frame becomes the model's picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageChain {
    /// Length of the shorter side after each of the two resizes around the crop, in pixels.
    pub shortest_edge: usize,
    /// Sides of the centre crop as a part of the resized frame, above 0 and up to 1.
    pub crop_fraction: f64,
    /// Whether frames are padded to squares first; `None` where the file leaves it open.
    pub letterbox: Option<bool>,
}

impl ImageChain {
    /// Shorter side of the centre crop, in pixels.
    pub fn crop_side(&self) -> usize {
        (self.shortest_edge as f64 * self.crop_fraction) as usize
    }
}

/// What `processor_config.json` says, apart from the embodiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    pub image: ImageChain,
    /// Whether the instruction is lower-cased and stripped of punctuation.
    pub formalize_language: bool,
    /// Width to which the encoded state is padded.
    pub max_state_dim: usize,
    /// Width to which actions are padded.
    pub max_action_dim: usize,
    /// Rows to which actions are padded in training; no chunk is longer.
    pub max_action_horizon: usize,
    /// Whether state and absolute actions are scaled by q01 and q99 in place of min and max.
    pub use_percentiles: bool,
    /// Whether min/max-scaled state is clipped to [-1, 1].
    pub clip_outliers: bool,
    /// Whether `sin_cos_embedding_keys` are obeyed.
    pub apply_sincos_state_encoding: bool,
    /// Whether groups declared RELATIVE are composed onto the state; otherwise the model's output is absolute.
    pub use_relative_action: bool,
}

impl Processor {
    /// Checks that the network in `config` takes state and actions as wide as this processor makes them.
    pub(super) fn check_widths(
        &self,
        config: &Fields<'_>,
        head: &HeadConfig,
    ) -> Result<(), CheckpointError> {
        for (key, needed, found) in [
            ("max_state_dim", head.state_width, self.max_state_dim),
            ("max_action_dim", head.action_width, self.max_action_dim),
        ] {
            if needed != found {
                return Err(config.refuse(key, format!("{found}, as in {PROCESSOR_FILE}")));
            }
        }
        Ok(())
    }
}

/// What differs between the versions that share the schema.
pub(super) struct Schema {
    pub class: &'static str,
    pub backbone_kind: &'static str,
    pub backbone: Backbone,
    /// Shortest picture edges that the version's image chain serves.
    pub edges: RangeInclusive<usize>,
    /// Key that says whether frames are letterboxed; a version without one always does that.
    pub letterbox_key: Option<&'static str>,
}

/// Backbones whose geometry is built in.
pub(super) enum Backbone {
    Named(&'static str),
    /// Names that contain one of these.
    Containing(&'static [&'static str]),
}

impl Backbone {
    /// Checks the name under `key`, where it is present.
    pub(super) fn check(&self, fields: &Fields<'_>, key: &str) -> Result<(), CheckpointError> {
        match self {
            Backbone::Named(name) => fields.only(key, json!(name)),
            Backbone::Containing(parts) => match fields.get(key) {
                None => Ok(()),
                Some(Value::String(name)) if parts.iter().any(|part| name.contains(part)) => Ok(()),
                Some(_) => {
                    Err(fields.refuse(key, format!("names that contain {}", parts.join(" or "))))
                }
            },
        }
    }
}

/// Keys of `processor_kwargs` that only training reads.
const TRAINING_ONLY: [&str; 4] = [
    "random_rotation_angle",
    "color_jitter_params",
    "extra_augmentation_config",
    "state_dropout_prob",
];

/// Keys of `processor_kwargs` that [`read`] reads or checks.
const READ: [&str; 18] = [
    "modality_configs",
    "image_crop_size",
    "image_target_size",
    "use_albumentations",
    "shortest_image_edge",
    "crop_fraction",
    "model_name",
    "model_type",
    "formalize_language",
    "max_state_dim",
    "max_action_dim",
    "max_action_horizon",
    "use_percentiles",
    "clip_outliers",
    "apply_sincos_state_encoding",
    "use_relative_action",
    "use_mean_std",
    "exclude_state",
];

/// Reads the file; also returns `modality_configs`, tag -> modalities.
///
/// What changes the numbers must be stated by the file: only keys whose default is the same in every revision of the
/// reference may be absent.
///
/// # Errors
/// A field that is missing, unknown, or has a value that is not served, by name.
pub(super) fn read(
    path: &Path,
    schema: &Schema,
) -> Result<(Processor, Map<String, Value>), CheckpointError> {
    let object = json::read_object(path)?;
    let file = Fields::new(path, &object);
    file.exactly("processor_class", json!(schema.class))?;
    let Some(fields) = file.object("processor_kwargs")? else {
        return Err(file.refuse("processor_kwargs", "an object"));
    };

    for key in fields.keys() {
        let listed = READ.contains(&key) || TRAINING_ONLY.contains(&key);
        let known = listed || schema.letterbox_key == Some(key);
        if !known && fields.get(key) != Some(&Value::Null) {
            return Err(fields.refuse(key, "no such key: what it does is not implemented"));
        }
    }
    fields.only("model_type", json!(schema.backbone_kind))?;
    schema.backbone.check(&fields, "model_name")?;
    fields.exactly("use_albumentations", json!(true))?;
    fields.only("use_mean_std", json!(false))?;
    fields.only("exclude_state", json!(false))?;

    let processor = Processor {
        image: read_image_chain(&fields, schema)?,
        formalize_language: fields.flag("formalize_language", None)?,
        max_state_dim: fields.size("max_state_dim", None, WIDTHS)?,
        max_action_dim: fields.size("max_action_dim", None, WIDTHS)?,
        max_action_horizon: fields.size("max_action_horizon", None, WIDTHS)?,
        use_percentiles: fields.flag("use_percentiles", None)?,
        clip_outliers: fields.flag("clip_outliers", Some(true))?,
        apply_sincos_state_encoding: fields.flag("apply_sincos_state_encoding", None)?,
        use_relative_action: fields.flag("use_relative_action", None)?,
    };
    match fields.get("modality_configs") {
        Some(Value::Object(modalities)) => Ok((processor, modalities.clone())),
        _ => Err(fields.refuse("modality_configs", "{tag: modalities}")),
    }
}

fn read_image_chain(fields: &Fields<'_>, schema: &Schema) -> Result<ImageChain, CheckpointError> {
    let crop_size = first_side(fields, "image_crop_size")?;
    let target_size = first_side(fields, "image_target_size")?;

    let edge_key = "shortest_image_edge";
    let shortest_edge = match (fields.get(edge_key), target_size) {
        (Some(Value::Null), Some(target)) => {
            Some(target).filter(|edge| schema.edges.contains(edge)).ok_or_else(|| {
                let (low, high) = (schema.edges.start(), schema.edges.end());
                fields.refuse("image_target_size", format!("sides from {low} to {high}"))
            })?
        }
        (Some(Value::Null), None) => {
            return Err(fields.refuse(edge_key, "an integer, or image_target_size in its place"));
        }
        _ => fields.size(edge_key, None, schema.edges.clone())?,
    };

    let crop_key = "crop_fraction";
    let crop_fraction = match (fields.get(crop_key), crop_size, target_size) {
        (Some(Value::Null), Some(crop), Some(target)) => {
            if crop > target {
                return Err(fields.refuse("image_crop_size", "sides up to image_target_size"));
            }
            crop as f64 / target as f64
        }
        (Some(Value::Null), ..) => {
            let accepted = "a number, or image_crop_size and image_target_size in its place";
            return Err(fields.refuse(crop_key, accepted));
        }
        (value, ..) => value
            .and_then(Value::as_f64)
            .filter(|fraction| *fraction > 0.0 && *fraction <= 1.0)
            .ok_or_else(|| fields.refuse(crop_key, "a number above 0 and up to 1"))?,
    };
    let letterbox = match schema.letterbox_key {
        None => Some(true),
        Some(key) if fields.get(key).is_none() => None,
        Some(key) => Some(fields.flag(key, None)?),
    };
    let chain = ImageChain { shortest_edge, crop_fraction, letterbox };
    if chain.crop_side() == 0 {
        return Err(fields.refuse(crop_key, "a part that leaves at least one pixel"));
    }
    Ok(chain)
}

/// The first side of a `[height, width]`, which is all that the reference reads of it, or null.
fn first_side(fields: &Fields<'_>, key: &str) -> Result<Option<usize>, CheckpointError> {
    let sides: Option<Vec<usize>> = match fields.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => serde_json::from_value(value.clone()).ok(),
    };
    match sides.as_deref() {
        Some([height, width]) if WIDTHS.contains(height) && WIDTHS.contains(width) => {
            Ok(Some(*height))
        }
        _ => Err(fields.refuse(key, "null or [height, width] in pixels")),
    }
}
