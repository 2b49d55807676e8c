//! Programs for the tests.

use crate::checkpoint::synth::{self, Size};
use crate::checkpoint::{Network, Snapshot};
use crate::contract::Version;
use crate::program::{Layout, ModelPrograms, Program, n15, n16, n17};

/// Text tokens before and behind the picture.
const TEXT: [usize; 2] = [5, 3];

/// The request program of a tiny network for one picture.
pub fn request(version: Version) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("tiny");
    synth::write(version, Size::Tiny, &dir, &|_, _| {}).unwrap();
    let snapshot = Snapshot::open(&dir).unwrap();
    let slot = 0;
    let (model, grid, patches_per_token): (Box<dyn ModelPrograms>, _, _) = match snapshot.network()
    {
        Network::N15(config) => {
            let grid = config.vision.grid();
            (Box::new(n15::Model { config: config.clone(), slot }), grid, 1)
        }
        Network::N16(config, _) => {
            let grid = config.vision.grid();
            (Box::new(n16::Model { config: config.clone(), slot }), grid, 4)
        }
        Network::N17(config, _) => {
            let model = n17::Model { config: config.clone(), slot, prefix_tokens: TEXT[0] };
            (Box::new(model), 4, 4)
        }
    };
    let image_tokens = grid * grid / patches_per_token;
    let layout = Layout {
        tokens: TEXT[0] + image_tokens + TEXT[1],
        leading_tokens: TEXT[0],
        images: 1,
        grid: [grid; 2],
    };
    model.request(snapshot.tensors(), layout).unwrap()
}
