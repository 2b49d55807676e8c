//! Who owns a card.

use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::error::Error;

/// How long a lock that is taken may be without the number of a live process: a holder writes it at once.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// Longest content that is read: two process numbers.
const CONTENT_BYTES: u64 = 64;

/// The lock of a card. If this process ends early, it stays until the worker, which has its descriptor too, has ended.
#[derive(Debug)]
pub struct DeviceLock {
    file: File,
    path: PathBuf,
    worker: Option<u32>,
}

impl DeviceLock {
    /// Takes the lock, without waiting for its holder.
    ///
    /// # Errors
    /// [`Error::Busy`] where another process has it.
    pub fn take(dir: &Path, device: u32) -> Result<Self, Error> {
        let path = dir.join(format!("gr00t_blackhole_device_{device}.lock"));
        let failed = |source| Error::Lock { path: path.clone(), source };
        let file = open(&path).map_err(failed)?;
        let start = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            let pid = holder(&file);
            if pid.is_some() || start.elapsed() >= PATIENCE {
                return Err(Error::Busy { device, pid, path });
            }
            std::thread::sleep(PAUSE);
        }
        let mut lock = Self { file, path, worker: None };
        lock.write(&format!("{}\n", std::process::id()))?;
        Ok(lock)
    }

    /// The lock of a device that no other process can have: a file that nobody else sees.
    pub fn unshared() -> Result<Self, Error> {
        let made = tempfile::tempfile();
        let file =
            made.map_err(Error::system("a file for the lock of the device cannot be made"))?;
        Ok(Self { file, path: std::env::temp_dir(), worker: None })
    }

    /// Adds the worker's process, which may outlive this one.
    pub fn name_worker(&mut self, pid: u32) -> Result<(), Error> {
        self.worker = Some(pid);
        self.write(&format!("{}\n{pid}\n", std::process::id()))
    }

    fn write(&mut self, content: &str) -> Result<(), Error> {
        let mut write = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(content.as_bytes())
        };
        write().map_err(|source| Error::Lock { path: self.path.clone(), source })
    }
}

impl Drop for DeviceLock {
    /// Gives the lock back at once, even where a process that another thread is just starting has its descriptor. A worker
    /// that does not die keeps it.
    fn drop(&mut self) {
        if !self.worker.is_some_and(is_alive) {
            let _ = self.file.set_len(0);
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl AsFd for DeviceLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens the file, or makes it for all users. In a sticky directory the kernel refuses `O_CREAT` on a file of somebody else,
/// so it is opened first.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        other => return other,
    }
    match options.create_new(true).open(path) {
        Ok(file) => {
            file.set_permissions(Permissions::from_mode(0o666))?;
            Ok(file)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            File::options().read(true).write(true).open(path)
        }
        Err(error) => Err(error),
    }
}

/// The first process in the file that is alive.
fn holder(mut file: &File) -> Option<u32> {
    let mut content = String::new();
    file.rewind().ok()?;
    file.take(CONTENT_BYTES).read_to_string(&mut content).ok()?;
    // A last line without its line feed is still being written.
    let whole = &content[..content.rfind('\n')? + 1];
    whole.lines().filter_map(|line| line.parse().ok()).find(|pid| is_alive(*pid))
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::soon;

    #[test]
    fn case_84_a_second_owner_is_told_of_the_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = DeviceLock::take(dir.path(), 3).expect("a free lock");
        let start = Instant::now();
        let second = DeviceLock::take(dir.path(), 3).expect_err("a lock that is taken");
        assert!(start.elapsed() < PATIENCE);
        let Error::Busy { device: 3, pid, .. } = second else { panic!("{second}") };
        assert_eq!(pid, Some(std::process::id()));
        DeviceLock::take(dir.path(), 4).expect("the lock of another card");
        drop(first);
        DeviceLock::take(dir.path(), 3).expect("a lock that was given back");
    }

    #[test]
    fn what_nobody_shares_is_never_in_use() {
        let mut locks = [0; 2].map(|_| DeviceLock::unshared().expect("a file"));
        locks.iter_mut().for_each(|lock| lock.name_worker(1).expect("a written lock"));
    }

    #[test]
    fn numbers_of_dead_processes_are_passed_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut lock = DeviceLock::take(dir.path(), 0).expect("a free lock");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("its end");
        lock.write(&format!("{}\n{}\n", child.id(), std::process::id())).expect("a written lock");
        assert_eq!(holder(&lock.file), Some(std::process::id()));
        lock.write(&format!("{}\n", child.id())).expect("a written lock");
        assert_eq!(holder(&lock.file), None);
    }

    #[test]
    fn a_worker_that_lives_keeps_the_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut worker = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let mut lock = DeviceLock::take(dir.path(), 0).expect("a free lock");
        lock.name_worker(worker.id()).expect("a written lock");
        let descriptor = lock.file.try_clone().expect("the worker's descriptor");
        drop(lock);
        assert!(matches!(DeviceLock::take(dir.path(), 0), Err(Error::Busy { .. })));
        worker.kill().expect("a signal");
        worker.wait().expect("its end");
        drop(descriptor);
        assert!(soon(|| DeviceLock::take(dir.path(), 0).is_ok()), "a free lock");
    }

    #[test]
    fn a_directory_that_is_missing_is_named() {
        let fault = DeviceLock::take(Path::new("/proc/none"), 0).expect_err("no directory");
        assert!(fault.to_string().contains("/proc/none/gr00t_blackhole_device_0.lock"), "{fault}");
    }
}
