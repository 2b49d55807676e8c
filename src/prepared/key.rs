//! The name of an entry.

use std::fmt;

use blake3::{Hash, Hasher};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::program::Program;

/// A hash of all that prepared values depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(Hash);

impl Key {
    pub fn bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// The key of what `program` computes from `checkpoint` on a processor with the given vectors.
///
/// # Errors
/// A tensor that the program reads is not in the checkpoint.
pub fn key(
    program: &Program,
    checkpoint: &Checkpoint,
    vectors: &str,
) -> Result<Key, CheckpointError> {
    let mut hasher = Hasher::new();
    // Its text is all of the program: instructions, shapes, constants, names.
    let about = format!("{}\n{vectors}\n{program:?}", env!("GR00T_PROGRAM_HASH"));
    hasher.update(&(about.len() as u64).to_le_bytes());
    hasher.update(about.as_bytes());
    for weight in &program.weights {
        let values = checkpoint.tensor(&weight.tensor)?.values;
        let block = &values[weight.offset..weight.offset + weight.rows * weight.cols];
        hasher.update_rayon(bytemuck::cast_slice(block));
    }
    Ok(Key(hasher.finalize()))
}
