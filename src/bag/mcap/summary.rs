//! The summary: schemas, channels and counts once more, behind all data.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use mcap::records::{Footer, Record, Statistics, op};

use super::channels::Channels;
use super::records::{HEAD_LEN, Records, parse, text};
use super::scan::{End, Scan};
use crate::bag::error::BagError;
use crate::bag::limits::MAX_SUMMARY_BYTES;

/// Summary and footer fields that the footer's checksum covers, behind its head.
const CHECKED_FOOTER_LEN: usize = HEAD_LEN + 16;
const FOOTER_BODY_LEN: usize = 20;

/// What a summary tells of the whole file.
pub(super) struct Summary {
    pub channels: Channels,
    pub statistics: Statistics,
}

/// The summary of a finished file; `None` if it was written without one, or with one that is not complete.
///
/// The inner error says why a summary cannot be trusted.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn read(
    path: &Path,
    file: &File,
    scan: &Scan,
) -> Result<Result<Option<Summary>, String>, BagError> {
    let (End::Finished { footer }, Some(data_end)) = (scan.end, scan.data_end) else {
        return Ok(Ok(None));
    };
    let len = footer.saturating_sub(data_end);
    if len > MAX_SUMMARY_BYTES {
        return Ok(Err(format!("it has {len} bytes")));
    }
    let mut bytes = vec![0; len as usize + HEAD_LEN + FOOTER_BODY_LEN];
    file.read_exact_at(&mut bytes, data_end).map_err(BagError::io(path))?;
    Ok(parsed(&bytes, len as usize, data_end))
}

/// `bytes` are the summary, `len` of them, and the footer.
fn parsed(bytes: &[u8], len: usize, data_end: u64) -> Result<Option<Summary>, String> {
    let (summary, footer) = bytes.split_at(len);
    let footer: Footer = match mcap::parse_record(op::FOOTER, &footer[HEAD_LEN..]) {
        Ok(Record::Footer(footer)) => footer,
        Ok(_) => return Ok(None),
        Err(error) => return Err(text(&error)),
    };
    if footer.summary_start == 0 {
        return Ok(None);
    }
    if footer.summary_start != data_end {
        let start = footer.summary_start;
        return Err(format!("the footer says that it begins at byte {start}, not at {data_end}"));
    }
    let crc = crc32fast::hash(&bytes[..len + CHECKED_FOOTER_LEN]);
    if footer.summary_crc != 0 && footer.summary_crc != crc {
        let stated = footer.summary_crc;
        return Err(format!("its checksum is {crc:08x} in place of {stated:08x}"));
    }
    let mut channels = Channels::default();
    let mut statistics: Option<Statistics> = None;
    for raw in Records::of(summary) {
        if raw.opcode == op::STATISTICS {
            let record = mcap::parse_record(raw.opcode, raw.body).map_err(|error| text(&error))?;
            if let Record::Statistics(found) = record {
                statistics = Some(found);
            }
        } else {
            channels.add(parse(&raw)?)?;
        }
    }
    let complete = |statistics: &Statistics| statistics.channel_count as usize == channels.len();
    Ok(statistics.filter(complete).map(|statistics| Summary { channels, statistics }))
}
