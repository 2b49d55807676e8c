//! What a policy shows of what it sees: the very pixels of its frame chain.

use std::collections::BTreeMap;
use std::sync::Arc;

use gr00t_blackhole::checkpoint::Snapshot;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{Embodiment, Frame, Letterbox, Observation, Version};
use gr00t_blackhole::encode::image::{n15, n16, n17};
use gr00t_blackhole::encode::{EncodeError, Seen};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use tempfile::TempDir;

fn policy(version: Version, tag: &str) -> (Policy, Snapshot, TempDir) {
    let dir = TempDir::new().unwrap();
    let snapshot = dir.path().join("tiny");
    synth::write(version, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    let embodiment = Some(tag.to_owned());
    let options = PolicyOptions { snapshot: snapshot.clone(), embodiment, ..Default::default() };
    (Policy::load(&options).unwrap(), Snapshot::open(&snapshot).unwrap(), dir)
}

fn frame(seed: u32, [width, height]: [u32; 2]) -> Arc<Frame> {
    let sample = |i: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 13) as u8;
    let rgb: Vec<u8> = (0..3 * width * height).map(sample).collect();
    Arc::new(Frame::new(width, height, rgb).unwrap())
}

/// Every frame is another one.
fn observation(embodiment: &Embodiment, size: [u32; 2]) -> Observation {
    let mut frames = BTreeMap::new();
    for (number, camera) in (0u32..).zip(&embodiment.cameras) {
        let of_camera = (0u32..).zip(&embodiment.frame_deltas);
        let of_camera = of_camera.map(|(time, _)| frame(100 * number + time, size)).collect();
        frames.insert(camera.clone(), of_camera);
    }
    Observation { frames, ..Default::default() }
}

/// Compares what is shown of every frame with what `chain` makes of it: width, height and pixels.
fn assert_shows(
    policy: &Policy,
    size: [u32; 2],
    mut chain: impl FnMut(&Frame) -> (usize, usize, Vec<u8>),
) {
    let embodiment = policy.embodiment();
    let seen_by = observation(embodiment, size);
    let shown = policy.viewer()(&seen_by).unwrap();
    let (cameras, times) = (embodiment.cameras.len(), embodiment.frame_deltas.len());
    assert_eq!(shown.len(), cameras * times);
    for (number, shown) in shown.iter().enumerate() {
        let (time, camera) = (number / cameras, number % cameras);
        let frame = &seen_by.frames[&embodiment.cameras[camera]][time];
        let (width, height, rgb) = chain(frame);
        assert!(*shown == Seen { camera, width, height, rgb }, "{size:?}, picture {number}");
    }
}

#[test]
fn n15_shows_the_pixels_of_its_chain() {
    let (policy, _, _dir) = policy(Version::N15, "gr1");
    let mut chain = n15::FrameChain::new();
    for size in [[640, 480], [256, 256]] {
        assert_shows(&policy, size, |frame| {
            chain.encode(frame, &mut [0.0; n15::OUTPUT_LEN]);
            (n15::SIDE, n15::SIDE, chain.stages().u8.to_rgb())
        });
    }
}

#[test]
fn n16_shows_the_pixels_of_its_chain() {
    let (policy, snapshot, _dir) = policy(Version::N16, "gr1");
    let image = &snapshot.processor().unwrap().image;
    let params = n16::FrameChainParams {
        shortest_edge: image.shortest_edge as u32,
        crop_fraction: image.crop_fraction,
    };
    let mut chain = n16::FrameChain::new(params).unwrap();
    for size in [[640, 480], [256, 256]] {
        assert_shows(&policy, size, |frame| {
            let mut pixels = vec![0.0; chain.output_len()];
            chain.encode(frame, &mut pixels).unwrap();
            (chain.output_side(), chain.output_side(), chain.stages().u8.to_rgb())
        });
    }
}

#[test]
fn n17_shows_the_pixels_of_its_chain() {
    let tag = "oxe_droid_relative_eef_relative_joint";
    let (policy, snapshot, _dir) = policy(Version::N17, tag);
    let image = &snapshot.processor().unwrap().image;
    let params = n17::FrameChainParams {
        shortest_edge: image.shortest_edge as u32,
        crop_fraction: image.crop_fraction,
    };
    let letterbox = Letterbox::Auto.applies(image.letterbox).unwrap();
    let mut chain = n17::FrameChain::new(params, letterbox).unwrap();
    for size in [[1280, 720], [320, 180]] {
        assert_shows(&policy, size, |frame| {
            let mut picture = n17::Picture::default();
            chain.encode(frame, &mut picture);
            (picture.view().width(), picture.view().height(), picture.view().to_rgb())
        });
    }
}

#[test]
fn an_observation_that_is_refused_is_not_shown() {
    let (policy, _, _dir) = policy(Version::N16, "gr1");
    let blind = policy.viewer()(&Observation::default());
    assert!(matches!(blind, Err(EncodeError::MissingCamera { .. })), "{blind:?}");
}
