//! HTML pages that need nothing else: no script, no other file, no network.

use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// Ends what [`begin`] begins.
pub const END: &str = "</body>\n</html>\n";

/// A page up to its first heading, with rules of style of its own besides the common ones.
pub fn begin(title: &str, style: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escaped(title)
    )
}

/// Text from outside, as it may stand in a page.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in a page at all.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Cells that begin with a digit stand to the right.
pub fn table(page: &mut String, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.push_str("<div class=\"wide\"><table>\n<tr>");
    for head in heads {
        let _ = write!(page, "<th>{}</th>", escaped(head));
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            let is_number = cell.parse::<f64>().is_ok();
            let class = if is_number { " class=\"number\"" } else { "" };
            let _ = write!(page, "<td{class}>{}</td>", escaped(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(
            escaped("<script>'a' & \"b\"\u{1b}"),
            "&lt;script&gt;&#39;a&#39; &amp; &quot;b&quot;\u{fffd}"
        );
        let mut page = String::new();
        table(&mut page, &["<x>"], [vec!["<y>".to_owned(), "1.5".to_owned()]].into_iter());
        assert!(
            page.contains("<th>&lt;x&gt;</th>") && page.contains("<td>&lt;y&gt;</td>"),
            "{page}"
        );
        assert!(page.contains("<td class=\"number\">1.5</td>"), "{page}");
    }
}
