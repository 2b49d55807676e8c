//! What can go wrong between a client and its worker.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::protocol::RefusalCode;

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal, which was not the client's.
    Signal(i32),
    /// It lived, and the client has ended it.
    Ended,
    /// It does not die: the driver holds it. The card needs a reset.
    Stuck,
}

impl Exit {
    pub(crate) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Stuck,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Ended => f.write_str("ended by the client"),
            Self::Stuck => f.write_str("it cannot be killed; reset the card"),
        }
    }
}

/// Process that holds a card, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub Option<u32>);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("a process that has not told its number"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the device worker '{}' cannot be started: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },

    /// The worker that answers is not the one that is expected.
    #[error(
        "the device worker's {field} is '{found}', this node needs '{expected}' exactly; install that version or \
         name the worker that has it"
    )]
    Handshake { field: &'static str, expected: String, found: String },

    #[error(
        "device {device} is in use by {} ('{}'); end that process or choose another device",
        Holder(*pid), path.display()
    )]
    Busy { device: u32, pid: Option<u32>, path: PathBuf },

    #[error("the lock '{}' of the device cannot be taken: {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },

    /// The worker is no more: all that it held has to be made anew by another one.
    #[error("the device worker is gone ({exit}), its last request was '{request}'{}", Tail(stderr))]
    WorkerGone { exit: Exit, request: &'static str, stderr: String },

    /// The worker has been ended, since no reply came in time.
    #[error(
        "no reply to '{request}' within {waited:?}; the device worker was ended{}",
        Tail(stderr)
    )]
    Timeout { request: &'static str, waited: Duration, stderr: String },

    /// The worker has been ended, since it does not speak the protocol.
    #[error(
        "the device worker's reply to '{request}' is none: {reason}; it was ended{}",
        Tail(stderr)
    )]
    Garbage { request: &'static str, reason: String, stderr: String },

    #[error("'{request}' was refused ({code}): {message}")]
    Refused { request: &'static str, code: RefusalCode, message: String },

    /// The caller's mistake, found before anything was sent.
    #[error("'{request}': {problem}")]
    Argument { request: &'static str, problem: String },

    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

impl Error {
    /// Whether the worker has been lost with it.
    pub fn ends_worker(&self) -> bool {
        match self {
            Self::Refused { code, .. } => *code == RefusalCode::Device,
            Self::Argument { .. } => false,
            _ => true,
        }
    }

    /// The end of what the worker wrote, where the error has it and it wrote anything.
    pub fn last_words(&self) -> Option<&str> {
        match self {
            Self::WorkerGone { stderr, .. }
            | Self::Timeout { stderr, .. }
            | Self::Garbage { stderr, .. } => {
                Some(stderr.trim_end()).filter(|text| !text.is_empty())
            }
            _ => None,
        }
    }

    /// As a sentence, without [`Error::last_words`].
    pub fn sentence(&self) -> String {
        let mut text = self.to_string();
        if let Some(words) = self.last_words() {
            text.truncate(text.len() - WROTE_LAST.len() - words.len());
        }
        text
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// Between an error and the end of what the worker wrote.
const WROTE_LAST: &str = "; it wrote last:\n";

/// The end of what the worker wrote, if it wrote anything.
struct Tail<'a>(&'a str);

impl fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trim_end() {
            "" => Ok(()),
            text => write!(f, "{WROTE_LAST}{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_an_error_without_the_last_words() {
        let gone = |stderr: &str| Error::WorkerGone {
            exit: Exit::Signal(9),
            request: "replay",
            stderr: stderr.to_owned(),
        };
        let (silent, loud) = (gone(""), gone("TT_FATAL: no answer\n"));
        assert_eq!((silent.last_words(), silent.sentence()), (None, silent.to_string()));
        assert_eq!(loud.last_words(), Some("TT_FATAL: no answer"));
        assert_eq!(loud.sentence(), silent.to_string());
        assert!(loud.to_string().ends_with("it wrote last:\nTT_FATAL: no answer"), "{loud}");
    }
}
