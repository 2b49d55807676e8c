//! The prompt of N1.6 (spec, section 5).

use super::{MAX_PROMPT_TOKENS, Prompt, PromptError, formal_instruction};
use crate::encode::tokenizer::Tokenizer;

/// Stands for one token of a picture.
pub const IMAGE_TOKEN: &str = "<IMG_CONTEXT>";
/// Id of [`IMAGE_TOKEN`].
pub const IMAGE_TOKEN_ID: u32 = 151_669;

const IMAGE_START: &str = "<img>";
const IMAGE_END: &str = "</img>";
const MESSAGE_END: &str = "<|im_end|>";

/// Control tokens of the prompt and the ids with which the model was trained.
const CONTROL_TOKENS: [(&str, u32); 5] = [
    ("<|im_start|>", 151_644),
    (MESSAGE_END, 151_645),
    (IMAGE_TOKEN, IMAGE_TOKEN_ID),
    (IMAGE_START, 151_670),
    (IMAGE_END, 151_671),
];

const PREFIX: &str =
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n";

/// Builds the prompts of one checkpoint.
#[derive(Debug)]
pub struct PromptEncoder {
    tokenizer: Tokenizer,
    tokens_per_image: usize,
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
        for (token, id) in CONTROL_TOKENS {
            tokenizer.expect_id(token, id)?;
        }
        if tokenizer.id_count() > vocabulary {
            return Err(PromptError::Vocabulary {
                tokenizer: tokenizer.id_count(),
                model: vocabulary,
            });
        }
        Ok(Self { tokenizer, tokens_per_image, formalize })
    }

    /// The prompt for `instruction` and `images` pictures.
    ///
    /// The ends of the instruction are not trimmed, nor are they by the reference: a leading space is another token.
    ///
    /// # Errors
    /// An instruction that is empty, too long, without a single word, or that contains a control token; no picture;
    /// a prompt of too many tokens.
    pub fn encode(&self, instruction: &str, images: usize) -> Result<Prompt, PromptError> {
        let formal = formal_instruction(&self.tokenizer, instruction, self.formalize)?;
        let most = MAX_PROMPT_TOKENS / self.tokens_per_image.max(1);
        if images == 0 || images > most {
            return Err(PromptError::Images { images, most });
        }

        let token_ids = self.tokenizer.encode(&self.text(&formal, images))?;
        Prompt::new(formal, token_ids, IMAGE_TOKEN_ID, images, self.tokens_per_image)
    }

    /// The text that is tokenised, as one piece: the merges may cross from the instruction into what follows it.
    fn text(&self, instruction: &str, images: usize) -> String {
        let mut text = format!("{PREFIX}{instruction}");
        for image in 1..=images {
            text.push_str(&format!("<image {image}>{IMAGE_START}"));
            text.push_str(&IMAGE_TOKEN.repeat(self.tokens_per_image));
            text.push_str(IMAGE_END);
        }
        text.push_str(MESSAGE_END);
        text.push('\n');
        text
    }
}
