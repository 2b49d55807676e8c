//! A tokenizer with the ids of the real one at the places that matter, and made-up tokens everywhere else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// First id of the added tokens.
const FIRST_ADDED: u32 = 151_643;
/// Added tokens in the order of their ids; those whose name no prompt of N1.6 holds are fillers.
const ADDED: [(usize, &str); 6] = [
    (0, "<|endoftext|>"),
    (1, "<|im_start|>"),
    (2, "<|im_end|>"),
    (26, "<IMG_CONTEXT>"),
    (27, "<img>"),
    (28, "</img>"),
];
const ADDED_COUNT: usize = 37;

pub struct MadeUp {
    dir: TempDir,
    ids: BTreeMap<String, u32>,
    added: Vec<String>,
}

impl MadeUp {
    /// Every byte has a token, and so has the result of every merge; nothing else is ever merged.
    pub fn new(merges: &[(&str, &str)]) -> Self {
        let mut ids: BTreeMap<String, u32> = BTreeMap::new();
        let mut symbols: Vec<String> =
            ByteLevel::alphabet().into_iter().map(String::from).collect();
        symbols.sort();
        symbols.extend(merges.iter().map(|(left, right)| format!("{left}{right}")));
        for symbol in symbols {
            ids.insert(symbol, ids.len() as u32);
        }
        while ids.len() < FIRST_ADDED as usize {
            ids.insert(format!("filler {}", ids.len()), ids.len() as u32);
        }
        let added = (0..ADDED_COUNT)
            .map(|place| match ADDED.iter().find(|(at, _)| *at == place) {
                Some((_, token)) => (*token).to_owned(),
                None => format!("<|filler {place}|>"),
            })
            .collect();

        let made_up = Self { dir: TempDir::new().unwrap(), ids, added };
        let file = |name: &str| made_up.dir.path().join(name);
        std::fs::write(file("vocab.json"), serde_json::to_vec(&made_up.ids).unwrap()).unwrap();
        let mut text = "#version: 0.2\n".to_owned();
        for (left, right) in merges {
            writeln!(text, "{left} {right}").unwrap();
        }
        std::fs::write(file("merges.txt"), text).unwrap();
        made_up.write_added(&made_up.added);
        made_up
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn added(&self) -> &[String] {
        &self.added
    }

    /// Writes `tokens` as the added tokens.
    pub fn write_added(&self, tokens: &[String]) {
        let ids = tokens.iter().zip(FIRST_ADDED..).map(|(token, id)| (token.clone(), json!(id)));
        let object: serde_json::Map<_, _> = ids.collect();
        std::fs::write(self.dir().join("added_tokens.json"), json!(object).to_string()).unwrap();
    }

    /// Id of the token that a merge makes.
    pub fn merged(&self, token: &str) -> u32 {
        self.ids[token]
    }

    /// Ids of an added token, or of an ASCII text without merges.
    pub fn ids(&self, text: &str) -> Vec<u32> {
        if let Some(place) = self.added.iter().position(|token| token == text) {
            return vec![FIRST_ADDED + place as u32];
        }
        text.bytes().map(|byte| self.ids[&symbol(byte).to_string()]).collect()
    }

    /// The text between `user\n` and the first picture.
    pub fn decode_instruction(&self, ids: &[u32]) -> String {
        let names: BTreeMap<u32, &String> = self.ids.iter().map(|(name, id)| (*id, name)).collect();
        let bytes_of: BTreeMap<char, u8> = (0..=u8::MAX).map(|byte| (symbol(byte), byte)).collect();
        let start = FIRST_ADDED + 1;
        let user = ids.iter().rposition(|&id| id == start).unwrap() + 1;
        let picture = ids.iter().position(|&id| id == FIRST_ADDED + 27).unwrap();
        let bytes: Vec<u8> = ids[user..picture]
            .iter()
            .flat_map(|id| names[id].chars())
            .map(|symbol| bytes_of[&symbol])
            .collect();
        let text = String::from_utf8(bytes).unwrap();
        let text = text.strip_prefix("user\n").unwrap();
        text.strip_suffix("<image 1>").unwrap().to_owned()
    }
}

/// The character that stands for a byte: itself where it is visible, else the next one from U+0100 on.
fn symbol(byte: u8) -> char {
    let visible = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if visible(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !visible(other)).count();
    char::from_u32(0x100 + before as u32).unwrap()
}
