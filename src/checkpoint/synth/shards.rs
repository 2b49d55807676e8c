//! Writing generated tensors as safetensors shards, in parallel and in bounded memory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use half::bf16;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::generator::{Spread, fill, fnv1a64};
use super::{SynthError, io_error};
use crate::checkpoint::{INDEX_FILE, TensorSpec};
use crate::disk;

/// Values that a thread generates before it writes them: 2 MiB.
const CHUNK: usize = 1 << 20;
/// Bytes of a bf16 value.
const VALUE_BYTES: u64 = 2;
/// The data of a shard begins at a multiple of this.
const HEADER_ALIGNMENT: usize = 8;

type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Writes all tensors and their index into `dir`; a new shard begins where `limit` bytes would be passed.
pub fn write(
    dir: &Path,
    tensors: &[TensorSpec],
    limit: u64,
    progress: Progress<'_>,
) -> Result<(), SynthError> {
    let total = total(tensors);
    require_space(dir, total)?;
    let shards = split(tensors, limit);
    let done = AtomicU64::new(0);
    let mut weight_map = Map::new();
    for (number, shard) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", number + 1, shards.len());
        write_shard(&dir.join(&name), shard, &|count| {
            progress(done.fetch_add(count, Ordering::Relaxed) + count, total);
        })?;
        weight_map.extend(shard.iter().map(|tensor| (tensor.name.clone(), json!(name))));
    }
    let index = json!({ "metadata": { "total_size": total }, "weight_map": weight_map });
    super::write_json(&dir.join(INDEX_FILE), &index)
}

/// Bytes of all tensors.
pub fn total(tensors: &[TensorSpec]) -> u64 {
    tensors.iter().map(bytes).sum()
}

fn values(tensor: &TensorSpec) -> usize {
    tensor.shape.iter().product()
}

fn bytes(tensor: &TensorSpec) -> u64 {
    values(tensor) as u64 * VALUE_BYTES
}

fn require_space(dir: &Path, needed: u64) -> Result<(), SynthError> {
    let free = disk::free_bytes(dir).map_err(|error| io_error(dir, error))?;
    if free < needed {
        return Err(SynthError::DiskFull { path: dir.to_owned(), needed, free });
    }
    Ok(())
}

fn split(tensors: &[TensorSpec], limit: u64) -> Vec<&[TensorSpec]> {
    let mut shards = Vec::new();
    let (mut first, mut size) = (0, 0);
    for (at, tensor) in tensors.iter().enumerate() {
        if at > first && size + bytes(tensor) > limit {
            shards.push(&tensors[first..at]);
            (first, size) = (at, 0);
        }
        size += bytes(tensor);
    }
    shards.push(&tensors[first..]);
    shards
}

/// A piece of a tensor.
struct Chunk<'a> {
    tensor: &'a TensorSpec,
    first: usize,
    count: usize,
    /// Where it stands in the file.
    offset: u64,
}

fn write_shard(
    path: &Path,
    tensors: &[TensorSpec],
    done: &(dyn Fn(u64) + Sync),
) -> Result<(), SynthError> {
    let failed = |error| io_error(path, error);
    let header = header(tensors);
    let data = header.len() as u64;
    let file = File::create(path).map_err(failed)?;
    file.write_all_at(&header, 0).map_err(failed)?;
    let mut chunks = Vec::new();
    let mut offset = data;
    for tensor in tensors {
        for first in (0..values(tensor)).step_by(CHUNK) {
            let count = CHUNK.min(values(tensor) - first);
            let place = offset + first as u64 * VALUE_BYTES;
            chunks.push(Chunk { tensor, first, count, offset: place });
        }
        offset += bytes(tensor);
    }
    let write_chunk = |buffer: &mut Vec<bf16>, chunk: &Chunk<'_>| {
        buffer.resize(chunk.count, bf16::ZERO);
        let spread = Spread::of(&chunk.tensor.name, &chunk.tensor.shape);
        fill(fnv1a64(chunk.tensor.name.as_bytes()), spread, chunk.first as u64, buffer);
        buffer.iter_mut().for_each(|value| *value = bf16::from_bits(value.to_bits().to_le()));
        file.write_all_at(bytemuck::cast_slice(buffer), chunk.offset)?;
        done(chunk.count as u64 * VALUE_BYTES);
        Ok(())
    };
    chunks
        .par_iter()
        .map_init(Vec::new, write_chunk)
        .collect::<Result<(), std::io::Error>>()
        .map_err(failed)?;
    let written = fs::metadata(path).map_err(failed)?.len();
    debug_assert_eq!(written, offset);
    Ok(())
}

/// Length, JSON and padding of a safetensors header.
fn header(tensors: &[TensorSpec]) -> Vec<u8> {
    let mut entries = Map::new();
    entries.insert("__metadata__".to_owned(), json!({ "format": "pt" }));
    let mut offset = 0;
    for tensor in tensors {
        let end = offset + bytes(tensor);
        let entry =
            json!({ "dtype": "BF16", "shape": tensor.shape, "data_offsets": [offset, end] });
        entries.insert(tensor.name.clone(), entry);
        offset = end;
    }
    let mut json = Value::Object(entries).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(HEADER_ALIGNMENT), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.extend(json);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::n16::{Config, tensors};

    #[test]
    fn the_released_network_splits_like_the_published_files() {
        let all = tensors(&Config::released());
        let shards = split(&all, 5_000_000_000);
        let counts: Vec<usize> = shards.iter().map(|shard| shard.len()).collect();
        let sizes: Vec<u64> = shards.iter().map(|shard| shard.iter().map(bytes).sum()).collect();
        assert_eq!(counts, [899, 207]);
        assert_eq!(sizes, [4_990_961_536, 1_582_256_128]);
    }

    #[test]
    fn a_tensor_above_the_limit_gets_a_shard_of_its_own() {
        let tensor =
            |name: &str, len| TensorSpec { name: name.into(), shape: vec![len], used: true };
        let all = [tensor("a", 10), tensor("b", 1000), tensor("c", 10), tensor("d", 10)];
        let shards = split(&all, 100);
        assert_eq!(shards.iter().map(|shard| shard.len()).collect::<Vec<_>>(), [1, 1, 2]);
    }
}
