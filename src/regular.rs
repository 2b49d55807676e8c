//! Files as a whole, of which nothing but their names is known.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// All of a file of at most `limit` bytes. A pipe or a device would keep the reader waiting, or never end.
///
/// # Errors
/// No regular file, a larger one, or what the file system reports.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// As [`read`], of text.
///
/// # Errors
/// As [`read`]; bytes that are not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert!(read(&path, 3).unwrap_err().to_string().contains("more than 3 bytes"));
        fs::write(&path, [0xFF]).unwrap();
        assert_eq!(read_text(&path, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
        for other in [Path::new("/dev/zero"), dir.path()] {
            assert!(read(other, 9).unwrap_err().to_string().contains("no regular file"));
        }
        assert_eq!(read(Path::new("nowhere"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
