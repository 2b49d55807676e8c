//! The machine as the checks see it: files below a root, environment variables, and who runs this.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A machine. Tests give another root and another environment.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
    environment: BTreeMap<String, String>,
}

/// Room of a file system, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub free: u64,
}

/// Who runs this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    /// The group of new files, and the supplementary ones.
    pub groups: Vec<u32>,
}

impl System {
    /// This machine.
    pub fn here() -> Self {
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self { root: "/".into(), environment: environment.collect() }
    }

    #[cfg(test)]
    pub fn fake(root: &Path, environment: &[(&str, &str)]) -> Self {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Self { root: root.to_owned(), environment: environment.iter().map(owned).collect() }
    }

    /// Where an absolute path of the machine really is.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// A text file without surrounding white space; `None` if it cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    /// A file that holds one number, as those of `/proc/sys` do.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// Names in a folder, sorted; none if it cannot be read.
    pub fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// An environment variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Room of the file system that `path` is on.
    pub fn space(&self, path: impl AsRef<Path>) -> Option<Space> {
        let disk = rustix::fs::statvfs(self.path(path)).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Space { total: bytes(disk.f_blocks), free: bytes(disk.f_bavail) })
    }

    /// Who runs this process, by `/proc/self/status`.
    pub fn user(&self) -> Option<User> {
        let status = self.read("/proc/self/status")?;
        let numbers = |name: &str| -> Option<Vec<u32>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        // Real, effective, saved and file-system ids; the effective one counts.
        let uid = *numbers("Uid:")?.get(1)?;
        let mut groups = numbers("Groups:").unwrap_or_default();
        groups.extend(numbers("Gid:").unwrap_or_default().get(1));
        Some(User { uid, groups })
    }

    /// Whether this is a container, by the marks that Docker, Podman and Kubernetes leave.
    pub fn in_container(&self) -> bool {
        ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| self.exists(mark))
            || self.variable("KUBERNETES_SERVICE_HOST").is_some()
            || self.variable("container").is_some()
    }
}

/// Bytes for people.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    match UNITS.into_iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / size as f64),
        None => format!("{count} bytes"),
    }
}

#[cfg(test)]
pub mod testing {
    use super::System;

    /// A machine that has these files, and nothing else.
    pub struct Fake {
        pub folder: tempfile::TempDir,
        pub system: System,
    }

    impl Fake {
        pub fn new(files: &[(&str, &str)], environment: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().expect("temporary folder");
            let system = System::fake(folder.path(), environment);
            for (path, text) in files {
                let path = system.path(path);
                std::fs::create_dir_all(path.parent().expect("folder")).expect("folder");
                std::fs::write(path, text).expect("file");
            }
            Self { folder, system }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Fake;
    use super::*;

    #[test]
    fn files_numbers_and_variables() {
        let files =
            [("/proc/sys/net/core/rmem_max", "212992\n"), ("/dev/shm/b", ""), ("/dev/shm/a", "")];
        let fake = Fake::new(&files, &[("SET", "x"), ("EMPTY", "")]);
        let system = &fake.system;
        assert_eq!(system.number("/proc/sys/net/core/rmem_max"), Some(212_992));
        assert_eq!(system.number("/no/such"), None);
        assert_eq!(system.names("/dev/shm"), ["a", "b"]);
        assert!(system.names("/no/such").is_empty());
        assert_eq!((system.variable("SET"), system.variable("EMPTY")), (Some("x"), None));
        assert!(system.space("/dev/shm").expect("file system").total > 0);
        assert_eq!(system.space("/no/such"), None);
    }

    #[test]
    fn the_effective_user_counts() {
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t6\t6\t6\nGroups:\t20 44 \n";
        let fake = Fake::new(&[("/proc/self/status", status)], &[]);
        let user = fake.system.user().expect("user");
        assert_eq!((user.uid, user.groups), (0, vec![20, 44, 6]));
    }

    #[test]
    fn containers_leave_marks() {
        assert!(!Fake::new(&[], &[]).system.in_container());
        assert!(Fake::new(&[("/.dockerenv", "")], &[]).system.in_container());
        assert!(Fake::new(&[], &[("container", "podman")]).system.in_container());
    }

    #[test]
    fn bytes_for_people() {
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(33_554_432), "33.6 MB");
        assert_eq!(bytes(6_600_000_000), "6.6 GB");
    }
}
