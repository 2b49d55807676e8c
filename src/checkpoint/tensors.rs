//! The tensors of a snapshot: sharded safetensors files, mapped into memory and checked before any work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use half::bf16;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use super::CheckpointError;
use super::json;
use super::shard::Shard;

/// File that says which shard holds which tensor.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// File that holds all tensors where there is no index.
pub const SINGLE_FILE: &str = "model.safetensors";

/// Every tensor of a snapshot, mapped read-only.
pub struct Checkpoint {
    dir: PathBuf,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Location>,
}

struct Location {
    /// Position in [`Checkpoint::shards`].
    shard: usize,
    info: TensorInfo,
}

/// One tensor.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    pub shape: &'a [usize],
    /// Row-major.
    pub values: &'a [bf16],
}

impl Checkpoint {
    /// Maps all shards of the snapshot directory `dir` and checks their headers against the index.
    ///
    /// The index decides which tensors there are; without one, `model.safetensors` holds them all.
    ///
    /// # Errors
    /// A directory, index or shard that is missing, damaged, or disagrees with another. The file is named, and the tensor.
    pub fn open(dir: &Path) -> Result<Self, CheckpointError> {
        if !dir.is_dir() {
            return Err(CheckpointError::NotADirectory { dir: dir.to_owned() });
        }
        let index = dir.join(INDEX_FILE);
        match json::read_object_if_present(&index)? {
            Some(object) => Self::open_indexed(dir, &index, &object),
            None => Self::open_single(dir),
        }
    }

    fn open_single(dir: &Path) -> Result<Self, CheckpointError> {
        let path = dir.join(SINGLE_FILE);
        if !path.exists() {
            return Err(CheckpointError::NoWeights { dir: dir.to_owned() });
        }
        let shard = Shard::open(&path)?;
        let tensors = shard
            .tensors()
            .iter()
            .map(|(name, info)| (name.clone(), Location { shard: 0, info: info.clone() }))
            .collect();
        Ok(Self { dir: dir.to_owned(), shards: vec![shard], tensors })
    }

    fn open_indexed(
        dir: &Path,
        index: &Path,
        object: &serde_json::Map<String, Value>,
    ) -> Result<Self, CheckpointError> {
        let weight_map = read_weight_map(index, object)?;
        let names: BTreeSet<&str> = weight_map.values().copied().collect();
        let missing: Vec<String> = names
            .iter()
            .filter(|name| !dir.join(name).exists())
            .map(|name| (*name).to_owned())
            .collect();
        if !missing.is_empty() {
            return Err(CheckpointError::MissingShards {
                index: index.to_owned(),
                named: names.len(),
                present: names.len() - missing.len(),
                missing,
            });
        }

        let mut shards = Vec::with_capacity(names.len());
        let mut positions = BTreeMap::new();
        for name in names {
            positions.insert(name, shards.len());
            shards.push(Shard::open(&dir.join(name))?);
        }
        let mut tensors = BTreeMap::new();
        for (tensor, shard_name) in weight_map {
            let shard = positions[shard_name];
            let Some(info) = shards[shard].tensors().get(tensor) else {
                let found_in =
                    positions.iter().find(|(_, at)| shards[**at].tensors().contains_key(tensor));
                return Err(CheckpointError::StaleIndex {
                    index: index.to_owned(),
                    tensor: tensor.to_owned(),
                    shard: shard_name.to_owned(),
                    found_in: found_in.map(|(name, _)| (*name).to_owned()),
                });
            };
            tensors.insert(tensor.to_owned(), Location { shard, info: info.clone() });
        }
        Ok(Self { dir: dir.to_owned(), shards, tensors })
    }

    /// The snapshot directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The shape of a tensor of any element type, if it is there.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|location| location.info.shape.as_slice())
    }

    /// Checks that a tensor exists, has this shape and is stored as bf16.
    pub fn expect(&self, tensor: &str, shape: &[usize]) -> Result<(), CheckpointError> {
        let (location, shard) = self.locate(tensor)?;
        if location.info.shape != shape {
            return Err(CheckpointError::Shape {
                path: shard.path().to_owned(),
                tensor: tensor.to_owned(),
                expected: shape.to_vec(),
                found: location.info.shape.clone(),
            });
        }
        if location.info.dtype != Dtype::BF16 {
            return Err(wrong_dtype(tensor, location, shard));
        }
        Ok(())
    }

    /// A tensor's shape and elements, where they lie in the mapped file.
    ///
    /// # Errors
    /// The tensor is not in the checkpoint, or is not stored as bf16.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, CheckpointError> {
        let (location, shard) = self.locate(name)?;
        let values =
            shard.values(&location.info).ok_or_else(|| wrong_dtype(name, location, shard))?;
        Ok(Tensor { shape: &location.info.shape, values })
    }

    fn locate(&self, name: &str) -> Result<(&Location, &Shard), CheckpointError> {
        match self.tensors.get(name) {
            Some(location) => Ok((location, &self.shards[location.shard])),
            None => Err(CheckpointError::MissingTensor {
                dir: self.dir.clone(),
                tensor: name.to_owned(),
            }),
        }
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpoint({}, {} tensors)", self.dir.display(), self.tensors.len())
    }
}

fn wrong_dtype(tensor: &str, location: &Location, shard: &Shard) -> CheckpointError {
    CheckpointError::Dtype {
        path: shard.path().to_owned(),
        tensor: tensor.to_owned(),
        found: location.info.dtype.to_string(),
    }
}

/// Tensor -> shard of an index, every shard a plain file name.
fn read_weight_map<'a>(
    index: &Path,
    object: &'a serde_json::Map<String, Value>,
) -> Result<BTreeMap<&'a str, &'a str>, CheckpointError> {
    let field = |key: String, found: &Value, accepted: &str| CheckpointError::Field {
        path: index.to_owned(),
        key,
        found: json::brief(found),
        accepted: accepted.to_owned(),
    };
    let map = match object.get("weight_map") {
        Some(Value::Object(map)) => map,
        other => {
            let found = other.unwrap_or(&Value::Null);
            return Err(field("weight_map".to_owned(), found, "{tensor name: file name}"));
        }
    };
    map.iter()
        .map(|(tensor, shard)| {
            let shard = shard
                .as_str()
                .ok_or_else(|| field(format!("weight_map.{tensor}"), shard, "a file name"))?;
            let mut components = Path::new(shard).components();
            let plain = matches!(
                (components.next(), components.next()),
                (Some(Component::Normal(name)), None) if name == shard
            );
            if !plain || shard.contains('\0') {
                return Err(CheckpointError::ShardName {
                    index: index.to_owned(),
                    tensor: tensor.clone(),
                    shard: shard.to_owned(),
                });
            }
            Ok((tensor.as_str(), shard))
        })
        .collect()
}
