//! One safetensors file: mapped, its header checked against the file to the byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use half::bf16;
use memmap2::Mmap;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use super::CheckpointError;
use super::json;

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
        let io = |source| CheckpointError::Io { path: path.to_owned(), source };
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Names and entries, sorted by name.
    pub(super) fn tensors(&self) -> &BTreeMap<String, TensorInfo> {
        &self.header.tensors
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
            if info.dtype == Dtype::BF16 && position % align_of::<bf16>() != 0 {
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
