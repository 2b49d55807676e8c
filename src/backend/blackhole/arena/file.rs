//! An arena as a file.
//!
//! | bytes | |
//! |---|---|
//! | 8 | magic |
//! | 8 | version of this format, little-endian, as all numbers |
//! | 8 | length n of the header |
//! | 32 | BLAKE3 of the header |
//! | n | the header as JSON, spaces behind it; ends at a multiple of 4096 |
//! | rest | the banks, one after the other |

use blake3::Hash;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::plan::{ArenaPlan, PlannedBlob, PlannedPart};
use super::report::PartReport;
use super::{BANK_BYTES, BANKS};

const MAGIC: [u8; 8] = *b"GR00TARN";
const VERSION: u64 = 1;
const PRELUDE_BYTES: usize = MAGIC.len() + 2 * size_of::<u64>() + blake3::OUT_LEN;
/// Banks begin at a page of the map.
const PAGE_BYTES: usize = 4096;

/// Why a file is no arena, or not the one that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    #[error("ends after {found} bytes, in the middle of what stands before the banks")]
    Cut { found: usize },
    #[error("does not begin as an arena: {found:02x?}")]
    Magic { found: [u8; MAGIC.len()] },
    #[error("has version {found} of the format of arenas, not {VERSION}")]
    Version { found: u64 },
    #[error("has a damaged header: its BLAKE3 is {found}, not {expected}")]
    HeaderHash { expected: Hash, found: Hash },
    #[error("has a header that is not valid: {message}")]
    Header { message: String },
    #[error("was made from something else: its key is '{found}', not '{expected}'")]
    Key { expected: String, found: String },
    #[error("has {found} bytes of banks, its header speaks of {expected}")]
    Length { expected: u64, found: u64 },
    #[error("has a damaged bank {bank}: its BLAKE3 is {found}, not {expected}")]
    Bank { bank: usize, expected: Hash, found: Hash },
}

/// What stands before the banks. The geometry of packets is not in it: whoever wants them has the plan, and the key
/// says that it is the right one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// What the arena was made from.
    pub key: String,
    /// Name of the policy that chose the formats.
    pub policy: String,
    pub banks: [HeaderBank; BANKS],
    pub parts: Vec<HeaderPart>,
    pub blobs: Vec<HeaderBlob>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderBank {
    pub bytes: u64,
    pub blake3: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderPart {
    pub name: String,
    pub short_last: bool,
    /// Formats of its tiles.
    pub formats: Vec<String>,
    /// Offset and bytes in each bank.
    pub banks: [(u64, u64); BANKS],
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderBlob {
    pub name: String,
    pub bank: u8,
    pub offset: u64,
    pub bytes: u64,
}

impl HeaderBlob {
    pub fn of(blob: &PlannedBlob) -> Self {
        let (name, bytes) = (blob.name.clone(), blob.bytes.len() as u64);
        Self { name, bank: blob.bank, offset: blob.offset, bytes }
    }
}

impl Header {
    /// `hashes` are those of the banks.
    pub fn new(plan: &ArenaPlan, key: &str, hashes: [Hash; BANKS]) -> Self {
        let report = plan.report();
        let part = |(part, report): (&PlannedPart, &PartReport)| HeaderPart {
            name: part.name.clone(),
            short_last: part.short_last,
            formats: report.formats.keys().map(|name| (*name).to_owned()).collect(),
            banks: std::array::from_fn(|bank| {
                let range = part.range(bank as u8);
                (range.start, range.end - range.start)
            }),
        };
        Self {
            key: key.to_owned(),
            policy: report.policy.to_owned(),
            banks: std::array::from_fn(|bank| HeaderBank {
                bytes: plan.bank_bytes(bank as u8),
                blake3: hashes[bank].to_hex().to_string(),
            }),
            parts: plan.parts().iter().zip(&report.parts).map(part).collect(),
            blobs: plan.blobs().iter().map(HeaderBlob::of).collect(),
        }
    }

    /// All that stands before the banks. Its length does not depend on the hashes.
    ///
    /// # Errors
    /// Those of JSON, which a header has none of.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        let whole = (PRELUDE_BYTES + text.len()).next_multiple_of(PAGE_BYTES);
        text.resize(whole - PRELUDE_BYTES, b' ');
        let mut bytes = Vec::with_capacity(whole);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(blake3::hash(&text).as_bytes());
        bytes.extend(text);
        Ok(bytes)
    }

    /// The header of a file, and the banks behind it, of which only the length is checked.
    pub fn decode<'a>(file: &'a [u8], key: &str) -> Result<(Self, &'a [u8]), FileProblem> {
        let cut = FileProblem::Cut { found: file.len() };
        let (magic, rest) = file.split_first_chunk().ok_or(cut.clone())?;
        if *magic != MAGIC {
            return Err(FileProblem::Magic { found: *magic });
        }
        let (version, rest) = rest.split_first_chunk().ok_or(cut.clone())?;
        let version = u64::from_le_bytes(*version);
        if version != VERSION {
            return Err(FileProblem::Version { found: version });
        }
        let (length, rest) = rest.split_first_chunk().ok_or(cut.clone())?;
        let (hash, rest) = rest.split_first_chunk().ok_or(cut.clone())?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let (text, banks) = length.and_then(|length| rest.split_at_checked(length)).ok_or(cut)?;
        let (expected, found) = (Hash::from_bytes(*hash), blake3::hash(text));
        if expected != found {
            return Err(FileProblem::HeaderHash { expected, found });
        }
        let header: Self = serde_json::from_slice(text)
            .map_err(|error| FileProblem::Header { message: error.to_string() })?;
        if header.key != key {
            return Err(FileProblem::Key { expected: key.to_owned(), found: header.key });
        }
        header.check_geometry().map_err(|message| FileProblem::Header { message })?;
        let (expected, found) = (header.bank_starts()[BANKS], banks.len() as u64);
        if expected != found {
            return Err(FileProblem::Length { expected, found });
        }
        Ok((header, banks))
    }

    /// That everything lies within its bank.
    fn check_geometry(&self) -> Result<(), String> {
        if let Some(bank) = self.banks.iter().find(|bank| bank.bytes > BANK_BYTES) {
            return Err(format!("a bank of {} bytes", bank.bytes));
        }
        let blobs = self.blobs.iter();
        let blobs = blobs.map(|blob| (&blob.name, usize::from(blob.bank), blob.offset, blob.bytes));
        let parts = self.parts.iter().flat_map(|part| {
            let banks = part.banks.iter().enumerate();
            banks.map(|(bank, (offset, bytes))| (&part.name, bank, *offset, *bytes))
        });
        for (name, bank, offset, bytes) in parts.chain(blobs) {
            let end = offset.checked_add(bytes);
            let room = self.banks.get(bank);
            if end.zip(room).is_none_or(|(end, room)| end > room.bytes) {
                return Err(format!("'{name}' lies outside of bank {bank}"));
            }
        }
        Ok(())
    }

    /// Checks the banks, one after the other in `banks`, against their hashes, on all threads of the current rayon
    /// pool.
    pub fn check_banks(&self, banks: &[u8]) -> Result<(), FileProblem> {
        let starts = self.bank_starts().map(|start| start as usize);
        self.banks.par_iter().enumerate().try_for_each(|(bank, about)| {
            let expected = Hash::from_hex(&about.blake3).map_err(|error| FileProblem::Header {
                message: format!("hash '{}': {error}", about.blake3),
            })?;
            let bytes = &banks[starts[bank]..starts[bank + 1]];
            let found = blake3::Hasher::new().update_rayon(bytes).finalize();
            if expected != found {
                return Err(FileProblem::Bank { bank, expected, found });
            }
            Ok(())
        })
    }

    /// Where the banks begin behind the header, and where the last one ends.
    pub fn bank_starts(&self) -> [u64; BANKS + 1] {
        let mut starts = [0; BANKS + 1];
        for (bank, about) in self.banks.iter().enumerate() {
            starts[bank + 1] = starts[bank] + about.bytes;
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "key";

    fn header() -> Header {
        let banks = [0, 64, 0, 0, 0, 0, 0, 128].map(|bytes| HeaderBank {
            bytes,
            blake3: blake3::hash(&vec![0; bytes as usize]).to_hex().to_string(),
        });
        let mut of_part = [(0, 0); BANKS];
        of_part[7] = (64, 64);
        let part = HeaderPart {
            name: "part".to_owned(),
            short_last: true,
            formats: vec!["bf16".to_owned()],
            banks: of_part,
        };
        let blob = HeaderBlob { name: "blob".to_owned(), bank: 1, offset: 0, bytes: 64 };
        let policy = "mixed".to_owned();
        let (parts, blobs) = (vec![part], vec![blob]);
        Header { key: KEY.to_owned(), policy, banks, parts, blobs }
    }

    /// A file with banks of zeros.
    fn file(header: &Header) -> Vec<u8> {
        let mut file = header.encode().expect("it has a text");
        file.resize(file.len() + 192, 0);
        file
    }

    /// A file whose header is any text, with the right hash.
    fn file_of(text: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend(VERSION.to_le_bytes());
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(blake3::hash(text).as_bytes());
        file.extend(text);
        file
    }

    /// What is said of a header whose hash is right all the same.
    fn fault(file: &[u8]) -> String {
        match Header::decode(file, KEY) {
            Err(FileProblem::Header { message }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let file = file(&header());
        assert_eq!(file.len(), PAGE_BYTES + 192);
        let (found, banks) = Header::decode(&file, KEY).expect("it is whole");
        assert_eq!((found, banks), (header(), [0; 192].as_slice()));
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        for text in ["", "[]", "{}", "\u{ff}"] {
            fault(&file_of(text.as_bytes()));
        }
        let mut more = serde_json::to_value(header()).expect("it has a text");
        more["surprise"] = true.into();
        assert!(fault(&file_of(more.to_string().as_bytes())).contains("surprise"));

        let with = |change: &dyn Fn(&mut Header)| {
            let mut changed = header();
            change(&mut changed);
            fault(&file(&changed))
        };
        assert_eq!(with(&|h| h.banks[2].bytes = BANK_BYTES + 1), "a bank of 4294967297 bytes");
        assert_eq!(with(&|h| h.blobs[0].bank = 8), "'blob' lies outside of bank 8");
        assert_eq!(with(&|h| h.blobs[0].offset = 1), "'blob' lies outside of bank 1");
        assert_eq!(with(&|h| h.blobs[0].offset = u64::MAX), "'blob' lies outside of bank 1");
        assert_eq!(with(&|h| h.parts[0].banks[7].1 = 65), "'part' lies outside of bank 7");

        let mut no_hash = header();
        no_hash.banks[3].blake3 = "0".to_owned();
        let refused = no_hash.check_banks(&[0; 192]);
        assert!(matches!(refused, Err(FileProblem::Header { .. })), "{refused:?}");
        assert_eq!(header().check_banks(&[0; 192]), Ok(()));
        let refused = header().check_banks(&[1; 192]);
        assert!(matches!(refused, Err(FileProblem::Bank { bank: 1 | 7, .. })), "{refused:?}");
    }

    #[test]
    fn lengths_beyond_the_file_are_a_cut() {
        let mut file = file(&header());
        for length in [u64::MAX, file.len() as u64] {
            file[16..24].copy_from_slice(&length.to_le_bytes());
            let found = Header::decode(&file, KEY);
            assert_eq!(found, Err(FileProblem::Cut { found: file.len() }));
        }
    }
}
