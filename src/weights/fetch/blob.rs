//! One file: downloaded, hashed on the way, put into the cache, put into the snapshot.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use ureq::Body;
use ureq::http::{HeaderMap, Response, StatusCode, header};

use super::claim::Claim;
use super::http::{Client, Remote, host};
use super::http_error::HttpError;
use super::part::Part;
use super::pool::Stop;
use super::retry::Retry;
use super::{FetchError, Watcher};
use crate::weights::cache::RepoCache;
use crate::weights::hash::{Content, Hashes};
use crate::weights::lock::FileEntry;

const PIECE_BYTES: usize = 1 << 20;

/// What all files of a repository have in common.
pub struct Work<'a> {
    pub client: &'a Client<'a>,
    pub cache: &'a RepoCache,
    pub repo: &'a str,
    pub retry: Retry,
    pub watcher: &'a dyn Watcher,
    pub stop: &'a Stop,
}

/// A file that is to be in the cache.
pub struct Wanted<'a> {
    pub path: &'a str,
    pub entry: &'a FileEntry,
    pub remote: Remote,
}

/// Why an attempt ended.
enum Ended {
    Request(Box<HttpError>),
    Otherwise(FetchError),
}

impl From<HttpError> for Ended {
    fn from(error: HttpError) -> Self {
        Self::Request(Box::new(error))
    }
}

impl From<FetchError> for Ended {
    fn from(error: FetchError) -> Self {
        Self::Otherwise(error)
    }
}

impl Work<'_> {
    /// Repeats a request until it succeeds, or fails in a way that does not pass, or its patience is at an end.
    pub fn retried<T>(
        &self,
        file: &str,
        request: impl Fn() -> Result<T, HttpError>,
    ) -> Result<T, FetchError> {
        let mut failed = 0;
        loop {
            match request() {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    failed += 1;
                    self.wait(file, failed, Box::new(error))?;
                }
            }
        }
    }

    /// Waits after the `failed`-th attempt in vain.
    fn wait(&self, file: &str, failed: u32, error: Box<HttpError>) -> Result<(), FetchError> {
        let (repo, file) = (self.repo.to_owned(), file.to_owned());
        if !error.passes() {
            return Err(FetchError::Http { repo, file, error });
        }
        if failed >= self.retry.attempts {
            return Err(FetchError::GivenUp { repo, file, attempts: failed, error });
        }
        let time = self.retry.wait(failed, error.retry_after());
        let seconds = time.as_secs_f64();
        self.watcher.note(&format!("{file}: {error}; next attempt in {seconds:.0} s"));
        self.stop.sleep(time)
    }

    /// Sees to it that a file is in the snapshot; `true` if it was downloaded.
    pub fn fetch(&self, wanted: &Wanted<'_>) -> Result<bool, FetchError> {
        let Remote { revision, tag, size } = &wanted.remote;
        let blob = self.cache.blob(tag);
        let other = || {
            self.watcher.note(&format!("{}: waiting for another process", wanted.path));
        };
        let _claim = Claim::wait(&self.cache.lock_file(tag), self.stop, &other)?;
        let downloaded = !has_size(&blob, *size);
        if downloaded {
            self.download(wanted, &blob)?;
        }
        let linked = self.cache.link(revision, wanted.path, tag);
        linked.map_err(|(path, error)| FetchError::io(path, error))?;
        self.watcher.end(wanted.path);
        Ok(downloaded)
    }

    fn download(&self, wanted: &Wanted<'_>, blob: &Path) -> Result<(), FetchError> {
        let Remote { tag, size, .. } = &wanted.remote;
        let content = Content::of_tag(tag);
        if content.is_none() && wanted.entry.sha256.is_none() {
            self.watcher
                .note(&format!("{}: the hub names no hash; only its size is checked", wanted.path));
        }
        let path = self.cache.incomplete(tag);
        let mut part = Part::open(&path, *size, content.as_ref(), self.stop)?;
        let mut left_by_another_run = part.length() > 0;
        loop {
            self.watcher.at(wanted.path, part.length());
            self.complete(wanted, &mut part)?;
            let hashes = part.hashes();
            match self.mismatch(wanted, content.as_ref(), &hashes) {
                None => return part.finish(blob),
                // What was left may have been damaged; that is tried once.
                Some(_) if left_by_another_run => {
                    left_by_another_run = false;
                    self.watcher
                        .note(&format!("{}: begun anew, what was left is damaged", wanted.path));
                    part.restart()?;
                }
                Some(error) => {
                    part.discard();
                    return Err(error);
                }
            }
        }
    }

    fn mismatch(
        &self,
        wanted: &Wanted<'_>,
        content: Option<&Content>,
        hashes: &Hashes,
    ) -> Option<FetchError> {
        let (repo, file) = (self.repo.to_owned(), wanted.path.to_owned());
        if let Some([expected, found]) = content.and_then(|content| hashes.mismatch(content)) {
            return Some(FetchError::Damaged { repo, file, expected, found });
        }
        let expected = wanted.entry.sha256.clone().filter(|locked| *locked != hashes.sha256)?;
        Some(FetchError::HashNotLocked { repo, file, expected, found: hashes.sha256.clone() })
    }

    /// Downloads until the part is whole. Only attempts that bring nothing use up the patience.
    fn complete(&self, wanted: &Wanted<'_>, part: &mut Part) -> Result<(), FetchError> {
        let mut failed = 0;
        while !part.is_whole() {
            let before = part.length();
            match self.attempt(wanted, part) {
                Ok(()) => return Ok(()),
                Err(Ended::Otherwise(error)) => return Err(error),
                Err(Ended::Request(error)) => {
                    failed = if part.length() > before { 1 } else { failed + 1 };
                    self.wait(wanted.path, failed, error)?;
                }
            }
        }
        Ok(())
    }

    fn attempt(&self, wanted: &Wanted<'_>, part: &mut Part) -> Result<(), Ended> {
        self.stop.check()?;
        let Remote { revision, size, .. } = &wanted.remote;
        let (address, response) = self
            .client
            .read(self.repo, revision, wanted.path, part.length())
            .map_err(Ended::from)?;
        let host = host(&address);
        let begin = first_byte(&response);
        if begin != Some(part.length()) {
            // The server knows no ranges, or not this one.
            part.restart()?;
            self.watcher.at(wanted.path, 0);
        }
        if begin.is_none_or(|begin| begin > 0 && begin != part.length()) {
            let error = io::Error::other("the server gives another range than the one asked for");
            return Err(Ended::from(HttpError::Cut { have: 0, size: *size, error }));
        }
        if let Some(found) = total(&response).filter(|total| total != size) {
            let found = format!("a file of {found} bytes");
            return Err(Ended::from(HttpError::Size { host, size: *size, found }));
        }
        self.receive(wanted, part, response.into_body(), &host)
    }

    fn receive(
        &self,
        wanted: &Wanted<'_>,
        part: &mut Part,
        body: Body,
        host: &str,
    ) -> Result<(), Ended> {
        let size = wanted.remote.size;
        let cut = |have, error| Ended::from(HttpError::Cut { have, size, error });
        let mut reader = body.into_reader();
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            self.stop.check()?;
            match reader.read(&mut buffer) {
                Ok(0) if part.is_whole() => return Ok(()),
                Ok(0) => {
                    return Err(cut(part.length(), io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(count) if count as u64 > size - part.length() => {
                    let (host, found) = (host.to_owned(), "more".to_owned());
                    return Err(Ended::from(HttpError::Size { host, size, found }));
                }
                Ok(count) => {
                    part.append(&buffer[..count])?;
                    self.watcher.at(wanted.path, part.length());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cut(part.length(), error)),
            }
        }
    }
}

fn has_size(path: &Path, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == size)
}

/// At which byte of the file the answer begins; `None` if it has no part of the file.
fn first_byte(response: &Response<Body>) -> Option<u64> {
    match response.status() {
        StatusCode::OK => Some(0),
        StatusCode::PARTIAL_CONTENT => content_range(response.headers()).map(|(begin, _)| begin),
        _ => None,
    }
}

/// How long the whole file is, as far as the answer says it.
fn total(response: &Response<Body>) -> Option<u64> {
    match response.status() {
        StatusCode::PARTIAL_CONTENT => content_range(response.headers())?.1,
        _ => response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok(),
    }
}

/// First byte and total of `bytes 10-19/20`; the total may be `*`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    let (range, total) = text.split_once('/')?;
    let (begin, _) = range.split_once('-')?;
    Some((begin.trim().parse().ok()?, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_servers_write_them() {
        let range = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_RANGE, text.parse().expect("header"));
            content_range(&headers)
        };
        assert_eq!(range("bytes 10-19/20"), Some((10, Some(20))));
        assert_eq!(range("bytes 10-19/*"), Some((10, None)));
        for wrong in ["bytes */20", "items 1-2/3", "bytes 5", ""] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }
}
