//! From an instruction to the token ids that a model reads, per version.

mod eagle;
mod formalize;
pub mod n15;
pub mod n16;
pub mod n17;
mod python;
mod unicode13;

use super::tokenizer::{Tokenizer, TokenizerError};

pub use formalize::formalize_language;

/// Longest instruction that is accepted, in characters.
pub const MAX_INSTRUCTION_CHARS: usize = 2000;
/// Longest prompt that is accepted, in tokens, pictures included.
pub const MAX_PROMPT_TOKENS: usize = 4096;

/// A tokenised prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The instruction as it went into the prompt.
    pub instruction: String,
    /// Token ids of the whole prompt, `[tokens]`.
    pub token_ids: Vec<u32>,
    /// True where a token stands for a piece of a picture, `[tokens]`.
    pub image_mask: Vec<bool>,
}

impl Prompt {
    /// Checks a tokenised prompt for `images` pictures of `tokens_per_image` tokens each.
    ///
    /// # Errors
    /// Too many tokens, or not as many image tokens as the pictures have.
    fn new(
        instruction: String,
        token_ids: Vec<u32>,
        image_token: u32,
        images: usize,
        tokens_per_image: usize,
    ) -> Result<Self, PromptError> {
        if token_ids.len() > MAX_PROMPT_TOKENS {
            return Err(PromptError::TooManyTokens { tokens: token_ids.len() });
        }
        let image_mask: Vec<bool> = token_ids.iter().map(|&id| id == image_token).collect();
        let found = image_mask.iter().filter(|&&image| image).count();
        let expected = images * tokens_per_image;
        if found != expected {
            return Err(PromptError::ImageTokens { images, expected, found });
        }
        Ok(Self { instruction, token_ids, image_mask })
    }
}

/// Why an instruction does not become a prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error(
        "the instruction is empty; say what the robot is to do in 1 to {MAX_INSTRUCTION_CHARS} characters"
    )]
    Empty,
    #[error("the instruction has {chars} characters; at most {MAX_INSTRUCTION_CHARS} are accepted")]
    TooLong { chars: usize },
    #[error(
        "nothing is left of the instruction {instruction:?} once punctuation and symbols are removed, as the \
         checkpoint asks for; use words"
    )]
    NothingLeft { instruction: String },
    #[error(
        "the instruction contains '{token}', which the model reads as a control token; remove it"
    )]
    ControlToken { token: String },
    #[error(
        "the prompt has {tokens} tokens; at most {MAX_PROMPT_TOKENS} are accepted: shorten the instruction"
    )]
    TooManyTokens { tokens: usize },
    #[error(
        "a prompt for {images} pictures cannot be built; 1 to {most} fit into {MAX_PROMPT_TOKENS} tokens"
    )]
    Images { images: usize, most: usize },
    #[error(
        "the prompt has {found} image tokens where {images} pictures give {expected}; check the tokenizer's files"
    )]
    ImageTokens { images: usize, expected: usize, found: usize },
    #[error("the tokenizer has {tokenizer} ids; the model's vocabulary has only {model}")]
    Vocabulary { tokenizer: usize, model: usize },
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// Whether there is nothing in the text but white space.
fn is_blank(text: &str) -> bool {
    text.chars().all(formalize::is_space)
}

/// Checks the length of an instruction, and that it holds more than white space.
///
/// # Errors
/// It is empty or too long.
fn check_instruction(instruction: &str) -> Result<(), PromptError> {
    if is_blank(instruction) {
        return Err(PromptError::Empty);
    }
    let chars = instruction.chars().count();
    if chars > MAX_INSTRUCTION_CHARS {
        return Err(PromptError::TooLong { chars });
    }
    Ok(())
}

/// The instruction as it goes into the prompt, formalised where the checkpoint asks for it.
///
/// # Errors
/// It is empty, too long, or without a single word.
fn formal_instruction(instruction: &str, formalize: bool) -> Result<String, PromptError> {
    check_instruction(instruction)?;
    let formal = if formalize { formalize_language(instruction) } else { instruction.to_string() };
    if is_blank(&formal) {
        return Err(PromptError::NothingLeft { instruction: instruction.to_string() });
    }
    Ok(formal)
}

/// Checks that a tokenizer has the control tokens under the ids with which the model was trained, and no more ids than
/// the model's `vocabulary`.
fn check_tokenizer(
    tokenizer: &Tokenizer,
    control_tokens: &[(&str, u32)],
    vocabulary: usize,
) -> Result<(), PromptError> {
    for (token, id) in control_tokens {
        tokenizer.expect_id(token, *id)?;
    }
    if tokenizer.id_count() > vocabulary {
        return Err(PromptError::Vocabulary { tokenizer: tokenizer.id_count(), model: vocabulary });
    }
    Ok(())
}

/// Refuses an instruction with a token of `tokenizer` that is no text, and a number of pictures that makes no prompt.
fn check_parts(
    tokenizer: &Tokenizer,
    instruction: &str,
    images: usize,
    tokens_per_image: usize,
) -> Result<(), PromptError> {
    if let Some(token) = tokenizer.added_token_in(instruction) {
        return Err(PromptError::ControlToken { token: token.to_string() });
    }
    let most = MAX_PROMPT_TOKENS / tokens_per_image.max(1);
    if images == 0 || images > most {
        return Err(PromptError::Images { images, most });
    }
    Ok(())
}
