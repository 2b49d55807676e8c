//! One safetensors file: mapped, its header checked against the file to the byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use half::bf16;
use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use super::json;
use super::{CheckpointError, TensorSpec};

#[cfg(not(target_endian = "little"))]
compile_error!("tensors are read in place, and safetensors files are little-endian");

/// Bytes in front of the header: its length, little-endian.
const LENGTH_BYTES: usize = 8;

/// Longest header that is read, in bytes. A full checkpoint's is 130 kB.
pub const MAX_HEADER_BYTES: usize = 16 << 20;

/// The entry of a header that is not a tensor.
const METADATA_KEY: &str = "__metadata__";

/// Why a safetensors file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardProblem {
    #[error(
        "is {length} bytes long; a safetensors file starts with {LENGTH_BYTES} bytes of header length"
    )]
    NoHeader { length: usize },
    #[error("declares a header of {header} bytes; the limit is {MAX_HEADER_BYTES}")]
    HeaderTooLong { header: u64 },
    #[error(
        "declares a header of {header} bytes, but only {available} bytes follow: the file is truncated"
    )]
    HeaderTruncated { header: u64, available: usize },
    #[error("its header is not valid: {message}")]
    HeaderText { message: String },
    #[error("its header entry for tensor '{tensor}' is not valid: {message}")]
    Entry { tensor: String, message: String },
    #[error("tensor '{tensor}' has shape {shape:?}, which is more than can be addressed")]
    TooLarge { tensor: String, shape: Vec<usize> },
    #[error("tensor '{tensor}' of shape {shape:?} and type {dtype} takes {expected} bytes, but its offsets {begin}..{end} span {}", end - begin)]
    Size {
        tensor: String,
        shape: Vec<usize>,
        dtype: String,
        expected: usize,
        begin: usize,
        end: usize,
    },
    #[error("tensor '{tensor}' has its offsets in the wrong order: {begin}..{end}")]
    Reversed { tensor: String, begin: usize, end: usize },
    #[error(
        "tensor '{tensor}' begins at offset {begin}, inside tensor '{previous}', which ends at {previous_end}"
    )]
    Overlap { tensor: String, begin: usize, previous: String, previous_end: usize },
    #[error("{} bytes in front of tensor '{tensor}' (offsets {from}..{begin}) belong to no tensor", begin - from)]
    Hole { tensor: String, from: usize, begin: usize },
    #[error(
        "is truncated: its header describes {expected} bytes of data, {found} are there; tensor '{tensor}' is incomplete"
    )]
    Truncated { tensor: String, expected: usize, found: usize },
    #[error("has {} bytes behind the last tensor: its header describes {expected} bytes of data, {found} are there", found - expected)]
    Trailing { expected: usize, found: usize },
    #[error(
        "tensor '{tensor}' begins at byte {position} of the file, which is not a multiple of 2"
    )]
    Misaligned { tensor: String, position: usize },
}

/// A mapped file and where its tensors lie.
pub(super) struct Shard {
    path: PathBuf,
    map: Mmap,
    header: Header,
}

/// The checked header of a file.
#[derive(Debug)]
pub(super) struct Header {
    /// Where the data begins, in bytes from the start of the file.
    data_start: usize,
    tensors: BTreeMap<String, TensorInfo>,
}

impl Shard {
    /// Maps a file and checks its header: together the tensors must cover the data exactly.
    pub(super) fn open(path: &Path) -> Result<Self, CheckpointError> {
        let io = |error| CheckpointError::Io { path: path.to_owned(), error };
        // Asked before opening: opening a pipe would wait for a writer.
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let file = File::open(path).map_err(io)?;
        // SAFETY: the map is private to this struct, read-only, and handed out only as shared slices of bytes and of
        // bf16, for which every bit pattern is a value. What remains is another process that changes or cuts the file
        // while it is mapped; a snapshot's files are written once (new revisions are new files), and reading 6.6 GB into
        // memory instead would double the footprint of a policy.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        let header = Header::parse(&map)
            .map_err(|problem| CheckpointError::Shard { path: path.to_owned(), problem })?;
        Ok(Self { path: path.to_owned(), map, header })
    }

    /// Tensors of these names and shapes that are nothing but zeros. No file is read, and all of them share the bytes of
    /// the largest, which the system hands out where they are read.
    pub(super) fn of_shapes(path: &Path, tensors: &[TensorSpec]) -> Result<Self, CheckpointError> {
        let describe = |spec: &TensorSpec| {
            let values = spec.shape.iter().product::<usize>();
            let data_offsets = (0, values * size_of::<bf16>());
            let shape = spec.shape.clone();
            (spec.name.clone(), TensorInfo { dtype: Dtype::BF16, shape, data_offsets })
        };
        let tensors: BTreeMap<String, TensorInfo> = tensors.iter().map(describe).collect();
        let length = tensors.values().map(|info| info.data_offsets.1).max().unwrap_or_default();
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon();
        let map = map
            .and_then(memmap2::MmapMut::make_read_only)
            .map_err(|error| CheckpointError::Io { path: path.to_owned(), error })?;
        let header = Header { data_start: 0, tensors };
        Ok(Self { path: path.to_owned(), map, header })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Names and entries, sorted by name.
    pub(super) fn tensors(&self) -> &BTreeMap<String, TensorInfo> {
        &self.header.tensors
    }

    /// Gives back the memory of the pages that were read.
    pub(super) fn release(&self) -> io::Result<()> {
        // SAFETY: the map is read-only and of a file, so a page that was given back is read from the file again, with the
        // same bytes.
        unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) }
    }

    /// The elements of a bf16 tensor of this file; `None` for another type.
    pub(super) fn values(&self, info: &TensorInfo) -> Option<&[bf16]> {
        let (begin, end) = info.data_offsets;
        let data = self.map.get(self.header.data_start..)?.get(begin..end)?;
        (info.dtype == Dtype::BF16).then(|| bytemuck::try_cast_slice(data).ok())?
    }
}

impl Header {
    /// Reads and checks the header of `file`, the bytes of a whole safetensors file.
    pub(super) fn parse(file: &[u8]) -> Result<Self, ShardProblem> {
        let Some((length, rest)) = file.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(ShardProblem::NoHeader { length: file.len() });
        };
        let header = u64::from_le_bytes(*length);
        if header > MAX_HEADER_BYTES as u64 {
            return Err(ShardProblem::HeaderTooLong { header });
        }
        let Some((text, data)) = rest.split_at_checked(header as usize) else {
            return Err(ShardProblem::HeaderTruncated { header, available: rest.len() });
        };
        let entries =
            json::parse_object(text).map_err(|message| ShardProblem::HeaderText { message })?;
        let mut tensors = BTreeMap::new();
        for (name, entry) in entries.into_iter().filter(|(name, _)| name != METADATA_KEY) {
            let info = parse_entry(&name, entry)?;
            tensors.insert(name, info);
        }
        let header = Self { data_start: LENGTH_BYTES + text.len(), tensors };
        header.check_cover(data.len())?;
        header.check_alignment()?;
        Ok(header)
    }

    /// Checks that the tensors lie one behind the other, from the first byte of the data to the last.
    fn check_cover(&self, found: usize) -> Result<(), ShardProblem> {
        let mut by_offset: Vec<(&String, (usize, usize))> =
            self.tensors.iter().map(|(name, info)| (name, info.data_offsets)).collect();
        by_offset.sort_by_key(|(_, offsets)| *offsets);

        let mut covered = 0;
        let mut previous = "";
        for (name, (begin, end)) in &by_offset {
            let tensor = (*name).clone();
            if *begin < covered {
                let previous = previous.to_owned();
                return Err(ShardProblem::Overlap {
                    tensor,
                    begin: *begin,
                    previous,
                    previous_end: covered,
                });
            }
            if *begin > covered {
                return Err(ShardProblem::Hole { tensor, from: covered, begin: *begin });
            }
            covered = *end;
            previous = name;
        }
        if covered < found {
            return Err(ShardProblem::Trailing { expected: covered, found });
        }
        match by_offset.iter().find(|(_, (_, end))| *end > found) {
            Some((name, _)) => {
                Err(ShardProblem::Truncated { tensor: (*name).clone(), expected: covered, found })
            }
            None => Ok(()),
        }
    }

    /// Checks that bf16 data can be read in place.
    fn check_alignment(&self) -> Result<(), ShardProblem> {
        for (name, info) in &self.tensors {
            let position = self.data_start + info.data_offsets.0;
            if info.dtype == Dtype::BF16 && !position.is_multiple_of(align_of::<bf16>()) {
                return Err(ShardProblem::Misaligned { tensor: name.clone(), position });
            }
        }
        Ok(())
    }
}

/// Reads one entry and checks that its shape, type and offsets agree.
fn parse_entry(name: &str, entry: Value) -> Result<TensorInfo, ShardProblem> {
    let tensor = || name.to_owned();
    let info: TensorInfo = serde_json::from_value(entry)
        .map_err(|error| ShardProblem::Entry { tensor: tensor(), message: error.to_string() })?;
    let (begin, end) = info.data_offsets;
    if end < begin {
        return Err(ShardProblem::Reversed { tensor: tensor(), begin, end });
    }
    let bits = info
        .shape
        .iter()
        .try_fold(info.dtype.bitsize(), |bits, side| bits.checked_mul(*side))
        .ok_or_else(|| ShardProblem::TooLarge { tensor: tensor(), shape: info.shape.clone() })?;
    let expected = bits.div_ceil(8);
    if end - begin != expected {
        return Err(ShardProblem::Size {
            tensor: tensor(),
            shape: info.shape,
            dtype: info.dtype.to_string(),
            expected,
            begin,
            end,
        });
    }
    Ok(info)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A file with this header text and `data` bytes behind it.
    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.resize(file.len() + data, 0);
        file
    }

    fn entry(shape: &[usize], begin: usize, end: usize) -> Value {
        json!({ "dtype": "BF16", "shape": shape, "data_offsets": [begin, end] })
    }

    /// Parses a file with these entries; the header has an even length.
    fn parse(entries: Value, data: usize) -> Result<Header, ShardProblem> {
        let mut text = entries.to_string();
        if !text.len().is_multiple_of(2) {
            text.push(' ');
        }
        Header::parse(&file(&text, data))
    }

    #[test]
    fn entries_that_cover_the_data_are_accepted_in_any_order() {
        let entries = json!({
            "__metadata__": { "format": "pt" },
            "z": entry(&[2, 3], 0, 12),
            "a": entry(&[], 12, 14),
            "empty": entry(&[0, 5], 12, 12),
        });
        let header = parse(entries, 14).unwrap();
        assert_eq!(header.tensors.len(), 3);
        assert_eq!(header.tensors["a"].data_offsets, (12, 14));
    }

    #[test]
    fn case_42_a_hole_is_refused() {
        let problem = parse(json!({ "a": entry(&[1], 0, 2), "b": entry(&[1], 4, 6) }), 6);
        let expected = ShardProblem::Hole { tensor: "b".to_owned(), from: 2, begin: 4 };
        assert_eq!(problem.unwrap_err(), expected);
        assert_eq!(
            expected.to_string(),
            "2 bytes in front of tensor 'b' (offsets 2..4) belong to no tensor"
        );
    }

    #[test]
    fn case_42_an_overlap_is_refused() {
        let problem = parse(json!({ "a": entry(&[2], 0, 4), "b": entry(&[2], 2, 6) }), 6);
        let expected = ShardProblem::Overlap {
            tensor: "b".to_owned(),
            begin: 2,
            previous: "a".to_owned(),
            previous_end: 4,
        };
        assert_eq!(problem.unwrap_err(), expected);
    }

    #[test]
    fn case_42_two_names_for_the_same_bytes_are_refused() {
        let problem = parse(json!({ "a": entry(&[2], 0, 4), "b": entry(&[2], 0, 4) }), 4);
        assert!(matches!(problem.unwrap_err(), ShardProblem::Overlap { .. }));
    }

    #[test]
    fn case_42_truncated_and_trailing_data_are_told_apart() {
        let entries = json!({ "a": entry(&[2], 0, 4), "b": entry(&[2], 4, 8) });
        let truncated = parse(entries.clone(), 7).unwrap_err();
        let expected = ShardProblem::Truncated { tensor: "b".to_owned(), expected: 8, found: 7 };
        assert_eq!(truncated, expected);
        let trailing = parse(entries, 9).unwrap_err();
        assert_eq!(trailing, ShardProblem::Trailing { expected: 8, found: 9 });
    }

    #[test]
    fn case_42_header_lengths_are_checked_before_anything_is_read() {
        for length in [1 << 63, u64::MAX, MAX_HEADER_BYTES as u64 + 1] {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend_from_slice(b"{}");
            let problem = Header::parse(&bytes).unwrap_err();
            assert_eq!(problem, ShardProblem::HeaderTooLong { header: length });
        }
        let mut bytes = 3_u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(b"{}");
        let problem = Header::parse(&bytes).unwrap_err();
        assert_eq!(problem, ShardProblem::HeaderTruncated { header: 3, available: 2 });
        let problem = Header::parse(b"short").unwrap_err();
        assert_eq!(problem, ShardProblem::NoHeader { length: 5 });
    }

    #[test]
    fn case_42_sizes_are_calculated_without_overflow() {
        let huge = parse(json!({ "a": entry(&[usize::MAX, 3], 0, 2) }), 2).unwrap_err();
        assert!(matches!(huge, ShardProblem::TooLarge { ref tensor, .. } if tensor == "a"));
        let reversed = parse(json!({ "a": entry(&[1], 4, 2) }), 2).unwrap_err();
        assert!(matches!(reversed, ShardProblem::Reversed { begin: 4, end: 2, .. }));
        let far = parse(json!({ "a": entry(&[1], usize::MAX - 2, usize::MAX) }), 2).unwrap_err();
        assert!(matches!(far, ShardProblem::Hole { .. }), "{far}");
    }

    #[test]
    fn a_shape_that_does_not_fit_its_offsets_is_refused() {
        let problem = parse(json!({ "a": entry(&[3], 0, 4) }), 4).unwrap_err();
        assert!(matches!(problem, ShardProblem::Size { expected: 6, begin: 0, end: 4, .. }));
        assert!(problem.to_string().contains("'a'"), "{problem}");
    }

    #[test]
    fn misaligned_data_are_refused() {
        let text = json!({ "a": entry(&[1], 0, 2) }).to_string();
        let text = if text.len().is_multiple_of(2) { text + " " } else { text };
        let problem = Header::parse(&file(&text, 2)).unwrap_err();
        let position = 8 + text.len();
        assert_eq!(problem, ShardProblem::Misaligned { tensor: "a".to_owned(), position });
    }

    #[test]
    fn damaged_entries_name_their_tensor() {
        for entry in [
            json!({ "dtype": "BF17", "shape": [1], "data_offsets": [0, 2] }),
            json!({ "dtype": "BF16", "shape": [-1], "data_offsets": [0, 2] }),
            json!({ "dtype": "BF16", "shape": [1], "data_offsets": [0] }),
            json!({ "dtype": "BF16", "shape": [1] }),
            json!([]),
        ] {
            let problem = parse(json!({ "broken": entry }), 2).unwrap_err();
            assert!(matches!(problem, ShardProblem::Entry { .. }), "{problem}");
            assert!(problem.to_string().contains("'broken'"), "{problem}");
        }
    }

    #[test]
    fn headers_that_are_no_json_object_are_refused() {
        let deep = "[".repeat(100_000);
        let twice = format!(r#"{{"a":{0},"a":{0}}}"#, entry(&[1], 0, 2));
        for text in ["", "{", "[]", "null", "{} {}", &deep, &twice] {
            let problem = Header::parse(&file(text, 2)).unwrap_err();
            assert!(matches!(problem, ShardProblem::HeaderText { .. }), "{text:.20}: {problem}");
        }
        let mut not_text = file("{}", 0);
        not_text[8] = 0xff;
        assert!(matches!(Header::parse(&not_text), Err(ShardProblem::HeaderText { .. })));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Header::parse(&bytes);
        }

        #[test]
        fn random_headers_never_panic(text in r#"[{}\[\]":,a-f0-9 ]{0,80}"#, data in 0_usize..8) {
            let _ = Header::parse(&file(&text, data));
        }

        /// A header with one number changed is refused, or still covers the data exactly.
        #[test]
        fn what_is_accepted_covers_the_data(
            ends in proptest::collection::vec(0_usize..8, 6),
            shapes in proptest::collection::vec(proptest::collection::vec(0_usize..4, 0..3), 3),
            data in 0_usize..20,
        ) {
            let entries = json!({
                "a": entry(&shapes[0], ends[0], ends[1]),
                "b": entry(&shapes[1], ends[2], ends[3]),
                "c": entry(&shapes[2], ends[4], ends[5]),
            });
            if let Ok(header) = parse(entries, data) {
                let covered: usize = header
                    .tensors
                    .values()
                    .map(|info| 2 * info.shape.iter().product::<usize>())
                    .sum();
                prop_assert_eq!(covered, data);
                for info in header.tensors.values() {
                    prop_assert!(info.data_offsets.1 <= data);
                }
            }
        }

        /// Flipping any byte of a good file's header is refused or leaves a file that is consistent again.
        #[test]
        fn flipped_bytes_never_panic(at in 0_usize..120, flip in 1_u8..=255) {
            let text = json!({ "a": entry(&[2], 0, 4), "b": entry(&[1, 1], 4, 6) }).to_string();
            let mut bytes = file(&text, 6);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            let _ = Header::parse(&bytes);
        }
    }
}
