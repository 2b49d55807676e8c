//! The byte-level BPE tokenizer of Qwen2 and Qwen3, read from the files that the checkpoints' own processor uses.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior};

/// File of the vocabulary, `{token: id}`, which every tokenizer directory has.
pub const VOCABULARY_FILE: &str = "vocab.json";
const MERGES_FILE: &str = "merges.txt";
/// Added tokens of N1.5 and N1.6: `{token: id}`.
const ADDED_TOKENS_FILE: &str = "added_tokens.json";
/// Added tokens of N1.7, under `added_tokens_decoder`: `{id: {content, ...}}`.
const CONFIG_FILE: &str = "tokenizer_config.json";
/// Largest file that is read; the real vocabulary has 3.4 MB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// How text is cut before the merges (spec N1.6, section 5).
const SPLIT_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Why a tokenizer cannot be built, or a text not be tokenised.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error("tokenizer file {}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("tokenizer file {} has {bytes} bytes; at most {MAX_FILE_BYTES} are read", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("tokenizer file {}: {error}", path.display())]
    Json { path: PathBuf, error: serde_json::Error },
    #[error("tokenizer file {}: the {tokens} ids are not 0 to {} without gap or repetition (see id {id})", path.display(), tokens - 1)]
    Ids { path: PathBuf, tokens: usize, id: u32 },
    #[error("tokenizer file {}: byte symbol '{symbol}' has no token; the vocabulary is not byte-level", path.display())]
    Byte { path: PathBuf, symbol: char },
    #[error("tokenizer file {}, line {line}: '{text}' is not two tokens with a space between them", path.display())]
    Merge { path: PathBuf, line: usize, text: String },
    #[error("tokenizer file {} does not fit the vocabulary: {reason}", path.display())]
    Merges { path: PathBuf, reason: String },
    #[error(
        "tokenizer directory {} has neither {ADDED_TOKENS_FILE} nor added_tokens_decoder in {CONFIG_FILE}",
        dir.display()
    )]
    NoAddedTokens { dir: PathBuf },
    #[error(
        "tokenizer file {}: added token '{token}' cannot have id {id}: the id belongs to another token, or the token \
         has another one in {VOCABULARY_FILE} ({found:?})",
        path.display()
    )]
    AddedToken { path: PathBuf, token: String, id: u32, found: Option<u32> },
    #[error(
        "tokenizer file {}: added token '{token}' sets {flag}, which is not supported",
        path.display()
    )]
    AddedTokenFlag { path: PathBuf, token: String, flag: &'static str },
    #[error("the tokenizer in {} gives '{token}' the id {found:?}; the model was trained with {expected}", dir.display())]
    SpecialId { dir: PathBuf, token: String, expected: u32, found: Option<u32> },
    #[error("text of {bytes} bytes cannot be tokenised: {reason}")]
    Encode { bytes: usize, reason: String },
}

/// A Qwen2 byte-level BPE tokenizer with its added tokens.
#[derive(Debug)]
pub struct Tokenizer {
    dir: PathBuf,
    inner: tokenizers::Tokenizer,
    added: BTreeMap<String, u32>,
    id_count: usize,
}

impl Tokenizer {
    /// Reads `vocab.json`, `merges.txt` and the added tokens from the directory `dir`.
    ///
    /// Added tokens come from `added_tokens.json`, or where there is none from `tokenizer_config.json`.
    ///
    /// # Errors
    /// A file that is missing, too large or malformed; ids with gaps; a vocabulary without every byte; merges of
    /// unknown tokens; added tokens whose ids are taken.
    pub fn open(dir: &Path) -> Result<Self, TokenizerError> {
        let mut vocabulary = read_vocabulary(&dir.join(VOCABULARY_FILE))?;
        let base_count = vocabulary.len();
        let (path, added) = read_added_tokens(dir)?;
        reserve_ids(&mut vocabulary, &path, &added)?;
        let model = build_model(vocabulary, &dir.join(MERGES_FILE))?;

        let mut inner = tokenizers::Tokenizer::new(model);
        inner.with_normalizer(Some(NFC));
        inner.with_pre_tokenizer(Some(pre_tokenizer()));
        add_tokens(&mut inner, &path, &added)?;

        let id_count =
            added.values().map(|&id| id as usize + 1).fold(base_count, |count, end| count.max(end));
        Ok(Self { dir: dir.to_path_buf(), inner, added, id_count })
    }

    /// Token ids of `text`. Added tokens in it are cut out first, by literal match; nothing is put around it.
    ///
    /// # Errors
    /// Only what the tokenizer's own code reports.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        match self.inner.encode_fast(text, false) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(source) => {
                Err(TokenizerError::Encode { bytes: text.len(), reason: source.to_string() })
            }
        }
    }

    /// Checks that the token has the id with which the model was trained.
    ///
    /// # Errors
    /// The tokenizer does not have the token, or under another id.
    pub fn expect_id(&self, token: &str, expected: u32) -> Result<(), TokenizerError> {
        let found = self.inner.token_to_id(token);
        if found == Some(expected) {
            return Ok(());
        }
        Err(TokenizerError::SpecialId {
            dir: self.dir.clone(),
            token: token.to_string(),
            expected,
            found,
        })
    }

    /// An added token that occurs literally in `text`.
    pub fn added_token_in(&self, text: &str) -> Option<&str> {
        self.added.keys().map(String::as_str).find(|token| text.contains(token))
    }

    /// One more than the highest id.
    pub fn id_count(&self) -> usize {
        self.id_count
    }
}

fn read_text(path: &Path) -> Result<String, TokenizerError> {
    let io = |error| TokenizerError::Io { path: path.to_path_buf(), error };
    let bytes = std::fs::metadata(path).map_err(io)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(TokenizerError::TooLarge { path: path.to_path_buf(), bytes });
    }
    std::fs::read_to_string(path).map_err(io)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, TokenizerError> {
    let text = read_text(path)?;
    serde_json::from_str(&text)
        .map_err(|error| TokenizerError::Json { path: path.to_path_buf(), error })
}

fn read_vocabulary(path: &Path) -> Result<Vocab, TokenizerError> {
    let vocabulary: HashMap<String, u32> = read_json(path)?;
    let mut seen = vec![false; vocabulary.len()];
    for &id in vocabulary.values() {
        match seen.get_mut(id as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => {
                let (path, tokens) = (path.to_path_buf(), vocabulary.len());
                return Err(TokenizerError::Ids { path, tokens, id });
            }
        }
    }
    // The model drops what it has no token for; with a token for every byte there is nothing to drop.
    let has_token =
        |symbol: &char| vocabulary.contains_key(symbol.encode_utf8(&mut [0; 4]) as &str);
    if let Some(symbol) = ByteLevel::alphabet().into_iter().find(|symbol| !has_token(symbol)) {
        return Err(TokenizerError::Byte { path: path.to_path_buf(), symbol });
    }
    Ok(vocabulary.into_iter().collect())
}

fn build_model(vocabulary: Vocab, path: &Path) -> Result<BPE, TokenizerError> {
    let mut merges = Vec::new();
    for (index, line) in read_text(path)?.lines().enumerate() {
        if line.is_empty() || (index == 0 && line.starts_with("#version")) {
            continue;
        }
        match line.split_once(' ') {
            Some((left, right))
                if !left.is_empty() && !right.is_empty() && !right.contains(' ') =>
            {
                merges.push((left.to_string(), right.to_string()));
            }
            _ => {
                return Err(TokenizerError::Merge {
                    path: path.to_path_buf(),
                    line: index + 1,
                    text: line.to_string(),
                });
            }
        }
    }
    BPE::builder().vocab_and_merges(vocabulary, merges).build().map_err(|source| {
        TokenizerError::Merges { path: path.to_path_buf(), reason: source.to_string() }
    })
}

fn pre_tokenizer() -> Sequence {
    let split = Split::new(
        SplitPattern::Regex(SPLIT_PATTERN.to_string()),
        SplitDelimiterBehavior::Isolated,
        false,
    )
    .expect("the pattern is a constant that compiles");
    Sequence::new(vec![
        PreTokenizerWrapper::Split(split),
        PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, false)),
    ])
}

#[derive(Deserialize)]
struct TokenizerConfig {
    added_tokens_decoder: Option<BTreeMap<u32, ConfiguredToken>>,
}

#[derive(Deserialize)]
struct ConfiguredToken {
    content: String,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    normalized: bool,
}

impl ConfiguredToken {
    /// The name of a flag that changes how the token is matched.
    fn unsupported_flag(&self) -> Option<&'static str> {
        [
            (self.lstrip, "lstrip"),
            (self.rstrip, "rstrip"),
            (self.single_word, "single_word"),
            (self.normalized, "normalized"),
        ]
        .into_iter()
        .find_map(|(set, name)| set.then_some(name))
    }
}

/// The added tokens and the file that they come from.
fn read_added_tokens(dir: &Path) -> Result<(PathBuf, BTreeMap<String, u32>), TokenizerError> {
    let path = dir.join(ADDED_TOKENS_FILE);
    if path.exists() {
        let added = read_json(&path)?;
        return Ok((path, added));
    }
    let path = dir.join(CONFIG_FILE);
    if !path.exists() {
        return Err(TokenizerError::NoAddedTokens { dir: dir.to_path_buf() });
    }
    let config: TokenizerConfig = read_json(&path)?;
    let Some(decoder) = config.added_tokens_decoder else {
        return Err(TokenizerError::NoAddedTokens { dir: dir.to_path_buf() });
    };
    let mut added = BTreeMap::new();
    for (id, token) in decoder {
        if let Some(flag) = token.unsupported_flag() {
            return Err(TokenizerError::AddedTokenFlag { path, token: token.content, flag });
        }
        added.insert(token.content, id);
    }
    Ok((path, added))
}

/// Gives the added tokens their ids in the vocabulary, where they may leave a gap behind its own: a vocabulary smaller
/// than the real one still has the control tokens where the model expects them. No merge makes them.
fn reserve_ids(
    vocabulary: &mut Vocab,
    path: &Path,
    added: &BTreeMap<String, u32>,
) -> Result<(), TokenizerError> {
    let mut taken: HashMap<u32, String> =
        vocabulary.iter().map(|(token, id)| (*id, token.clone())).collect();
    for (token, &id) in added {
        let owner = taken.insert(id, token.clone());
        let before = vocabulary.insert(token.clone(), id);
        if owner.is_some_and(|owner| owner != *token) || before.is_some_and(|before| before != id) {
            let (path, token) = (path.to_path_buf(), token.clone());
            return Err(TokenizerError::AddedToken { path, token, id, found: before });
        }
    }
    Ok(())
}

/// Registers the added tokens and checks that each got the id that its file gives it.
fn add_tokens(
    inner: &mut tokenizers::Tokenizer,
    path: &Path,
    added: &BTreeMap<String, u32>,
) -> Result<(), TokenizerError> {
    let mut by_id: Vec<(&String, u32)> = added.iter().map(|(token, &id)| (token, id)).collect();
    by_id.sort_by_key(|&(_, id)| id);
    let tokens: Vec<AddedToken> = by_id
        .iter()
        .map(|(token, _)| AddedToken::from(token.as_str(), true).normalized(false))
        .collect();
    inner.add_special_tokens(&tokens);
    for (token, id) in by_id {
        let found = inner.token_to_id(token);
        if found != Some(id) {
            let (path, token) = (path.to_path_buf(), token.clone());
            return Err(TokenizerError::AddedToken { path, token, id, found });
        }
    }
    Ok(())
}
