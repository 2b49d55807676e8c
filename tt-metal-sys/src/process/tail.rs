//! The end of what a process writes.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are kept.
const KEPT_BYTES: usize = 16 * 1024;

#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    ended: bool,
}

#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    end: Condvar,
}

/// Read by a thread of its own, which ends with the last process that can write.
pub struct Tail(Arc<Shared>);

impl Tail {
    pub fn of(reader: PipeReader) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let tail = Self(Arc::clone(&shared));
        std::thread::Builder::new()
            .name("device-worker-log".to_owned())
            .spawn(move || keep(reader, &shared))?;
        Ok(tail)
    }

    /// What has come, waiting so long for its end.
    pub fn text(&self, wait: Duration) -> String {
        let kept = lock(&self.0.kept);
        let waited = self.0.end.wait_timeout_while(kept, wait, |kept| !kept.ended);
        let mut kept = waited.unwrap_or_else(PoisonError::into_inner).0;
        String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned()
    }
}

fn keep(mut reader: PipeReader, shared: &Shared) {
    let mut buffer = [0; 4096];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => {
                let mut kept = lock(&shared.kept);
                kept.bytes.extend(&buffer[..bytes]);
                let surplus = kept.bytes.len().saturating_sub(KEPT_BYTES);
                kept.bytes.drain(..surplus);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    lock(&shared.kept).ended = true;
    shared.end.notify_all();
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_end_is_kept() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let tail = Tail::of(reader).expect("a thread");
        writer.write_all(&vec![b'a'; KEPT_BYTES]).expect("room");
        writer.write_all(b"end").expect("room");
        drop(writer);
        let text = tail.text(Duration::from_secs(5));
        assert_eq!((text.len(), text.ends_with("aaend")), (KEPT_BYTES, true));
    }

    #[test]
    fn a_writer_that_stays_is_not_waited_for() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let tail = Tail::of(reader).expect("a thread");
        writer.write_all(b"so far").expect("room");
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(tail.text(Duration::from_millis(20)), "so far");
    }
}
