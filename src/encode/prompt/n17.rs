//! The prompt of N1.7 (spec, section 5).

use super::{Prompt, PromptError, check_parts, check_tokenizer, formal_instruction};
use crate::encode::tokenizer::Tokenizer;

/// Stands for one token of a picture.
pub const IMAGE_TOKEN: &str = "<|image_pad|>";
/// Id of [`IMAGE_TOKEN`].
pub const IMAGE_TOKEN_ID: u32 = 151_655;

const VISION_START: &str = "<|vision_start|>";
const VISION_END: &str = "<|vision_end|>";
const MESSAGE_END: &str = "<|im_end|>";

/// Control tokens of the prompt and the ids with which the model was trained.
const CONTROL_TOKENS: [(&str, u32); 5] = [
    ("<|im_start|>", 151_644),
    (MESSAGE_END, 151_645),
    (VISION_START, 151_652),
    (VISION_END, 151_653),
    (IMAGE_TOKEN, IMAGE_TOKEN_ID),
];

/// There is no system message.
const PREFIX: &str = "<|im_start|>user\n";

/// Builds the prompts of one checkpoint.
#[derive(Debug)]
pub struct PromptEncoder {
    tokenizer: Tokenizer,
    formalize: bool,
    prefix_tokens: usize,
}

impl PromptEncoder {
    /// An encoder for a model with `vocabulary` rows of embeddings; `formalize` is the processor file's
    /// `formalize_language`.
    ///
    /// # Errors
    /// A tokenizer with other ids than the model was trained with, or with more ids than the model has.
    pub fn new(
        tokenizer: Tokenizer,
        vocabulary: usize,
        formalize: bool,
    ) -> Result<Self, PromptError> {
        check_tokenizer(&tokenizer, &CONTROL_TOKENS, vocabulary)?;
        let prefix_tokens = tokenizer.encode(PREFIX)?.len();
        Ok(Self { tokenizer, formalize, prefix_tokens })
    }

    /// Tokens before the first picture: 3 with the real vocabulary.
    pub fn prefix_tokens(&self) -> usize {
        self.prefix_tokens
    }

    /// The prompt for `instruction` and `images` pictures of `tokens_per_image` tokens each.
    ///
    /// The ends of the instruction are not trimmed, nor are they by the reference: a leading space is another token.
    ///
    /// # Errors
    /// An instruction that is empty, too long, without a single word, or that contains a control token; no picture;
    /// a prompt of too many tokens.
    pub fn encode(
        &self,
        instruction: &str,
        images: usize,
        tokens_per_image: usize,
    ) -> Result<Prompt, PromptError> {
        self.finish(formal_instruction(instruction, self.formalize)?, images, tokens_per_image)
    }

    /// Tokens of the prompt without its instruction.
    ///
    /// # Errors
    /// More pictures than fit, or a tokenizer that fails.
    pub fn template_tokens(
        &self,
        images: usize,
        tokens_per_image: usize,
    ) -> Result<usize, PromptError> {
        Ok(self.finish(String::new(), images, tokens_per_image)?.token_ids.len())
    }

    fn finish(
        &self,
        formal: String,
        images: usize,
        tokens_per_image: usize,
    ) -> Result<Prompt, PromptError> {
        check_parts(&self.tokenizer, &formal, images, tokens_per_image)?;
        let picture = [VISION_START, IMAGE_TOKEN, VISION_END].concat();
        let text = [PREFIX, &picture.repeat(images), &formal, MESSAGE_END, "\n"].concat();
        // Every picture is one token of the text, which is then repeated.
        let mut token_ids = Vec::with_capacity(text.len() + images * tokens_per_image);
        for id in self.tokenizer.encode(&text)? {
            let count = if id == IMAGE_TOKEN_ID { tokens_per_image } else { 1 };
            token_ids.resize(token_ids.len() + count, id);
        }
        Prompt::new(formal, token_ids, IMAGE_TOKEN_ID, images, tokens_per_image)
    }
}
