//! A tiny network on generated weights, and the case of the repository's own data that NVIDIA's code has answered with it.

use std::sync::Arc;

use gr00t_blackhole::backend::cpu::CpuBackend;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Network, Snapshot};
use gr00t_blackhole::contract::{Embodiment, TapSink, Version};
use gr00t_blackhole::encode::ModelInput;
use gr00t_blackhole::encode::image::n15::{FrameChain as PatternChain, OUTPUT_LEN};
use gr00t_blackhole::encode::image::n17::{FrameChain, FrameChainParams, PatchWriter, Picture};
use gr00t_blackhole::encode::prompt::{n15, n16, n17};
use gr00t_blackhole::prepared::Cache;
use gr00t_blackhole::program;
use tempfile::TempDir;

use super::golden::Case;
use super::pattern::pattern;
use super::{data, drawn};

/// `<|im_start|>`, `user` and the newline: what stands before the first picture of N1.7.
pub const PREFIX_TOKENS: usize = 3;

pub struct StoredNetwork {
    pub case: Case,
    pub input: ModelInput,
    pub embodiment: Embodiment,
    snapshot: Snapshot,
    _folder: TempDir,
}

/// Pixels, their grid, and the id of an image token.
struct Pictures {
    pixels: Vec<f32>,
    grid: [usize; 2],
    image_token: u32,
}

impl StoredNetwork {
    pub fn of(version: Version) -> Self {
        let folder = TempDir::new().unwrap();
        let dir = folder.path().join("tiny");
        synth::write(version, Size::Tiny, &dir, &|_, _| {}).unwrap();
        let snapshot = Snapshot::open(&dir).unwrap();
        let (case, pictures) = match snapshot.network() {
            Network::N15(config) => {
                let grid = [config.vision.grid(); 2];
                (Case::open(&data("n15"), "case0_256x256"), drawn_pattern(grid))
            }
            Network::N16(config, _) => {
                let case = Case::open(&data("n16"), "c0_gr1_256");
                let pictures = stored_picture(&case, [config.vision.grid(); 2]);
                (case, pictures)
            }
            Network::N17(config, _) => {
                let case = super::n17::open(&data("n17"), "c4_new_640x480", config.vision.layers);
                let pictures = drawn_frame(&case);
                (case, pictures)
            }
        };
        let input = ModelInput {
            pixels: pictures.pixels,
            images: 1,
            grid: pictures.grid,
            token_ids: case.token_ids(),
            image_token: pictures.image_token,
            state: case.f32("state_normalized").values,
            noise: case.f32("initial_noise").values,
        };
        let embodiment = snapshot.embodiment(case.embodiment()).unwrap().clone();
        Self { case, input, embodiment, snapshot, _folder: folder }
    }

    /// The network in f32, without a cache; `taps` gets what is computed at load.
    pub fn load(&self, threads: usize, taps: Option<&mut dyn TapSink>) -> CpuBackend {
        let slot = self.embodiment.slot;
        let model: Box<dyn program::ModelPrograms> = match self.snapshot.network() {
            Network::N15(config) => Box::new(program::n15::Model { config: config.clone(), slot }),
            Network::N16(config, _) => {
                Box::new(program::n16::Model { config: config.clone(), slot })
            }
            Network::N17(config, _) => {
                let prefix_tokens = PREFIX_TOKENS;
                Box::new(program::n17::Model { config: config.clone(), slot, prefix_tokens })
            }
        };
        let tensors = Arc::clone(self.snapshot.tensors());
        CpuBackend::load(tensors, model, threads, &Cache::default(), taps).unwrap()
    }
}

fn drawn_pattern(grid: [usize; 2]) -> Pictures {
    let mut pixels: Box<[f32; OUTPUT_LEN]> = vec![0.0; OUTPUT_LEN].try_into().unwrap();
    PatternChain::new().encode(&pattern(1, 256, 256), &mut pixels);
    Pictures { pixels: pixels.to_vec(), grid, image_token: n15::IMAGE_TOKEN_ID }
}

fn stored_picture(case: &Case, grid: [usize; 2]) -> Pictures {
    let tensors = case.tensors();
    let picture = tensors.tensor("image0.u8").unwrap();
    let plane = picture.shape()[0] * picture.shape()[1];
    let pixel = |index: usize| (f32::from(picture.data()[index]) - 127.5) / 127.5;
    let pixels = (0..3 * plane).map(|i| pixel(i % plane * 3 + i / plane)).collect();
    Pictures { pixels, grid, image_token: n16::IMAGE_TOKEN_ID }
}

fn drawn_frame(case: &Case) -> Pictures {
    let source = &case.json()["frames"][0];
    let [width, height, seed] =
        ["width", "height", "seed"].map(|key| source[key].as_u64().unwrap() as u32);
    let mut picture = Picture::default();
    let mut chain = FrameChain::new(FrameChainParams::default(), false).unwrap();
    chain.encode(&drawn::frame(width, height, seed), &mut picture);
    let mut pixels = vec![0.0; PatchWriter::output_len(picture.grid())];
    PatchWriter::default().write(&picture, &mut pixels);
    Pictures { pixels, grid: picture.grid(), image_token: n17::IMAGE_TOKEN_ID }
}
