//! From a request to an observation: everything that is wrong with it is told at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _};
use rayon::prelude::*;
use serde::Serialize;

use super::error::ApiError;
use super::numbers::Numbers;
use super::request::{PredictRequest, StateDtype};
use crate::contract::{Frame, Noise, Observation, StateError, StateGroupSpec};
use crate::encode::EncodeError;
use crate::encode::prompt::MAX_INSTRUCTION_CHARS;
use crate::picture;
use crate::serve::Model;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a request asks for.
#[derive(Debug)]
pub struct Asked {
    pub observation: Observation,
    pub noise: Noise,
    pub state_dtype: StateDtype,
    pub return_normalized: bool,
    /// Per camera, in the embodiment's order.
    pub received: Vec<(String, Received)>,
    /// Tokens of the instruction.
    pub text_tokens: usize,
}

/// What has come from a camera.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Received {
    pub frames: usize,
    /// Height and width of the last frame.
    pub received_hw: [u32; 2],
}

/// Checks a request and decodes its pictures, which happens only if all else is right.
///
/// # Errors
/// Everything that is wrong.
pub fn asked(request: &PredictRequest<'_>, model: &Model) -> Result<Asked, ApiError> {
    let mut errors = Vec::new();
    check_embodiment(request, model, &mut errors);
    check_cameras(request, model, &mut errors);
    let state_dtype = request.state_dtype.unwrap_or(StateDtype::default_of(model.version));
    let state = state(request, model, state_dtype, &mut errors);
    let instruction = request.instruction.trim();
    let text_tokens = text_tokens(instruction, model, &mut errors);
    let noise = noise(request, model, &mut errors);
    let (Some(noise), true) = (noise, errors.is_empty()) else {
        return Err(ApiError::Refused(errors));
    };
    let frames = frames(request, model).map_err(ApiError::Refused)?;
    let received = model.embodiment.cameras.iter().filter_map(|camera| {
        let taken = frames.get(camera)?;
        let last = taken.last()?;
        let received_hw = [last.height(), last.width()];
        Some((camera.clone(), Received { frames: taken.len(), received_hw }))
    });
    Ok(Asked {
        noise,
        state_dtype,
        return_normalized: request.return_normalized.unwrap_or(false),
        received: received.collect(),
        text_tokens,
        observation: Observation {
            stamp_ns: 0,
            frames,
            state,
            instruction: instruction.to_owned(),
        },
    })
}

fn check_embodiment(request: &PredictRequest<'_>, model: &Model, errors: &mut Vec<String>) {
    let served = &model.embodiment.tag;
    if let Some(other) = request.embodiment.as_ref().filter(|tag| *tag != served) {
        errors.push(format!("embodiment '{other}' is not served; this server serves '{served}'"));
    }
}

fn check_cameras(request: &PredictRequest<'_>, model: &Model, errors: &mut Vec<String>) {
    let cameras = &model.embodiment.cameras;
    let deltas = &model.embodiment.frame_deltas;
    for (camera, frames) in &request.images {
        let camera = camera.clone();
        if !cameras.contains(&camera) {
            let expected = cameras.clone();
            errors.push(EncodeError::UnknownCamera { camera, expected }.to_string());
        } else if frames.0.len() != deltas.len() {
            let (expected, found) = (deltas.len(), frames.0.len());
            let deltas = deltas.clone();
            errors.push(EncodeError::FrameCount { camera, expected, deltas, found }.to_string());
        }
    }
    for camera in cameras.iter().filter(|camera| !request.images.contains_key(*camera)) {
        let (camera, found) = (camera.clone(), request.images.keys().cloned().collect());
        errors.push(EncodeError::MissingCamera { camera, found }.to_string());
    }
}

fn state(
    request: &PredictRequest<'_>,
    model: &Model,
    dtype: StateDtype,
    errors: &mut Vec<String>,
) -> BTreeMap<String, Vec<f64>> {
    let specs = &model.embodiment.state;
    for group in request.state.keys() {
        if !specs.iter().any(|spec| spec.name == *group) {
            let expected = specs.iter().map(|spec| spec.name.clone()).collect();
            errors.push(StateError::Unknown { group: group.clone(), expected }.to_string());
        }
    }
    let mut state = BTreeMap::new();
    for spec in specs {
        match state_group(request, spec) {
            Ok(values) => {
                let taken = values.iter().map(|&value| match dtype {
                    StateDtype::Float32 => f64::from(value as f32),
                    StateDtype::Float64 => value,
                });
                state.insert(spec.name.clone(), taken.collect());
            }
            Err(error) => errors.push(error),
        }
    }
    state
}

/// The values of a group, `[dim]`, which may have come as one row.
fn state_group<'a>(
    request: &'a PredictRequest<'_>,
    spec: &StateGroupSpec,
) -> Result<&'a [f64], String> {
    let group = spec.name.clone();
    let Some(numbers) = request.state.get(&group) else {
        let found = request.state.keys().cloned().collect();
        return Err(StateError::Missing { group, found }.to_string());
    };
    let dim = spec.dim;
    let Some(values) = numbers.of_shape(&[&[dim], &[1, dim]]) else {
        return Err(format!(
            "state group '{group}' is {}; it must be [{dim}] or [1, {dim}]",
            numbers.described()
        ));
    };
    match values.iter().position(|&value| !(value as f32).is_finite()) {
        None => Ok(values),
        Some(index) => {
            Err(StateError::NotFinite { group, index, value: values[index] }.to_string())
        }
    }
}

fn text_tokens(instruction: &str, model: &Model, errors: &mut Vec<String>) -> usize {
    // Longer text is not worth counting.
    let chars = instruction.chars().count();
    if !(1..=MAX_INSTRUCTION_CHARS).contains(&chars) {
        errors.push(format!(
            "the instruction has {chars} characters; it must have 1 to {MAX_INSTRUCTION_CHARS}"
        ));
        return 0;
    }
    match (model.instruction_tokens)(instruction) {
        Ok(tokens) => {
            if let Some(limit) = model.text_limit.filter(|limit| tokens > *limit) {
                errors.push(format!(
                    "n_text exceeds L_max: the instruction has {tokens} tokens, layout '{}' takes {limit}; shorten it",
                    model.layout
                ));
            }
            tokens
        }
        Err(error) => {
            errors.push(error.to_string());
            0
        }
    }
}

fn noise(request: &PredictRequest<'_>, model: &Model, errors: &mut Vec<String>) -> Option<Noise> {
    match (&request.seed, &request.noise) {
        (Some(_), Some(_)) => {
            errors.push("give either 'seed' or 'noise', not both".to_owned());
            None
        }
        (Some(seed), None) => Some(Noise::Seed(seed.0)),
        (None, Some(numbers)) => explicit_noise(numbers, model).map_err(|e| errors.push(e)).ok(),
        (None, None) => Some(Noise::Seed(model.default_seed)),
    }
}

fn explicit_noise(numbers: &Numbers, model: &Model) -> Result<Noise, String> {
    let [rows, cols] = model.noise_shape;
    let values = numbers.of_shape(&[&[rows, cols], &[1, rows, cols]]).ok_or_else(|| {
        format!(
            "noise is {}; it must be [{rows}, {cols}] or [1, {rows}, {cols}]",
            numbers.described()
        )
    })?;
    let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(Noise::Explicit(values)),
        Some(at) => Err(format!(
            "noise has a value that is no finite f32 at row {}, column {}",
            at / cols,
            at % cols
        )),
    }
}

fn frames(
    request: &PredictRequest<'_>,
    model: &Model,
) -> Result<BTreeMap<String, Vec<Arc<Frame>>>, Vec<String>> {
    let texts: Vec<&str> = request.images.values().flat_map(|f| &f.0).map(AsRef::as_ref).collect();
    let mut decoded = decode_all(&texts).into_iter();
    let mut errors = Vec::new();
    let mut frames = BTreeMap::new();
    for (camera, pictures) in &request.images {
        let mut taken = Vec::new();
        for (number, frame) in decoded.by_ref().take(pictures.0.len()).enumerate() {
            match frame {
                Ok(frame) => match model.frame_shapes.check(camera, &frame) {
                    Ok(()) => taken.push(Arc::new(frame)),
                    Err(error) => errors.push(error.to_string()),
                },
                Err(error) => errors.push(format!("camera '{camera}', frame {number}: {error}")),
            }
        }
        if let Some(other) = taken.iter().find(|frame| size(frame) != size(&taken[0])) {
            let [first, other] = [size(&taken[0]), size(other)];
            errors.push(format!(
                "camera '{camera}' gives frames of {}x{} and {}x{}; all frames of a camera must be of one size",
                first[0], first[1], other[0], other[1]
            ));
        }
        frames.insert(camera.clone(), taken);
    }
    if errors.is_empty() { Ok(frames) } else { Err(errors) }
}

fn size(frame: &Frame) -> [u32; 2] {
    [frame.width(), frame.height()]
}

/// The frames of all texts, in their order; several are decoded side by side.
fn decode_all(texts: &[&str]) -> Vec<Result<Frame, String>> {
    match texts {
        [only] => vec![frame(only)],
        several => several.par_iter().map(|text| frame(text)).collect(),
    }
}

/// A frame from the base64 of a PNG or JPEG.
fn frame(text: &str) -> Result<Frame, String> {
    if text.starts_with("data:") {
        return Err(
            "it is a data URL; leave out what stands before the comma, and the comma".to_owned()
        );
    }
    let data = file(text).map_err(|error| {
        format!("it is no base64 ({error}); give the base64 of a PNG or JPEG file")
    })?;
    let picture = picture::decode(&data).map_err(|error| error.to_string())?;
    picture.into_frame().map_err(|error| error.to_string())
}

/// What base64 stands for. Almost every text is as the fast decoder wants it.
fn file(text: &str) -> Result<Vec<u8>, DecodeError> {
    match base64_simd::STANDARD.decode_to_vec(text) {
        Ok(data) => Ok(data),
        Err(_) => BASE64.decode(without_space(text).as_bytes()),
    }
}

/// Tools break the lines of base64.
fn without_space(text: &str) -> Cow<'_, str> {
    let is_space = |c: char| c.is_ascii_whitespace();
    if !text.contains(is_space) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_space(*c)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base64_may_have_line_breaks_and_lack_its_padding() {
        for text in ["QUJDRA==", "QUJDRA=", "QUJDRA", "QUJD\r\nRA==\n", " Q U J D R A"] {
            assert_eq!(file(text), Ok(b"ABCD".to_vec()), "{text:?}");
        }
        for text in ["QUJDR", "QUJDRB==", "QUJD-A==", "QUJDRA==QUJD", "=", "QUJDRÄ=="] {
            assert_eq!(file(text).ok(), None, "{text:?}");
        }
    }

    proptest! {
        /// The fast decoder takes nothing that the other one refuses or reads otherwise.
        #[test]
        fn both_decoders_of_base64_agree(
            data in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            other in prop::char::range(' ', '\u{ff}'),
        ) {
            let text = BASE64.encode(&data);
            prop_assert_eq!(file(&text), Ok(data));
            let mut changed: Vec<char> = text.chars().chain(['=']).collect();
            let at = at.index(changed.len());
            changed[at] = other;
            let changed: String = changed.into_iter().collect();
            if let Ok(fast) = base64_simd::STANDARD.decode_to_vec(&changed) {
                prop_assert_eq!(BASE64.decode(&changed), Ok(fast));
            }
        }
    }
}
