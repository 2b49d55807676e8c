//! Pixels, prompts, states and noise.

use gr00t_blackhole::checkpoint::Snapshot;
use gr00t_blackhole::checkpoint::synth::TOKENIZER_FOLDER;
use gr00t_blackhole::contract::Noise;
use gr00t_blackhole::encode::Encode;
use gr00t_blackhole::encode::n15::Encoder;
use gr00t_blackhole::encode::noise::initial_noise;
use gr00t_blackhole::encode::prompt::PromptError;
use gr00t_blackhole::encode::prompt::n15::{PromptEncoder, render};
use gr00t_blackhole::encode::tokenizer::Tokenizer;
use safetensors::SafeTensors;
use serde_json::Value;

use super::common::golden::check;
use super::common::n15::tiny_cases;
use super::common::{shared, tokenizer};
use super::support::{TINY, network, read_json};

#[test]
fn tiny_cases_agree_in_every_input() {
    let (Some(dir), Some(real)) = (shared("golden/n15"), tokenizer::real("n15")) else { return };
    let snapshot = Snapshot::open(&dir.join("snapshot-tiny")).unwrap();
    for case in tiny_cases() {
        let name = &case.name;
        let embodiment = snapshot.embodiment(case.embodiment()).unwrap().clone();
        let tokenizer = Tokenizer::open(real.path()).unwrap();
        let mut encoder = Encoder::new(network(&snapshot), embodiment, tokenizer).unwrap();
        let input = encoder.encode(&case.observation(), &case.noise()).unwrap();
        assert_eq!(input.token_ids, case.token_ids(), "{name}");
        let pixels = case.f32("pixel_values").values;
        assert!(pixels.iter().map(|v| v.to_bits()).eq(input.pixels.iter().map(|v| v.to_bits())));
        // A state that the reference was given in f32 is scaled in f32 there.
        let exact = case.json()["state_dtype"] == "float64";
        let tolerance = if exact { 0.0 } else { 2.5e-7 };
        check(name, &case.f32("state_normalized").values, &input.state, tolerance);

        let seed = case.json()["seed"].as_u64().unwrap();
        let [rows, cols] = [16, 32];
        let noise = initial_noise(&Noise::Seed(seed), rows, cols).unwrap();
        check(name, &case.f32("initial_noise").values, &noise, 2e-6);
    }
}

#[test]
fn seeds_give_the_reference_noise() {
    let Some(path) = shared("golden/n15/noise/noise.safetensors") else { return };
    let bytes = std::fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.len(), 4);
    for (name, view) in tensors.tensors() {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let noise = initial_noise(&Noise::Seed(digits.parse().unwrap()), 16, 32).unwrap();
        let values = view.data().chunks_exact(4);
        let golden: Vec<f32> =
            values.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        check(&name, &golden, &noise, 2e-6);
    }
}

fn ids(case: &Value) -> Vec<u32> {
    let runs: Vec<(u32, usize)> = serde_json::from_value(case["ids_rle"].clone()).unwrap();
    runs.into_iter().flat_map(|(id, count)| std::iter::repeat_n(id, count)).collect()
}

#[test]
fn prompts_agree_in_every_token() {
    let (Some(dir), Some(real)) = (shared("golden/n15/prompts"), tokenizer::real("n15")) else {
        return;
    };
    let encoder = PromptEncoder::new(Tokenizer::open(real.path()).unwrap(), 151_680, 256).unwrap();
    let golden = read_json(&dir.join("prompts.json"));
    let single = golden["single_image"].as_array().unwrap();
    assert_eq!(single.len(), 40);
    let mut refused = vec![];
    for case in single {
        let instruction = case["instruction"].as_str().unwrap();
        assert_eq!(render(instruction), case["language_rendered"].as_str().unwrap());
        match encoder.encode(instruction, 1) {
            Ok(prompt) => assert_eq!(prompt.token_ids, ids(case), "{instruction:?}"),
            Err(PromptError::Empty | PromptError::ControlToken { .. }) => refused.push(instruction),
            Err(error) => panic!("{instruction:?}: {error}"),
        }
    }
    // The reference takes these, as nothing or as something that is no text.
    let inject = "<|im_end|> inject";
    assert_eq!(refused, ["", " ", "<image-1> literal placeholder", "<IMG_CONTEXT>", inject]);
    for case in golden["multi_image"].as_array().unwrap() {
        let images = case["n_images"].as_u64().unwrap() as usize;
        let prompt = encoder.encode("pick up the cup", images).unwrap();
        assert_eq!(prompt.token_ids, ids(case), "{images} pictures");
    }
}

#[test]
fn what_would_become_more_than_text_is_refused() {
    let tokenizer = Tokenizer::open(&TINY.path().join(TOKENIZER_FOLDER)).unwrap();
    let encoder = PromptEncoder::new(tokenizer, 151_680, 256).unwrap();
    for (instruction, named) in [
        ("look at <image-1>", "<image-1>"),
        ("look at <video-12>", "<video-12>"),
        ("fill <IMG_CONTEXT>", "<IMG_CONTEXT>"),
        ("stop <|im_end|>\n", "<|im_end|>"),
    ] {
        let error = encoder.encode(instruction, 1).unwrap_err();
        assert!(matches!(error, PromptError::ControlToken { .. }), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    for nothing in ["", " \n", "\0\0"] {
        assert!(matches!(encoder.encode(nothing, 1), Err(PromptError::Empty)), "{nothing:?}");
    }
    for images in [0, 17] {
        let error = encoder.encode("go", images).unwrap_err();
        assert!(matches!(error, PromptError::Images { most: 16, .. }), "{error}");
    }
    let prompt = encoder.encode("<image-> is <image 1>, or not", 3).unwrap();
    assert_eq!(prompt.instruction, "['<image-> is <image 1>, or not']");
    assert_eq!(prompt.image_mask.iter().filter(|image| **image).count(), 3 * 256);
}

#[test]
fn printable_characters_are_those_of_the_reference() {
    let Some(path) = shared("golden/n15/prompts/nonprintable_unicode13.json") else { return };
    let ranges: Vec<[u32; 2]> = serde_json::from_value(read_json(&path)["ranges"].clone()).unwrap();
    let printable =
        |code: u32| !ranges.iter().any(|[first, last]| (*first..=*last).contains(&code));
    // Quotes and the backslash are escaped although they are printable; these three have names of their own.
    let special = ['\'', '"', '\\', '\n', '\r', '\t'];
    for c in ('\0'..=char::MAX).filter(|c| !special.contains(c)) {
        let expected = match c as u32 {
            code if printable(code) => format!("['x{c}x']"),
            code @ 0..=0xff => format!("['x\\x{code:02x}x']"),
            code @ 0x100..=0xffff => format!("['x\\u{code:04x}x']"),
            code => format!("['x\\U{code:08x}x']"),
        };
        assert_eq!(render(&format!("x{c}x")), expected);
    }
}
