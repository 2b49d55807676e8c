//! The network on generated weights against a case in the repository's own test data.

use std::sync::Arc;

use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::backend::cpu::CpuBackend;
use gr00t_blackhole::checkpoint::Snapshot;
use gr00t_blackhole::contract::PredictOptions;
use gr00t_blackhole::encode::ModelInput;
use gr00t_blackhole::encode::image::n15::{FrameChain, OUTPUT_LEN};
use gr00t_blackhole::encode::prompt::n15::IMAGE_TOKEN_ID;
use gr00t_blackhole::prepared::Cache;
use gr00t_blackhole::program::n15::Model;

use super::common::data;
use super::common::golden::{Case, Taps, check};
use super::pattern::pattern;
use super::support::{TINY, network};

#[test]
fn the_network_reproduces_the_stored_case() {
    let snapshot = Snapshot::open(TINY.path()).unwrap();
    let config = network(&snapshot);
    let case = Case::open(&data("n15"), "case0_256x256");
    let slot = snapshot.embodiment(case.embodiment()).unwrap().slot;
    let mut taps = Taps::default();
    let model = Model { config: config.clone(), slot };
    let tensors = Arc::clone(snapshot.tensors());
    let mut backend =
        CpuBackend::load(tensors, Box::new(model), 0, &Cache::default(), Some(&mut taps)).unwrap();

    let mut pixels: Box<[f32; OUTPUT_LEN]> = vec![0.0; OUTPUT_LEN].try_into().unwrap();
    FrameChain::new().encode(&pattern(1, 256, 256), &mut pixels);
    let input = ModelInput {
        pixels: pixels.to_vec(),
        images: 1,
        grid: [config.vision.grid(); 2],
        token_ids: case.token_ids(),
        image_token: IMAGE_TOKEN_ID,
        state: case.f32("state_normalized").values,
        noise: case.f32("initial_noise").values,
    };
    let output = backend.run(&input, &PredictOptions::default(), Some(&mut taps)).unwrap();
    assert!(case.taps().len() > 20);
    for name in case.taps() {
        case.check_tap(&format!("tap.{name}"), &taps.0[&name]);
    }
    check("action_pred", &case.f32("action_pred").values, &output.actions, 1e-5);
}
