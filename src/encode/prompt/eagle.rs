//! What the prompts of N1.5 and N1.6 share: the control tokens of the Eagle backbone, and where pictures stand.

use super::{Prompt, PromptError, check_parts, check_tokenizer};
use crate::encode::tokenizer::Tokenizer;

/// Stands for one token of a picture.
pub const IMAGE_TOKEN: &str = "<IMG_CONTEXT>";
/// Id of [`IMAGE_TOKEN`].
pub const IMAGE_TOKEN_ID: u32 = 151_669;

const IMAGE_START: &str = "<img>";
const IMAGE_END: &str = "</img>";
pub(super) const MESSAGE_END: &str = "<|im_end|>";

/// Control tokens of the prompt and the ids with which the models were trained.
const CONTROL_TOKENS: [(&str, u32); 5] = [
    ("<|im_start|>", 151_644),
    (MESSAGE_END, 151_645),
    (IMAGE_TOKEN, IMAGE_TOKEN_ID),
    (IMAGE_START, 151_670),
    (IMAGE_END, 151_671),
];

/// Everything in front of the user's message.
pub(super) const PREFIX: &str =
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n";

/// Turns whole prompts into token ids.
#[derive(Debug)]
pub(super) struct EagleTokenizer {
    tokenizer: Tokenizer,
    tokens_per_image: usize,
}

impl EagleTokenizer {
    /// For a model with `vocabulary` rows of embeddings and `tokens_per_image` tokens for each picture.
    ///
    /// # Errors
    /// A tokenizer with other ids than the model was trained with, or with more ids than the model has.
    pub fn new(
        tokenizer: Tokenizer,
        vocabulary: usize,
        tokens_per_image: usize,
    ) -> Result<Self, PromptError> {
        check_tokenizer(&tokenizer, &CONTROL_TOKENS, vocabulary)?;
        Ok(Self { tokenizer, tokens_per_image })
    }

    /// The prompt in which `text` puts the instruction and the pictures together. It is tokenised as one piece: the
    /// merges may cross from the instruction into what follows it.
    ///
    /// # Errors
    /// A control token in the instruction; no picture; a prompt of too many tokens.
    pub fn encode(
        &self,
        instruction: String,
        images: usize,
        text: impl FnOnce(&str, &str) -> String,
    ) -> Result<Prompt, PromptError> {
        check_parts(&self.tokenizer, &instruction, images, self.tokens_per_image)?;
        let token_ids = self.tokenizer.encode(&text(&instruction, &self.pictures(images)))?;
        Prompt::new(instruction, token_ids, IMAGE_TOKEN_ID, images, self.tokens_per_image)
    }

    fn pictures(&self, images: usize) -> String {
        let tokens = IMAGE_TOKEN.repeat(self.tokens_per_image);
        (1..=images)
            .map(|image| format!("<image {image}>{IMAGE_START}{tokens}{IMAGE_END}"))
            .collect()
    }
}
