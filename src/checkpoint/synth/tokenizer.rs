//! A byte-level BPE vocabulary of our own, in the file layout of Qwen2 and with its special ids.
//!
//! It has tokens for all 256 bytes, so any text can be written and read back, and a few hundred merges learnt from the
//! sentences below. Ids of ordinary words differ from those of the real vocabulary; ids of special tokens do not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::contract::Version;

/// Most merges that are learnt.
const MERGES: usize = 400;

/// A pair must stand together at least this often to be merged.
const LEAST_COUNT: usize = 2;

/// First line of a merges file.
const MERGES_HEADER: &str = "#version: 0.2";

/// Id of the first special token; the others follow.
const FIRST_SPECIAL: usize = 151_643;

/// Special tokens of N1.6, in the order of their ids (spec section 5); N1.7 has those of Qwen3 only.
const SPECIAL: [&str; 37] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
    "<IMG_CONTEXT>",
    "<img>",
    "</img>",
    "<box>",
    "</box>",
    "<quad>",
    "</quad>",
    "<ref>",
    "</ref>",
    "<interval>",
    "</interval>",
];

/// How many of [`SPECIAL`] are Qwen3's own.
const QWEN3_SPECIAL: usize = 26;

fn special_tokens(version: Version) -> &'static [&'static str] {
    match version {
        Version::N15 | Version::N16 => &SPECIAL,
        Version::N17 => &SPECIAL[..QWEN3_SPECIAL],
    }
}

/// What the merges are learnt from.
const SENTENCES: [&str; 24] = [
    "system user assistant you are a helpful assistant",
    "pick up the red block and place it on the table",
    "pick up the green cup and put it into the box",
    "place the bottle from the counter on the plate",
    "put the apple from the table into the basket",
    "move the blue block to the left of the yellow bowl",
    "move the gripper to the right and close the gripper",
    "open the drawer and put the spoon into the drawer",
    "close the top drawer of the cabinet",
    "open the door of the microwave and close it again",
    "push the button and wait until the light turns green",
    "pull the handle of the door toward you",
    "pour water from the bottle into the glass",
    "stack the small block on top of the large block",
    "turn the knob of the stove to the left",
    "wipe the table with the cloth",
    "fold the towel and place it in the basket",
    "hand over the tool with the right hand",
    "hold the bowl with the left hand and stir with the spoon",
    "grasp the object between the fingers and lift the object",
    "rotate the cup and place the cup upside down",
    "put the pear and the orange on the white plate",
    "insert the plug into the socket",
    "return to the home position and stop",
];

/// The files of a tokenizer directory.
pub struct TokenizerFiles {
    /// Token -> id, for `vocab.json`.
    pub vocab: Value,
    /// Text of `merges.txt`.
    pub merges: String,
    /// Special token -> id, for `added_tokens.json`.
    pub added_tokens: Value,
}

/// Learns the merges and numbers all tokens: bytes first, then merges in the order in which they were learnt.
pub fn build(version: Version) -> TokenizerFiles {
    let bytes = byte_alphabet();
    let mut vocab: BTreeMap<String, usize> = BTreeMap::new();
    for token in bytes.iter().map(|letter| letter.to_string()) {
        vocab.insert(token, vocab.len());
    }
    let mut merges = format!("{MERGES_HEADER}\n");
    for (left, right) in learn_merges() {
        // Two merges may spell the same token.
        let next = vocab.len();
        vocab.entry(format!("{left}{right}")).or_insert(next);
        // Writing to a String cannot fail.
        let _ = writeln!(merges, "{left} {right}");
    }
    let added_tokens: BTreeMap<&str, usize> = special_tokens(version)
        .iter()
        .copied()
        .enumerate()
        .map(|(at, token)| (token, FIRST_SPECIAL + at))
        .collect();
    TokenizerFiles { vocab: json!(vocab), merges, added_tokens: json!(added_tokens) }
}

/// The letters that stand for bytes in a byte-level vocabulary, in the order of their ids: printable bytes of Latin-1 as
/// themselves, then the other bytes as the code points from 256 on.
fn byte_alphabet() -> Vec<char> {
    let printable = (b'!'..=b'~').chain(0xa1..=0xac).chain(0xae..=0xff);
    let others = (0..=u8::MAX).filter(|byte| !printable.clone().any(|other| other == *byte));
    let shifted = (0_u32..).zip(others).filter_map(|(at, _)| char::from_u32(256 + at));
    printable.clone().map(char::from).chain(shifted).collect()
}

/// The letter that stands for a space.
const SPACE: char = '\u{120}';

/// Byte pair encoding learnt from [`SENTENCES`]: the most frequent pair of neighbouring tokens becomes a token, again and
/// again. Between equally frequent pairs the alphabetically first wins, so that the result is always the same.
fn learn_merges() -> Vec<(String, String)> {
    let mut words: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for word in SENTENCES.iter().flat_map(|sentence| sentence.split(' ')) {
        let letters = std::iter::once(SPACE).chain(word.chars()).map(String::from).collect();
        *words.entry(letters).or_default() += 1;
    }

    let mut merges = Vec::new();
    while merges.len() < MERGES {
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (tokens, count) in &words {
            for pair in tokens.windows(2) {
                *counts.entry((&pair[0], &pair[1])).or_default() += count;
            }
        }
        // `max_by_key` keeps the last of equals, so the alphabet is walked backwards.
        let best = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        let Some(((left, right), count)) = best else { break };
        if count < LEAST_COUNT {
            break;
        }
        let (left, right) = (left.to_owned(), right.to_owned());
        words = words
            .into_iter()
            .map(|(tokens, count)| (merge(tokens, &left, &right), count))
            .collect();
        merges.push((left, right));
    }
    merges
}

/// Joins every `left` that is followed by `right`.
fn merge(tokens: Vec<String>, left: &str, right: &str) -> Vec<String> {
    let mut merged: Vec<String> = Vec::with_capacity(tokens.len());
    let mut open = false;
    for token in tokens {
        match merged.last_mut() {
            Some(last) if open && token == right => {
                last.push_str(&token);
                open = false;
            }
            _ => {
                open = token == left;
                merged.push(token);
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_first_and_cover_everything() {
        let alphabet = byte_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet[0], '!');
        assert_eq!(alphabet[220], SPACE, "the space has id 220 in every GPT-2 alphabet");
        assert_eq!(alphabet[198], '\u{10a}', "and the newline 198");
        let files = build(Version::N16);
        assert_eq!(files.vocab["!"], 0);
        assert_eq!(files.vocab["\u{10a}"], 198);
    }

    #[test]
    fn ids_are_consecutive_and_leave_room_for_the_special_ones() {
        let files = build(Version::N16);
        let vocab = files.vocab.as_object().unwrap();
        let mut ids: Vec<u64> = vocab.values().map(|id| id.as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>());
        assert!(ids.len() > 256 + 100, "{} tokens", ids.len());
        assert_eq!(ids.len(), 256 + files.merges.lines().count() - 1);
        assert_eq!(files.added_tokens["<|endoftext|>"], 151_643);
        assert_eq!(files.added_tokens["<IMG_CONTEXT>"], 151_669);
        assert_eq!(files.added_tokens["</interval>"], 151_679);
        assert!(vocab.contains_key("\u{120}the") && vocab.contains_key("\u{120}gripper"));
    }

    #[test]
    fn merging_joins_from_the_left_without_overlap() {
        let tokens = ["a", "a", "a", "b"].map(String::from).to_vec();
        assert_eq!(merge(tokens, "a", "a"), ["aa", "a", "b"]);
    }
}
