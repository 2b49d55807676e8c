//! An entry as a file.
//!
//! | bytes | |
//! |---|---|
//! | 8 | magic, with the version of this format |
//! | 32 | the entry's key |
//! | 32 | BLAKE3 of everything behind it |
//! | 8 | how many values-by-name there are, little-endian, as all numbers |
//! | each: 8, n, 8, 4 m | length and text of the name, number of values, the values as f32 |

use super::{Key, Values};

const MAGIC: &[u8; 8] = b"GR00TPV1";
const LENGTH_BYTES: usize = size_of::<u64>();
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = MAGIC.len() + 2 * HASH_BYTES;

/// Why a file is no entry, or not the one that is wanted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it does not begin as a file of prepared values")]
    Magic,
    #[error("it holds the values of another key")]
    Key,
    #[error("its contents do not have the hash that it names")]
    Hash,
    #[error("it ends in the middle of a value, or goes on behind the last one")]
    Length,
}

pub fn encode(key: &Key, values: &Values) -> Vec<u8> {
    let mut names: Vec<&String> = values.keys().collect();
    names.sort();
    let mut body = (names.len() as u64).to_le_bytes().to_vec();
    for name in names {
        let numbers = &values[name];
        body.extend((name.len() as u64).to_le_bytes());
        body.extend(name.as_bytes());
        body.extend((numbers.len() as u64).to_le_bytes());
        body.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
    let mut file = Vec::with_capacity(HEADER_BYTES + body.len());
    file.extend(MAGIC);
    file.extend(key.bytes());
    file.extend(blake3::hash(&body).as_bytes());
    file.extend(body);
    file
}

pub fn decode(key: &Key, file: &[u8]) -> Result<Values, Damage> {
    let rest = file.strip_prefix(MAGIC).ok_or(Damage::Magic)?;
    let (found, rest) = rest.split_at_checked(HASH_BYTES).ok_or(Damage::Length)?;
    if found != key.bytes() {
        return Err(Damage::Key);
    }
    let (hash, body) = rest.split_at_checked(HASH_BYTES).ok_or(Damage::Length)?;
    if hash != blake3::hash(body).as_bytes() {
        return Err(Damage::Hash);
    }
    read_body(body).ok_or(Damage::Length)
}

fn read_body(body: &[u8]) -> Option<Values> {
    let mut reader = Reader(body);
    let count = reader.length()?;
    let mut values = Values::new();
    for _ in 0..count {
        let length = reader.length()?;
        let name = String::from_utf8(reader.take(length)?.to_vec()).ok()?;
        let bytes = reader.length()?.checked_mul(size_of::<f32>())?;
        let (numbers, _) = reader.take(bytes)?.as_chunks();
        values.insert(name, numbers.iter().copied().map(f32::from_le_bytes).collect());
    }
    reader.0.is_empty().then_some(values)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let bytes = self.take(LENGTH_BYTES)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    }
}
