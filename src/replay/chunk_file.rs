//! The chunks of a replay, exactly: a safetensors file that any numerics library reads.
//!
//! | tensor | | |
//! |---|---|---|
//! | `log_ns` | I64 `[chunks]` | time of reception at which a chunk was wanted |
//! | `moment_ns` | I64 `[chunks]` | the node's clock then |
//! | `stamp_ns` | I64 `[chunks]` | stamp of the observation |
//! | `seed` | U64 `[chunks]` | seed of the noise |
//! | `actions.<group>` | F32 `[chunks, horizon, dim]` | physical units, as published |
//!
//! The metadata has one entry, `replay`, a JSON object with the rest. Two runs that predict the same write the same bytes.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};

use super::events::Predicted;

/// Of the file's metadata.
const SCHEMA: u32 = 1;
const METADATA: &str = "replay";
const ACTIONS: &str = "actions.";

#[derive(Serialize, Deserialize)]
struct Metadata {
    schema: u32,
    version: String,
    embodiment: String,
    dt_ns: i64,
    /// In the order of the chunk.
    groups: Vec<String>,
    /// Every instruction once.
    instructions: Vec<String>,
    /// Per chunk, which of them.
    instruction: Vec<usize>,
    /// Per chunk, a digest of the observation: the same digest, the same observation.
    observation: Vec<String>,
}

/// What a run predicted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub version: String,
    pub embodiment: String,
    pub dt_ns: i64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, embodiment, dt_ns } = self;
        write!(f, "{version}, embodiment '{embodiment}', a control step of {dt_ns} ns")
    }
}

/// A chunk as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub log_ns: i64,
    pub moment_ns: i64,
    pub stamp_ns: i64,
    pub seed: u64,
    pub instruction: String,
    pub observation: String,
    pub groups: Vec<StoredGroup>,
}

/// One group of a stored chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredGroup {
    pub name: String,
    pub dim: usize,
    /// `[horizon, dim]`
    pub values: Vec<f32>,
}

/// The bytes of the file.
///
/// # Errors
/// What the format cannot hold.
pub fn bytes(predicted: &[Predicted], run: &Run) -> Result<Vec<u8>, String> {
    let mut instructions: Vec<String> = Vec::new();
    let mut instruction = Vec::new();
    for prediction in predicted {
        let text = &prediction.chunk.instruction;
        let place = instructions.iter().position(|known| known == text).unwrap_or_else(|| {
            instructions.push(text.clone());
            instructions.len() - 1
        });
        instruction.push(place);
    }
    let first = predicted.first().map_or(&[][..], |first| &first.chunk.groups);
    let metadata = Metadata {
        schema: SCHEMA,
        version: run.version.clone(),
        embodiment: run.embodiment.clone(),
        dt_ns: run.dt_ns,
        groups: first.iter().map(|group| group.name.clone()).collect(),
        instructions,
        instruction,
        observation: predicted.iter().map(|prediction| prediction.observation.clone()).collect(),
    };
    let json = serde_json::to_string(&metadata).map_err(|error| error.to_string())?;

    let count = predicted.len();
    let of_all = |number: fn(&Predicted) -> i64| -> Vec<u8> {
        predicted.iter().flat_map(|prediction| number(prediction).to_le_bytes()).collect()
    };
    let seeds = |prediction: &Predicted| prediction.chunk.seed.unwrap_or(0).to_le_bytes();
    let mut parts: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = vec![
        ("log_ns".into(), Dtype::I64, vec![count], of_all(|p| p.moment.log_ns)),
        ("moment_ns".into(), Dtype::I64, vec![count], of_all(|p| p.moment.ros_ns)),
        ("stamp_ns".into(), Dtype::I64, vec![count], of_all(|p| p.chunk.stamp_ns)),
        ("seed".into(), Dtype::U64, vec![count], predicted.iter().flat_map(seeds).collect()),
    ];
    for (number, group) in first.iter().enumerate() {
        let values =
            predicted.iter().flat_map(|prediction| &prediction.chunk.groups[number].values);
        let values = values.flat_map(|value| value.to_le_bytes()).collect();
        let shape = vec![count, group.values.len() / group.dim.max(1), group.dim];
        parts.push((format!("{ACTIONS}{}", group.name), Dtype::F32, shape, values));
    }
    let mut tensors = Vec::with_capacity(parts.len());
    for (name, dtype, shape, data) in &parts {
        let view = TensorView::new(*dtype, shape.clone(), data);
        tensors.push((name.as_str(), view.map_err(|error| error.to_string())?));
    }
    let metadata = HashMap::from([(METADATA.to_owned(), json)]);
    serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
}

/// Reads a file that [`bytes`] has made.
///
/// # Errors
/// It is none, or of another schema, or its parts do not fit together.
pub fn read(path: &Path) -> Result<(Run, Vec<Stored>), String> {
    let file = std::fs::read(path).map_err(|error| error.to_string())?;
    let no_file = "it is no chunk file of a replay";
    let (_, header) = SafeTensors::read_metadata(&file).map_err(|e| format!("{no_file}: {e}"))?;
    let json = header.metadata().as_ref().and_then(|metadata| metadata.get(METADATA));
    let metadata: Metadata = serde_json::from_str(json.ok_or(no_file)?)
        .map_err(|error| format!("{no_file}: {error}"))?;
    if metadata.schema != SCHEMA {
        return Err(format!("its schema is {}, this program reads {SCHEMA}", metadata.schema));
    }
    let tensors = SafeTensors::deserialize(&file).map_err(|error| error.to_string())?;
    let count = metadata.observation.len();
    let numbers = |name: &str| -> Result<Vec<u64>, String> {
        let tensor = tensors.tensor(name).map_err(|error| format!("'{name}': {error}"))?;
        let wide = matches!(tensor.dtype(), Dtype::I64 | Dtype::U64);
        if !wide || tensor.shape() != [count] {
            return Err(format!("'{name}' is no list of {count} integers"));
        }
        let (numbers, _) = tensor.data().as_chunks::<8>();
        Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    };
    let times = |name: &str| -> Result<Vec<i64>, String> {
        Ok(numbers(name)?.into_iter().map(|number| number as i64).collect())
    };
    let [logs, moments, stamps] = [times("log_ns")?, times("moment_ns")?, times("stamp_ns")?];
    let seeds = numbers("seed")?;
    if metadata.instruction.len() != count {
        return Err(format!("it has {count} chunks, but other numbers of instructions"));
    }
    let mut stored = Vec::with_capacity(count);
    for number in 0..count {
        let instruction = metadata.instructions.get(metadata.instruction[number]);
        stored.push(Stored {
            log_ns: logs[number],
            moment_ns: moments[number],
            stamp_ns: stamps[number],
            seed: seeds[number],
            instruction: instruction.ok_or("an instruction is missing")?.clone(),
            observation: metadata.observation[number].clone(),
            groups: Vec::with_capacity(metadata.groups.len()),
        });
    }
    for name in &metadata.groups {
        let tensor = tensors
            .tensor(&format!("{ACTIONS}{name}"))
            .map_err(|error| format!("group '{name}': {error}"))?;
        let [chunks, rows, dim] = *tensor.shape() else {
            return Err(format!("group '{name}' is not of shape [chunks, horizon, dim]"));
        };
        if chunks != count || tensor.dtype() != Dtype::F32 {
            return Err(format!("group '{name}' does not have the values of {count} chunks"));
        }
        let (values, _) = tensor.data().as_chunks::<4>();
        for (number, chunk) in stored.iter_mut().enumerate() {
            let values = values[number * rows * dim..(number + 1) * rows * dim].iter();
            let values = values.map(|bytes| f32::from_le_bytes(*bytes)).collect();
            chunk.groups.push(StoredGroup { name: name.clone(), dim, values });
        }
    }
    let Metadata { version, embodiment, dt_ns, .. } = metadata;
    Ok((Run { version, embodiment, dt_ns }, stored))
}
