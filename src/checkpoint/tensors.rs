//! The tensors of a snapshot: sharded safetensors files, mapped into memory and checked before any work.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use half::bf16;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use super::json;
use super::shard::Shard;
use super::{CheckpointError, TensorSpec};

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
        let (checkpoint, faults) = Self::survey(dir);
        faults.into_iter().next().map_or(Ok(checkpoint), Err)
    }

    /// As [`Checkpoint::open`], but goes on behind a fault: the tensors that can be read, and everything that is wrong.
    pub fn survey(dir: &Path) -> (Self, Vec<CheckpointError>) {
        let mut checkpoint =
            Self { dir: dir.to_owned(), shards: Vec::new(), tensors: BTreeMap::new() };
        let mut faults = Vec::new();
        if let Err(fault) = checkpoint.add_all(&mut faults) {
            faults.push(fault);
        }
        (checkpoint, faults)
    }

    /// Adds every shard and tensor; an error ends the survey, `faults` do not.
    fn add_all(&mut self, faults: &mut Vec<CheckpointError>) -> Result<(), CheckpointError> {
        if !self.dir.is_dir() {
            return Err(CheckpointError::NotADirectory { dir: self.dir.clone() });
        }
        let index = self.dir.join(INDEX_FILE);
        match json::read_object_if_present(&index)? {
            Some(object) => self.add_indexed(&index, &read_weight_map(&index, &object)?, faults),
            None => self.add_single()?,
        }
        Ok(())
    }

    /// A checkpoint of these tensors in which every value is zero: what needs nothing but names and shapes can be made
    /// from it. It is no file, and takes memory only for values that are read. `name` stands in messages.
    ///
    /// # Errors
    /// The system has no address space for the largest of the tensors.
    pub fn of_shapes(name: &str, tensors: &[TensorSpec]) -> Result<Self, CheckpointError> {
        let dir = PathBuf::from(name);
        let shard = Shard::of_shapes(&dir, tensors)?;
        let mut checkpoint = Self { dir, shards: Vec::new(), tensors: BTreeMap::new() };
        checkpoint.add_shard(shard);
        Ok(checkpoint)
    }

    fn add_single(&mut self) -> Result<(), CheckpointError> {
        let path = self.dir.join(SINGLE_FILE);
        if !path.exists() {
            return Err(CheckpointError::NoWeights { dir: self.dir.clone() });
        }
        self.add_shard(Shard::open(&path)?);
        Ok(())
    }

    /// Adds a shard that has all tensors.
    fn add_shard(&mut self, shard: Shard) {
        let entries = shard.tensors().iter();
        let locate = |(name, info): (&String, &TensorInfo)| {
            (name.clone(), Location { shard: 0, info: info.clone() })
        };
        self.tensors = entries.map(locate).collect();
        self.shards.push(shard);
    }

    fn add_indexed(
        &mut self,
        index: &Path,
        weight_map: &BTreeMap<&str, &str>,
        faults: &mut Vec<CheckpointError>,
    ) {
        let names: BTreeSet<&str> = weight_map.values().copied().collect();
        let (present, missing): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| self.dir.join(name).exists());
        if !missing.is_empty() {
            faults.push(CheckpointError::MissingShards {
                index: index.to_owned(),
                named: names.len(),
                present: present.len(),
                missing: missing.into_iter().map(str::to_owned).collect(),
            });
        }

        let mut positions = BTreeMap::new();
        for name in present {
            match Shard::open(&self.dir.join(name)) {
                Ok(shard) => {
                    positions.insert(name, self.shards.len());
                    self.shards.push(shard);
                }
                Err(fault) => faults.push(fault),
            }
        }
        for (tensor, shard_name) in weight_map {
            let Some(&shard) = positions.get(shard_name) else { continue };
            if let Some(info) = self.shards[shard].tensors().get(*tensor) {
                let location = Location { shard, info: info.clone() };
                self.tensors.insert((*tensor).to_owned(), location);
                continue;
            }
            let mut places = positions.iter();
            let found_in = places.find(|(_, at)| self.shards[**at].tensors().contains_key(*tensor));
            faults.push(CheckpointError::StaleIndex {
                index: index.to_owned(),
                tensor: (*tensor).to_owned(),
                shard: (*shard_name).to_owned(),
                found_in: found_in.map(|(name, _)| (*name).to_owned()),
            });
        }
    }

    /// Tensors in a header that the index does not put there.
    pub(super) fn not_indexed(&self) -> impl Iterator<Item = CheckpointError> {
        let stored = self.shards.iter().enumerate().flat_map(|(place, shard)| {
            shard.tensors().keys().map(move |tensor| (place, shard, tensor))
        });
        let unknown = stored.filter(|(place, _, tensor)| {
            self.tensors.get(*tensor).is_none_or(|location| location.shard != *place)
        });
        unknown.map(|(_, shard, tensor)| CheckpointError::NotIndexed {
            path: shard.path().to_owned(),
            tensor: tensor.clone(),
        })
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        let size = |location: &Location| {
            let (begin, end) = location.info.data_offsets;
            (end - begin) as u64
        };
        self.tensors.values().map(size).sum()
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

    /// Gives back the memory of all pages that were read. Whoever reads one again gets it from the file, or from the
    /// system's cache of it. For work that reads the weights once, whose pages would count as the process's own until
    /// its end.
    ///
    /// # Errors
    /// What the system reports; nothing is lost by it.
    pub fn release(&self) -> io::Result<()> {
        self.shards.iter().try_for_each(Shard::release)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_of_shapes_is_zeros_without_a_file() {
        let spec = |name: &str, shape: &[usize]| TensorSpec {
            name: name.to_owned(),
            shape: shape.to_vec(),
            used: true,
        };
        // As large as a network, of which nothing but one vector is read.
        let tensors = [spec("matrix", &[1 << 16, 1 << 13]), spec("vector", &[3])];
        let checkpoint = Checkpoint::of_shapes("made up", &tensors).expect("address space");
        assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["matrix", "vector"]);
        assert_eq!(checkpoint.bytes(), (1 << 30) + 6);
        checkpoint.expect("matrix", &[1 << 16, 1 << 13]).expect("its shape");
        assert_eq!(checkpoint.tensor("vector").expect("it is there").values, [bf16::ZERO; 3]);
        let error = checkpoint.expect("vector", &[4]).expect_err("another shape");
        assert!(error.to_string().contains("'vector' in made up has shape [3]"), "{error}");
        assert!(checkpoint.tensor("other").is_err());
        assert!(
            Checkpoint::of_shapes("nothing", &[]).expect("no tensors").names().next().is_none()
        );
    }
}
