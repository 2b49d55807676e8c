//! Files that are written beside their place and renamed when they are whole.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// As a file that is made in the usual way; the process's mask takes from it.
const MODE: u32 = 0o666;

/// Writes the file `path`, which may be there: who reads it sees all of the old one or all of the new one. A link stays
/// one, and what is no file, such as a pipe or `/dev/stdout`, is written to where it is.
///
/// # Errors
/// What the file system reports; the old file is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = match path.metadata() {
        Ok(found) if !found.is_file() => return fs::write(path, bytes),
        Ok(_) => &path.canonicalize()?,
        Err(_) => path,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // A missing folder is not told with the name of a file that nobody asked for.
    folder.metadata()?;
    let mut partial =
        tempfile::Builder::new().permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?;
    partial.write_all(bytes)?;
    partial.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        for text in ["old", "new"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let usual = folder.path().join("usual");
        fs::write(&usual, "").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&usual));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn links_stay_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink() && fs::read_to_string(&file).unwrap() == "new");
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), b"x").is_err());
        assert!(write(&folder.path().join("nothing/file"), b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
