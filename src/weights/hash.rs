//! The two hashes by which a hub names content: SHA-256 for large files, git's blob hash for small ones.

use std::fmt::Write as _;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Hexadecimal digits of a SHA-256.
pub const SHA256_DIGITS: usize = 64;
/// Hexadecimal digits of the SHA-1 of a git blob, and of a revision.
pub const SHA1_DIGITS: usize = 40;

/// The content that a hub's entity tag, and with it the name of a blob in the cache, stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Sha256(String),
    /// SHA-1 of `blob <size>\0` and the content.
    GitBlob(String),
}

impl Content {
    /// `None` for a tag that is no hash, as other servers give.
    pub fn of_tag(tag: &str) -> Option<Self> {
        match tag.len() {
            SHA256_DIGITS if is_hex(tag) => Some(Self::Sha256(tag.to_owned())),
            SHA1_DIGITS if is_hex(tag) => Some(Self::GitBlob(tag.to_owned())),
            _ => None,
        }
    }
}

/// Whether a text consists of the digits that hashes are written with: 0 to 9, a to f.
pub fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Both hashes of a content, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    pub sha256: String,
    /// Only where it was asked for.
    pub git_blob: Option<String>,
}

impl Hashes {
    /// The hash that `content` is written with.
    pub fn like(&self, content: &Content) -> &str {
        match content {
            Content::Sha256(_) => &self.sha256,
            Content::GitBlob(_) => self.git_blob.as_deref().unwrap_or_default(),
        }
    }

    /// What was expected and what was found instead; `None` if they agree.
    pub fn mismatch(&self, expected: &Content) -> Option<[String; 2]> {
        let (Content::Sha256(hash) | Content::GitBlob(hash)) = expected;
        let found = self.like(expected);
        (found != hash).then(|| [hash.clone(), found.to_owned()])
    }
}

/// Hashes a content piece by piece.
pub struct Hasher {
    sha256: Sha256,
    git_blob: Option<Sha1>,
}

impl Hasher {
    /// For a content of `size` bytes; git's hash is slower and computed only where `content` is one.
    pub fn new(content: Option<&Content>, size: u64) -> Self {
        let git_blob = matches!(content, Some(Content::GitBlob(_)))
            .then(|| Sha1::new_with_prefix(format!("blob {size}\0")));
        Self { sha256: Sha256::new(), git_blob }
    }

    pub fn update(&mut self, piece: &[u8]) {
        self.sha256.update(piece);
        if let Some(hash) = &mut self.git_blob {
            hash.update(piece);
        }
    }

    pub fn finish(self) -> Hashes {
        let git_blob = self.git_blob.map(|hash| hex(&hash.finalize()));
        Hashes { sha256: hex(&self.sha256.finalize()), git_blob }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256sum_and_of_git() {
        let git = Content::GitBlob("ce013625030ba8dba906f756967f9e9ca394464a".to_owned());
        let mut hasher = Hasher::new(Some(&git), 6);
        hasher.update(b"hel");
        hasher.update(b"lo\n");
        let hashes = hasher.finish();
        assert_eq!(hashes.mismatch(&git), None);
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        assert_eq!(hashes.sha256, sha256);
        let other = Content::Sha256("0".repeat(64));
        assert_eq!(hashes.mismatch(&other), Some(["0".repeat(64), sha256.to_owned()]));
    }

    #[test]
    fn tags_that_are_no_hashes_stand_for_no_content() {
        assert_eq!(Content::of_tag("W/\"abc\""), None);
        assert_eq!(Content::of_tag(&"g".repeat(64)), None);
        assert_eq!(Content::of_tag(&"a".repeat(39)), None);
        assert_eq!(Content::of_tag(&"a".repeat(40)), Some(Content::GitBlob("a".repeat(40))));
        assert_eq!(Content::of_tag(&"a".repeat(64)), Some(Content::Sha256("a".repeat(64))));
    }
}
