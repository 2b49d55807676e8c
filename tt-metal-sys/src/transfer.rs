//! How bytes of a buffer are cut into pieces that fit the staging memory.

use std::ops::Range;

use crate::device::Buffer;
use crate::error::Error;

/// Pieces of `bytes` bytes that begin at `offset` of the buffer, as ranges of the caller's bytes.
pub fn pieces(
    request: &'static str,
    buffer: &Buffer,
    offset: u64,
    bytes: usize,
    staging: usize,
) -> Result<Vec<Range<usize>>, Error> {
    check(request, buffer, offset, bytes)?;
    let granule = buffer.granule.min(buffer.bytes);
    let whole = (staging as u64 / granule).saturating_mul(granule);
    if whole == 0 {
        let problem = format!(
            "{} has granules of {granule} bytes, the staging memory has {staging}; open the device with more",
            buffer.label()
        );
        return Err(Error::Argument { request, problem });
    }
    let step = usize::try_from(whole).unwrap_or(usize::MAX);
    let starts = (0..bytes).step_by(step);
    Ok(starts.map(|start| start..bytes.min(start.saturating_add(step))).collect())
}

/// That a part lies within the buffer, on its granules.
pub fn check(
    request: &'static str,
    buffer: &Buffer,
    offset: u64,
    bytes: usize,
) -> Result<(), Error> {
    let end = offset.checked_add(bytes as u64).filter(|end| *end <= buffer.bytes);
    let on_granule = |place: u64| place.is_multiple_of(buffer.granule) || place == buffer.bytes;
    let problem = match end {
        None => format!(
            "{bytes} bytes from {offset} on do not lie in {} of {} bytes",
            buffer.label(),
            buffer.bytes
        ),
        Some(end) if bytes == 0 || !on_granule(offset) || !on_granule(end) => format!(
            "{bytes} bytes from {offset} on; parts of {} begin and end at multiples of {} or at its end ({})",
            buffer.label(),
            buffer.granule,
            buffer.bytes
        ),
        Some(_) => return Ok(()),
    };
    Err(Error::Argument { request, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes: u64, granule: u64) -> Buffer {
        Buffer { id: 1, name: "x".to_owned(), address: 0, bytes, granule }
    }

    #[test]
    fn pieces_cover_the_bytes_in_order() {
        let cut = |bytes, staging| {
            let pieces = pieces("upload", &buffer(1000, 100), 0, bytes, staging).ok()?;
            Some(pieces.into_iter().map(|piece| (piece.start, piece.end)).collect::<Vec<_>>())
        };
        assert_eq!(cut(500, 250), Some(vec![(0, 200), (200, 400), (400, 500)]));
        assert_eq!(cut(300, 4096), Some(vec![(0, 300)]));
        assert_eq!(cut(1000, 99), None, "no granule fits");
        assert!(
            pieces("upload", &buffer(50, 100), 0, 50, 64).is_ok(),
            "a buffer below its granule"
        );
    }

    #[test]
    fn parts_stand_on_granules() {
        let fits = |offset, bytes| check("read", &buffer(950, 100), offset, bytes).is_ok();
        assert!(fits(0, 950) && fits(900, 50) && fits(100, 200));
        assert!(!fits(0, 951) && !fits(50, 50) && !fits(100, 50) && !fits(100, 0));
        assert!(!fits(u64::MAX, 100));
    }
}
