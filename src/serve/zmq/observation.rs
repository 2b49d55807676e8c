//! The observation of a request, in any of the shapes that GR00T's clients give it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::error::ObservationError;
use crate::contract::{Embodiment, FRAME_SIDE, Frame, FrameError, Observation};
use crate::serve::arrays::{Array, Dtype, Key, Map, Value};

/// How a request was written, and so its answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// `{"observation": ..., "options": ...}` (N1.6, N1.7), answered with `[actions, info]`; else the observation itself
    /// (N1.5), answered with the actions.
    pub enveloped: bool,
    /// `{"video": {"ego_view": ...}}`, answered with `left_arm`; else `{"video.ego_view": ...}`, answered with
    /// `action.left_arm`.
    pub nested: bool,
    /// Arrays have a batch axis before all others.
    pub batched: bool,
}

const VIDEO: &str = "video";
const STATE: &str = "state";
const LANGUAGE: &str = "language";

/// Where an instruction lies in flat observations whatever the embodiment calls it.
const FLAT_LANGUAGE: [&str; 2] = ["annotation.", "language."];

/// The data set's name for an instruction that simulations send under another one.
const TASK: (&str, &str) = ("task", "annotation.human.coarse_action");

/// Reads an observation, whose frames stay in `message`. Keys that are no camera, state group or instruction of the
/// embodiment are left out, as the reference does.
///
/// # Errors
/// Something that the embodiment needs is missing, or is not what it should be. The policy checks the rest.
pub(super) fn read(
    observation: &Map<'_>,
    enveloped: bool,
    embodiment: &Embodiment,
    message: &Bytes,
) -> Result<(Observation, Style), ObservationError> {
    let source = Source::open(observation)?;
    let mut batch = Batch(None);
    let mut frames = BTreeMap::new();
    for camera in &embodiment.cameras {
        let (key, array) = source.array(VIDEO, camera)?;
        frames.insert(camera.clone(), read_frames(&key, array, message, &mut batch)?);
    }
    let mut state = BTreeMap::new();
    for group in &embodiment.state {
        let (key, array) = source.array(STATE, &group.name)?;
        state.insert(group.name.clone(), read_state(&key, array, &mut batch)?);
    }
    let instruction = source.instruction(&embodiment.language_key)?;
    let nested = source.nested;
    let style = Style { enveloped, nested, batched: batch.0.unwrap_or(nested) };
    // Requests carry no time.
    Ok((Observation { stamp_ns: 0, frames, state, instruction }, style))
}

/// Where the parts of an observation lie: each modality in a map of its own, or all of them in one.
struct Source<'m, 'a> {
    nested: bool,
    video: &'m Map<'a>,
    state: &'m Map<'a>,
    language: &'m Map<'a>,
}

impl<'m, 'a> Source<'m, 'a> {
    fn open(observation: &'m Map<'a>) -> Result<Self, ObservationError> {
        let modalities = [VIDEO, STATE, LANGUAGE];
        if modalities.iter().any(|modality| observation.get(modality).is_some()) {
            let [video, state, language] = modalities.map(|modality| {
                let missing = || {
                    let found = keys(observation);
                    ObservationError::Missing { key: modality.to_owned(), found }
                };
                let value = observation.get(modality).ok_or_else(missing)?;
                let found = value.kind();
                value.as_map().ok_or(ObservationError::Modality { modality, found })
            });
            return Ok(Self { nested: true, video: video?, state: state?, language: language? });
        }
        let is_flat = |key: &str| {
            let modality = key.split_once('.').map(|(modality, _)| modality);
            modality.is_some_and(|modality| [VIDEO, STATE].contains(&modality))
        };
        if observation.iter().any(|(key, _)| is_flat(&key.name())) {
            let [video, state, language] = [observation; 3];
            return Ok(Self { nested: false, video, state, language });
        }
        Err(ObservationError::Shape { found: keys(observation) })
    }

    /// The array of a camera or state group, with its key as messages name it.
    fn array(
        &self,
        modality: &'static str,
        name: &str,
    ) -> Result<(String, &'m Array<'a>), ObservationError> {
        let key = format!("{modality}.{name}");
        let map = if modality == VIDEO { self.video } else { self.state };
        match map.get(if self.nested { name } else { &key }) {
            Some(Value::Array(array)) => Ok((key, array)),
            Some(other) => Err(ObservationError::NoArray { key, found: other.kind() }),
            None => Err(ObservationError::Missing { key, found: keys(map) }),
        }
    }

    /// The instruction: under the embodiment's key, or the only one there is, which is all that the reference asks of N1.5's
    /// clients.
    fn instruction(&self, expected: &str) -> Result<String, ObservationError> {
        let names = if expected == TASK.0 { vec![expected, TASK.1] } else { vec![expected] };
        for name in names {
            if let Some(value) = self.language.get(name) {
                return text(name, value);
            }
        }
        let is_instruction = |key: &str| {
            self.nested
                || key == TASK.0
                || FLAT_LANGUAGE.iter().any(|prefix| key.starts_with(prefix))
        };
        let entries = self.language.iter().filter(|(key, _)| is_instruction(&key.name()));
        let candidates: Vec<&(Key<'a>, Value<'a>)> = entries.collect();
        let expected = expected.to_owned();
        match candidates.as_slice() {
            [] => Err(ObservationError::NoInstruction { expected, found: keys(self.language) }),
            [(key, value)] => text(&key.name(), value),
            several => {
                let found = several.iter().map(|(key, _)| key.name().into_owned()).collect();
                Err(ObservationError::Instructions { expected, found })
            }
        }
    }
}

fn keys(map: &Map<'_>) -> Vec<String> {
    let mut keys: Vec<String> = map.iter().map(|(key, _)| key.name().into_owned()).collect();
    keys.sort();
    keys
}

/// Whether the arrays so far have a batch axis.
struct Batch(Option<bool>);

impl Batch {
    /// The axes behind the batch axis, of which there must be as many as in `accepted`.
    fn behind<'s, const AXES: usize>(
        &mut self,
        key: &str,
        shape: &'s [usize],
        accepted: &'static str,
    ) -> Result<&'s [usize; AXES], ObservationError> {
        let axes =
            || ObservationError::Axes { key: key.to_owned(), found: shape.to_vec(), accepted };
        let rest = shape.last_chunk::<AXES>().ok_or_else(axes)?;
        let batched = match &shape[..shape.len() - AXES] {
            [] => false,
            [1] => true,
            [found] => return Err(ObservationError::Batch { key: key.to_owned(), found: *found }),
            _ => return Err(axes()),
        };
        if *self.0.get_or_insert(batched) != batched {
            return Err(ObservationError::MixedBatch { key: key.to_owned(), batched });
        }
        Ok(rest)
    }
}

/// Frames of one camera: `[times, height, width, 3]`, RGB, oldest first.
fn read_frames(
    key: &str,
    array: &Array<'_>,
    message: &Bytes,
    batch: &mut Batch,
) -> Result<Vec<Arc<Frame>>, ObservationError> {
    const AXES: &str = "[times, height, width, 3]";
    if array.dtype() != Dtype::U8 {
        let (found, accepted) = (array.dtype().descr(), "'|u1', RGB from 0 to 255");
        return Err(ObservationError::Dtype { key: key.to_owned(), found, accepted });
    }
    let [_, height, width, channels] = *batch.behind(key, array.shape(), AXES)?;
    if channels != 3 {
        let (key, found) = (key.to_owned(), array.shape().to_vec());
        return Err(ObservationError::Axes { key, found, accepted: AXES });
    }
    let wrong = |error| ObservationError::Frame { key: key.to_owned(), error };
    let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    if !FRAME_SIDE.contains(&width) || !FRAME_SIDE.contains(&height) {
        return Err(wrong(FrameError::Size { width, height }));
    }
    let pixels = array.share(message);
    let frames = pixels.chunks_exact(3 * width as usize * height as usize);
    frames
        .map(|rgb| Frame::new(width, height, pixels.slice_ref(rgb)).map(Arc::new).map_err(wrong))
        .collect()
}

/// Values of one state group: `[1, values]`.
fn read_state(
    key: &str,
    array: &Array<'_>,
    batch: &mut Batch,
) -> Result<Vec<f64>, ObservationError> {
    let [times, _] = *batch.behind(key, array.shape(), "[1, values]")?;
    if times != 1 {
        return Err(ObservationError::Times { key: key.to_owned(), found: times });
    }
    array.numbers().ok_or_else(|| ObservationError::Dtype {
        key: key.to_owned(),
        found: array.dtype().descr(),
        accepted: "integers and floating-point numbers",
    })
}

/// The one string in a value.
fn text(key: &str, value: &Value<'_>) -> Result<String, ObservationError> {
    let wrong = |found: String| ObservationError::InstructionKind { key: key.to_owned(), found };
    match value {
        Value::Text(text) => Ok(text.clone().into_owned()),
        Value::List(items) => match items.as_slice() {
            [only] => text(key, only),
            items => Err(wrong(format!("a list of {}", items.len()))),
        },
        Value::Array(array) => match array.texts().as_deref() {
            Some([only]) => Ok(only.clone()),
            Some(texts) => Err(wrong(format!("an array of {} strings", texts.len()))),
            None => Err(wrong(format!("an array of '{}'", array.dtype().descr()))),
        },
        other => Err(wrong(other.kind().to_owned())),
    }
}
