//! A small hub: HEAD and GET of `/{repo}/resolve/{revision}/{file}`, large files from a second address as from a CDN, and faults
//! on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use sha1::Sha1;
use sha2::{Digest, Sha256};

pub const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";
const PIECE: usize = 64 << 10;

/// A file on the hub.
#[derive(Clone)]
pub struct Stored {
    pub bytes: Arc<Vec<u8>>,
    /// Kept apart from the repository, and named by its SHA-256.
    pub large: bool,
}

impl Stored {
    pub fn tag(&self) -> String {
        if self.large {
            return hex(&Sha256::digest(&*self.bytes));
        }
        let mut hash = Sha1::new_with_prefix(format!("blob {}\0", self.bytes.len()));
        hash.update(&*self.bytes);
        hex(&hash.finalize())
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the server does wrong.
#[derive(Clone)]
pub enum Fault {
    /// An answer without the file, with headers.
    Status(u16, Vec<(&'static str, String)>),
    /// The connection ends after so many bytes of the content.
    Cut(usize),
    /// One byte of the content is another.
    Corrupt,
    /// A range is asked for, and the whole file comes.
    NoRanges,
    /// The HEAD answer tells another size.
    Size(usize),
    /// The HEAD answer tells an entity tag that is no hash.
    Tag(&'static str),
    /// More bytes come than the size says.
    Longer,
    /// Another commit than the one asked for.
    Commit(String),
    /// So many milliseconds between pieces of 64 KiB.
    Slow(u64),
}

/// A fault for requests whose method and path begin with, or contain, these.
struct Rule {
    method: &'static str,
    path: String,
    times: usize,
    fault: Fault,
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub cdn: bool,
    pub method: String,
    pub path: String,
    /// First byte that was asked for.
    pub from: Option<usize>,
    pub token: Option<String>,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Stored>,
    rules: Vec<Rule>,
    seen: Vec<Seen>,
    /// Bytes of content that were sent.
    sent: usize,
    token: Option<String>,
    main: Option<String>,
}

/// A hub on two ports of this machine, until it is dropped.
pub struct Hub {
    pub address: String,
    cdn: String,
    state: Arc<Mutex<State>>,
    end: Arc<AtomicBool>,
}

impl Hub {
    pub fn start() -> Self {
        let (hub, cdn) = (listener(), listener());
        let address =
            |listener: &TcpListener| format!("http://{}", listener.local_addr().expect("address"));
        let this = Self {
            address: address(&hub),
            cdn: address(&cdn),
            state: Arc::default(),
            end: Arc::default(),
        };
        for (listener, is_cdn) in [(hub, false), (cdn, true)] {
            let (state, cdn, end) = (this.state.clone(), this.cdn.clone(), this.end.clone());
            thread::spawn(move || {
                for stream in listener.incoming() {
                    if end.load(Ordering::Relaxed) {
                        return;
                    }
                    let (Ok(stream), state, cdn) = (stream, state.clone(), cdn.clone()) else {
                        continue;
                    };
                    thread::spawn(move || Connection { stream, state, cdn, is_cdn }.serve());
                }
            });
        }
        this
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("state")
    }

    /// Puts a file into the repository `repo`.
    pub fn put(&self, repo: &str, file: &str, bytes: Vec<u8>, large: bool) -> Stored {
        let stored = Stored { bytes: Arc::new(bytes), large };
        self.state().files.insert(format!("{repo}/{file}"), stored.clone());
        stored
    }

    /// The next `times` requests that fit meet this fault.
    pub fn fault(&self, method: &'static str, path: &str, times: usize, fault: Fault) {
        self.state().rules.push(Rule { method, path: path.to_owned(), times, fault });
    }

    /// Answers only those who have this token.
    pub fn require(&self, token: &str) {
        self.state().token = Some(token.to_owned());
    }

    /// The commit of the main branch, where it is another.
    pub fn set_main(&self, revision: &str) {
        self.state().main = Some(revision.to_owned());
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    pub fn sent(&self) -> usize {
        self.state().sent
    }

    /// Forgets requests, bytes and faults so far.
    pub fn forget(&self) {
        let mut state = self.state();
        state.seen.clear();
        state.rules.clear();
        state.sent = 0;
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // Wakes the threads that wait for connections.
        for address in [&self.address, &self.cdn] {
            drop(TcpStream::connect(address.trim_start_matches("http://")));
        }
    }
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("port")
}

struct Connection {
    stream: TcpStream,
    state: Arc<Mutex<State>>,
    cdn: String,
    is_cdn: bool,
}

impl Connection {
    /// Answers one request.
    fn serve(mut self) {
        let Some(seen) = self.read() else { return };
        let fault = {
            let mut state = self.state.lock().expect("state");
            state.seen.push(seen.clone());
            let fits = |rule: &&mut Rule| {
                rule.times > 0 && rule.method == seen.method && seen.path.contains(&rule.path)
            };
            state.rules.iter_mut().find(fits).map(|rule| {
                rule.times -= 1;
                rule.fault.clone()
            })
        };
        // A client that goes away is no fault of the server.
        let _ = match (&fault, self.is_cdn) {
            (Some(Fault::Status(status, headers)), _) => self.status(*status, headers),
            (_, true) => self.content(&seen, fault),
            (_, false) => self.resolve(&seen, fault),
        };
    }

    fn read(&self) -> Option<Seen> {
        let mut lines = BufReader::new(&self.stream).lines();
        let first = lines.next()?.ok()?;
        let mut words = first.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (mut from, mut token) = (None, None);
        for line in lines {
            let line = line.ok()?;
            let Some((name, value)) = line.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "range" => {
                    from = value.trim().strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
                }
                "authorization" => token = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        Some(Seen { cdn: self.is_cdn, method, path, from, token })
    }

    fn status(&mut self, status: u16, headers: &[(&'static str, String)]) -> std::io::Result<()> {
        let mut text = format!("HTTP/1.1 {status} x\r\nConnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !headers.iter().any(|(name, _)| *name == "Content-Length") {
            text += "Content-Length: 0\r\n";
        }
        write!(self.stream, "{text}\r\n")
    }

    /// `/{owner}/{name}/resolve/{revision}/{file}`, and the relative redirect to `/cached/...` for small files.
    fn resolve(&mut self, seen: &Seen, fault: Option<Fault>) -> std::io::Result<()> {
        let (token, main) = {
            let state = self.state.lock().expect("state");
            (state.token.clone(), state.main.clone().unwrap_or_else(|| REVISION.to_owned()))
        };
        if token.is_some_and(|token| seen.token != Some(format!("Bearer {token}"))) {
            let code = if seen.token.is_some() { "x" } else { "GatedRepo" };
            let message = "Access to this model is restricted".to_owned();
            let headers = [("X-Error-Code", code.to_owned()), ("X-Error-Message", message)];
            return self.status(if seen.token.is_some() { 403 } else { 401 }, &headers);
        }
        let (cached, path) = match seen.path.strip_prefix("/cached") {
            Some(path) => (true, path),
            None => (false, seen.path.as_str()),
        };
        let found =
            path.trim_start_matches('/').split_once("/resolve/").and_then(|(repo, rest)| {
                let (revision, file) = rest.split_once('/')?;
                let stored =
                    self.state.lock().expect("state").files.get(&format!("{repo}/{file}"))?.clone();
                Some((revision.to_owned(), stored))
            });
        let Some((revision, stored)) = found else {
            let headers = [
                ("X-Error-Code", "EntryNotFound".to_owned()),
                ("X-Error-Message", "Entry not found".to_owned()),
            ];
            return self.status(404, &headers);
        };
        let mut commit = if revision == "main" { main } else { revision };
        if let Some(Fault::Commit(other)) = &fault {
            commit = other.clone();
        }
        let size = match fault {
            Some(Fault::Size(size)) => size,
            _ => stored.bytes.len(),
        };
        let quoted = match fault {
            Some(Fault::Tag(tag)) => format!("\"{tag}\""),
            _ => format!("\"{}\"", stored.tag()),
        };
        let mut headers = vec![("X-Repo-Commit", commit)];
        if stored.large {
            let location = format!("{}/{}?Signature=secret", self.cdn, stored.tag());
            headers.push(("X-Linked-Etag", quoted));
            headers.push(("X-Linked-Size", size.to_string()));
            headers.push(("ETag", "\"that-of-the-redirect\"".to_owned()));
            headers.push(("Location", location));
            return self.status(302, &headers);
        }
        if !cached {
            headers.push(("Location", format!("/cached{path}")));
            return self.status(307, &headers);
        }
        if seen.method == "HEAD" {
            headers.push(("ETag", quoted));
            headers.push(("Content-Length", size.to_string()));
            return self.status(200, &headers);
        }
        self.send(seen, &stored, fault)
    }

    fn content(&mut self, seen: &Seen, fault: Option<Fault>) -> std::io::Result<()> {
        let tag = seen.path.trim_start_matches('/').split('?').next().unwrap_or_default();
        let stored = {
            let state = self.state.lock().expect("state");
            state.files.values().find(|stored| stored.large && stored.tag() == tag).cloned()
        };
        match stored {
            Some(stored) => self.send(seen, &stored, fault),
            None => self.status(404, &[]),
        }
    }

    fn send(&mut self, seen: &Seen, stored: &Stored, fault: Option<Fault>) -> std::io::Result<()> {
        let mut bytes = (*stored.bytes).clone();
        let total = bytes.len();
        let from = seen.from.filter(|_| !matches!(fault, Some(Fault::NoRanges)));
        if from.is_some_and(|from| from >= total) {
            return self.status(416, &[("Content-Range", format!("bytes */{total}"))]);
        }
        if matches!(fault, Some(Fault::Corrupt)) {
            bytes[total - 1] ^= 1;
        }
        let begin = from.unwrap_or(0);
        let mut announced = total - begin;
        if matches!(fault, Some(Fault::Longer)) {
            bytes.extend_from_slice(b"and more");
            announced += 8;
        }
        let headers = match from {
            Some(from) => format!("206 x\r\nContent-Range: bytes {from}-{}/{total}", total - 1),
            None => "200 x".to_owned(),
        };
        // Where more is sent, the length is left to the end of the connection.
        let length = match fault {
            Some(Fault::Longer) => String::new(),
            _ => format!("Content-Length: {announced}\r\n"),
        };
        write!(self.stream, "HTTP/1.1 {headers}\r\nConnection: close\r\n{length}\r\n")?;
        let end = match fault {
            Some(Fault::Cut(count)) => (begin + count).min(bytes.len()),
            _ => bytes.len(),
        };
        for piece in bytes[begin..end].chunks(PIECE) {
            if let Some(Fault::Slow(milliseconds)) = fault {
                thread::sleep(Duration::from_millis(milliseconds));
            }
            self.stream.write_all(piece)?;
            self.state.lock().expect("state").sent += piece.len();
        }
        self.stream.flush()
    }
}
