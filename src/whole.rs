//! Files that are written beside their place and renamed when they are whole.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::NamedTempFile;

/// How the name of a file begins that is not yet whole, where a killed process may leave one behind.
pub const PARTIAL: &str = ".partial-";
/// A partial file of this age was left by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
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

/// A file in `dir` that other users may read as well, so that they need not make it again; its name begins with `prefix`.
pub fn partial_in(dir: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    let readable = Permissions::from_mode(0o644);
    tempfile::Builder::new().prefix(prefix).permissions(readable).tempfile_in(dir)
}

/// Removes the files whose names begin with `prefix` that killed processes have left in `dir`.
pub fn remove_abandoned(dir: &Path, prefix: &str) {
    let Ok(found) = fs::read_dir(dir) else { return };
    let partial = found.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(prefix));
    for entry in partial {
        let modified = entry.metadata().and_then(|about| about.modified());
        if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED)) {
            // Somebody else may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
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
