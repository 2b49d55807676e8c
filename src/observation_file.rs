//! Observations as JSON files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::contract::{Frame, Noise, Observation};
use crate::picture;
use crate::regular;
use crate::unique_keys::unique;

/// A larger file is no observation, and no picture that a policy takes.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// One observation, and optionally the noise to start from.
///
/// ```json
/// {
///   "instruction": "pick the pear",
///   "frames": {"ego_view": "frame.png"},
///   "state": {"left_arm": [0.1, -0.2]},
///   "seed": 42
/// }
/// ```
///
/// Picture paths are relative to the file. A camera with several frames takes a list, oldest first.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ObservationFile {
    instruction: String,
    #[serde(deserialize_with = "unique")]
    frames: BTreeMap<String, Pictures>,
    #[serde(deserialize_with = "unique")]
    state: BTreeMap<String, Vec<f64>>,
    /// Nanoseconds since the epoch.
    #[serde(default)]
    stamp_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Row-major, `[action rows, action width]` of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<Vec<f32>>,
}

/// The picture files of one camera.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Pictures(Vec<PathBuf>);

impl<'de> Deserialize<'de> for Pictures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PicturesVisitor)
    }
}

#[derive(Clone, Copy)]
struct PicturesVisitor;

impl<'de> Visitor<'de> for PicturesVisitor {
    type Value = Pictures;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path of a picture file, or a list of one or more, oldest first")
    }

    fn visit_str<E: Error>(self, path: &str) -> Result<Pictures, E> {
        if path.is_empty() {
            return Err(E::invalid_value(Unexpected::Str(path), &self));
        }
        Ok(Pictures(vec![path.into()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Pictures, A::Error> {
        let mut paths = Vec::new();
        while let Some(path) = items.next_element::<String>()? {
            paths.extend(self.visit_str::<A::Error>(&path)?.0);
        }
        if paths.is_empty() {
            return Err(A::Error::invalid_length(0, &self));
        }
        Ok(Pictures(paths))
    }
}

/// Reads an observation file and the pictures that it names.
pub fn read(path: &Path) -> anyhow::Result<(Observation, Option<Noise>)> {
    let bytes = regular::read(path, MAX_FILE_BYTES)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let parsed: ObservationFile = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not an observation", path.display()))?;
    let noise = match (parsed.seed, parsed.noise) {
        (Some(_), Some(_)) => bail!("{}: give either 'seed' or 'noise', not both", path.display()),
        (Some(seed), None) => Some(Noise::Seed(seed)),
        (None, Some(values)) => Some(Noise::Explicit(values)),
        (None, None) => None,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut frames = BTreeMap::new();
    for (camera, Pictures(paths)) in parsed.frames {
        let loaded: anyhow::Result<Vec<Arc<Frame>>> =
            paths.iter().map(|path| read_frame(&folder.join(path)).map(Arc::new)).collect();
        frames.insert(camera, loaded?);
    }
    let observation = Observation {
        stamp_ns: parsed.stamp_ns,
        frames,
        state: parsed.state,
        instruction: parsed.instruction,
    };
    Ok((observation, noise))
}

/// Writes an observation file, and its frames as PNG files beside it; [`read`] gives the same observation back.
///
/// # Errors
/// What the file system reports, with the file.
pub fn write(path: &Path, observation: &Observation, noise: &Noise) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut frames = BTreeMap::new();
    for (camera, (key, taken)) in observation.frames.iter().enumerate() {
        let names = (0..taken.len()).map(|frame| format!("camera{camera}_frame{frame}.png").into());
        let names: Vec<PathBuf> = names.collect();
        for (name, frame) in names.iter().zip(taken) {
            write_frame(&folder.join(name), frame)?;
        }
        frames.insert(key.clone(), Pictures(names));
    }
    let (seed, noise) = match noise {
        Noise::Seed(seed) => (Some(*seed), None),
        Noise::Explicit(values) => (None, Some(values.clone())),
    };
    let file = ObservationFile {
        instruction: observation.instruction.clone(),
        frames,
        state: observation.state.clone(),
        stamp_ns: observation.stamp_ns,
        seed,
        noise,
    };
    let text = serde_json::to_string_pretty(&file)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn write_frame(path: &Path, frame: &Frame) -> anyhow::Result<()> {
    let (width, height) = (frame.width(), frame.height());
    image::save_buffer(path, frame.rgb(), width, height, image::ColorType::Rgb8)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Decodes a PNG or JPEG file.
fn read_frame(path: &Path) -> anyhow::Result<Frame> {
    let name = || path.display().to_string();
    let data = regular::read(path, MAX_FILE_BYTES).with_context(name)?;
    let picture = picture::decode(&data).map_err(|error| anyhow!("{}: {error}", name()))?;
    picture.into_frame().map_err(|error| anyhow!("{}: {error}", name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(frames: &str, state: &str) -> String {
        let text = format!(r#"{{"instruction": "x", "frames": {frames}, "state": {state}}}"#);
        serde_json::from_str::<ObservationFile>(&text).expect_err(&text).to_string()
    }

    #[test]
    fn keys_that_stand_twice_are_named() {
        let text = refusal("{}", r#"{"arm": [1.0], "arm": [2.0]}"#);
        assert!(text.contains("the key 'arm' stands twice"), "{text}");
        let text = refusal(r#"{"cam": "a.png", "cam": "b.png"}"#, "{}");
        assert!(text.contains("the key 'cam' stands twice"), "{text}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let frame = |value: u8| {
            let rgb: Vec<u8> = (0..3 * 64 * 70).map(|i| (i as u8).wrapping_mul(value)).collect();
            Arc::new(Frame::new(64, 70, rgb).unwrap())
        };
        let observation = Observation {
            stamp_ns: -7,
            frames: BTreeMap::from([
                ("a/b".to_owned(), vec![frame(3), frame(5)]),
                ("c".to_owned(), vec![frame(7)]),
            ]),
            state: BTreeMap::from([("arm".to_owned(), vec![0.1, -0.0, 5e-324, 1e300])]),
            instruction: "say \"pear\"".to_owned(),
        };
        let path = folder.path().join("observation.json");
        for noise in [Noise::Seed(u64::MAX), Noise::Explicit(vec![0.1, -0.0, 1e-45])] {
            write(&path, &observation, &noise).unwrap();
            let (found, found_noise) = read(&path).unwrap();
            assert_eq!(found, observation);
            assert_eq!(found.state["arm"][1].to_bits(), (-0.0f64).to_bits());
            assert_eq!(found_noise, Some(noise));
        }
    }

    #[test]
    fn frames_that_are_no_paths_are_told_what_is_accepted() {
        for frames in [r#"{"cam": 3}"#, r#"{"cam": []}"#, r#"{"cam": ""}"#, r#"{"cam": [""]}"#] {
            let text = refusal(frames, "{}");
            assert!(text.contains("the path of a picture file, or a list"), "{frames}: {text}");
        }
    }

    #[test]
    fn damaged_pictures_are_named_once_and_on_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.jpg");
        fs::write(&path, b"\xFF\xD8\xFF\xE0").unwrap();
        let text = format!("{:#}", read_frame(&path).expect_err("cut"));
        assert_eq!(text.matches("cut.jpg").count(), 1, "{text}");
        assert!(text.contains("cut off") && !text.contains('\n'), "{text}");
    }
}
