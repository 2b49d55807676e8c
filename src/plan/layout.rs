//! The layout that is planned: the documents' served one, or what is asked for in its place.

use super::error::PlanError;
use crate::contract::Version;
use crate::encode::prompt::MAX_PROMPT_TOKENS;
use crate::program::Layout;

/// Most pictures that are planned.
pub const MAX_IMAGES: usize = 32;
/// Patches along one side of a picture, at most.
pub const MOST_PATCHES: usize = 256;

/// What is asked for in place of the documents' layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Pictures: cameras times frames per camera.
    pub images: Option<usize>,
    /// Tokens of the instruction.
    pub text_tokens: Option<usize>,
    /// Rows and columns of patches of every picture.
    pub grid: Option<[usize; 2]>,
}

/// What a version's prompt consists of besides the instruction and the tokens of pictures, as the real tokenizers count
/// it (specs, section 5), and what the serving documents serve.
pub struct Prompt {
    /// Tokens before everything else.
    prefix: usize,
    /// Tokens before a picture, those of its number not counted, and behind it.
    around_picture: [usize; 2],
    /// Whether the pictures are numbered, a token for each digit.
    numbered: bool,
    /// Whether the instruction stands before the pictures.
    instruction_first: bool,
    suffix: usize,
    /// Pictures of the documents' layout.
    images: usize,
    /// Tokens of the instruction of the documents' demonstration, with which they measured.
    text: usize,
    /// Tokens of the longest instruction that the documents serve; they pad every sequence to its length.
    longest_text: usize,
}

impl Prompt {
    pub const fn of(version: Version) -> Self {
        let eagle = Self {
            prefix: 14,
            around_picture: [5, 1],
            numbered: true,
            instruction_first: false,
            suffix: 5,
            images: 1,
            text: 14,
            longest_text: 102,
        };
        match version {
            Version::N15 => eagle,
            Version::N16 => {
                Self { instruction_first: true, suffix: 2, text: 12, longest_text: 24, ..eagle }
            }
            Version::N17 => Self {
                prefix: 3,
                around_picture: [1, 1],
                numbered: false,
                instruction_first: false,
                suffix: 2,
                images: 4,
                text: 8,
                longest_text: 51,
            },
        }
    }

    /// Tokens before the pictures and the instruction.
    pub const fn prefix(&self) -> usize {
        self.prefix
    }

    /// Whether the documents serve a layout of so many pictures and tokens of the instruction.
    pub const fn is_served(&self, images: usize, text: usize) -> bool {
        images == self.images && text <= self.longest_text
    }

    /// Pictures of the documents' layout.
    pub const fn images(&self) -> usize {
        self.images
    }

    /// Tokens of the instruction of the documents' demonstration.
    pub const fn text(&self) -> usize {
        self.text
    }

    /// Tokens of the longest instruction that the documents serve.
    pub const fn longest_text(&self) -> usize {
        self.longest_text
    }

    fn before_picture(&self, number: usize) -> usize {
        let digits = if self.numbered { number.ilog10() as usize + 1 } else { 0 };
        self.around_picture[0] + digits
    }

    /// Tokens of the instruction, and the layout of pictures of `grid` patches that are `picture_tokens` tokens each.
    ///
    /// # Errors
    /// More pictures or tokens than a request may have.
    pub fn layout(
        &self,
        wanted: Wanted,
        grid: [usize; 2],
        picture_tokens: usize,
    ) -> Result<(usize, Layout), PlanError> {
        let images = wanted.images.unwrap_or(self.images);
        let text = wanted.text_tokens.unwrap_or(self.text);
        if !(1..=MAX_IMAGES).contains(&images) {
            return Err(PlanError::Images { images });
        }
        if !(1..=MAX_PROMPT_TOKENS).contains(&text) {
            return Err(PlanError::Text { text });
        }
        let pictures: usize = (1..=images)
            .map(|number| self.before_picture(number) + picture_tokens + self.around_picture[1])
            .sum();
        let tokens = self.prefix + pictures + self.suffix + text;
        if tokens > MAX_PROMPT_TOKENS {
            return Err(PlanError::Tokens { tokens });
        }
        let before_pictures = if self.instruction_first { text } else { 0 };
        let leading_tokens = self.prefix + before_pictures + self.before_picture(1);
        Ok((text, Layout { tokens, leading_tokens, images, grid }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(version: Version, wanted: Wanted, picture_tokens: usize) -> Layout {
        Prompt::of(version).layout(wanted, [2, 2], picture_tokens).expect("a layout").1
    }

    /// Lengths of sequences that the serving documents state: of their demonstration, and what they pad to.
    #[test]
    fn sequences_are_as_long_as_documented() {
        for (version, picture_tokens, tokens, padded) in [
            (Version::N15, 256, 296, 384),
            (Version::N16, 81, 116, 128),
            (Version::N17, 112, 469, 512),
        ] {
            assert_eq!(layout(version, Wanted::default(), picture_tokens).tokens, tokens);
            let longest = Some(Prompt::of(version).longest_text);
            let wanted = Wanted { text_tokens: longest, ..Wanted::default() };
            assert_eq!(layout(version, wanted, picture_tokens).tokens, padded, "{version}");
        }
    }

    #[test]
    fn the_instruction_stands_before_the_pictures_of_n16_only() {
        let leading = |version| layout(version, Wanted::default(), 9).leading_tokens;
        assert_eq!(Version::ALL.map(leading), [20, 32, 4]);
    }

    #[test]
    fn pictures_with_two_digits_have_a_token_more() {
        let tokens = |images: usize| {
            let wanted = Wanted { images: Some(images), ..Wanted::default() };
            layout(Version::N16, wanted, 81).tokens
        };
        assert_eq!((tokens(9) - tokens(8), tokens(10) - tokens(9)), (88, 89));
    }

    #[test]
    fn what_no_request_may_have_is_refused() {
        let refused = |images, text_tokens| {
            let wanted =
                Wanted { images: Some(images), text_tokens: Some(text_tokens), grid: None };
            Prompt::of(Version::N15).layout(wanted, [16, 16], 256).expect_err("refused").to_string()
        };
        assert!(refused(0, 1).contains("0 pictures"));
        assert!(refused(33, 1).contains("accepted: 1 to 32"));
        assert!(refused(1, 4000).contains("4282 tokens; at most 4096"));
        for text in [0, 4097, usize::MAX] {
            let error = refused(1, text);
            assert!(error.contains(&format!("instruction of {text} tokens")), "{error}");
            assert!(error.contains("accepted: 1 to 4096"), "{error}");
        }
    }
}
