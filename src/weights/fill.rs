//! Writing what a verified download has shown into a lock file, with its comments left as they are.

use toml_edit::{DocumentMut, Item, Value, value};

use super::verify::Checked;

/// A lock file's text that is being completed.
pub struct Filler {
    document: DocumentMut,
    /// What was filled in, one line each.
    pub filled: Vec<String>,
}

impl Filler {
    /// # Errors
    /// The text is no TOML.
    pub fn new(text: &str) -> Result<Self, toml_edit::TomlError> {
        Ok(Self { document: text.parse()?, filled: Vec::new() })
    }

    /// Fills in sizes and hashes that are not known yet. `table` leads to the table that has `files`.
    pub fn files(&mut self, table: &[&str], checked: &[Checked]) {
        for Checked { path, size, sha256, .. } in checked {
            let entry = item(&mut self.document, &[table, &["files", path]].concat());
            let Some(entry) = entry.and_then(Item::as_inline_table_mut) else { continue };
            let size = i64::try_from(*size).unwrap_or(i64::MAX);
            for (key, found) in [("size", Value::from(size)), ("sha256", Value::from(sha256))] {
                if !entry.contains_key(key) {
                    self.filled.push(format!(
                        "{} {path}: {key} {}",
                        table.join("."),
                        plain(&found)
                    ));
                    entry.insert(key, found);
                    // One space around what stands in braces.
                    entry.fmt();
                }
            }
        }
    }

    /// Fills in the revision of a table that has none.
    pub fn revision(&mut self, table: &[&str], revision: &str) {
        let found = item(&mut self.document, table).and_then(Item::as_table_like_mut);
        if let Some(found) = found.filter(|found| !found.contains_key("revision")) {
            found.insert("revision", value(revision));
            self.filled.push(format!("{}: revision {revision}", table.join(".")));
        }
    }

    /// The lock file.
    pub fn text(&self) -> String {
        self.document.to_string()
    }
}

/// The item under these keys; unlike by index, none is made.
fn item<'a>(document: &'a mut DocumentMut, path: &[&str]) -> Option<&'a mut Item> {
    let below = |item: &'a mut Item, key: &&str| item.as_table_like_mut()?.get_mut(key);
    path.iter().try_fold(document.as_item_mut(), below)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Version;
    use crate::weights::lock::{BUILT_IN, Lock, Origin, Tokenizer};

    fn checked(path: &str, size: u64) -> Checked {
        Checked { path: path.to_owned(), size, sha256: "ab".repeat(32), known: true }
    }

    #[test]
    fn what_is_not_known_is_filled_in_and_the_rest_stays() {
        let mut filler = Filler::new(BUILT_IN).expect("TOML");
        let shard = "model-00001-of-00002.safetensors";
        filler.files(&["n16"], &[checked("config.json", 12), checked(shard, 4_991_091_456)]);
        filler.files(&["n17", "tokenizer"], &[checked("vocab.json", 7)]);
        filler.revision(&["n17", "tokenizer"], &"c".repeat(40));
        filler.revision(&["n16"], &"d".repeat(40));
        assert_eq!(filler.filled.len(), 6, "{:?}", filler.filled);
        assert_eq!(filler.filled[0], "n16 config.json: size 12");

        let text = filler.text();
        let comments = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(comments(&text), comments(BUILT_IN));
        let hash = "ab".repeat(32);
        let line = format!("\"config.json\" = {{ size = 12, sha256 = \"{hash}\" }}");
        assert!(text.contains(&line), "{text}");
        let known = format!("\"{shard}\" = {{ size = 4_991_091_456, sha256 = \"{hash}\" }}");
        assert!(text.contains(&known), "{text}");

        let lock = Lock::parse(&text, Origin::BuiltIn).expect("still a lock file");
        let release = lock.release(Version::N17).expect("n17");
        let Tokenizer::Hub(files) = &release.tokenizer else { panic!("not on the hub") };
        assert_eq!(files.revision.as_deref(), Some("c".repeat(40).as_str()));
        let n16 = lock.release(Version::N16).expect("n16");
        assert!(n16.weights.revision.as_deref().is_some_and(|r| r.starts_with("d0814e7e")));
    }

    #[test]
    fn files_that_the_lock_does_not_list_are_not_added() {
        let mut filler = Filler::new(BUILT_IN).expect("TOML");
        filler.files(&["n16"], &[checked("README.md", 12)]);
        filler.files(&["n18"], &[checked("config.json", 12)]);
        assert!(filler.filled.is_empty());
        assert_eq!(filler.text(), BUILT_IN);
    }
}
