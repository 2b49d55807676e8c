//! Tokenizer, prompt, state and noise against NVIDIA's own processors.

mod common;
#[path = "common/made_up_tokenizer.rs"]
mod made_up_tokenizer;
#[path = "common/stored.rs"]
mod stored;

use std::path::Path;

use common::n16::every_case;
use common::{data, shared, tokenizer};
use gr00t_blackhole::contract::Noise;
use gr00t_blackhole::encode::noise::initial_noise;
use gr00t_blackhole::encode::prompt::n16::{IMAGE_TOKEN_ID, PromptEncoder};
use gr00t_blackhole::encode::prompt::{MAX_INSTRUCTION_CHARS, PromptError, formalize_language};
use gr00t_blackhole::encode::state::encode_state;
use gr00t_blackhole::encode::tokenizer::{Tokenizer, TokenizerError};
use made_up_tokenizer::MadeUp;
use proptest::prelude::*;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::Value;
use stored::Stored;

const VOCABULARY: usize = 151_680;
const TOKENS_PER_IMAGE: usize = 81;

fn encoder(tokenizer: &Path, formalize: bool) -> PromptEncoder {
    let tokenizer = Tokenizer::open(tokenizer).unwrap();
    PromptEncoder::new(tokenizer, VOCABULARY, TOKENS_PER_IMAGE, formalize).unwrap()
}

/// JSON and tensors of the N1.7 goldens, as far as they are here.
fn n17_cases() -> Vec<(Value, Vec<u8>)> {
    let Some(dir) = shared("golden/n17") else { return vec![] };
    let read = |name: &str, suffix| std::fs::read(dir.join(format!("{name}.{suffix}"))).unwrap();
    [
        "c0_droid_320x180",
        "c1_droid_1280x720",
        "c2_droid_1920x1080",
        "c3_libero_256x256",
        "c4_new_640x480",
    ]
    .iter()
    .map(|name| (serde_json::from_slice(&read(name, "json")).unwrap(), read(name, "safetensors")))
    .collect()
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn ulps(left: f32, right: f32) -> u32 {
    assert!(left == right || left.is_sign_negative() == right.is_sign_negative(), "{left} {right}");
    left.to_bits().abs_diff(right.to_bits())
}

/// Equal to the last bit, except that the reference's sines and cosines are not all rounded correctly.
fn check_state(name: &str, expected: &[f32], found: &[f32], sin_cos: bool) {
    assert_eq!(expected.len(), found.len(), "{name}");
    for (column, (found, expected)) in found.iter().zip(expected).enumerate() {
        let distance = ulps(*found, *expected);
        assert!(distance <= u32::from(sin_cos), "{name}[{column}]: {found} should be {expected}");
    }
}

fn check_noise(name: &str, expected: &[f32], found: &[f32]) {
    common::golden::check(name, expected, found, 1e-6);
}

fn seeded(seed: u64, rows: usize, cols: usize) -> Vec<f32> {
    initial_noise(&Noise::Seed(seed), rows, cols).unwrap()
}

#[test]
fn stored_states_are_encoded_exactly() {
    for case in Stored::all() {
        let embodiment = case.embodiment();
        let encoded = encode_state(&embodiment, &case.state, 128).unwrap();
        let (used, padding) = encoded.split_at(case.state_normalized.len());
        assert!(padding.iter().all(|&value| value == 0.0), "{}", case.id);
        check_state(&case.id, &case.state_normalized, used, case.id.starts_with("c0"));
    }
}

#[test]
fn golden_states_are_encoded_exactly() {
    for (case, embodiment) in every_case() {
        let golden = case.f32("state_normalized");
        let encoded = encode_state(&embodiment, &case.observation().state, golden.cols).unwrap();
        let sin_cos = case.embodiment() == "gr1";
        check_state(&case.name, &golden.values, &encoded, sin_cos);
    }
}

#[derive(Deserialize)]
struct StoredNoise {
    seed: u64,
    rows: usize,
    cols: usize,
    first: Vec<f32>,
    last: Vec<f32>,
}

#[test]
fn stored_noise_is_reproduced() {
    let stored: Vec<StoredNoise> =
        serde_json::from_slice(&std::fs::read(data("n16/noise.json")).unwrap()).unwrap();
    for StoredNoise { seed, rows, cols, first, last } in stored {
        let noise = seeded(seed, rows, cols);
        check_noise(&format!("seed {seed}, first"), &first, &noise[..first.len()]);
        check_noise(&format!("seed {seed}, last"), &last, &noise[rows * cols - last.len()..]);
    }
}

#[test]
fn golden_prompts_agree_in_every_token() {
    let Some(real) = tokenizer::real("n16") else { return };
    let encoder = encoder(real.path(), true);
    for (case, _) in every_case() {
        let json = case.json();
        let images = json["image_order"].as_array().unwrap().len();
        let prompt = encoder.encode(json["instruction"].as_str().unwrap(), images).unwrap();
        assert_eq!(prompt.instruction, json["instruction_normalized"].as_str().unwrap());
        assert_eq!(prompt.token_ids, case.token_ids(), "{}", case.name);
        let tensors = case.tensors();
        let mask: Vec<bool> = tensors
            .tensor("image_mask")
            .unwrap()
            .data()
            .chunks_exact(8)
            .map(|bytes| bytes[0] != 0)
            .collect();
        assert_eq!(prompt.image_mask, mask, "{}", case.name);
    }
}

#[test]
fn golden_noise_is_reproduced_for_every_version() {
    for (case, _) in every_case() {
        let golden = case.f32("initial_noise");
        let rows = golden.values.len() / golden.cols;
        let noise = seeded(case.json()["seed"].as_u64().unwrap(), rows, golden.cols);
        check_noise(&case.name, &golden.values, &noise);
    }
    for (json, tensors) in n17_cases() {
        let tensors = SafeTensors::deserialize(&tensors).unwrap();
        let golden = f32s(tensors.tensor("initial_noise").unwrap().data());
        let seed = json["seed"].as_u64().unwrap();
        check_noise(&format!("N1.7, seed {seed}"), &golden, &seeded(seed, 40, golden.len() / 40));
    }
    if let Some(path) = shared("golden/n15/noise/noise.safetensors") {
        let bytes = std::fs::read(path).unwrap();
        for (name, tensor) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            let seed = name.strip_prefix("seed").unwrap().parse().unwrap();
            check_noise(&name, &f32s(tensor.data()), &seeded(seed, 16, 32));
        }
    }
}

/// N1.5 shares vocabulary, merges and added tokens; its prompts hold much that formalisation takes away.
#[test]
fn the_tokenizer_agrees_on_texts_with_every_kind_of_character() {
    let (Some(real), Some(path)) =
        (tokenizer::real("n15"), shared("golden/n15/prompts/prompts.json"))
    else {
        return;
    };
    let tokenizer = Tokenizer::open(real.path()).unwrap();
    let prompts: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for entry in prompts["single_image"].as_array().unwrap() {
        let image = format!("<image 1><img>{}</img>", "<IMG_CONTEXT>".repeat(256));
        let text = entry["prompt_text"].as_str().unwrap().replace("<image-1>", &image);
        let mut expected: Vec<u32> = vec![];
        for run in entry["ids_rle"].as_array().unwrap() {
            let id = run[0].as_u64().unwrap() as u32;
            expected.extend(std::iter::repeat_n(id, run[1].as_u64().unwrap() as usize));
        }
        assert_eq!(tokenizer.encode(&text).unwrap(), expected, "{}", entry["instruction"]);
    }
}

/// N1.7 has its added tokens in `tokenizer_config.json` only.
#[test]
fn the_tokenizer_reads_added_tokens_from_its_configuration() {
    let Some(real) = tokenizer::real("n17") else { return };
    let tokenizer = Tokenizer::open(real.path()).unwrap();
    tokenizer.expect_id("<|image_pad|>", 151_655).unwrap();
    for (json, _) in n17_cases() {
        let formal = formalize_language(json["instruction"].as_str().unwrap());
        assert_eq!(formal, json["instruction_normalized"].as_str().unwrap());
        let expected: Vec<u32> =
            serde_json::from_value(json["instruction_token_ids"].clone()).unwrap();
        assert_eq!(tokenizer.encode(&formal).unwrap(), expected, "{formal}");
    }
}

#[test]
fn a_prompt_has_text_first_and_a_block_for_every_image() {
    let made_up = MadeUp::new(&[]);
    let encoder = encoder(made_up.dir(), true);
    for images in [1, 2, 9, 12] {
        let prompt = encoder.encode("Go, now!", images).unwrap();
        assert_eq!(prompt.instruction, "go now");
        let text = "system\nYou are a helpful assistant.";
        let mut expected = made_up.ids("<|im_start|>");
        expected.extend(made_up.ids(text));
        expected.extend(made_up.ids("<|im_end|>"));
        expected.extend(made_up.ids("\n"));
        expected.extend(made_up.ids("<|im_start|>"));
        expected.extend(made_up.ids("user\ngo now"));
        for image in 1..=images {
            expected.extend(made_up.ids(&format!("<image {image}>")));
            expected.extend(made_up.ids("<img>"));
            expected.extend([IMAGE_TOKEN_ID; TOKENS_PER_IMAGE]);
            expected.extend(made_up.ids("</img>"));
        }
        expected.extend(made_up.ids("<|im_end|>"));
        expected.extend(made_up.ids("\n"));
        assert_eq!(prompt.token_ids, expected);
        let masked = prompt.image_mask.iter().filter(|&&image| image).count();
        assert_eq!(masked, TOKENS_PER_IMAGE * images);
    }
}

#[test]
fn merges_cross_from_the_instruction_into_what_follows() {
    let made_up = MadeUp::new(&[("_", "<")]);
    let prompt = encoder(made_up.dir(), true).encode("go_", 1).unwrap();
    let merged = made_up.merged("_<");
    assert!(prompt.token_ids.contains(&merged), "{:?}", prompt.token_ids);
    let apart = encoder(made_up.dir(), true).encode("go", 1).unwrap();
    assert!(!apart.token_ids.contains(&merged));
}

#[test]
fn case_72_other_instructions_give_other_ids() {
    let made_up = MadeUp::new(&[]);
    let encoder = encoder(made_up.dir(), true);
    let ids = |text| encoder.encode(text, 1).unwrap().token_ids;
    assert_ne!(ids("pick up the cup"), ids("pick up the bowl"));
    assert_ne!(ids("pick up the cup"), ids(" pick up the cup"), "ends are not trimmed");
    assert_eq!(ids("Pick up the cup!"), ids("pick up the cup"));
}

#[test]
fn instructions_that_say_nothing_are_refused() {
    let made_up = MadeUp::new(&[]);
    let encoder = encoder(made_up.dir(), true);
    for empty in ["", " ", "\t\n", "\u{3000}\u{1c}"] {
        assert!(matches!(encoder.encode(empty, 1), Err(PromptError::Empty)), "{empty:?}");
    }
    for symbols in ["!!!", " ? ", "\u{301}", "👍"] {
        let error = encoder.encode(symbols, 1).unwrap_err();
        assert!(matches!(error, PromptError::NothingLeft { .. }), "{symbols:?}: {error}");
    }
    let longest = "a".repeat(MAX_INSTRUCTION_CHARS);
    assert!(encoder.encode(&longest, 1).is_ok());
    let error = encoder.encode(&(longest + "a"), 1).unwrap_err();
    assert!(matches!(error, PromptError::TooLong { chars: 2001 }), "{error}");
}

#[test]
fn prompts_that_are_too_long_or_without_a_picture_are_refused() {
    let made_up = MadeUp::new(&[]);
    let encoder = encoder(made_up.dir(), true);
    // Four tokens for each character without merges.
    let error = encoder.encode(&"𝒳".repeat(1500), 1).unwrap_err();
    assert!(matches!(error, PromptError::TooManyTokens { tokens } if tokens > 6000), "{error}");
    for images in [0, 51, usize::MAX] {
        let error = encoder.encode("go", images).unwrap_err();
        assert!(matches!(error, PromptError::Images { .. }), "{error}");
    }
}

#[test]
fn control_tokens_in_an_instruction_are_refused_or_lose_their_punctuation() {
    let made_up = MadeUp::new(&[]);
    let raw = encoder(made_up.dir(), false);
    for token in ["<|im_end|>", "<IMG_CONTEXT>", "<|im_start|>", "</img>"] {
        let error = raw.encode(&format!("go {token} on"), 1).unwrap_err();
        assert!(
            matches!(&error, PromptError::ControlToken { token: found } if found == token),
            "{error}"
        );
    }
    assert_eq!(raw.encode("Go, <now>!", 1).unwrap().instruction, "Go, <now>!");
    let formal = encoder(made_up.dir(), true);
    let prompt = formal.encode("go <|im_end|> <IMG_CONTEXT> on", 1).unwrap();
    assert_eq!(prompt.instruction, "go im_end img_context on");
}

#[test]
fn tokenizers_of_another_model_are_refused() {
    let made_up = MadeUp::new(&[]);
    let open = || Tokenizer::open(made_up.dir()).unwrap();
    let error = PromptEncoder::new(open(), 151_679, 81, true).unwrap_err();
    assert!(
        matches!(error, PromptError::Vocabulary { tokenizer: 151_680, model: 151_679 }),
        "{error}"
    );
    // Without the pictures' own tokens, as in the original Qwen vocabulary.
    made_up.write_added(&made_up.added()[..26]);
    let error = PromptEncoder::new(open(), VOCABULARY, 81, true).unwrap_err();
    assert!(
        matches!(
            &error,
            PromptError::Tokenizer(TokenizerError::SpecialId { token, expected: 151_669, found: None, .. })
                if token == "<IMG_CONTEXT>"
        ),
        "{error}"
    );
}

#[test]
fn damaged_tokenizer_files_are_refused_by_name() {
    let open = |made_up: &MadeUp| Tokenizer::open(made_up.dir()).unwrap_err();
    let damage = |file: &str, text: &str| {
        let made_up = MadeUp::new(&[]);
        std::fs::write(made_up.dir().join(file), text).unwrap();
        let error = open(&made_up);
        assert!(error.to_string().contains(file), "{error}");
        error
    };
    assert!(matches!(damage("vocab.json", "{\"a\": 0"), TokenizerError::Json { .. }));
    assert!(matches!(damage("vocab.json", "{\"a\": 0.5}"), TokenizerError::Json { .. }));
    assert!(matches!(damage("vocab.json", "{\"a\": 1}"), TokenizerError::Ids { id: 1, .. }));
    assert!(matches!(damage("vocab.json", "{\"a\": 0, \"b\": 0}"), TokenizerError::Ids { .. }));
    assert!(matches!(damage("vocab.json", "{\"a\": 0}"), TokenizerError::Byte { .. }));
    assert!(matches!(
        damage("merges.txt", "#version: 0.2\na b c\n"),
        TokenizerError::Merge { line: 2, .. }
    ));
    assert!(matches!(damage("merges.txt", "lonely\n"), TokenizerError::Merge { line: 1, .. }));
    assert!(matches!(damage("merges.txt", "a unknown\n"), TokenizerError::Merges { .. }));
    assert!(matches!(
        damage("added_tokens.json", "{\"<x>\": 5}"),
        TokenizerError::AddedToken { id: 5, found: None, .. }
    ));
    assert!(matches!(damage("added_tokens.json", "[]"), TokenizerError::Json { .. }));

    for file in ["vocab.json", "merges.txt"] {
        let made_up = MadeUp::new(&[]);
        std::fs::remove_file(made_up.dir().join(file)).unwrap();
        let error = open(&made_up);
        assert!(matches!(error, TokenizerError::Io { .. }) && error.to_string().contains(file));
    }
    let made_up = MadeUp::new(&[]);
    std::fs::remove_file(made_up.dir().join("added_tokens.json")).unwrap();
    assert!(matches!(open(&made_up), TokenizerError::NoAddedTokens { .. }));
    let config =
        "{\"added_tokens_decoder\": {\"151643\": {\"content\": \"<x>\", \"lstrip\": true}}}";
    std::fs::write(made_up.dir().join("tokenizer_config.json"), config).unwrap();
    assert!(matches!(open(&made_up), TokenizerError::AddedTokenFlag { flag: "lstrip", .. }));
}

#[test]
fn any_text_gives_a_whole_prompt_or_a_reason() {
    let made_up = MadeUp::new(&[("e", "r"), ("Ġ", "t")]);
    let encoders = [encoder(made_up.dir(), true), encoder(made_up.dir(), false)];
    let pieces = prop_oneof![
        any::<String>(),
        "[a-z ]{0,40}",
        "\\s{0,300}",
        Just("<IMG_CONTEXT>".to_owned()),
        Just("<|im_end|".to_owned()),
        Just("|>".to_owned()),
    ];
    let texts = prop::collection::vec(pieces, 1..5).prop_map(|pieces| pieces.concat());
    proptest!(|(text in texts, images in 1usize..4)| {
        for encoder in &encoders {
            let Ok(prompt) = encoder.encode(&text, images) else { continue };
            prop_assert_eq!(prompt.token_ids.len(), prompt.image_mask.len());
            let image_tokens = prompt.image_mask.iter().filter(|&&image| image).count();
            prop_assert_eq!(image_tokens, TOKENS_PER_IMAGE * images);
            // Nothing of the text got lost: its bytes come back from the ids.
            prop_assert_eq!(made_up.decode_instruction(&prompt.token_ids), nfc(&prompt.instruction));
        }
    });
}

fn nfc(text: &str) -> String {
    use tokenizers::{NormalizedString, Normalizer, normalizers::unicode::NFC};
    let mut normalized = NormalizedString::from(text);
    NFC.normalize(&mut normalized).unwrap();
    normalized.get().to_owned()
}
