//! The goldens of N1.7: their names of taps, and how close actions must be.

use std::path::Path;

use super::golden::Case;

/// Cases of the tiny checkpoint.
pub const TINY_CASES: [&str; 5] = [
    "c0_droid_320x180",
    "c1_droid_1280x720",
    "c2_droid_1920x1080",
    "c3_libero_256x256",
    "c4_new_640x480",
];

/// Largest difference of an action in physical units.
const PHYSICAL_TOLERANCE: f32 = 5e-6;

/// A case of a network with so many vision blocks.
pub fn open(dir: &Path, name: &str, vision_blocks: usize) -> Case {
    let names = move |golden: &str| program_tap(golden, vision_blocks);
    Case::open(dir, name).with_dialect(names, PHYSICAL_TOLERANCE)
}

/// The program's name of a golden tap.
fn program_tap(golden: &str, vision_blocks: usize) -> String {
    if let Some((name, step)) = golden.rsplit_once(".k") {
        return match name {
            "actions" => format!("actions.step{step}"),
            "action_tau" => format!("k{step}.tau"),
            "action_decoder_out" => format!("k{step}.decoder_out"),
            "pred_velocity" => format!("k{step}.velocity"),
            _ => format!("k{step}.{name}"),
        };
    }
    match golden.strip_prefix("vit_") {
        Some("block_first") => return "vit.block0".to_owned(),
        Some("block_last") => return format!("vit.block{}", vision_blocks - 1),
        Some(name) => return format!("vit.{name}"),
        None => {}
    }
    match golden.strip_prefix("llm_") {
        // Taken before the DeepStack addition, as the program does.
        Some(name) => format!("llm.{}", name.strip_suffix(".out").unwrap_or(name)),
        None => golden.to_owned(),
    }
}
