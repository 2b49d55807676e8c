//! Requests and replies of one worker, until it is lost.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::connection::{Connection, Lost};
use crate::error::{Error, Exit};
use crate::process::Process;
use crate::protocol::{Refusal, RefusalCode, Reply, Request, encode};

/// How long a process whose socket has ended may take to end by itself, and tell its status.
const GRACE: Duration = Duration::from_secs(2);

/// What is left of a worker that is lost.
#[derive(Clone)]
struct Remains {
    exit: Exit,
    request: &'static str,
    stderr: String,
}

/// A worker that has connected.
pub struct Link {
    connection: Connection,
    process: Process,
    last_id: u64,
    remains: Option<Remains>,
}

impl Link {
    pub fn new(connection: Connection, process: Process) -> Self {
        Self { connection, process, last_id: 0, remains: None }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn is_alive(&self) -> bool {
        self.remains.is_none()
    }

    /// What the worker says first, of which it has been asked at `start`.
    pub fn hello<T: DeserializeOwned>(
        &mut self,
        start: Instant,
        wait: Duration,
    ) -> Result<T, Error> {
        self.reply("hello", 0, start, wait)
    }

    /// Sends a request and waits for its reply.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        request: &Request<'_>,
        descriptors: &[BorrowedFd<'_>],
        wait: Duration,
    ) -> Result<T, Error> {
        let name = request.name();
        if let Some(Remains { exit, request, stderr }) = self.remains.clone() {
            return Err(Error::WorkerGone { exit, request, stderr });
        }
        let id = self.last_id + 1;
        let frame = encode(id, request).map_err(|error| {
            let problem = error.to_string();
            Error::Argument { request: name, problem }
        })?;
        self.last_id = id;
        let start = Instant::now();
        let sent = self.connection.send(&frame, descriptors, self.process.as_fd(), start + wait);
        // A worker that refuses and leaves may have said why before it has read everything.
        if let Err(lost @ (Lost::Late | Lost::Garbage(_))) = sent {
            return Err(self.lose(name, lost, start));
        }
        self.reply(name, id, start, wait)
    }

    /// Ends a worker whose reply has the right form and makes no sense.
    pub fn reject(&mut self, request: &'static str, reason: String) -> Error {
        self.lose(request, Lost::Garbage(reason), Instant::now())
    }

    fn reply<T: DeserializeOwned>(
        &mut self,
        request: &'static str,
        id: u64,
        start: Instant,
        wait: Duration,
    ) -> Result<T, Error> {
        let body = self.connection.receive(self.process.as_fd(), start + wait);
        let reply = body.and_then(|body| parse(&body, id));
        let value = match reply {
            Ok(Ok(value)) => value,
            Ok(Err(refusal)) => return Err(self.refused(request, refusal)),
            Err(lost) => return Err(self.lose(request, lost, start)),
        };
        serde_json::from_value(value)
            .map_err(|error| self.lose(request, Lost::Garbage(error.to_string()), start))
    }

    fn refused(&mut self, request: &'static str, refusal: Refusal) -> Error {
        let Refusal { code, message } = refusal;
        if code == RefusalCode::Device {
            self.process.has_ended_within(GRACE);
            self.bury(request);
        }
        Error::Refused { request, code, message }
    }

    fn lose(&mut self, request: &'static str, lost: Lost, start: Instant) -> Error {
        let waited = start.elapsed();
        if matches!(lost, Lost::Ended) {
            self.process.has_ended_within(GRACE);
        }
        let Remains { exit, stderr, .. } = self.bury(request);
        match lost {
            Lost::Ended => Error::WorkerGone { exit, request, stderr },
            Lost::Late => Error::Timeout { request, waited, stderr },
            Lost::Garbage(reason) => Error::Garbage { request, reason, stderr },
        }
    }

    /// Ends the worker, which is not to be asked anything more.
    fn bury(&mut self, request: &'static str) -> Remains {
        let exit = self.process.end();
        let remains = Remains { exit, request, stderr: self.process.last_words() };
        self.remains = Some(remains.clone());
        remains
    }

    /// Waits so long for a worker that has been told to end, then ends it.
    pub fn finish(&mut self, wait: Duration) -> Exit {
        self.process.has_ended_within(wait);
        self.bury("close").exit
    }
}

/// `Ok(Err(_))` is a refusal.
fn parse(body: &[u8], id: u64) -> Result<Result<serde_json::Value, Refusal>, Lost> {
    let reply: Reply =
        serde_json::from_slice(body).map_err(|error| Lost::Garbage(error.to_string()))?;
    if reply.id != id {
        return Err(Lost::Garbage(format!("it is numbered {}, the request {id}", reply.id)));
    }
    match (reply.ok, reply.error) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(refusal)) => Ok(Err(refusal)),
        _ => Err(Lost::Garbage("it has to have either 'ok' or 'error'".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_checked() {
        let is_garbage = |body: &str| matches!(parse(body.as_bytes(), 3), Err(Lost::Garbage(_)));
        assert!(is_garbage("{"));
        assert!(is_garbage(r#"{"id": 3}"#));
        assert!(is_garbage(r#"{"id": 4, "ok": {}}"#));
        assert!(is_garbage(r#"{"id": 3, "ok": {}, "more": 1}"#));
        assert!(is_garbage(r#"{"id": 3, "error": {"code": "whim", "message": ""}}"#));
        assert!(matches!(parse(br#"{"id": 3, "ok": {}}"#, 3), Ok(Ok(_))));
        let refusal = r#"{"id": 3, "error": {"code": "not_warm", "message": "m"}}"#;
        let Ok(Err(refusal)) = parse(refusal.as_bytes(), 3) else { panic!("no refusal") };
        assert_eq!(refusal.code, RefusalCode::NotWarm);
    }
}
