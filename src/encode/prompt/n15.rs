//! The prompt of N1.5 (spec, section 5).

use unicode_general_category::{GeneralCategory, get_general_category};

use super::eagle::{EagleTokenizer, MESSAGE_END, PREFIX};
use super::python::repr;
use super::{Prompt, PromptError, check_instruction};
use crate::encode::tokenizer::Tokenizer;

pub use super::eagle::{IMAGE_TOKEN, IMAGE_TOKEN_ID};

/// What the chat template takes for a picture or a film, with a number and `>` behind it.
const PLACEHOLDERS: [&str; 2] = ["<image-", "<video-"];

/// Asks for the answer.
const ANSWER_START: &str = "\n<|im_start|>assistant\n";

/// Builds the prompts of one checkpoint.
#[derive(Debug)]
pub struct PromptEncoder {
    tokenizer: EagleTokenizer,
}

impl PromptEncoder {
    /// An encoder for a model with `vocabulary` rows of embeddings and `tokens_per_image` tokens for each picture.
    ///
    /// # Errors
    /// A tokenizer with other ids than the model was trained with, or with more ids than the model has.
    pub fn new(
        tokenizer: Tokenizer,
        vocabulary: usize,
        tokens_per_image: usize,
    ) -> Result<Self, PromptError> {
        Ok(Self { tokenizer: EagleTokenizer::new(tokenizer, vocabulary, tokens_per_image)? })
    }

    /// The prompt for `instruction` and `images` pictures.
    ///
    /// # Errors
    /// An instruction that is empty or too long, or that contains a control token or the placeholder of a picture; no
    /// picture; a prompt of too many tokens.
    pub fn encode(&self, instruction: &str, images: usize) -> Result<Prompt, PromptError> {
        check_instruction(without_trailing_nul(instruction))?;
        let rendered = render(instruction);
        if let Some(placeholder) = placeholder_in(&rendered) {
            return Err(PromptError::ControlToken { token: placeholder.to_string() });
        }
        self.finish(rendered, images)
    }

    /// Tokens of the prompt without its instruction.
    ///
    /// # Errors
    /// More pictures than fit, or a tokenizer that fails.
    pub fn template_tokens(&self, images: usize) -> Result<usize, PromptError> {
        Ok(self.finish(String::new(), images)?.token_ids.len())
    }

    fn finish(&self, rendered: String, images: usize) -> Result<Prompt, PromptError> {
        self.tokenizer.encode(rendered, images, |rendered, pictures| {
            format!("{PREFIX}{pictures}{rendered}{MESSAGE_END}{ANSWER_START}")
        })
    }
}

/// The instruction as the model sees it: the reference prints the array that it stands in, so that there are brackets,
/// quotes and escapes around and in it.
pub fn render(instruction: &str) -> String {
    format!("[{}]", repr(without_trailing_nul(instruction)))
}

/// An array of strings does not know how long they are: NUL at the end is padding.
fn without_trailing_nul(instruction: &str) -> &str {
    instruction.trim_end_matches('\0')
}

/// What would become another picture, such as `<image-1>`. Digits of any script count.
fn placeholder_in(text: &str) -> Option<&str> {
    let is_digit = |c| get_general_category(c) == GeneralCategory::DecimalNumber;
    PLACEHOLDERS.into_iter().find_map(|start| {
        text.match_indices(start).find_map(|(at, _)| {
            let number = &text[at + start.len()..];
            let digits = number.len() - number.trim_start_matches(is_digit).len();
            let closed = digits > 0 && number[digits..].starts_with('>');
            closed.then(|| &text[at..=at + start.len() + digits])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_nul_is_lost_and_other_nul_is_escaped() {
        assert_eq!(render("go\0\0"), "['go']");
        assert_eq!(render("a\0b"), "['a\\x00b']");
    }

    #[test]
    fn placeholders_are_found_whole() {
        for (text, found) in [
            ("see <image-1> there", Some("<image-1>")),
            ("<video-02>", Some("<video-02>")),
            ("<image-\u{661}>", Some("<image-\u{661}>")),
            ("<image-> <image-x> <image-1 <image 1>", None),
            ("<image-a><image-7>", Some("<image-7>")),
        ] {
            assert_eq!(placeholder_in(text), found, "{text}");
        }
    }
}
