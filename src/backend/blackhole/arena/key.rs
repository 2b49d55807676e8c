//! What an arena was made from, as a text.

use std::io::{self, Write};

use super::pack::values;
use super::{ArenaError, ArenaPlan};
use crate::checkpoint::Checkpoint;

impl ArenaPlan {
    /// A hash of all that the bytes of the arena depend on: the values of the weights in it, its geometry, its blobs
    /// and the code that packs. Reads all of these weights, and gives their pages back.
    ///
    /// # Errors
    /// A weight that is not in the checkpoint.
    pub fn key(&self, checkpoint: &Checkpoint) -> Result<String, ArenaError> {
        let mut hasher = blake3::Hasher::new();
        let mut used = vec![false; self.weights.len()];
        // A hasher takes everything.
        let _: io::Result<()> = self.describe(&mut hasher);
        for shard in self.parts().iter().flat_map(|part| &part.streams).flat_map(|s| &s.shards) {
            used[shard.weight.0] = true;
        }
        for (spec, _) in self.weights.iter().zip(used).filter(|(_, used)| *used) {
            hasher.update_rayon(bytemuck::cast_slice(values(checkpoint, spec)?));
            // Without it, only more memory is taken.
            let _ = checkpoint.release();
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Everything but the values of weights.
    fn describe(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(to, "{} {:?}", env!("GR00T_ARENA_HASH"), self.policy)?;
        for weight in &self.weights {
            writeln!(to, "{weight:?}")?;
        }
        for part in self.parts() {
            writeln!(to, "{:?} {}", part.name, part.short_last)?;
            for stream in &part.streams {
                writeln!(to, "{} {} {:?}", stream.consumer, stream.bank, stream.shards)?;
            }
        }
        for blob in self.blobs() {
            writeln!(to, "{:?} {} {}", blob.name, blob.bank, blob.bytes.len())?;
            to.write_all(&blob.bytes)?;
        }
        Ok(())
    }
}
