//! Observations as JSON files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

use crate::contract::{Frame, Noise, Observation};
use crate::picture;

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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObservationFile {
    instruction: String,
    frames: BTreeMap<String, OneOrMore<PathBuf>>,
    state: BTreeMap<String, Vec<f64>>,
    /// Nanoseconds since the epoch.
    #[serde(default)]
    stamp_ns: i64,
    seed: Option<u64>,
    /// Row-major, `[action rows, action width]` of the model.
    noise: Option<Vec<f32>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

/// Reads an observation file and the pictures that it names.
pub fn read(path: &Path) -> anyhow::Result<(Observation, Option<Noise>)> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let parsed: ObservationFile = serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} is not an observation", path.display()))?;
    let noise = match (parsed.seed, parsed.noise) {
        (Some(_), Some(_)) => bail!("{}: give either 'seed' or 'noise', not both", path.display()),
        (Some(seed), None) => Some(Noise::Seed(seed)),
        (None, Some(values)) => Some(Noise::Explicit(values)),
        (None, None) => None,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut frames = BTreeMap::new();
    for (camera, paths) in parsed.frames {
        let paths = match paths {
            OneOrMore::One(path) => vec![path],
            OneOrMore::More(paths) => paths,
        };
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

/// Decodes a PNG or JPEG file.
fn read_frame(path: &Path) -> anyhow::Result<Frame> {
    let name = || path.display().to_string();
    let data = fs::read(path).with_context(name)?;
    let picture = picture::decode(&data).map_err(|error| anyhow!("{}: {error}", name()))?;
    picture.into_frame().map_err(|error| anyhow!("{}: {error}", name()))
}
