//! Telling checkpoints apart without reading them whole.

use super::Checkpoint;

/// Elements of either end of a tensor that are looked at.
const SAMPLE: usize = 1024;

/// A hash of the names and shapes of all tensors and of the values at both ends of each, as hexadecimal digits.
///
/// Training changes every tensor that it trains, so checkpoints of different training have different fingerprints.
/// A single changed value in the middle of a large tensor does not show.
pub fn fingerprint(checkpoint: &Checkpoint) -> String {
    let mut hasher = blake3::Hasher::new();
    for name in checkpoint.names() {
        let shape = checkpoint.shape(name);
        hasher.update(format!("{name} {shape:?}\n").as_bytes());
        // Only bf16 is computed with.
        let Ok(tensor) = checkpoint.tensor(name) else { continue };
        let values = tensor.values;
        let end = values.len().saturating_sub(SAMPLE);
        hasher.update(bytemuck::cast_slice(&values[..SAMPLE.min(values.len())]));
        hasher.update(bytemuck::cast_slice(&values[end..]));
    }
    hasher.finalize().to_hex().to_string()
}
