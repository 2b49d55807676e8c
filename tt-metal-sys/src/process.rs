//! The worker as a process: started, watched, ended.

mod tail;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::Timespec;

use crate::command::WorkerCommand;
use crate::error::{Error, Exit};
use tail::Tail;

/// How long a killed process may take to be gone. One that a driver holds takes for ever.
const BURIAL: Duration = Duration::from_secs(5);

/// How long output is waited for that a dead process has written: a compiler that it had started may hold its end open.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// A worker and all that it has started.
pub struct Process {
    child: Option<Child>,
    group: Pid,
    pidfd: OwnedFd,
    tail: Tail,
    exit: Option<Exit>,
}

impl Process {
    pub fn start(command: &WorkerCommand, socket: &Path) -> Result<Self, Error> {
        let spawn = || -> io::Result<(Child, Tail)> {
            let (reader, writer) = io::pipe()?;
            let mut process = Command::new(&command.program);
            process
                .args(&command.args)
                .arg("--socket")
                .arg(socket)
                .envs(command.env.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::null())
                .stdout(writer.try_clone()?)
                .stderr(writer)
                .process_group(0);
            let child = process.spawn()?;
            Ok((child, Tail::of(reader)?))
        };
        let failed = |source| Error::Spawn { program: command.program.clone(), source };
        let (mut child, tail) = spawn().map_err(failed)?;
        match watch(&child) {
            Ok((group, pidfd)) => Ok(Self { child: Some(child), group, pidfd, tail, exit: None }),
            Err(source) => {
                // Its death is all that is wanted here; `failed` tells why.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(source))
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it has ended, waiting so long for it.
    pub fn has_ended_within(&self, wait: Duration) -> bool {
        let start = Instant::now();
        loop {
            let left = wait.saturating_sub(start.elapsed());
            match wait_readable(&[self.pidfd.as_fd()], left) {
                Ok(ready) => return ready[0],
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends it, if it lives, with all that it has started; tells how it ended. Returns within seconds.
    pub fn end(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let by_itself = self.has_ended_within(Duration::ZERO);
        // The number of the group stays reserved until the leader is waited for, below.
        let _ = kill_process_group(self.group, Signal::KILL);
        let ended = self.has_ended_within(BURIAL);
        let exit = match self.child.take() {
            Some(mut child) if ended => match child.wait() {
                Ok(status) if by_itself => Exit::of(status),
                _ => Exit::Ended,
            },
            Some(mut child) => {
                std::thread::spawn(move || child.wait());
                Exit::Stuck
            }
            None => Exit::Ended,
        };
        self.exit = Some(exit);
        exit
    }

    /// The end of what it has written.
    pub fn last_words(&self) -> String {
        self.tail.text(LAST_WORDS)
    }
}

impl AsFd for Process {
    /// Becomes readable when the process ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(child: &Child) -> io::Result<(Pid, OwnedFd)> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("its process number is none"))?;
    Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
}

/// Waits until one of these descriptors is readable or has ended; which ones are.
pub fn wait_readable<const N: usize>(
    fds: &[BorrowedFd<'_>; N],
    wait: Duration,
) -> Result<[bool; N], Errno> {
    wait_for(&fds.map(|fd| (fd, PollFlags::IN)), wait)
}

/// Waits until one of these descriptors is ready for what stands beside it.
pub fn wait_for<const N: usize>(
    fds: &[(BorrowedFd<'_>, PollFlags); N],
    wait: Duration,
) -> Result<[bool; N], Errno> {
    let mut polled = fds.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
    let wait = Timespec::try_from(wait).ok();
    poll(&mut polled, wait.as_ref())?;
    Ok(polled.map(|fd| !fd.revents().is_empty()))
}
