//! A digest of an observation: two that have the same one have the same bytes.

use sha2::{Digest, Sha256};

use crate::contract::Observation;

/// SHA-256, in hexadecimal digits, over everything that a chunk depends on besides the noise.
pub fn digest(observation: &Observation) -> String {
    let mut hash = Sha256::new();
    hash.update(observation.stamp_ns.to_le_bytes());
    text(&mut hash, &observation.instruction);
    hash.update((observation.frames.len() as u64).to_le_bytes());
    for (camera, frames) in &observation.frames {
        text(&mut hash, camera);
        hash.update((frames.len() as u64).to_le_bytes());
        for frame in frames {
            hash.update(frame.width().to_le_bytes());
            hash.update(frame.height().to_le_bytes());
            hash.update(frame.rgb());
        }
    }
    hash.update((observation.state.len() as u64).to_le_bytes());
    for (group, values) in &observation.state {
        text(&mut hash, group);
        hash.update((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| hash.update(value.to_le_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// With its length in front, so that no two sequences of texts have the same bytes.
fn text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::contract::Frame;

    fn observation() -> Observation {
        let frame = Arc::new(Frame::new(64, 64, vec![7; 3 * 64 * 64]).unwrap());
        Observation {
            stamp_ns: 5,
            frames: [("ego".to_owned(), vec![frame])].into(),
            state: [("arm".to_owned(), vec![0.0, 1.0])].into(),
            instruction: "wave".to_owned(),
        }
    }

    #[test]
    fn every_part_counts() {
        let whole = digest(&observation());
        assert_eq!(whole, digest(&observation()));
        assert_eq!(whole.len(), 64);
        let mut changed = [(); 4].map(|()| observation());
        changed[0].stamp_ns += 1;
        changed[1].instruction.push('!');
        changed[2].state.insert("arm".to_owned(), vec![-0.0, 1.0]);
        let pixels = [vec![8], vec![7; 3 * 64 * 64 - 1]].concat();
        let frame = Arc::new(Frame::new(64, 64, pixels).unwrap());
        changed[3].frames.insert("ego".to_owned(), vec![frame]);
        for other in changed {
            assert_ne!(digest(&other), whole, "{other:?}");
        }
    }
}
