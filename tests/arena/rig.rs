//! Checkpoints, programs and plans for the tests, and reading back what lies in an arena.

use std::fs;

use gr00t_blackhole::backend::blackhole::arena::{
    Arena, ArenaError, ArenaPlan, Blob, HoistRules, PartSpec, PlannedPart, Shard, StreamSpec,
};
use gr00t_blackhole::backend::blackhole::numerics::{DtypePolicy, tile};
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Checkpoint, Network, SINGLE_FILE, Snapshot};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::dataflow::products;
use gr00t_blackhole::program::{
    self, Input, Layout, ModelPrograms, Orientation, Program, WeightId, WeightSpec,
};
use half::bf16;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

/// A tensor that [`DtypePolicy::MixedDit`] compresses.
pub const COMPRESSED: &str = "head.model.transformer_blocks.0.weight";
/// One that no policy compresses.
pub const PLAIN: &str = "head.decoder.weight";

/// A checkpoint of the two tensors above, each of so many values.
pub struct Drawn {
    _dir: TempDir,
    pub checkpoint: Checkpoint,
}

impl Drawn {
    pub fn new(len: usize) -> Self {
        let value = |index: usize| {
            let mixed = (index as u32).wrapping_mul(2_654_435_761);
            let mixed = (mixed ^ mixed >> 15).wrapping_mul(2_246_822_519);
            // Any sign and fraction; exponents so far apart that they do not all round alike.
            bf16::from_bits((mixed >> 16 & 0x807f) as u16 | (115 + (mixed >> 8 & 7) as u16) << 7)
        };
        let bytes: Vec<u8> = (0..2 * len).flat_map(|i| value(i).to_le_bytes()).collect();
        let (first, second) = bytes.split_at(2 * len);
        let tensor = |data| TensorView::new(Dtype::BF16, vec![len], data).expect("sizes are right");
        let tensors = [(COMPRESSED, tensor(first)), (PLAIN, tensor(second))];
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = safetensors::serialize(tensors, None).expect("valid tensors");
        fs::write(dir.path().join(SINGLE_FILE), file).expect("the folder is ours");
        let checkpoint = Checkpoint::open(dir.path()).expect("a checkpoint");
        Self { _dir: dir, checkpoint }
    }
}

/// The tiny synthetic checkpoint of a version with its programs.
pub struct Model {
    pub snapshot: Snapshot,
    pub prepare: Program,
    pub request: Program,
    _dir: TempDir,
}

impl Model {
    pub fn tiny(version: Version) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dir = folder.path().join("tiny");
        synth::write(version, Size::Tiny, &dir, &|_, _| {}).expect("a tiny checkpoint");
        let snapshot = Snapshot::open(&dir).expect("it opens");
        let slot = 1;
        let model: Box<dyn ModelPrograms> = match snapshot.network() {
            Network::N15(config) => Box::new(program::n15::Model { config: config.clone(), slot }),
            Network::N16(config, _) => {
                Box::new(program::n16::Model { config: config.clone(), slot })
            }
            Network::N17(config, _) => {
                let config = config.clone();
                Box::new(program::n17::Model { config, slot, prefix_tokens: 3 })
            }
        };
        // Room for the 256 image tokens of N1.5; only N1.7 asks for the grid.
        let layout = Layout { tokens: 300, leading_tokens: 24, images: 1, grid: [4, 6] };
        let prepare = model.prepare(snapshot.tensors()).expect("a program");
        let request = model.request(snapshot.tensors(), layout).expect("a program");
        Self { snapshot, prepare, request, _dir: folder }
    }

    pub fn rules(&self) -> HoistRules {
        HoistRules::of(&self.prepare, &self.request)
    }

    /// Each weight that the request program multiplies by once, in the order of the first use.
    pub fn product_weights(&self) -> Vec<usize> {
        let mut ids: Vec<usize> = vec![];
        for product in products(&self.request, Input::Noise) {
            if !ids.contains(&product.weight.0) {
                ids.push(product.weight.0);
            }
        }
        ids
    }

    /// Those of the request program, then those of the prepare program.
    pub fn weights(&self) -> Vec<WeightSpec> {
        [self.request.weights.as_slice(), &self.prepare.weights].concat()
    }
}

/// A block of one of the two tensors of [`Drawn`].
pub fn weight(tensor: &str, inputs: usize, outputs: usize) -> WeightSpec {
    WeightSpec {
        tensor: tensor.to_owned(),
        offset: 0,
        rows: outputs,
        cols: inputs,
        orientation: Orientation::OutIn,
    }
}

/// `order` of each shard, number of its weight, column of tiles.
pub fn stream(consumer: u32, bank: u8, shards: &[(u32, usize, usize)]) -> StreamSpec {
    let shard = |(order, weight, column_tile): &(u32, usize, usize)| {
        (*order, Shard { weight: WeightId(*weight), column_tile: *column_tile })
    };
    StreamSpec { consumer, bank, shards: shards.iter().map(shard).collect() }
}

pub fn part(name: &str, short_last: bool, streams: Vec<StreamSpec>) -> PartSpec {
    PartSpec { name: name.to_owned(), short_last, streams }
}

/// All columns of these weights, dealt out to `consumers` cores on all banks; the weights are used one after the other.
pub fn spread(
    name: &str,
    weights: &[WeightSpec],
    ids: impl IntoIterator<Item = usize>,
    consumers: usize,
) -> PartSpec {
    let mut shards: Vec<Vec<(u32, usize, usize)>> = vec![vec![]; consumers];
    let mut dealt = 0;
    for (order, id) in (0..).zip(ids) {
        for column_tile in 0..weights[id].outputs().div_ceil(tile::SIDE) {
            shards[dealt % consumers].push((order, id, column_tile));
            dealt += 1;
        }
    }
    let used = shards.iter().enumerate().filter(|(_, shards)| !shards.is_empty());
    let streams =
        used.map(|(consumer, shards)| stream(consumer as u32, (consumer % 8) as u8, shards));
    part(name, true, streams.collect())
}

pub fn blob(name: &str, bank: u8, bytes: &[u8]) -> Blob {
    Blob { name: name.to_owned(), bank, bytes: bytes.to_vec() }
}

/// Without rules of what is computed where.
pub fn plan(
    weights: &[WeightSpec],
    parts: &[PartSpec],
    blobs: Vec<Blob>,
) -> Result<ArenaPlan, ArenaError> {
    ArenaPlan::new(weights, DtypePolicy::MixedDit, parts, blobs, &HoistRules::default())
}

/// The tiles of every shard of a stream, as they lie in the arena. Whatever of a packet is no tile has to be zero.
pub fn shards_of(arena: &Arena, part: &PlannedPart, stream: usize) -> Vec<Vec<u8>> {
    let shards = &part.streams[stream].shards;
    let mut found: Vec<Vec<u8>> = vec![vec![]; shards.len()];
    for packet in part.stream_packets(stream) {
        let bytes = arena.packet(packet);
        for run in &packet.runs {
            let tile_bytes = shards[run.shard].format.tile_bytes();
            assert_eq!(found[run.shard].len(), run.first * tile_bytes, "tiles in their order");
            let tiles = &bytes[run.at as usize..][..run.tiles * tile_bytes];
            found[run.shard].extend_from_slice(tiles);
        }
        assert!(bytes[packet.payload as usize..].iter().all(|byte| *byte == 0), "padding");
    }
    found
}
