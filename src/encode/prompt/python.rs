//! Python's `repr` of a string, in which N1.5 wraps every instruction (spec n15 section 5.1).

use std::fmt::Write as _;

use super::unicode13::is_printable;

/// The text as Python 3.10 prints it in a list: quoted, with escapes for what is not printable.
pub fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => push_escape(&mut out, c as u32),
        }
    }
    out.push(quote);
    out
}

/// `\xNN`, `\uNNNN` or `\UNNNNNNNN`, whichever is the shortest that holds the code point.
fn push_escape(out: &mut String, code: u32) {
    let written = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_chosen_as_python_chooses_them() {
        assert_eq!(repr("pick up the cup"), "'pick up the cup'");
        assert_eq!(repr("it's"), "\"it's\"");
        assert_eq!(repr("a \"b\""), "'a \"b\"'");
        assert_eq!(repr("it's \"both\""), "'it\\'s \"both\"'");
        assert_eq!(repr(""), "''");
    }

    #[test]
    fn what_is_not_printable_is_escaped() {
        assert_eq!(repr("a\\b\n\r\t\u{7}\u{7f}"), "'a\\\\b\\n\\r\\t\\x07\\x7f'");
        assert_eq!(repr("\u{a0}\u{ad}\u{200b}\u{2028}"), "'\\xa0\\xad\\u200b\\u2028'");
        assert_eq!(repr("\u{1fae0}\u{10ffff}"), "'\\U0001fae0\\U0010ffff'");
        assert_eq!(repr("caf\u{e9} \u{8a9e} \u{1f916}"), "'caf\u{e9} \u{8a9e} \u{1f916}'");
    }
}
