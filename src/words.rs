//! Numbers and lists in sentences for people.

use std::fmt::{Display, Formatter, LowerExp, Result};

/// From here on, and below the smallest, a number is written with an exponent.
const LARGE: f64 = 1e9;
const SMALL: f64 = 1e-5;

/// A number as it is read best: `0.25`, but `1e300` in place of three hundred digits. Takes a precision as numbers do.
#[derive(Clone, Copy, Debug)]
pub struct Number<T>(pub T);

impl<T: Copy + Into<f64> + Display + LowerExp> Display for Number<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let size = self.0.into().abs();
        // With a precision, what is small is meant to become 0.
        let is_tiny = size > 0.0 && size < SMALL && f.precision().is_none();
        if size.is_finite() && (size >= LARGE || is_tiny) {
            LowerExp::fmt(&self.0, f)
        } else {
            Display::fmt(&self.0, f)
        }
    }
}

/// `0.1, -2, 1e300`.
pub fn numbers(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().map(|value| Number(*value).to_string()).collect();
    texts.join(", ")
}

/// `'left_arm', 'right_arm'`; `none` for none.
pub fn names(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("'{}'", name.as_ref())).collect();
    quoted.join(", ")
}

/// Characters of a sentence that are kept of its begin and of its end, where it is too long for anybody to read.
const BRIEF_BEGIN: usize = 600;
const BRIEF_END: usize = 300;

/// A sentence that may hold what somebody else has written: in one line, without control characters, and not too long.
pub fn brief(text: &str) -> String {
    let begin = text.char_indices().nth(BRIEF_BEGIN).map_or(text.len(), |(at, _)| at);
    let end = text.char_indices().rev().nth(BRIEF_END - 1).map_or(0, |(at, _)| at);
    if begin < end {
        format!("{} ... {}", escaped(&text[..begin], &[]), escaped(&text[end..], &[]))
    } else {
        escaped(text, &[])
    }
}

/// Text in which control characters are written out, but for those that are kept.
pub fn escaped(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !kept.contains(&c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A number and what it counts: `1 thread`, `2 threads`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_written_stays_in_one_short_line() {
        assert_eq!(brief("a\nb\u{1b}[2Jé"), "a\\nb\\u{1b}[2Jé");
        assert_eq!(brief(""), "");
        let fits = "é".repeat(BRIEF_BEGIN + BRIEF_END);
        assert_eq!(brief(&fits), fits);
        let long = format!("first {} last", "x".repeat(1 << 20));
        let cut = brief(&long);
        assert!(cut.starts_with("first x") && cut.ends_with("x last"), "{cut}");
        assert_eq!(cut.chars().count(), BRIEF_BEGIN + BRIEF_END + " ... ".len());
    }

    #[test]
    fn numbers_are_short_and_not_changed() {
        for (value, text) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (123_456.75, "123456.75"),
            (1e9, "1e9"),
            (1e300, "1e300"),
            (-f64::MAX, "-1.7976931348623157e308"),
            (1e-7, "1e-7"),
            (0.00001, "0.00001"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
        assert_eq!(Number(0.1_f32).to_string(), "0.1");
        assert_eq!(Number(f32::MAX).to_string(), "3.4028235e38");
        assert_eq!(format!("{:.3}", Number(1.0 / 3.0)), "0.333");
        assert_eq!(format!("{:.3}", Number(1e300)), "1.000e300");
        assert_eq!(format!("{:.3}", Number(1e-7)), "0.000");
        assert_eq!(numbers(&[0.1, -2.0, 1e300]), "0.1, -2, 1e300");
    }

    #[test]
    fn one_of_a_thing_is_not_two_of_them() {
        let texts = [0, 1, 2].map(|count| counted(count, "thread"));
        assert_eq!(texts, ["0 threads", "1 thread", "2 threads"]);
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(names(&["a", "b"]), "'a', 'b'");
        assert_eq!(names(&[] as &[&str]), "none");
    }
}
