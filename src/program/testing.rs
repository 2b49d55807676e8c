//! Tiny networks for tests.

use std::sync::Arc;

use super::{Layout, ModelPrograms, Program, n15, n16, n17};
use crate::checkpoint::synth::{self, Size};
use crate::checkpoint::{Checkpoint, Network, Snapshot};
use crate::contract::Version;

/// Text tokens before and behind the picture.
const TEXT: [usize; 2] = [5, 3];

/// The tiny synthetic checkpoint of a version, and its programs for one picture.
pub struct Tiny {
    pub checkpoint: Arc<Checkpoint>,
    pub model: Box<dyn ModelPrograms>,
    pub layout: Layout,
    _dir: tempfile::TempDir,
}

impl Tiny {
    pub fn new(version: Version) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny");
        synth::write(version, Size::Tiny, &path, &|_, _| {}).unwrap();
        let snapshot = Snapshot::open(&path).unwrap();
        let slot = 0;
        let (model, grid, patches_per_token): (Box<dyn ModelPrograms>, _, _) =
            match snapshot.network() {
                Network::N15(config) => {
                    let grid = config.vision.grid();
                    (Box::new(n15::Model { config: config.clone(), slot }), grid, 1)
                }
                Network::N16(config, _) => {
                    let grid = config.vision.grid();
                    (Box::new(n16::Model { config: config.clone(), slot }), grid, 4)
                }
                Network::N17(config, _) => {
                    let config = config.clone();
                    (Box::new(n17::Model { config, slot, prefix_tokens: TEXT[0] }), 4, 4)
                }
            };
        let image_tokens = grid * grid / patches_per_token;
        let layout = Layout {
            tokens: TEXT[0] + image_tokens + TEXT[1],
            leading_tokens: TEXT[0],
            images: 1,
            grid: [grid; 2],
        };
        Self { checkpoint: Arc::clone(snapshot.tensors()), model, layout, _dir: dir }
    }

    pub fn prepare(&self) -> Program {
        self.model.prepare(&self.checkpoint).unwrap()
    }

    pub fn request(&self) -> Program {
        self.model.request(&self.checkpoint, self.layout).unwrap()
    }
}
