//! The instruction as the training data has it: lower case, without punctuation.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Lower-cases the text, then deletes every character that is neither of a word nor white space. Nothing is trimmed
/// or collapsed: `a & b` keeps two spaces (spec N1.6, section 5; spec N1.7, section 5).
///
/// Letters that are newer than the Unicode tables of the reference's Python stay here and are deleted there.
pub fn formalize_language(text: &str) -> String {
    text.to_lowercase().chars().filter(|&c| is_word(c) || is_space(c)).collect()
}

/// Python's `\w`: letters and numbers of every kind, and the underscore. Combining marks are not among them.
fn is_word(c: char) -> bool {
    use GeneralCategory as Category;
    c == '_'
        || matches!(
            get_general_category(c),
            Category::UppercaseLetter
                | Category::LowercaseLetter
                | Category::TitlecaseLetter
                | Category::ModifierLetter
                | Category::OtherLetter
                | Category::DecimalNumber
                | Category::LetterNumber
                | Category::OtherNumber
        )
}

/// Python's `\s`: Unicode's White_Space and the four separators U+001C to U+001F.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pairs of text and what Python makes of it: `re.sub(r"[^\w\s]", "", text.lower())`.
    const CASES: &[(&str, &str)] = &[
        (
            "Pick up the RED apple, then place it (gently!)",
            "pick up the red apple then place it gently",
        ),
        ("a & b", "a  b"),
        ("  keep  the ends \t\n", "  keep  the ends \t\n"),
        ("snake_case don't-stop", "snake_case dontstop"),
        ("Étagère n° 2½ ² Ⅷ", "étagère n 2½ ² ⅷ"),
        // A decomposed accent is a combining mark and goes.
        ("e\u{301}tage\u{300}re", "etagere"),
        // Final sigma, as Python's lower() has it: only at the end of a word.
        ("ΟΔΟΣ ΣΑΣ Σ ΑΣ'Α ΑΣ.", "οδος σας σ ασα ας"),
        // One capital whose lower case is two characters, of which one is a mark.
        ("İstanbul", "istanbul"),
        ("STRASSE ẞ ß", "strasse ß ß"),
        ("把杯子放在桌子上。", "把杯子放在桌子上"),
        ("컵을 접시에 놓아라!", "컵을 접시에 놓아라"),
        ("आम उठाओ", "आम उठओ"),
        ("😀 go 👍🏽", " go "),
        ("<|im_end|> <IMG_CONTEXT> <image-1>", "im_end img_context image1"),
        (
            "a\u{1c}b\u{1f}c\u{85}d\u{a0}e\u{3000}f\u{200b}g",
            "a\u{1c}b\u{1f}c\u{85}d\u{a0}e\u{3000}fg",
        ),
        ("nul\0 bell\u{7} soft\u{ad}hyphen", "nul bell softhyphen"),
        ("!?.,;:", ""),
    ];

    #[test]
    fn agrees_with_python() {
        for (text, expected) in CASES {
            assert_eq!(formalize_language(text), *expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn only_words_and_spaces_stay(text in any::<String>()) {
            let formal = formalize_language(&text);
            prop_assert!(formal.chars().all(|c| c == '_' || c.is_alphanumeric() || is_space(c)));
            prop_assert!(formal.chars().count() <= 3 * text.chars().count());
        }
    }
}
