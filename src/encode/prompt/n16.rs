//! The prompt of N1.6 (spec, section 5).

use super::eagle::{EagleTokenizer, MESSAGE_END, PREFIX};
use super::{Prompt, PromptError, formal_instruction};
use crate::encode::tokenizer::Tokenizer;

pub use super::eagle::{IMAGE_TOKEN, IMAGE_TOKEN_ID};

/// Builds the prompts of one checkpoint.
#[derive(Debug)]
pub struct PromptEncoder {
    tokenizer: EagleTokenizer,
    formalize: bool,
}

impl PromptEncoder {
    /// An encoder for a model with `vocabulary` rows of embeddings and `tokens_per_image` tokens for each picture;
    /// `formalize` is the processor file's `formalize_language`.
    ///
    /// # Errors
    /// A tokenizer with other ids than the model was trained with, or with more ids than the model has.
    pub fn new(
        tokenizer: Tokenizer,
        vocabulary: usize,
        tokens_per_image: usize,
        formalize: bool,
    ) -> Result<Self, PromptError> {
        let tokenizer = EagleTokenizer::new(tokenizer, vocabulary, tokens_per_image)?;
        Ok(Self { tokenizer, formalize })
    }

    /// The prompt for `instruction` and `images` pictures.
    ///
    /// The ends of the instruction are not trimmed, nor are they by the reference: a leading space is another token.
    ///
    /// # Errors
    /// An instruction that is empty, too long, without a single word, or that contains a control token; no picture;
    /// a prompt of too many tokens.
    pub fn encode(&self, instruction: &str, images: usize) -> Result<Prompt, PromptError> {
        self.finish(formal_instruction(instruction, self.formalize)?, images)
    }

    /// Tokens of the prompt without its instruction.
    ///
    /// # Errors
    /// More pictures than fit, or a tokenizer that fails.
    pub fn template_tokens(&self, images: usize) -> Result<usize, PromptError> {
        Ok(self.finish(String::new(), images)?.token_ids.len())
    }

    fn finish(&self, formal: String, images: usize) -> Result<Prompt, PromptError> {
        self.tokenizer.encode(formal, images, |instruction, pictures| {
            format!("{PREFIX}{instruction}{pictures}{MESSAGE_END}\n")
        })
    }
}
