//! Frames over a socket, with deadlines.

use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::process::wait_for;
use crate::protocol::decode_length;

/// Descriptors that `open` carries.
const MOST_DESCRIPTORS: usize = 3;

/// Why there is no frame.
#[derive(Debug)]
pub enum Lost {
    /// The other side is gone.
    Ended,
    /// The deadline has passed.
    Late,
    /// What has come is no frame.
    Garbage(String),
}

/// A socket whose other end is held by a process.
pub struct Connection {
    socket: UnixStream,
}

impl Connection {
    pub fn new(socket: UnixStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Sends bytes; the descriptors go with the first of them.
    pub fn send(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
        process: BorrowedFd<'_>,
        deadline: Instant,
    ) -> Result<(), Lost> {
        let mut sent = 0;
        while sent < bytes.len() {
            let descriptors = if sent == 0 { descriptors } else { &[] };
            match self.send_some(&bytes[sent..], descriptors) {
                Ok(more) => sent += more,
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, process, deadline)?,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Lost::Ended),
            }
        }
        Ok(())
    }

    fn send_some(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Errno::INVAL);
        }
        sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
    }

    /// The body of the next frame.
    pub fn receive(&self, process: BorrowedFd<'_>, deadline: Instant) -> Result<Vec<u8>, Lost> {
        let mut head = [0; 4];
        self.fill(&mut head, process, deadline)?;
        let bytes = decode_length(head).map_err(|error| Lost::Garbage(error.to_string()))?;
        let mut body = vec![0; bytes];
        self.fill(&mut body, process, deadline)?;
        Ok(body)
    }

    fn fill(
        &self,
        into: &mut [u8],
        process: BorrowedFd<'_>,
        deadline: Instant,
    ) -> Result<(), Lost> {
        let mut filled = 0;
        while filled < into.len() {
            match (&self.socket).read(&mut into[filled..]) {
                Ok(0) => return Err(Lost::Ended),
                Ok(more) => filled += more,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => self.wait(PollFlags::IN, process, deadline)?,
                    Some(Errno::INTR) => {}
                    _ => return Err(Lost::Ended),
                },
            }
        }
        Ok(())
    }

    /// Until the socket is ready. What a process has sent before it ended is still read: the socket goes first.
    fn wait(
        &self,
        flags: PollFlags,
        process: BorrowedFd<'_>,
        deadline: Instant,
    ) -> Result<(), Lost> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let watched = [(self.socket.as_fd(), flags), (process, PollFlags::IN)];
            match wait_for(&watched, left) {
                Ok([true, _]) => return Ok(()),
                Ok([false, true]) => return Err(Lost::Ended),
                Ok([false, false]) if left == Duration::ZERO => return Err(Lost::Late),
                Ok([false, false]) | Err(Errno::INTR) => {}
                Err(_) => return Err(Lost::Ended),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A connection, its other end, and a descriptor that never becomes ready.
    fn connection() -> (Connection, UnixStream, (std::io::PipeReader, std::io::PipeWriter)) {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        (Connection::new(near).expect("a socket"), far, std::io::pipe().expect("a pipe"))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(30)
    }

    #[test]
    fn half_a_frame_is_waited_for_until_the_deadline() {
        let (connection, mut far, pipe) = connection();
        far.write_all(&[8, 0, 0, 0, b'{']).expect("room");
        assert!(matches!(connection.receive(pipe.0.as_fd(), soon()), Err(Lost::Late)));
    }

    #[test]
    fn a_frame_is_read_after_its_sender_is_gone() {
        let (connection, mut far, pipe) = connection();
        far.write_all(&[2, 0, 0, 0, b'{', b'}']).expect("room");
        drop((far, pipe.1));
        assert_eq!(connection.receive(pipe.0.as_fd(), soon()).ok(), Some(b"{}".to_vec()));
        assert!(matches!(connection.receive(pipe.0.as_fd(), soon()), Err(Lost::Ended)));
    }

    #[test]
    fn nobody_reads() {
        let (connection, _far, pipe) = connection();
        let much = vec![0; 16 << 20];
        assert!(matches!(connection.send(&much, &[], pipe.0.as_fd(), soon()), Err(Lost::Late)));
    }

    #[test]
    fn a_length_without_bounds_is_no_frame() {
        let (connection, mut far, pipe) = connection();
        far.write_all(b"Traceback").expect("room");
        let lost = connection.receive(pipe.0.as_fd(), soon());
        assert!(matches!(lost, Err(Lost::Garbage(_))));
    }
}
